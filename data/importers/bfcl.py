"""BFCL: the Berkeley Function-Calling Leaderboard's single-turn requests as a catalog, traces and queries.

The data are those of the package `bfcl_eval` (Apache-2.0). The functions offered with a request are the menu, the
functions of its answer were chosen and succeeded. A request's text is its last user turn: system texts speak of the
assistant's manners and earlier turns of other errands. There are no times in the source, so traces have none.
"""

from __future__ import annotations

import importlib.util
import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from data.cards import ToolCard, Trust
from data.catalog import Catalog
from data.errors import InputError
from data.importers.bfcl_schema import to_json_schema
from data.importers.report import ImportReport
from data.jsonl import read_objects
from data.plain import Place, validated
from data.queries import Query
from data.risk import infer_risk
from data.traces import Shown, Trace

_PREFIX = "BFCL_v4_"
_NO_TOOL_FITS = "irrelevance"  # files of this name hold requests that none of the offered functions serves


@dataclass(frozen=True)
class Bfcl:
    """The whole source. `report` counts requests; `functions` is how often a function was offered, repeats included.

    Same-name functions with other content are cards `name`, `name#2`, ...; each query's `gold_alt` names the others.
    """

    catalog: Catalog
    traces: tuple[Trace, ...]
    queries: tuple[Query, ...]
    report: ImportReport
    functions: int


@dataclass
class _Reading:
    """What has been gathered so far: one card for each content, the ids of each name, requests with their answers."""

    cards: dict[str, ToolCard] = field(default_factory=dict)
    variants: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    traces: list[Trace] = field(default_factory=list)
    queries: list[Query] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    functions: int = 0


def load_bfcl(folder: Path | None = None) -> Bfcl:
    """Read a folder of `BFCL_v4_*.json` with its `possible_answer`; None = that of the installed `bfcl_eval`.

    Files whose rows have no `question` and `function` (several turns, memory, web search) are left out and noted.
    Raises InputError if the folder has no such files, and with file, line and field for a row that is broken.
    """
    folder = folder or _installed_folder()
    files = sorted(folder.glob(f"{_PREFIX}*.json"))
    if not files:
        raise InputError(f"no {_PREFIX}*.json here", source=str(folder), hint="give the folder 'data' of bfcl_eval")
    reading, left_out = _Reading(), []
    for file in files:
        if _holds_requests(file):
            _read_file(file, reading)
        else:
            left_out.append(file.stem.removeprefix(_PREFIX))
    if not reading.queries:
        raise InputError("no request with an answer here", source=str(folder), hint="is possible_answer/ missing?")
    several = sum(len(ids) > 1 for ids in reading.variants.values())
    notes = [f"{len(reading.cards)} tools from {reading.functions} functions; {several} names have several variants"]
    if left_out:
        notes.append(f"not single-turn requests, left out: {', '.join(left_out)}")
    report = ImportReport(
        source=str(folder),
        format="bfcl",
        read=reading.rows,
        imported=len(reading.queries),
        skipped=dict(reading.skipped),
        notes=tuple(notes),
    )
    queries = tuple(_with_equivalents(query, reading) for query in reading.queries)
    return Bfcl(Catalog(reading.cards.values()), tuple(reading.traces), queries, report, reading.functions)


def _installed_folder() -> Path:
    # found, not imported: the package pulls in a whole evaluation stack
    found = importlib.util.find_spec("bfcl_eval")
    if found is None or not found.submodule_search_locations:
        raise InputError("the package bfcl_eval is not installed", hint="pip install bfcl-eval, or give a folder")
    return Path(next(iter(found.submodule_search_locations))) / "data"


def _holds_requests(file: Path) -> bool:
    with file.open("rb") as lines:
        try:
            first = json.loads(next(lines, b""))
        except ValueError:
            return False
    return isinstance(first, dict) and {"question", "function"} <= set(first)


