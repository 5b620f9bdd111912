"""The `toolcrib` command: what every failure looks like from outside. The commands themselves are in `commands/`.

Exit codes: 0 done, 1 the findings of a check or a refused promotion, 2 an error of the user's making (one line on
stderr, no traceback), 130 interrupted.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence

from toolcrib.floors import ShadowedPackageError, check_floors

USER_ERROR = 2
INTERRUPTED = 130

_EXTRA_OF = {
    "train": {
        *("torch", "transformers", "sentence_transformers", "accelerate", "datasets", "sklearn", "onnx", "skl2onnx"),
        *("mlflow", "matplotlib", "pyarrow", "ibis", "duckdb"),
    },
    "serve": {
        *("fastapi", "uvicorn", "sqlalchemy", "alembic", "jsonschema_rs", "jwt", "httpx", "prometheus_client"),
        "opentelemetry",
    },
    "postgres": {"psycopg"},
    "spark": {"pyspark"},
    "mcp": {"mcp", "anyio", "httpx2"},
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command on `arguments` (default: the process's own) and give its exit code."""
    try:
        check_floors()
    except ShadowedPackageError as error:
        return _refuse(str(error))
    from data.errors import ToolcribError
    from toolcrib.commands import app

    _log_to_stderr()
    code = 0
    try:
        app(args=None if arguments is None else list(arguments), prog_name="toolcrib")
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 0
    except KeyboardInterrupt:
        code = INTERRUPTED
    except ToolcribError as error:
        code = _refuse(str(error))
    except ModuleNotFoundError as error:
        code = _refuse(_missing_extra(error))
    except OSError as error:
        if error.filename is None:
            raise
        code = _refuse(f"{error.filename}: {error.strerror}")
    return code


def _missing_extra(error: ModuleNotFoundError) -> str:
    """What to install; raises the error again where the missing module belongs to no extra."""
    missing = (error.name or "").partition(".")[0]
    for extra, modules in _EXTRA_OF.items():
        if missing in modules:
            return f"this command needs '{missing}', which is not installed: pip install 'toolcrib[{extra}]'"
    raise error


def _refuse(problem: str) -> int:
    one_line = "; ".join(line.strip() for line in problem.splitlines() if line.strip())
    print(f"error: {one_line}", file=sys.stderr)
    return USER_ERROR


def _log_to_stderr() -> None:
    """toolcrib's own log lines go to stderr: warnings marked, progress plain; set up once.

    What libraries say to nobody in particular is left unsaid: a bar for each loaded file, advice on their own defaults.
    """
    log = logging.getLogger("toolcrib")
    if not any(isinstance(handler, _Stderr) for handler in log.handlers):
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
        logging.getLogger().addHandler(logging.NullHandler())
        log.addHandler(_Stderr())
        log.setLevel(logging.INFO)
        log.propagate = False


class _Stderr(logging.Handler):
    """Writes to whatever `sys.stderr` is at the time, and never to stdout."""

    def emit(self, record: logging.LogRecord) -> None:
        mark = f"{record.levelname.lower()}: " if record.levelno >= logging.WARNING else ""
        print(f"{mark}{record.getMessage()}", file=sys.stderr)
