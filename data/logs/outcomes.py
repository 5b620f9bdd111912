"""Outcomes: how a logged call went, by rules that are data (`outcome_rules.yaml` says what they mean)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from data.logs.events import Call
from data.logs.user_file import read_user_file
from data.logs.values import number, unpacked
from data.traces import ErrorClass, Outcome

Flag = Literal["ok", "error", "none"]
Answer = Literal["missing", "empty", "error_shaped", "present"]

READ_CHARACTERS = 4000
_BUILT_IN = Path(__file__).with_name("outcome_rules.yaml")


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Rule(_Strict):
    """One row of the table; a condition that is not given always holds."""

    name: str = Field(min_length=1)
    source: tuple[str, ...] = ()
    flag: tuple[Flag, ...] = ()
    answer: tuple[Answer, ...] = ()
    matches: str = ""
    outcome: Outcome
    error_class: ErrorClass

    @field_validator("matches")
    @classmethod
    def _compiles(cls, value: str) -> str:
        return _compiled(value)


class Shapes(_Strict):
    """What errors and empty answers look like. Of two tables, lists add up and texts are alternatives."""

    error_keys: tuple[str, ...] = ()
    verdict_keys: tuple[str, ...] = ()
    failing_words: tuple[str, ...] = ()
    error_starts: str = ""
    empty_texts: str = ""
    list_keys: tuple[str, ...] = ()

    @field_validator("error_starts", "empty_texts")
    @classmethod
    def _compiles(cls, value: str) -> str:
        return _compiled(value)


class RuleFile(_Strict):
    shapes: Shapes = Shapes()
    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """How a call went, and the name of the rule that said so."""

    outcome: Outcome
    error_class: ErrorClass
    rule: str


class Judge:
    """The rules, ready to be asked: a user's own before the built-in ones.

    Raises InputError that lists everything that is wrong with the file `extra`.
    """

    def __init__(self, extra: Path | None = None) -> None:
        built_in = _read(_BUILT_IN)
        own = _read(extra) if extra is not None else RuleFile()
        self.rules = (*own.rules, *built_in.rules)
        self._shapes = _merged(own.shapes, built_in.shapes)
        self._patterns = [re.compile(rule.matches, re.IGNORECASE) if rule.matches else None for rule in self.rules]
        self._error_start = re.compile(self._shapes.error_starts, re.IGNORECASE)
        self._empty_text = re.compile(self._shapes.empty_texts, re.IGNORECASE)
        self._failing = frozenset(word.lower() for word in self._shapes.failing_words)

    def verdict(self, call: Call, source: str) -> Verdict:
        """The first rule that holds; the built-in table ends with rules that leave nothing undecided."""
        payload, flag = _unwrapped(call)
        answer = self._answer(payload, call)
        said = call.error or (_shown(payload) if call.answered else "")
        stated: Flag = "none" if flag is None else "ok" if flag else "error"
        for rule, pattern in zip(self.rules, self._patterns, strict=True):
            if (
                (not rule.source or source in rule.source)
                and (not rule.flag or stated in rule.flag)
                and (not rule.answer or answer in rule.answer)
                and (pattern is None or pattern.search(said, 0, READ_CHARACTERS))
            ):
                return Verdict(rule.outcome, rule.error_class, rule.name)
        return Verdict("unknown", "none", "no_rule")

    def _answer(self, payload: Any, call: Call) -> Answer:
        if call.error:
            return "error_shaped"
        if not call.answered:
            return "missing"
        if isinstance(payload, Mapping):
            return self._answer_of_object(payload)
        if isinstance(payload, str):
            return self._answer_of_text(payload)
        return "empty" if payload is None or payload == [] else "present"

    def _answer_of_text(self, payload: str) -> Answer:
        if not payload.strip() or (len(payload) < 400 and self._empty_text.fullmatch(payload)):
            return "empty"
        return "error_shaped" if self._error_start.match(payload) else "present"

    def _answer_of_object(self, payload: Mapping[str, Any]) -> Answer:
        if any(payload.get(key) not in (None, False, 0, "", [], {}, "None", "null") for key in self._shapes.error_keys):
            return "error_shaped"
        for key in self._shapes.verdict_keys:
            value = payload.get(key)
            if isinstance(value, (str, bool)) and str(value).lower() in self._failing:
                return "error_shaped"
            status = number(value)
            if status is not None and 400 <= status <= 599:
                return "error_shaped"
        if not payload:
            return "empty"
        lists = [payload[key] for key in self._shapes.list_keys if key in payload]
        return "empty" if lists and all(value in (None, "", [], {}) for value in lists) else "present"


def _unwrapped(call: Call) -> tuple[Any, bool | None]:
    """The answer itself and the flag, out of the envelopes that protocols put around them."""
    payload, flag = unpacked(call.payload), call.flag
    if isinstance(payload, Mapping) and isinstance(payload.get("content"), list):  # MCP's result of a call
        flag = False if payload.get("isError") is True or payload.get("is_error") is True else flag
        inner = payload["content"] or payload.get("structuredContent")
        payload = _blocks(inner)
    elif isinstance(payload, list):
        payload = _blocks(payload)
    return unpacked(payload), flag


def _blocks(content: Any) -> Any:
    """The text of a list of text blocks; any other list as it is."""
    if (
        isinstance(content, list)
        and content
        and all(isinstance(b, Mapping) and b.get("type") == "text" for b in content)
    ):
        return "\n".join(str(block.get("text", "")) for block in content)
    return content


def _shown(payload: Any) -> str:
    if isinstance(payload, str):
        return payload[:READ_CHARACTERS]
    return json.dumps(payload, default=str, ensure_ascii=False)[:READ_CHARACTERS]


def _merged(own: Shapes, built_in: Shapes) -> Shapes:
    fields: dict[str, Any] = {}
    for name in Shapes.model_fields:
        mine, theirs = getattr(own, name), getattr(built_in, name)
        if isinstance(theirs, str):
            fields[name] = f"{mine}|{theirs}" if mine else theirs
        else:
            fields[name] = (*theirs, *mine)
    return Shapes(**fields)


def _read(path: Path) -> RuleFile:
    return read_user_file(RuleFile, path, "outcome rules")


def _compiled(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from error
    return pattern.strip()