def _read_file(file: Path, reading: _Reading) -> None:
    kind = file.stem.removeprefix(_PREFIX)
    answers_file = file.parent / "possible_answer" / file.name
    no_tool = kind.endswith(_NO_TOOL_FITS)
    answers: dict[str, tuple[Place, Any]] = {}
    if answers_file.exists() and not no_tool:
        for line, row in read_objects(answers_file):
            place = Place(str(answers_file), line)
            answers[_get(row, "id", str, place)] = (place, _get(row, "ground_truth", list, place))
    for line, row in read_objects(file):
        place = Place(str(file), line)
        reading.rows += 1
        qid = _get(row, "id", str, place)
        if not no_tool and qid not in answers:
            reading.skipped["the source has no answer"] += 1
            continue
        text = _text(row, place)
        offered = _cards(row, place, reading)
        menu = tuple(Shown(tool_id=tool_id, position=at) for at, tool_id in enumerate(offered.values()))
        shared: dict[str, Any] = {"trace_id": qid, "request": text, "goal": text, "menu": menu}
        if no_tool:
            reading.traces.append(Trace(**shared))
            reading.queries.append(Query(qid=qid, text=text, kind=kind))
            continue
        calls = _calls(*answers[qid], offered)
        for step, (tool_id, arguments) in enumerate(calls.items()):
            reading.traces.append(
                Trace(**shared, step=step, tool_id=tool_id, arguments=arguments, outcome="success", task_success=True)
            )
        reading.queries.append(Query(qid=qid, text=text, gold=tuple(calls), kind=kind))


def _text(row: dict[str, Any], place: Place) -> str:
    turns = _get(row, "question", list, place)
    messages = turns[0] if turns and isinstance(turns[0], list) else []
    said = [turn.get("content") for turn in messages if isinstance(turn, dict) and turn.get("role") == "user"]
    if not said or not isinstance(said[-1], str) or not said[-1].strip():
        raise place.error("has no user turn with a text", "question")
    return said[-1]


def _cards(row: dict[str, Any], place: Place, reading: _Reading) -> dict[str, str]:
    """{function name: tool id} of the functions offered with a request; new contents become cards."""
    offered: dict[str, str] = {}
    for number, function in enumerate(_get(row, "function", list, place)):
        here = place._replace(prefix=f"function.{number}")
        if not isinstance(function, dict):
            raise here.error("expected an object")
        name = _get(function, "name", str, here)
        description = function.get("description") or ""
        schema = to_json_schema(function.get("parameters") or {})
        content = json.dumps([name, description, schema], sort_keys=True)
        reading.functions += 1
        if content not in reading.cards:
            ids = reading.variants[name]
            ids.append(name if not ids else f"{name}#{len(ids) + 1}")
            domain, _, own_name = name.rpartition(".")
            card = {
                "tool_id": ids[-1],
                "name": own_name or name,
                "domain": domain,
                "description": description,
                "input_schema": schema,
                "risk": infer_risk(own_name, description if isinstance(description, str) else "").word,
                "trust": Trust.TRUSTED.word,
            }
            reading.cards[content] = validated(ToolCard, card, here)
        offered.setdefault(name, reading.cards[content].tool_id)
    return offered


def _calls(place: Place, truth: list[Any], offered: dict[str, str]) -> dict[str, dict[str, Any]]:
    """{tool id: arguments} of an answer, in its order; of several calls of one function, the first."""
    calls: dict[str, dict[str, Any]] = {}
    for number, call in enumerate(truth):
        if not isinstance(call, dict) or not call:
            raise place.error("expected {function name: arguments}", f"ground_truth.{number}")
        for name, arguments in call.items():
            if name not in offered:
                raise place.error(f"'{name}' was not offered with the request", f"ground_truth.{number}")
            calls.setdefault(offered[name], _first_accepted(arguments))
    if not calls:
        raise place.error("names no function", "ground_truth")
    return calls


def _first_accepted(arguments: object) -> dict[str, Any]:
    """Arguments as one call would send them: the source lists the accepted values, "" first = may be left out."""
    chosen: dict[str, Any] = {}
    for name, accepted in arguments.items() if isinstance(arguments, dict) else ():
        value = accepted[0] if isinstance(accepted, list) and accepted else accepted
        if value != "":
            chosen[name] = _settled(value)
    return chosen


def _settled(value: object) -> object:
    if isinstance(value, dict):
        return _first_accepted(value)
    return [_settled(one) for one in value] if isinstance(value, list) else value


def _with_equivalents(query: Query, reading: _Reading) -> Query:
    # once all files are read: a later file may bring another variant of an earlier name
    alternatives = {}
    for gold in query.gold:
        others = tuple(other for other in reading.variants[gold.split("#")[0]] if other != gold)
        if others:
            alternatives[gold] = others
    return query.model_copy(update={"gold_alt": alternatives})


def _get(row: dict[str, Any], name: str, kind: type, place: Place) -> Any:
    value = row.get(name)
    if not isinstance(value, kind) or value == "":
        raise place.error(f"expected a {'text' if kind is str else 'list'}", name, "is this file of BFCL version 4?")
    return value
