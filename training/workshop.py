"""The workshop: what the stages of a training hand on, and the measures that several of them use."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from data.card_text import card_text
from data.catalog import Catalog
from serving.bundle import INTERACTION, RETRIEVER, TOKENIZER, Reranker, save_arrays
from serving.encoder import Encoder
from serving.evidence import Floats
from serving.index import Index, index_of
from serving.interaction import CardTokens, InteractionWeights
from training.decisions import Decision, Ended, Side
from training.material import Material
from training.recipe import Recipe

CHECKPOINT = "checkpoint"
VECTORS = "vectors.npz"
CARD_TOKENS = "card_tokens.npz"
PARITY_TEXTS = 64
PARITY_BOUND = 1e-3
"""Largest difference to PyTorch that an exported graph may show; beyond it the export is broken, not imprecise."""

_KEPT = ("figures", "retriever_graph", "reranker_graph", "reranker", "missing_below", "widen_below")


@dataclass
class Workshop:
    """What the stages hand on. `folder` becomes the bundle; `scratch` does not survive the training, but an interrupted
    one has both when it goes on."""

    catalog: Catalog
    recipe: Recipe
    folder: Path
    scratch: Path
    decisions: Sequence[Decision]
    same_name: dict[str, frozenset[str]]
    history: Sequence[Ended] = ()
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

    @property
    def checkpoint(self) -> Path:
        """The tuned encoder, for the stages that start from it."""
        return (self.folder if self.recipe.keep_checkpoint else self.scratch) / CHECKPOINT

    def kept(self) -> dict[str, Any]:
        """What no file holds of the work so far, as JSON values."""
        return {name: plain(getattr(self, name)) for name in _KEPT}

    def restore(self, kept: Mapping[str, Any], finished: Sequence[str]) -> None:
        """Take over what `kept` gave, and from their files what the `finished` stages had in memory."""
        for name in _KEPT:
            setattr(self, name, kept[name])
        if "retriever" in finished:
            with np.load(self.scratch / VECTORS, allow_pickle=False) as arrays:
                self.vectors = arrays["goals"]
                self.index = index_of(self.catalog, arrays["cards"], None)
            self.encoder = Encoder(self.folder / self.retriever_graph, self.folder / TOKENIZER)
        if "interaction" in finished and (self.scratch / CARD_TOKENS).is_file():
            with np.load(self.scratch / CARD_TOKENS, allow_pickle=False) as arrays:
                self.card_tokens = CardTokens(arrays["tokens"], arrays["start"])
            shutil.copy(self.scratch / INTERACTION, self.folder / INTERACTION)
            self.weights = InteractionWeights.load(self.folder / INTERACTION)

    def keep_vectors(self) -> None:
        """Write down what the served encoder made of goals and cards."""
        assert self.index is not None
        assert self.index.vectors is not None
        assert self.vectors is not None
        save_arrays(self.scratch / VECTORS, {"goals": self.vectors, "cards": self.index.vectors})

    def keep_interaction(self) -> None:
        """Write down the interaction, which the last stage may leave out of the bundle, and its card tokens."""
        assert self.card_tokens is not None
        shutil.copy(self.folder / INTERACTION, self.scratch / INTERACTION)
        save_arrays(self.scratch / CARD_TOKENS, {"tokens": self.card_tokens.tokens, "start": self.card_tokens.start})

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


def plain(value: Any) -> Any:
    """Figures as plain JSON values."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return value.item() if isinstance(value, np.generic) else value


def check_parity(what: str, difference: float) -> None:
    if not difference <= PARITY_BOUND:
        raise RuntimeError(
            f"{what}: the exported graph differs from PyTorch by {difference:.2g} (bound {PARITY_BOUND})"
        )


def workers() -> int:
    """How many texts are embedded at once: as many as torch would use threads."""
    return int(torch.get_num_threads())
