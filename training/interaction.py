"""The interaction reranker: a small trained late interaction over cached token states, for CPUs.

Card tokens are encoded once and kept; the query's token states come from the pass that embeds it anyway. What is
trained is only how they meet: a projection of both sides, a weight for each token, and how much the two directions of
MaxSim (Khattab and Zaharia, ColBERT, SIGIR 2020) add to the retriever's cosine. At the start it adds nothing: it cannot
begin worse than the first stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from serving.cross_encoder import COSINE_SCALE

NO_TOKEN = -1e4


class CardSide(nn.Module):
    """Token states (n, length, d) -> projected unit states and the token's weight behind them (n, length, p + 1)."""

    def __init__(self, dimension: int, projected: int) -> None:
        super().__init__()
        self.project = nn.Linear(dimension, projected, bias=False)
        self.weigh = nn.Linear(dimension, 1)
        nn.init.zeros_(self.weigh.weight)
        nn.init.zeros_(self.weigh.bias)

    def forward(self, states: Tensor) -> Tensor:
        return torch.cat([nn.functional.normalize(self.project(states), dim=-1), self.weigh(states)], dim=-1)


class Interaction(nn.Module):
    """Query states (q, d), cards as CardSide gives them (k, c, p + 1), mask (k, c), cosine (k,) -> scores (k,)."""

    def __init__(self, dimension: int, projected: int) -> None:
        super().__init__()
        self.query = CardSide(dimension, projected)
        self.card = CardSide(dimension, projected)
        self.card.project.load_state_dict(self.query.project.state_dict())
        self.mix = nn.Parameter(torch.zeros(2))

    def forward(self, query_states: Tensor, card_states: Tensor, mask: Tensor, cosine: Tensor) -> Tensor:
        query = self.query(query_states)
        similar = torch.matmul(card_states[..., :-1], query[..., :-1].transpose(-1, -2))
        similar = similar + (mask.unsqueeze(-1) - 1.0) * -NO_TOKEN
        forward = (similar.amax(dim=-2) * torch.softmax(query[..., -1], dim=-1)).sum(-1)
        weight = torch.softmax(card_states[..., -1] + (mask - 1.0) * -NO_TOKEN, dim=-1)
        backward = (similar.amax(dim=-1).clamp(min=-1.0) * weight).sum(-1)
        return COSINE_SCALE * (cosine + self.mix[0] * forward + self.mix[1] * backward)


@dataclass(frozen=True)
class InteractionExample:
    """One request: its token states, the rows of its candidates, their cosines, and which of them are right."""

    states: NDArray[np.float32]
    candidates: NDArray[np.int64]
    cosine: NDArray[np.float32]
    right: NDArray[np.bool_]
    weight: float = 1.0


@dataclass(frozen=True)
class InteractionSettings:
    """`projected` dimensions of a cached token; `patience` epochs without a gain on held-out tools end training."""

    projected: int = 64
    epochs: int = 6
    learning_rate: float = 1e-3
    weight_decay: float = 1e-2
    patience: int = 2
    seed: int = 0


def train_interaction(
    card_states: Sequence[NDArray[np.float32]],
    train: Sequence[InteractionExample],
    held_out: Sequence[InteractionExample],
    settings: InteractionSettings,
) -> tuple[Interaction, list[float]]:
    """Listwise softmax over each request's candidates; the epoch best on `held_out` (requests of tools that `train` has
    no positive of) is kept. Returns the model and the held-out MRR before training and after each epoch."""
    torch.manual_seed(settings.seed)
    model = Interaction(card_states[0].shape[1], settings.projected)
    optimizer = torch.optim.AdamW(model.parameters(), settings.learning_rate, weight_decay=settings.weight_decay)
    states = [torch.from_numpy(np.asarray(s, np.float32)) for s in card_states]
    curve = [held_out_mrr(model, states, held_out)]
    best, kept, stale = curve[0], {k: v.clone() for k, v in model.state_dict().items()}, 0
    generator = torch.Generator().manual_seed(settings.seed)
    for _ in range(settings.epochs):
        model.train()
        order = torch.randperm(len(train), generator=generator).tolist()
        for place, i in enumerate(order):
            example = train[i]
            scores = _scores(model, states, example)
            log_share = torch.log_softmax(scores, dim=0)
            right = torch.from_numpy(example.right)
            loss = -example.weight * torch.logsumexp(log_share[right], dim=0)
            (loss / 8).backward()
            if place % 8 == 7 or place == len(order) - 1:
                optimizer.step()
                optimizer.zero_grad()
        curve.append(held_out_mrr(model, states, held_out))
        if curve[-1] > best:
            best, kept, stale = curve[-1], {k: v.clone() for k, v in model.state_dict().items()}, 0
        else:
            stale += 1
            if stale >= settings.patience:
                break
    model.load_state_dict(kept)
    model.eval()
    return model, curve


def held_out_mrr(model: Interaction, states: Sequence[Tensor], examples: Sequence[InteractionExample]) -> float:
    """Mean reciprocal rank of the first right candidate; 0 without examples."""
    model.eval()
    total = 0.0
    with torch.no_grad():
        for example in examples:
            scores = _scores(model, states, example).numpy()
            ranked = example.right[np.argsort(-scores, kind="stable")]
            total += 1.0 / (1 + int(np.argmax(ranked))) if ranked.any() else 0.0
    return total / max(len(examples), 1)


def as_arrays(model: Interaction) -> dict[str, NDArray[np.float32]]:
    """The weights as serving.interaction.InteractionWeights names them."""
    made: dict[str, NDArray[np.float32]] = {"mix": model.mix.detach().numpy()}
    for name, side in (("query", model.query), ("card", model.card)):
        made[name] = side.project.weight.detach().numpy()
        made[f"{name}_weight"] = side.weigh.weight.detach().numpy()[0]
        made[f"{name}_bias"] = side.weigh.bias.detach().numpy()
    return made


def _scores(model: Interaction, states: Sequence[Tensor], example: InteractionExample) -> Tensor:
    chosen = [states[row] for row in example.candidates]
    padded = nn.utils.rnn.pad_sequence(chosen, batch_first=True)
    mask = torch.zeros(padded.shape[:2])
    for i, state in enumerate(chosen):
        mask[i, : len(state)] = 1.0
    scores: Tensor = model(torch.from_numpy(example.states), model.card(padded), mask, torch.from_numpy(example.cosine))
    return scores
