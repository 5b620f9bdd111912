"""Settings of a selector: sizes, budgets and rates; no setting can widen a permission."""

from __future__ import annotations

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
    token_budget: int = Field(default=6000, ge=0)
    explore_rate: float = Field(default=0.02, ge=0.0, le=1.0)
    explore_below: int = Field(default=3, ge=0)
    """A tool with fewer past outcomes than this is under-observed."""
    explore_writes: bool = False
    threads: int = Field(default=1, ge=1)
    """Intra-op threads of the encoder. More than one is slower beside other work."""
    allow_foreign_catalog: bool = False
    """Serve a catalog that shares no tool with the bundle's past, as a model that is carried over."""
