"""Encoders on disk: a bi-encoder as fused and int8 ONNX, its parity figures, and which of the two is served."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, AutoTokenizer

from data.errors import RecipeError
from serving.bundle import RETRIEVER, TOKENIZER, int8_name
from serving.encoder import Encoder
from training.export import EncoderGraph, export_graph, fuse, quantize
from training.quiet import quiet_loading

_DYNAMIC = {0: "batch", 1: "length"}


def export_encoder(
    model: str | Path, folder: Path, texts: Sequence[str], max_tokens: int, *, int8: bool
) -> dict[str, float]:
    """Write retriever.onnx (and its int8 twin) and tokenizer.json into `folder`.

    `model` is a saved model folder or a hub name. Returns parity figures over real `texts`: the largest difference of
    the fp32 graph to PyTorch, and the mean cosine of the int8 graph's vectors to the fp32 graph's.
    """
    with quiet_loading():
        transformer = AutoModel.from_pretrained(str(model), attn_implementation="eager").eval()
    config = transformer.config
    tokenizer = AutoTokenizer.from_pretrained(str(model))
    if not tokenizer.is_fast:
        raise RecipeError(f"base_model {model}: has no fast tokenizer (tokenizer.json), which serving needs")
    tokenizer.backend_tokenizer.no_padding()
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.save(str(folder / TOKENIZER))
    module = EncoderGraph(transformer)
    ids = torch.randint(config.vocab_size, (2, 9))
    sample = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    raw, graph = folder / "raw.onnx", folder / RETRIEVER
    axes = {"input_ids": _DYNAMIC, "attention_mask": _DYNAMIC}
    export_graph(module, sample, {"vector": {0: "batch"}, "token_states": _DYNAMIC}, axes, raw)
    if config.model_type == "bert":
        fuse(raw, graph, heads=config.num_attention_heads, hidden=config.hidden_size)
        raw.unlink()
    else:
        shutil.move(raw, graph)
    served = Encoder(graph, folder / TOKENIZER).encode(texts, max_tokens).vectors
    figures = {"max_difference": float(np.abs(served - _with_torch(model, texts, max_tokens)).max())}
    if int8:
        quantize(graph, folder / int8_name(RETRIEVER))
        small = Encoder(folder / int8_name(RETRIEVER), folder / TOKENIZER).encode(texts, max_tokens).vectors
        figures["int8_mean_cosine"] = float((small * served).sum(axis=1).mean())
    return figures


def _with_torch(model: str | Path, texts: Sequence[str], max_tokens: int) -> np.ndarray:
    """The vectors by the model itself, one text at a time: pooling and truncation as it was trained."""
    with quiet_loading():
        original = SentenceTransformer(str(model), device="cpu")
    original.max_seq_length = max_tokens
    vectors = original.encode(list(texts), batch_size=1, normalize_embeddings=True, show_progress_bar=False)
    return np.asarray(vectors, np.float32)
