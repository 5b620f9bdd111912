"""The pair model: a transformer that reads query and card together under a head that scores what it read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
from sentence_transformers.base.modules import Module, Transformer
from sentence_transformers.cross_encoder import CrossEncoder
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers import AutoConfig

from serving.cross_encoder import encode_pairs
from training.quiet import quiet_loading

GAIN = 20.0
"""A cosine of the two segments, times this, is the first logit: the scale at which a softmax over cards can learn."""
PAIRS_A_PASS = 16


class PairTransformer(Transformer):  # type: ignore[misc]
    """A transformer of pairs: hands the segments on to the head, also where it has no embedding for them itself."""

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        segments = features["token_type_ids"]
        if getattr(self.model.config, "type_vocab_size", 0) < 2:
            features = {key: value for key, value in features.items() if key != "token_type_ids"}
        return {**super().forward(features, **kwargs), "token_type_ids": segments}


class SegmentHead(Module):  # type: ignore[misc]
    """Scores a pair by how its two halves agree after the transformer has read them together.

    u and v are the unit means of the query's and the card's token states; the score is 20 * (sum(importance * u * v) -
    level). With the importance of one that it starts from this is a cosine, which the retriever's training has made
    mean something: the first scores already rank, where a new head on [CLS], a token that a mean-pooled encoder never
    used, starts blind (metatool, 24 cards, nDCG@10: 52 before training; small new head on [CLS], 1,600 pairs: 25).
    """

    config_keys: ClassVar[list[str]] = ["width"]

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.importance = nn.Parameter(torch.ones(width))
        self.level = nn.Parameter(torch.zeros(1))

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:
        """The library's own form: a JSON with the width, and the weights."""
        self.save_config(output_path)
        self.save_torch_weights(output_path, safe_serialization=safe_serialization)

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **rest: Any) -> SegmentHead:
        """What `save` wrote."""
        head = cls(**cls.load_config(model_name_or_path, subfolder=subfolder))
        cls.load_torch_weights(model_name_or_path, subfolder=subfolder, model=head)
        return head

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Adds `scores` (n, 1) from `token_embeddings` (n, length, width) and the masks (n, length)."""
        states, card = features["token_embeddings"], features["token_type_ids"]
        query_mean = _segment_mean(states, features["attention_mask"] * (1 - card))
        card_mean = _segment_mean(states, features["attention_mask"] * card)
        agreement = (self.importance * query_mean * card_mean).sum(-1, keepdim=True)
        return {**features, "scores": GAIN * (agreement - self.level)}


def _segment_mean(states: Tensor, mask: Tensor) -> Tensor:
    weight = mask.unsqueeze(-1).to(states.dtype)
    return nn.functional.normalize((states * weight).sum(1), dim=-1)


def pair_model(base: str | Path, *, layers: int, max_pair_tokens: int) -> CrossEncoder:
    """The lowest `layers` of `base` (all, where it has fewer) under a new SegmentHead; word embeddings frozen."""
    own = AutoConfig.from_pretrained(str(base))
    with quiet_loading():
        transformer = PairTransformer(
            str(base),
            max_seq_length=max_pair_tokens,
            config_kwargs={"num_hidden_layers": min(layers, own.num_hidden_layers)},
        )
    transformer.model.get_input_embeddings().weight.requires_grad_(False)
    return CrossEncoder(modules=[transformer, SegmentHead(own.hidden_size)], activation_fn=nn.Identity())


def pair_logits(
    model: CrossEncoder, tokenizer: Tokenizer, requests: Sequence[tuple[str, Sequence[str]]], max_pair_tokens: int
) -> Tensor:
    """Raw logits (pairs,) of every (query, its cards), in order, tokenized as serving does; `tokenizer` is bare."""
    encoded = [pair for query, cards in requests for pair in encode_pairs(tokenizer, query, cards, max_pair_tokens)]
    order = sorted(range(len(encoded)), key=lambda i: len(encoded[i].ids))
    parts = []
    for start in range(0, len(order), PAIRS_A_PASS):
        chosen = [encoded[i] for i in order[start : start + PAIRS_A_PASS]]
        features = {
            "input_ids": _padded([pair.ids for pair in chosen]),
            "attention_mask": _padded([[1] * len(pair.ids) for pair in chosen]),
            "token_type_ids": _padded([pair.types for pair in chosen]),
        }
        parts.append(model({k: v.to(model.device) for k, v in features.items()})["scores"].view(-1).float())
    places = torch.tensor(order, device=parts[0].device)
    return torch.cat(parts)[torch.argsort(places)]


class ScoreGraph(nn.Module):
    """(input_ids, attention_mask, token_type_ids) -> raw logit (n,): no activation here, and none in serving."""

    def __init__(self, model: CrossEncoder) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        features = {"input_ids": input_ids, "attention_mask": attention_mask, "token_type_ids": token_type_ids}
        scores: Tensor = self.model(features)["scores"]
        return scores.squeeze(-1)


def _padded(rows: Sequence[Sequence[int]]) -> Tensor:
    return nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True)
