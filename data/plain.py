"""Plain rows: one JSON object of the plain form becomes a card, a query or a trace, or an error that says where."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

from pydantic import ValidationError

from data.cards import Frozen, Requires, Risk, ToolCard
from data.errors import InputError
from data.queries import Query
from data.traces import Trace

Row = Mapping[str, Any]
Model = TypeVar("Model", bound=Frozen)

CARD_KEYS = frozenset(ToolCard.model_fields) | {"read_only"}
QUERY_KEYS = frozenset(Query.model_fields)
TRACE_WORDS = {"task": "request", "subgoal": "goal", "candidates": "menu", "ok": "outcome"}
"""Words of the plain trace form and the Trace fields that they stand for."""
TRACE_KEYS = frozenset(Trace.model_fields) | frozenset(TRACE_WORDS)

HARMLESS_ERRORS = frozenset({"none", "empty_result"})
"""Error classes that do not contradict a success: an empty answer may be the right one."""

# null in one of these is "not given"; null in a rule such as `tenants` is refused, since reading it as
# "no restriction" would open the tool to everybody
_NULL_IS_ABSENT = frozenset(
    {
        *("domain", "summary", "description", "capabilities", "entities", "input_concepts", "aliases", "examples"),
        *("not_for", "prefer_over", "risk", "trust", "owner", "schema_version", "input_schema", "read_only"),
    }
)


class Place(NamedTuple):
    """Where a row was read: the source's name, and the line (or None in a document that is not read by lines)."""

    source: str
    line: int | None = None
    prefix: str = ""

    def error(self, problem: str, field: str = "", hint: str = "") -> InputError:
        """An InputError at this place."""
        name = f"{self.prefix}.{field}" if self.prefix and field else self.prefix or field
        return InputError(problem, source=self.source, line=self.line, field=name, hint=hint)


def validated(model: type[Model], fields: Row, place: Place) -> Model:
    """`model` from JSON values, without any coercion: "3" is not a number and 1 is not true.

    Raises InputError with the first field that does not fit.
    """
    try:
        text = json.dumps(fields, allow_nan=False)
    except ValueError as error:
        raise place.error("holds a number that JSON has no form for (NaN or infinity)", hint="use null") from error
    try:
        return model.model_validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        problem = "is missing" if first["type"] == "missing" else _lower(first["msg"])
        raise place.error(problem, field, f"see the form of a {model.__name__} in the documentation") from error


def card_from_row(row: Row, place: Place) -> ToolCard:
    """A tool line. `read_only` true/false/null means risk read_only/write/destructive unless `risk` is given.

    Raises InputError for a missing, blank or mistyped field, and for an unknown key inside `requires`: a misspelt
    requirement that is ignored is a tool without its guard.
    """
    fields = {key: value for key, value in row.items() if not (value is None and key in _NULL_IS_ABSENT)}
    _need_text(fields, "tool_id", place)
    _need_text(fields, "name", place)
    requires = fields.get("requires")
    if isinstance(requires, dict):
        for key in sorted(set(requires) - set(Requires.model_fields)):
            raise place.error("is not a requirement", f"requires.{key}", "requires holds connections and scopes")
    read_only = fields.pop("read_only", None)
    if read_only is not None and not isinstance(read_only, bool):
        raise place.error(f"expected true, false or null, found {_shown(read_only)}", "read_only")
    if read_only is not None and "risk" not in fields:
        fields["risk"] = (Risk.READ_ONLY if read_only else Risk.WRITE).word
    return validated(ToolCard, fields, place)


def query_from_row(row: Row, place: Place) -> Query:
    """A query line. `gold` must be there: empty says that no tool fits, which silence does not.

    Raises InputError for a missing, blank or mistyped field.
    """
    fields = {key: value for key, value in row.items() if not (value is None and key in {"gold_alt", "kind"})}
    _need_text(fields, "qid", place)
    _need_text(fields, "text", place)
    if "gold" not in fields:
        raise place.error("is missing", "gold", "give the ids of the right tools; [] where no tool fits")
    query = validated(Query, fields, place)
    return query.model_copy(update={"gold": tuple(dict.fromkeys(query.gold))})


def trace_from_row(row: Row, place: Place) -> Trace:
    """A trace line in the plain words, in Trace's own field names, or a mixture; not one thing in both.

    A line without a subgoal has its task as the goal. A success that an error class contradicts is a failure, and
    so is an unknown outcome with such a class. Candidates are the menu in order, each shown for sure.

    Raises InputError for a missing, blank or mistyped field.
    """
    for word, name in TRACE_WORDS.items():
        if row.get(word) is not None and row.get(name) is not None:
            raise place.error(f"'{word}' and '{name}' say the same thing", word, "give one of them")
    fields = {key: value for key, value in row.items() if value is not None and key not in TRACE_WORDS}
    _need_text(fields, "trace_id", place)
    if "tool_id" not in row:
        raise place.error("is missing", "tool_id", "give the called tool's id, or null where none was called")
    if "tool_id" in fields:
        _need_text(fields, "tool_id", place)
    for word, name in (("task", "request"), ("subgoal", "goal")):
        if row.get(word) is not None:
            fields[name] = row[word]
        if name in fields and not isinstance(fields[name], str):
            used = word if row.get(word) is not None else name
            raise place.error(f"expected a text, found {_shown(fields[name])}", used)
    if not str(fields.get("goal", "")).strip():
        fields["goal"] = fields.get("request", "")
    if not str(fields["goal"]).strip():
        raise place.error("is missing or blank, and so is 'task'", "subgoal", "say what the call was for")
    if row.get("candidates") is not None:
        fields["menu"] = _menu(row["candidates"], place)
    if row.get("ok") is not None:
        fields["outcome"] = _outcome(row["ok"], place)
    trace = validated(Trace, fields, place)
    if trace.error_class not in HARMLESS_ERRORS and trace.outcome != "failure":
        return trace.model_copy(update={"outcome": "failure"})
    return trace


def _menu(candidates: object, place: Place) -> list[dict[str, object]]:
    if not isinstance(candidates, list):
        raise place.error(f"expected a list of tool ids or null, found {_shown(candidates)}", "candidates")
    for number, tool_id in enumerate(candidates):
        if not isinstance(tool_id, str) or not tool_id.strip():
            raise place.error(f"expected a tool id, found {_shown(tool_id)}", f"candidates.{number}")
    return [{"tool_id": tool_id, "position": place_} for place_, tool_id in enumerate(dict.fromkeys(candidates))]


def _outcome(ok: object, place: Place) -> str:
    if not isinstance(ok, bool):
        raise place.error(f"expected true, false or null, found {_shown(ok)}", "ok")
    return "success" if ok else "failure"


def _need_text(fields: Row, field: str, place: Place) -> None:
    value = fields.get(field)
    if value is None:
        raise place.error("is missing", field, "every line needs it")
    if not isinstance(value, str):
        raise place.error(f"expected a text, found {_shown(value)}", field)
    if not value.strip():
        raise place.error("is blank", field, "every line needs it")


def _shown(value: object) -> str:
    """A wrong value as the error shows it: JSON, cut."""
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


def _lower(message: str) -> str:
    message = message.removeprefix("Value error, ")
    return message[:1].lower() + message[1:]
