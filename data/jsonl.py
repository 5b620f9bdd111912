"""JSON lines: the plain files of tools, queries and traces, read whole or refused, written whole or not at all."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from data.atomic import replacing
from data.cards import ToolCard
from data.catalog import Catalog
from data.errors import InputError
from data.plain import CARD_KEYS, QUERY_KEYS, TRACE_KEYS, Place, Row, card_from_row, query_from_row, trace_from_row
from data.queries import Query
from data.traces import Trace

log = logging.getLogger("toolcrib")

Noun = TypeVar("Noun")


@dataclass(frozen=True)
class Parsed(Generic[Noun]):
    """What a file held: the nouns in the file's order, and how often each unknown key was passed over."""

    items: tuple[Noun, ...]
    ignored: dict[str, int]


def load_catalog(path: Path | str) -> Catalog:
    """The tools of a jsonl file, in the file's order.

    Raises InputError, with file, line and field, for anything that is not a tool line, for a repeated `tool_id`
    and for a file without tools.
    """
    return Catalog(_warned(path, read_cards(path)).items)


def load_queries(path: Path | str) -> list[Query]:
    """The queries of a jsonl file. Raises InputError as `load_catalog` does; `qid` is unique."""
    return list(_warned(path, read_queries(path)).items)


def load_traces(path: Path | str) -> list[Trace]:
    """The traces of a jsonl file. Raises InputError as `load_catalog` does; lines may repeat."""
    return list(_warned(path, read_plain_traces(path)).items)


def save_catalog(path: Path | str, catalog: Catalog) -> None:
    """Write every field of every card, one card a line; `load_catalog` gives the equal catalog back."""
    write_jsonl(path, (card.model_dump(mode="json") for card in catalog))


def read_cards(path: Path | str) -> Parsed[ToolCard]:
    """The tools of a jsonl file and the unknown keys. Raises as `load_catalog`."""
    return _read(path, card_from_row, CARD_KEYS, "tool_id")


def read_queries(path: Path | str) -> Parsed[Query]:
    """The queries of a jsonl file and the unknown keys. Raises as `load_queries`."""
    return _read(path, query_from_row, QUERY_KEYS, "qid")


def read_plain_traces(path: Path | str) -> Parsed[Trace]:
    """The traces of a jsonl file and the unknown keys. Raises as `load_traces`."""
    return _read(path, trace_from_row, TRACE_KEYS, None)


def read_objects(path: Path | str) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number from 1, object) of each line that is not blank.

    Lines end at a newline only: other separators, such as U+2028, are legal inside JSON. A byte order mark is
    skipped. Raises InputError for a missing file, text that is not UTF-8, broken JSON and anything but an object.
    """
    source = str(path)
    try:
        with Path(path).open("rb") as lines:
            for number, raw in enumerate(lines, start=1):
                text = _decoded(raw, source, number)
                if text.strip():
                    yield number, _object(text, source, number)
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror or error}", source=source, hint="check the path and its permissions"
        ) from error


def write_jsonl(path: Path | str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write one JSON object a line, atomically: on any error the file is as it was.

    Raises InputError for a value that JSON cannot hold, and if the place cannot be written.
    """
    with replacing(Path(path)) as fresh, fresh.open("w", encoding="utf-8", newline="\n") as out:
        for number, row in enumerate(rows, start=1):
            try:
                line = json.dumps(row, ensure_ascii=False, allow_nan=False)
                line.encode("utf-8")
            except (TypeError, ValueError) as error:
                raise InputError(
                    f"this row has no JSON form: {error}", source=str(path), line=number, hint="nothing was written"
                ) from error
            out.write(line + "\n")


def _read(
    path: Path | str, parse: Callable[[Row, Place], Noun], known: frozenset[str], unique: str | None
) -> Parsed[Noun]:
    items: list[Noun] = []
    ignored: Counter[str] = Counter()
    seen: dict[str, int] = {}
    for line, row in read_objects(path):
        place = Place(str(path), line)
        item = parse(row, place)
        if unique is not None:
            key = getattr(item, unique)
            if key in seen:
                raise place.error(
                    f"'{key}' was given in line {seen[key]} already", unique, "each may be given once; remove one"
                )
            seen[key] = line
        items.append(item)
        ignored.update(key for key in row if key not in known)
    if not items:
        raise InputError("the file holds no lines", source=str(path), hint="give at least one JSON object a line")
    return Parsed(tuple(items), dict(sorted(ignored.items())))


def _warned(path: Path | str, parsed: Parsed[Noun]) -> Parsed[Noun]:
    if parsed.ignored:
        counts = ", ".join(f"{key} ({count})" for key, count in parsed.ignored.items())
        log.warning("%s: unknown keys were ignored: %s", path, counts)
    return parsed


def _decoded(raw: bytes, source: str, line: int) -> str:
    try:
        return raw.decode("utf-8-sig" if line == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"not UTF-8 (byte {error.start + 1} of the line)", source=source, line=line, hint="save it as UTF-8"
        ) from error


def _object(text: str, source: str, line: int) -> dict[str, Any]:
    try:
        value = json.loads(text, parse_constant=_not_json)
    except (ValueError, RecursionError) as error:
        reason = f"{error.msg} at column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)
        raise InputError(
            f"broken JSON: {reason}", source=source, line=line, hint="each line holds one JSON object, whole"
        ) from error
    if not isinstance(value, dict):
        raise InputError(
            f"expected a JSON object, found {type(value).__name__}",
            source=source,
            line=line,
            hint="each line holds one JSON object",
        )
    return value


def _not_json(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON, use null")
