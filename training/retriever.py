"""The retriever: a bi-encoder fine-tuned so that a request lies next to the card of the tool that served it."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

from training.arguments import WholeCheckpoints, common_arguments, last_checkpoint, processes
from training.batches import plan_batches
from training.quiet import quiet_loading

Key = tuple[str, str | int]
"""("tool", its id) or ("group", number of the request)."""


@dataclass(frozen=True)
class Pair:
    """A request, the text of the card that served it, optional hard negatives, and what must not share its batch."""

    query: str
    card: str
    keys: frozenset[Key]
    negatives: tuple[str, ...] = ()


@dataclass(frozen=True)
class RetrieverSettings:
    """`max_tokens` per text; `freeze_layers` counts the lowest transformer layers that stay as they are; `batch_size`
    is that of a step, shared out among the processes."""

    epochs: float = 1.0
    batch_size: int = 32
    learning_rate: float = 5e-5
    max_tokens: int = 64
    freeze_layers: int = 0
    scale: float = 20.0
    seed: int = 0
    bf16: bool = False


def train_retriever(
    model: SentenceTransformer,
    pairs: Sequence[Pair],
    settings: RetrieverSettings,
    callbacks: Sequence[Any] = (),
    checkpoints: Path | None = None,
) -> SentenceTransformer:
    """Fine-tune `model` in place on `pairs` by the multiple-negatives ranking loss, both directions.

    Word embeddings stay frozen: a few thousand pairs reach a small part of the vocabulary, and moving only that part
    pulls it away from the rest.

    With a folder for `checkpoints` it goes on from the last one there: the same pairs and settings then give the same
    weights, to the bit on one CPU, as a training that was never stopped.
    """
    model.max_seq_length = settings.max_tokens
    model.model_card_data.widget = [{}]  # none are computed where some are there
    freeze(model, settings.freeze_layers)
    width = min((len(pair.negatives) for pair in pairs), default=0)
    columns = {"query": [p.query for p in pairs], "card": [p.card for p in pairs]}
    for i in range(width):
        columns[f"negative_{i}"] = [p.negatives[i] for p in pairs]
    together = processes().num_processes
    keys = [pair.keys for pair in pairs]
    plan = plan_batches(keys, settings.batch_size, settings.epochs, seed=settings.seed, processes=together)
    if not plan:
        return model.eval()
    with tempfile.TemporaryDirectory() as scratch:
        arguments = SentenceTransformerTrainingArguments(
            **common_arguments(checkpoints or Path(scratch), settings, plan, keep=checkpoints is not None),
            disable_tqdm=bool(callbacks),
        )
        trainer = SentenceTransformerTrainer(
            model=model,
            args=arguments,
            train_dataset=Dataset.from_dict(columns),
            loss=MultipleNegativesRankingLoss(
                model,
                scale=settings.scale,
                directions=("query_to_doc", "doc_to_query"),
                partition_mode="per_direction",
                gather_across_devices=together > 1,
            ),
            callbacks=[*callbacks, WholeCheckpoints()],
        )
        with quiet_loading():
            trainer.train(resume_from_checkpoint=last_checkpoint(checkpoints) if checkpoints else None)
    model.eval()
    return model


def freeze(model: SentenceTransformer, layers: int) -> None:
    """Stop gradients into the word embeddings and the lowest `layers` transformer layers."""
    transformer = model[0].auto_model
    transformer.embeddings.word_embeddings.weight.requires_grad_(False)
    for layer in list(transformer.encoder.layer)[:layers]:
        for parameter in layer.parameters():
            parameter.requires_grad_(False)
