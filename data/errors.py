"""The errors a user can meet: what happened, where (file, line, field), and what to do."""

from __future__ import annotations


class ToolcribError(Exception):
    """Base of every error that toolcrib raises on purpose. The command line exits with code 2 on it."""


class InputError(ToolcribError):
    """Input that cannot be used: names the source, and the line and the field where there is one."""

    def __init__(
        self, problem: str, *, source: str = "", line: int | None = None, field: str = "", hint: str = ""
    ) -> None:
        self.problem, self.source, self.line, self.field, self.hint = problem, source, line, field, hint
        where = ", ".join(
            part
            for part in (source, f"line {line}" if line is not None else "", f"field '{field}'" if field else "")
            if part
        )
        message = f"{where}: {problem}" if where else problem
        super().__init__(f"{message} ({hint})" if hint else message)


class BundleError(ToolcribError):
    """A bundle that must not be served: a missing, changed or unknown file, or another form of bundle."""


class PolicyError(ToolcribError):
    """A risk policy that cannot be used; lists all its problems at once."""


class RecipeError(ToolcribError):
    """A recipe that cannot be used; lists all its problems at once, before anything slow starts."""
