"""Arguments of a call against the tool's schema; what is wrong is said so that a model can put it right.

A problem names the path, what was expected and the *type* of what was found. It never repeats a value: arguments may
hold secrets, and problems go into logs and back through the model.

Nothing is fetched: a schema that refers to another document cannot be used. Patterns run in linear time, or, with
look-around, under a bound on backtracking. `format` is advice to the model and is not enforced.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import jsonschema_rs

from data.card_text import shorten
from data.cards import ToolCard
from serving.disclosure import visible
from serving.gate.canonical import Flaw, survey
from serving.gate.schema_cost import SchemaCost, schema_cost
from serving.json_path import json_path
from serving.lru import Lru

MAX_PROBLEMS = 20
"""Problems told of one call: a model that has made more mistakes than that starts again."""
_BACKTRACKS = 10_000
_TOLD_CHARACTERS = 200
_TOLD_OPTIONS = 20

_TYPES: dict[type, str] = {
    bool: "boolean",
    str: "string",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
}


class Problem(NamedTuple):
    """One thing that is wrong. `path` is a JSON path into the arguments, `code` stable and meant for programs."""

    path: str
    code: str
    message: str
    hint: str


class _Checked(NamedTuple):
    """A card with its compiled schema, or with why its schema cannot be used."""

    card: ToolCard
    validator: jsonschema_rs.Validator | None
    cost: SchemaCost


_UNUSABLE = Problem(
    "$",
    "unusable_schema",
    "the tool's own schema cannot be used to check arguments, so the tool cannot be called",
    "use another tool; the operator has to repair this one",
)
_TOO_COMPLEX = Problem(
    "$",
    "too_complex",
    "is too large or too deep for what the tool's schema asks for",
    "send less at once, nested less deeply",
)
_NO_MATCH = Problem("$", "no_match", "does not have the form that the tool's schema asks for", "read the schema again")


class ArgumentChecker:
    """Checks arguments with schemas compiled once a card. Threads may share it.

    `capacity`: how many compiled schemas are kept.
    """

    def __init__(self, capacity: int = 4096) -> None:
        self._kept: Lru[int, _Checked] = Lru(capacity)

    def problems(self, card: ToolCard, arguments: object) -> tuple[Problem, ...]:
        """All that is wrong with `arguments` for `card`, at most `MAX_PROBLEMS`, in the order of the schema's checks.

        Never raises for what a caller or a card's author may have written.
        """
        size = survey(arguments)
        if isinstance(size, Flaw):
            return (Problem(size.path, "not_json", size.message, size.hint),)
        if not isinstance(arguments, dict):
            return (_type_problem("$", ["object"], arguments),)
        known = self._checked(card)
        if known.validator is None:
            return (_UNUSABLE,)
        if not known.cost.affordable(*size):
            return (_TOO_COMPLEX,)
        if known.validator.is_valid(arguments):
            return ()
        return _explained(known.validator, arguments) if known.cost.explainable(*size) else (_NO_MATCH,)

    def usable(self, card: ToolCard) -> bool:
        """Whether the card's schema is one."""
        return self._checked(card).validator is not None

    def _checked(self, card: ToolCard) -> _Checked:
        # by identity, since a card's hash would cost more than the check; the entry keeps the card alive, so that no
        # other card can take its identity
        known = self._kept.get(id(card))
        if known is None or known.card is not card:
            known = _Checked(card, *_compiled(card.input_schema))
            self._kept.put(id(card), known)
        return known


def _compiled(schema: dict[str, Any]) -> tuple[jsonschema_rs.Validator | None, SchemaCost]:
    """The validator, with linear patterns where the schema's allow it; None for what is no usable schema."""
    cost = schema_cost(schema)
    if cost is None:
        return None, SchemaCost()
    for patterns in (jsonschema_rs.RegexOptions(), jsonschema_rs.FancyRegexOptions(backtrack_limit=_BACKTRACKS)):
        try:
            # a schema is checked in its own draft, named by `$schema`; a document that it refers to is not fetched
            made = jsonschema_rs.validator_for(schema, pattern_options=patterns, offline=True, validate_formats=False)
        except (ValueError, OverflowError):
            continue
        return made, cost
    return None, SchemaCost()


def _explained(validator: jsonschema_rs.Validator, arguments: dict[str, Any]) -> tuple[Problem, ...]:
    problems: dict[Problem, None] = {}
    for error in validator.iter_errors(arguments):
        problems[_told(error)] = None
        if len(problems) == MAX_PROBLEMS:
            break
    return tuple(problems) or (_NO_MATCH,)


