"""Settings of a selector: sizes, budgets and rates; no setting can widen a permission."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class SelectorSettings(BaseModel):
    """Times in milliseconds, sizes in tools or tokens, rates and margins as probabilities."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    candidates: int = Field(default=40, ge=1, le=200)
    margin: float = Field(default=0.02, ge=0.0, le=0.5)
    """Relevance closer than this counts as equal, and cost, then latency, decide."""
    rerank_budget_ms: float = Field(default=150.0, ge=0.0)
    """A cross-encoder stops going deeper after this; the rest keeps its order."""
    max_tools: int = Field(default=12, ge=1, le=12)
    menu_alpha: float | None = Field(default=None, gt=0.0, lt=1.0)
    """A menu is as short as it may be to miss the right tool in at most this share of the requests; None: as long as
    `max_tools` and `token_budget` allow."""
    token_budget: int = Field(default=6000, ge=0)
    explore_rate: float = Field(default=0.02, ge=0.0, le=1.0)
    """At most this share of the requests tries a tool in the last slot."""
    explore_rates: dict[str, Annotated[float, Field(ge=0.0, le=1.0)]] = Field(default_factory=dict)
    """The same for the tenants named here: each tenant's own budget."""
    explore_width: float = Field(default=0.1, ge=0.0, le=0.5)
    """A tool is under-observed while its chance of success is known no better than this, as a standard deviation."""
    explore_days: float = Field(default=90.0, ge=0.0)
    """A tool whose `first_seen` is known and this much before the newest tool's is not tried any more."""
    explore_showings: int = Field(default=500, ge=0)
    """A tool's budget: shown this often by exploration, it is not tried any more."""
    explore_writes: bool = False
    learn_at_once: bool = False
    """An outcome that was reported counts from the next request of its tenant on, before any training. Off: one of new
    words makes the tenant's cached menus stale."""
    threads: int = Field(default=1, ge=1)
    """Intra-op threads of the encoder. More than one is slower beside other work."""
    allow_foreign_catalog: bool = False
    """Serve a catalog that shares no tool with the bundle's past, as a model that is carried over."""
