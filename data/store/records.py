"""Records: what is kept of a decision, of what became of a call, and of a trace whose spans are still coming."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field, SkipValidation

from data.cards import Frozen, Instant
from data.traces import ErrorClass, Outcome

SHARED_STAGES = ("mask", "filter")
"""Stages whose `dropped` thousands of decisions share: it is kept once, in a Mask."""

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")  # PostgreSQL has no text with NUL, and no database has half a character


def _name(value: str) -> str:
    if _UNSTORABLE.search(value):
        raise ValueError("holds a NUL or half a character, which no database keeps")
    return value


def _text(value: str) -> str:
    return _UNSTORABLE.sub("�", value)


Name = Annotated[str, AfterValidator(_name)]
"""What records are named by. One that a database cannot keep is refused: altered, it might be another's."""

# Together they fit the 2,704 bytes of a row of PostgreSQL's index, four bytes a character.
Tenant = Annotated[Name, Field(max_length=128)]
Principal = Annotated[Name, Field(max_length=256)]
Key = Annotated[Name, Field(min_length=1, max_length=256)]

Text = Annotated[str, AfterValidator(_text)]
"""What somebody wrote. A character that a database cannot keep becomes U+FFFD."""

Count = Annotated[int, Field(ge=-(2**63), lt=2**63)]

Withheld = SkipValidation[dict[str, dict[str, str]]]
"""Stage -> tool -> the rule that dropped it. Shared with whoever made it, not copied: it may have 10,000 tools."""


class Decision(Frozen):
    """One decision. `body` is its slice as a JSON object; `request` and `goal` are what was asked, in words.

    `mask_digest` names what the shared stages of `body["record"]` dropped: equal for equal contents only. Where it is
    given, the contents are looked at only if the store does not have them yet; where it is blank, it is worked out.
    `trace_id` blank: the client gave none. `hashed`: the texts are salted hashes. `embedding`: the query's, as bytes.
    """

    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    slice_id: Key
    ts: Instant
    tenant: Tenant = ""
    principal: Principal
    trace_id: Name = ""
    step: Count = 0
    request_id: Name
    catalog_version: Name
    bundle_version: Name
    policy_version: Name
    request: Text = ""
    goal: Text
    hashed: bool = False
    mutation: bool | None = None
    embedding: bytes | None = None
    mask_digest: Name = Field(default="", max_length=256)
    body: dict[str, Any]


class OutcomeRecord(Frozen):
    """What became of one call. `key` is the reporter's own: a second report by it changes nothing.

    `tool_id` None: nothing was called. `step` None: the decision's. `arguments` a string: their salted hash.
    """

    tenant: Tenant = ""
    principal: Principal
    key: Key
    ts: Instant
    slice_id: Name = Field(max_length=256)
    tool_id: Name | None = None
    trace_id: Name = ""
    step: Count | None = None
    arguments: dict[str, Any] | str | None = None
    outcome: Outcome = "unknown"
    error_class: ErrorClass = "none"
    latency_ms: float | None = Field(default=None, allow_inf_nan=False)
    cost_usd: float | None = Field(default=None, allow_inf_nan=False)
    task_success: bool | None = None
    dry_run: bool = False
    ticket: Name | None = None


class Mask(Frozen):
    """What the shared stages of some decisions dropped."""

    digest: Key
    withheld: Withheld


class SpanRow(Frozen):
    """One span that waits for the rest of its trace. `size`: bytes of `body` as JSON; `body`: that, compressed."""

    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    trace_id: Annotated[Key, Field(max_length=64)]
    span_id: Annotated[Key, Field(max_length=64)]
    root: bool
    size: Count
    body: bytes


class SpanBatch(Frozen):
    """Spans that came together. `ts` is when; `sealed`: their bodies can be read with the salt alone."""

    tenant: Tenant = ""
    principal: Principal
    ts: Instant
    sealed: bool = False
    spans: tuple[SpanRow, ...]


Record = Decision | OutcomeRecord | Mask | SpanBatch
