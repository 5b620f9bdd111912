"""Terms: on what terms a source is taken, whose name its tools bear and whether its claims are believed."""

from __future__ import annotations

from dataclasses import dataclass

from data.cards import Trust


@dataclass(frozen=True)
class Terms:
    """`server` None leaves the name to the format; `tenant` "" means tools of everybody.

    With `skip_bad`, a definition that is no tool is counted and left out; without it, it stops the import.
    """

    server: str | None = None
    tenant: str = ""
    trust: Trust = Trust.THIRD_PARTY
    skip_bad: bool = False

    def tool_id(self, server: str, name: str) -> str:
        """`<server>.<name>`, and `<tenant>/` before it: equal names of two servers or tenants are two tools."""
        own = f"{server}.{name}" if server else name
        return f"{self.tenant}/{own}" if self.tenant else own

    @property
    def rules(self) -> dict[str, object]:
        """The fields of every card that the terms decide."""
        return {"trust": self.trust.word, "tenants": [self.tenant] if self.tenant else []}
