"""The encoder at serving time: tokenizer and ONNX graph; texts in, vectors and token states out."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray
from tokenizers import Tokenizer

from data.errors import BundleError


@dataclass(frozen=True)
class Encoded:
    """`vectors` (n, d) float32 of unit length; `states[i]` (tokens of text i, d) float32, or None if not asked for."""

    vectors: NDArray[np.float32]
    states: list[NDArray[np.float32]] | None


def session(path: Path, threads: int) -> ort.InferenceSession:
    """An ONNX Runtime session on the CPU. `threads` is the intra-op count; 1 is best beside other work."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime raises its own classes, which share no public base
        raise BundleError(f"{path}: ONNX Runtime cannot load this graph ({error})") from error


class Encoder:
    """Texts -> unit vectors and token states, in one pass. A text's result does not depend on its neighbours."""

    def __init__(self, graph: Path, tokenizer: Path, *, threads: int = 1) -> None:
        self.tokenizer = Tokenizer.from_file(str(tokenizer))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self._session = session(graph, threads)
        self.dimension: int = self._session.get_outputs()[0].shape[-1]

    def token_ids(self, text: str, max_tokens: int) -> list[int]:
        """Ids with the special tokens around them, cut to `max_tokens` at the end of the text, markers kept."""
        ids: list[int] = self.tokenizer.encode(text).ids
        return ids if len(ids) <= max_tokens else [*ids[: max_tokens - 1], ids[-1]]

    def count(self, text: str) -> int:
        """Tokens of the text itself, special tokens not counted."""
        return len(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def encode(self, texts: Sequence[str], max_tokens: int, *, states: bool = False, workers: int = 1) -> Encoded:
        """Encode `texts`, each cut to `max_tokens` (2 or more), `workers` of them at a time.

        One text a pass: an int8 graph scales its activations by the largest of a whole batch, so that in a batch a
        vector would depend on its neighbours. Alone it cannot, and nothing is padded.
        """
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        kept: list[NDArray[np.float32]] = [np.zeros((0, self.dimension), np.float32)] * len(texts)
        wanted = ["vector", "token_states"] if states else ["vector"]

        def encode_one(row: int) -> None:
            ids = np.array([self.token_ids(texts[row], max_tokens)], np.int64)
            made = self._session.run(wanted, {"input_ids": ids, "attention_mask": np.ones_like(ids)})
            vectors[row] = made[0][0]
            if states:
                kept[row] = made[1][0]

        if workers == 1 or len(texts) < workers:
            for row in range(len(texts)):
                encode_one(row)
        else:
            with ThreadPoolExecutor(workers) as pool:
                list(pool.map(encode_one, range(len(texts))))
        return Encoded(vectors, kept if states else None)
