"""The workshop: what the stages of a training hand on, and the measures that several of them use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from data.card_text import card_text
from data.catalog import Catalog
from serving.bundle import RETRIEVER, Reranker
from serving.encoder import Encoder
from serving.evidence import Floats
from serving.index import Index
from serving.interaction import CardTokens, InteractionWeights
from training.decisions import Decision, Side
from training.material import Material
from training.recipe import Recipe

CHECKPOINT = "checkpoint"
PARITY_TEXTS = 64
PARITY_BOUND = 1e-3
"""Largest difference to PyTorch that an exported graph may show; beyond it the export is broken, not imprecise."""


@dataclass
class Workshop:
    """What the stages hand on. `folder` becomes the bundle; `scratch` does not survive the training."""

    catalog: Catalog
    recipe: Recipe
    folder: Path
    scratch: Path
    decisions: Sequence[Decision]
    same_name: dict[str, frozenset[str]]
    figures: dict[str, Any] = field(default_factory=dict)
    retriever_graph: str = RETRIEVER
    reranker_graph: str = ""
    reranker: Reranker = "none"
    missing_below: float = 0.0
    widen_below: float = 0.0
    encoder: Encoder | None = None
    index: Index | None = None
    vectors: Floats | None = None
    card_tokens: CardTokens | None = None
    weights: InteractionWeights | None = None
    material: Material | None = None

    def chosen(self, *sides: Side, answered: bool = True) -> list[int]:
        """Positions of the decisions of some sides that have (or have not) a right tool."""
        return [i for i, d in enumerate(self.decisions) if d.side in sides and bool(d.tools) == answered]

    @property
    def equivalents(self) -> dict[str, frozenset[str]]:
        return {tool: frozenset(others) for tool, others in self.recipe.mining.equivalents.items()}

    @property
    def card_texts(self) -> list[str]:
        return [card_text(card) for card in self.catalog]

    @property
    def cold_tools(self) -> frozenset[str]:
        return frozenset(tool for i in self.chosen("cold") for tool, _ in self.decisions[i].tools)


def good_rows(shop: Workshop, decision: Decision) -> frozenset[int]:
    """Rows of the tools that served a decision and of all that may be as good."""
    served = {tool for tool, _ in decision.tools}
    good = served.union(*(shop.same_name[t] | shop.equivalents.get(t, frozenset()) for t in served))
    return frozenset(shop.catalog.row[tool] for tool in good if tool in shop.catalog)


def first_ndcg(scores: Floats, good: frozenset[int]) -> float:
    """nDCG@10 of the first good row: any of them answers the request."""
    order = np.argsort(-scores, kind="stable")[:10].tolist()
    return next((1.0 / np.log2(place + 2) for place, row in enumerate(order) if row in good), 0.0)


def check_parity(what: str, difference: float) -> None:
    if not difference <= PARITY_BOUND:
        raise RuntimeError(
            f"{what}: the exported graph differs from PyTorch by {difference:.2g} (bound {PARITY_BOUND})"
        )


def workers() -> int:
    """How many texts are embedded at once: as many as torch would use threads."""
    return int(torch.get_num_threads())