def _told(error: jsonschema_rs.ValidationError) -> Problem:
    """The library's error in words that hold nothing of the value."""
    kind: Any = error.kind
    path = json_path(error.instance_path)
    code, message = _PLAIN.get(kind.name, ("no_match", "does not meet the tool's schema"))
    hint = ""
    if kind.name == "type":
        return _type_problem(path, kind.types, error.instance)
    if isinstance(kind, _NO_FORM):
        return _no_branch(path, kind.context)
    if kind.name == "required":
        path = json_path([*error.instance_path, kind.property])
    elif kind.name in _LIMITS:
        code, expected = _LIMITS[kind.name]
        message = f"has to be {expected} {_written(next(iter(kind.as_dict().values())))}"
    elif kind.name in ("additionalProperties", "unevaluatedProperties"):
        message = f"takes no {_listed(kind.unexpected)}"
    elif hasattr(kind, "options"):
        hint = f"use one of {_listed(kind.options)}"
    elif kind.name == "const":
        hint = f"use {_written(kind.expected_value)}"
    elif hasattr(kind, "pattern"):
        hint = f"it has to match {_written(kind.pattern)}"
    return Problem(path, code, message, hint or _HINTS.get(code, ""))


_LIMITS = {
    "minimum": ("out_of_range", "at least"),
    "maximum": ("out_of_range", "at most"),
    "exclusiveMinimum": ("out_of_range", "more than"),
    "exclusiveMaximum": ("out_of_range", "less than"),
    "multipleOf": ("out_of_range", "a multiple of"),
    "minLength": ("wrong_length", "text of a length of at least"),
    "maxLength": ("wrong_length", "text of a length of at most"),
    "minItems": ("wrong_length", "an array of a length of at least"),
    "maxItems": ("wrong_length", "an array of a length of at most"),
    "minProperties": ("wrong_length", "an object with a number of keys of at least"),
    "maxProperties": ("wrong_length", "an object with a number of keys of at most"),
}
_NO_FORM = (jsonschema_rs.ValidationErrorKind.AnyOf, jsonschema_rs.ValidationErrorKind.OneOfNotValid)
_PLAIN = {
    "required": ("required", "is required and missing"),
    "additionalProperties": ("unexpected", "takes fewer keys"),
    "unevaluatedProperties": ("unexpected", "takes fewer keys"),
    "enum": ("not_allowed", "is none of the allowed values"),
    "const": ("not_allowed", "is not the only allowed value"),
    "pattern": ("no_match", "does not match the pattern"),
    "uniqueItems": ("repeated", "holds the same item twice"),
    "falseSchema": ("unexpected", "is not taken"),
    "not": ("no_match", "has a form that is ruled out"),
    "propertyNames": ("unexpected", "has a key whose name is not allowed"),
    "contains": ("no_match", "lacks an item of the kind that has to be in it"),
    "additionalItems": ("wrong_length", "has more items than are taken"),
    "unevaluatedItems": ("wrong_length", "has more items than are taken"),
    "oneOf": ("no_match", "matches more than one of the allowed forms, and has to match exactly one"),
}
_HINTS = {"required": "add it", "unexpected": "leave it out, or check its spelling"}


def _type_problem(path: str, expected: Sequence[str], found: object) -> Problem:
    found_type = "null" if found is None else _TYPES.get(type(found), "number")
    wanted = " or ".join(sorted(expected, key=lambda name: (name == "null", name)))
    hint = "send it without quotes" if found_type == "string" and not {"array", "object"}.intersection(expected) else ""
    return Problem(path, "wrong_type", f"has to be {wanted}, found {found_type}", hint)


def _no_branch(path: str, branches: Sequence[Sequence[jsonschema_rs.ValidationError]]) -> Problem:
    """None of several forms fits: told by the one that comes nearest, which has the fewest errors.

    A form whose tag (a constant, an option) is another's is not near, however few its errors.
    """
    nearest = min(filter(None, branches), key=_distance, default=None)
    hint = ""
    if nearest is not None and not hasattr(nearest[0].kind, "context"):
        first = _told(nearest[0])
        hint = f"the nearest of them: {first.path} {first.message}" + (f" ({first.hint})" if first.hint else "")
    return Problem(path, "no_match", f"matches none of the {len(branches)} allowed forms", hint)


def _distance(errors: Sequence[jsonschema_rs.ValidationError]) -> tuple[int, int]:
    return sum(error.kind.name in ("const", "enum") for error in errors), len(errors)


def _listed(values: Iterable[object]) -> str:
    """Names and options, quoted and bounded in number and length."""
    every = [_written(value) for value in values]
    told = ", ".join(every[:_TOLD_OPTIONS])
    return f"{told} and {len(every) - _TOLD_OPTIONS} more" if len(every) > _TOLD_OPTIONS else told


def _written(value: object) -> str:
    """A part of the schema, or a key, as JSON that a person sees all of."""
    return shorten(visible(json.dumps(value, ensure_ascii=False, default=str)), _TOLD_CHARACTERS)
