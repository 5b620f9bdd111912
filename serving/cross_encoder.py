"""The cross-encoder at serving time: a query and cards in, one raw score a pair out, as far as the time allows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from data.errors import BundleError
from serving.bundle import TOKENIZER, Bundle
from serving.encoder import session

COSINE_SCALE = 20.0
"""What a logit of the cross-encoder is worth in cosines: it is trained on top of this many times the cosine."""

RERANKER_TOKENIZER = "reranker.tokenizer.json"
"""The cross-encoder's own tokenizer; a bundle carries it only where it differs from the retriever's."""

CARD_TOKENS = 16
"""A long query is cut so that at least this many tokens of each card are read."""


class CrossEncoderReranker:
    """Scores (query, card) pairs by one ONNX graph.

    One pair a pass, never a batch: an int8 graph scales its activations by the largest of the whole batch, so that in
    a batch a pair's score would depend on its neighbours and on the padding. Alone it cannot, nothing is padded, and on
    a CPU it takes no longer (24 pairs of 40 to 71 tokens, int8, one thread: 6 layers 220 ms alone, 230 in eights; 2
    layers 66 and 75).
    """

    def __init__(self, graph: Path, tokenizer: Path, *, max_pair_tokens: int, threads: int = 1) -> None:
        """Load both files. Raises BundleError for a graph that is not a cross-encoder's."""
        self.max_pair_tokens = max_pair_tokens
        self._tokenizer = bare(Tokenizer.from_file(str(tokenizer)))
        self._session = session(graph, threads)
        if "score" not in {node.name for node in self._session.get_outputs()}:
            raise BundleError(f"{graph}: has no output 'score', so this is no cross-encoder (export the model again)")

    def scores(
        self,
        query: str,
        cards: Sequence[str],
        *,
        deadline: float | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> tuple[NDArray[np.float32], int]:
        """Raw logits (k,) float32 of `cards`, given best first, and how many were reached.

        The clock is read before each pair; once it has passed `deadline` (in the clock's seconds) the rest is NaN. So a
        budget buys depth from the top: what is reached is always a prefix. A deadline already past reaches none.
        """
        scores = np.full(len(cards), np.nan, np.float32)
        for place, pair in enumerate(encode_pairs(self._tokenizer, query, cards, self.max_pair_tokens)):
            if deadline is not None and clock() > deadline:
                return scores, place
            row = {
                "input_ids": np.array([pair.ids], np.int64),
                "attention_mask": np.ones((1, len(pair.ids)), np.int64),
                "token_type_ids": np.array([pair.types], np.int64),
            }
            scores[place] = self._session.run(["score"], row)[0][0]
        return scores, len(cards)


def reader_of(bundle: Bundle, threads: int) -> CrossEncoderReranker | None:
    """The bundle's cross-encoder, whether or not it serves in `select`; None where the bundle carries none."""
    manifest = bundle.manifest
    if not manifest.reranker_graph or not bundle.has(manifest.reranker_graph):
        return None
    return CrossEncoderReranker(
        bundle.file(manifest.reranker_graph),
        bundle.file(RERANKER_TOKENIZER if bundle.has(RERANKER_TOKENIZER) else TOKENIZER),
        max_pair_tokens=manifest.max_pair_tokens,
        threads=threads,
    )


def bare(tokenizer: Tokenizer) -> Tokenizer:
    """The same tokenizer without padding or truncation of its own; a saved one often carries both."""
    copied = Tokenizer.from_str(tokenizer.to_str())
    copied.no_padding()
    copied.no_truncation()
    return copied


@dataclass(frozen=True)
class Pair:
    """Token ids, and for each 0 where it belongs to the query, 1 where to the card."""

    ids: list[int]
    types: list[int]


def encode_pairs(tokenizer: Tokenizer, query: str, cards: Sequence[str], max_pair_tokens: int) -> Iterator[Pair]:
    """Each pair as the tokenizer's template has it (BERT: `[CLS] query [SEP] card [SEP]`), made when it is asked for.

    Training and serving both read pairs through here. What is too long is cut on the card's side. The query is whole
    unless it would leave the card fewer than 16 tokens (in a very small limit: half of it); then it ends there, for all
    cards alike. `tokenizer` is bare. A template without types (RoBERTa, MPNet) gets them by what a token comes from.
    """
    room = max_pair_tokens - int(tokenizer.num_special_tokens_to_add(True))
    asked = tokenizer.encode(query, add_special_tokens=False)
    asked.truncate(room - min(CARD_TOKENS, room // 2))
    for card in cards:
        offered = tokenizer.encode(card, add_special_tokens=False)
        offered.truncate(room - len(asked.ids))
        pair = tokenizer.post_process(asked, offered)
        types = pair.type_ids if any(pair.type_ids) else [int(source == 1) for source in pair.sequence_ids]
        yield Pair(pair.ids, types)


def corrected(cosine: NDArray[np.float32], logits: NDArray[np.float32], read: NDArray[np.int64]) -> NDArray[np.float32]:
    """Cosines (k,), those at the positions `read` corrected by their `logits`; NaN (not reached) corrects nothing."""
    total = cosine.astype(np.float32)
    total[read] += np.nan_to_num(logits, nan=0.0) / np.float32(COSINE_SCALE)
    return total
