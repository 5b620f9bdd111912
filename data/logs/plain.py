"""The plain form and BFCL as traces: they are traces already, so only names are looked up and nothing is guessed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from data.errors import InputError
from data.importers.bfcl import load_bfcl
from data.logs.account import Account
from data.logs.distinct import Counted
from data.logs.files import opened
from data.logs.json_stream import records
from data.logs.names import Names
from data.logs.to_traces import AMBIGUOUS_TOOL, LEFT_OUT, UNKNOWN_TOOL
from data.plain import TRACE_KEYS, Place, trace_from_row
from data.traces import Trace

_REASONS = {"unknown": UNKNOWN_TOOL, "ambiguous": AMBIGUOUS_TOOL, "left_out": LEFT_OUT}


@dataclass
class _Strict(Account):
    """An account that takes no excuses: toolcrib's own form is read whole or refused."""

    def skip(self, reason: str, where: str = "", count: int = 1) -> None:
        raise InputError(reason, source=where, hint="each line holds one JSON object, whole")

    def notice(self, what: str, where: str = "", count: int = 1) -> None:
        raise InputError(what, source=where, hint="restore the file from a copy")


def plain_traces(files: Sequence[Path], names: Names, account: Account, ignored: Counted) -> Iterator[Trace]:
    """The lines of plain files. Raises InputError, with file, line and field, for a line that is no trace."""
    strict = _Strict()
    for path in files:
        account.files += 1
        empty = True
        with opened(path, strict) as stream:
            for value, where in records(stream, str(path), strict):
                place = Place(where)
                if not isinstance(value, dict):
                    raise place.error(f"expected a JSON object, found {type(value).__name__}")
                empty = False
                account.lines += 1
                account.records += 1
                for key in value:
                    if key not in TRACE_KEYS:
                        ignored.add(key)
                trace = _named(trace_from_row(value, place), names, account, where)
                if trace is not None:
                    yield trace
        if empty:
            raise InputError("the file holds no lines", source=str(path), hint="give at least one JSON object a line")


def bfcl_traces(folder: Path | None, names: Names, account: Account) -> Iterator[Trace]:
    """The requests of BFCL as traces."""
    source = load_bfcl(folder)
    account.files += 1
    for trace in source.traces:
        account.lines += 1
        account.records += 1
        named = _named(trace, names, account, trace.trace_id)
        if named is not None:
            yield named


def _named(trace: Trace, names: Names, account: Account, where: str) -> Trace | None:
    """The trace with the catalog's id for its tool; its menu stays as it was."""
    if trace.tool_id is None:
        return trace
    resolved = names.resolve(trace.tool_id)
    if resolved.tool_id is None:
        account.skip(_REASONS[resolved.how], f"{where}, '{trace.tool_id[:80]}'")
        return None
    return trace if resolved.tool_id == trace.tool_id else trace.model_copy(update={"tool_id": resolved.tool_id})
