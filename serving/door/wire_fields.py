"""The fields that bodies and answers are made of, each with its bounds, and what every body and answer is."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

STORABLE = r"^[^\x00]*$"
"""No database keeps a NUL in a name."""

Id = Annotated[str, Field(min_length=1, max_length=256, pattern=STORABLE)]
IdOrNone = Annotated[str, Field(max_length=256, pattern=STORABLE)]
ToolId = Annotated[str, Field(min_length=1, max_length=512, pattern=STORABLE)]
Goal = Annotated[str, Field(min_length=1, max_length=20_000, json_schema_extra={"pattern": r"\S"})]
"""What is blank is refused by the decision, with the better words."""
Text = Annotated[str, Field(max_length=20_000)]


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


WHOLE = BeforeValidator(_whole)
"""JSON has one kind of number: 3.0 is as whole as 3."""
Count = Annotated[int, Field(ge=0, le=1_000_000), WHOLE]
MenuVerdict = Literal["allow", "confirm", "dry_run", "deny"]
CallVerdict = Literal["allow", "confirm", "dry_run", "deny", "invalid"]
Failing = Literal[
    "validation", "auth", "timeout", "unavailable", "rate_limited", "tool_error", "empty_result", "wrong_tool"
]


class Body(BaseModel):
    """A request's body: unknown fields are refused, and nothing is read as what it is not."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Answer(BaseModel):
    """A response."""

    model_config = ConfigDict(frozen=True)
