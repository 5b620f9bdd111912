"""What a test of an example has at hand: the running service, and one conversation with it."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from data.store.ledger import Ledger
from data.traces import Trace
from serving.door.assembly import Assembly

EXAMPLES = Path(__file__).parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))  # as `python examples/openai_chat.py` does

from crib import Crib  # noqa: E402
from service_desk import Desk  # noqa: E402


@dataclass
class Service:
    """The running service: its address, and the traces that it has kept since there were `before`."""

    url: str
    assembly: Assembly
    before: int = 0

    def traces(self) -> list[Trace]:
        assert self.assembly.writer.drain(10)
        return list(Ledger(self.assembly.database).traces())[self.before :]


@dataclass
class Talk:
    """One conversation: the desk that it works on, and what a person was asked."""

    crib: Crib
    desk: Desk
    asked: list[str] = field(default_factory=list)


def tools_begin(before: bytes, after: bytes, tools: list[dict[str, Any]]) -> bool:
    """Whether both requests, as they went over the wire, begin with the same bytes up to the end of `tools`."""
    written = json.dumps(tools, separators=(",", ":"), ensure_ascii=False).encode()[:-1]  # without the closing bracket
    end = before.find(written) + len(written)
    return written in before and before[:end] == after[:end]
