"""What a person types or points at, as the nouns: a bundle, a caller, a request, a saved slice."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pydantic import ValidationError

from data.context import Caller, Subgoal
from data.errors import InputError
from data.plain import Place, validated
from serving.slice import Slice

_COMMAND_LINE = Place("the command line")


def read_bundle(text: str) -> Path | None:
    """The folder of a bundle; for the word `none` the untrained base model's, where it is installed, else None.

    InputError when there is no such folder.
    """
    if text.lower() == "none":
        return _untrained()
    path = Path(text)
    if not path.is_dir():
        raise InputError("there is no bundle folder here", source=text, hint="train one, or give --bundle none")
    return path


def read_caller(path: Path | None) -> Caller:
    """The caller in a JSON file; without a file, an anonymous caller who holds nothing.

    Raises InputError that names the field. An unknown key is refused, not ignored as in data files: a restriction
    that is misspelt would be no restriction.
    """
    if path is None:
        return Caller()
    fields = json_object(_read_text(path), str(path))
    for name in fields:
        if name not in Caller.model_fields:
            raise InputError(
                "unknown key", source=str(path), field=name, hint=f"known: {', '.join(Caller.model_fields)}"
            )
    return validated(Caller, fields, Place(str(path)))


def read_subgoal(goal: str, read: bool | None, operations: str) -> Subgoal:
    """The request. `read` True only reads, False writes, None is not known; `operations` are split at commas."""
    if not goal.strip():
        raise _COMMAND_LINE.error("is blank", "goal", "say what the next step should do")
    names = [part.strip() for part in operations.split(",") if part.strip()]
    mutation = None if read is None else not read
    return validated(Subgoal, {"goal": goal, "mutation": mutation, "operations": names}, _COMMAND_LINE)


def read_slice(path: Path) -> Slice:
    """A slice that `select --json` saved; `-` reads standard input. InputError that names the field."""
    source = "standard input" if str(path) == "-" else str(path)
    text = sys.stdin.read() if str(path) == "-" else _read_text(path)
    json_object(text, source)
    try:
        return Slice.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        hint = "give what 'toolcrib select --json' printed"
        raise InputError(f"is not a slice: {first['msg']}", source=source, field=field, hint=hint) from error


def json_object(text: str, source: str) -> dict[str, object]:
    """The JSON object in `text`; InputError with the line where it is broken."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(
            f"broken JSON: {error.msg}", source=source, line=error.lineno, hint="expected one object"
        ) from error
    except RecursionError as error:
        raise InputError("JSON nested too deeply", source=source) from error
    if not isinstance(value, dict):
        raise InputError(f"expected a JSON object, found {type(value).__name__}", source=source)
    return value


def _untrained() -> Path | None:
    """Base MiniLM as a bundle, made on first use by the training libraries; without them keywords have to do."""
    from training.base import base_bundle

    try:
        return base_bundle()
    except ImportError:
        return None


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", source=str(path), hint="check the path") from error
    except UnicodeDecodeError as error:
        raise InputError("is not UTF-8 text", source=str(path), hint="save it as UTF-8") from error
