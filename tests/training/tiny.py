"""A workshop small enough to train on in seconds: twelve tools, a hundred logged requests, a two-layer base model."""

# ruff: noqa: PLC0415 (torch: only for who makes a base model)

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data.cards import Requires, Risk, ToolCard, Trust
from data.catalog import Catalog
from data.queries import Query
from data.traces import Trace
from training.recipe import Recipe

# tool id -> what it acts on, its verbs as people say them, and the words of its description
_TOOLS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "mail.send_message": ("email", ("send", "write", "mail"), "Send an email message to a recipient"),
    "mail.search_messages": ("inbox", ("search", "look through", "find in"), "Search the mailbox for messages"),
    "calendar.create_event": ("meeting", ("schedule", "book", "plan"), "Create an event in the calendar"),
    "calendar.list_events": ("appointments", ("list", "show", "what are"), "List the events of a calendar"),
    "files.read_file": ("document", ("open", "read", "display"), "Read the content of a file"),
    "files.delete_file": ("folder", ("delete", "remove", "erase"), "Delete a file from the disk for ever"),
    "bank.transfer_money": ("payment", ("transfer", "pay", "wire"), "Transfer money between accounts"),
    "bank.get_balance": ("account", ("check", "get", "tell"), "Get the balance of a bank account"),
    "weather.get_forecast": ("weather", ("forecast", "predict", "say"), "Get the weather forecast of a city"),
    "maps.find_route": ("route", ("navigate", "drive", "go"), "Find a route between two places"),
    "notes.append_note": ("note", ("append", "jot", "keep"), "Append a line to a note"),
    "help.list_topics": ("manual", ("explain", "help", "teach"), "List the topics of the manual"),
}
_RISK = {
    "mail.send_message": Risk.WRITE,
    "calendar.create_event": Risk.WRITE,
    "notes.append_note": Risk.WRITE,
    "files.delete_file": Risk.DESTRUCTIVE,
    "bank.transfer_money": Risk.DESTRUCTIVE,
}
_CONTEXTS = ("for anna", "of last week", "in berlin", "before noon", "with the team", "about the budget", "right now")
_NOBODY = ("compose a song", "translate a poem", "resize a picture", "train a dog", "brew some coffee", "paint a wall")

NEVER_USED = "notes.append_note"
"""The tool that no trace calls."""
GUARDED = "bank.get_balance"
"""The tool that needs the scope `accounts`; it has a past like any other."""
CORE = "help.list_topics"


@dataclass(frozen=True)
class Trained:
    """One finished training. `bundle` is for reading: a test that changes it takes a copy."""

    catalog: Catalog
    base: Path
    traces: Path
    bundle: Path
    store: Path
    metrics: dict[str, dict[str, float]]


def catalog() -> Catalog:
    """Twelve tools on eight servers; one is core, one is guarded, five change something."""
    return Catalog(
        ToolCard(
            tool_id=tool_id,
            name=tool_id.partition(".")[2],
            domain=tool_id.partition(".")[0],
            description=f"{description}.",
            risk=_RISK.get(tool_id, Risk.READ_ONLY),
            trust=Trust.TRUSTED,
            requires=Requires(scopes=("accounts",)) if tool_id == GUARDED else Requires(),
            core=tool_id == CORE,
            cost_usd=0.01 * number,
            p50_ms=100.0 - number,
        )
        for number, (tool_id, (_, _, description)) in enumerate(_TOOLS.items())
    )


def goals(tool_id: str) -> list[str]:
    """Seven requests that a tool serves."""
    noun, verbs, _ = _TOOLS[tool_id]
    return [f"{verbs[i % len(verbs)]} the {noun} {context}" for i, context in enumerate(_CONTEXTS)]


def no_tool_goals() -> list[str]:
    """Requests that no tool serves."""
    return [f"{wish} {context}" for wish in _NOBODY for context in _CONTEXTS[:4]]


def traces() -> list[Trace]:
    """One call a request: seven that succeed for every tool but `NEVER_USED`, a failure, and 24 times nothing."""
    made = []
    for tool_id in _TOOLS:
        if tool_id == NEVER_USED:
            continue
        for number, goal in enumerate(goals(tool_id)):
            name = f"{tool_id} {number}"
            if number == 0 and tool_id == "files.read_file":
                made.append(_trace(name, 0, goal, "files.delete_file", outcome="failure", error_class="wrong_tool"))
            made.append(_trace(name, 1, goal, tool_id, outcome="success", task_success=True))
    made += [_trace(f"nothing {number}", 0, goal, None) for number, goal in enumerate(no_tool_goals())]
    return made


def _trace(trace_id: str, step: int, goal: str, tool_id: str | None, **rest: Any) -> Trace:
    return Trace(trace_id=trace_id, step=step, goal=goal, request=goal, tool_id=tool_id, **rest)


def queries() -> list[Query]:
    """Held-out requests in other words, one a tool, then two that no tool fits."""
    asked = [
        Query(qid=tool_id, text=f"please {_TOOLS[tool_id][1][0]} my {_TOOLS[tool_id][0]} today", gold=(tool_id,))
        for tool_id in _TOOLS
    ]
    return [*asked, *(Query(qid=wish, text=f"please {wish} today", gold=()) for wish in _NOBODY[:2])]


def write_traces_jsonl(path: Path, rows: Iterable[Trace]) -> Path:
    """Traces in the plain form."""
    with path.open("w", encoding="utf-8") as out:
        for trace in rows:
            out.write(trace.model_dump_json(exclude_defaults=True, exclude={"tool_id"})[:-1])
            out.write(f', "tool_id": {json.dumps(trace.tool_id)}}}\n')
    return path


def recipe(base: Path, **changes: Any) -> Recipe:
    """A training of seconds: every stage runs except the cross-encoder."""
    whole: dict[str, Any] = {
        "base_model": str(base),
        "split": {"valid_share": 0.4, "cold_share": 0.2},
        "retriever": {"epochs": 4, "batch_size": 8, "learning_rate": 1e-3, "max_query_tokens": 16},
        "cross_encoder": {"epochs": 0},
        "interaction": {"epochs": 2, "projected": 8, "candidates": 8},
        "reranker": "interaction",
        "head": {"max_requests": 50},
        "export": {"int8": False},
    }
    return Recipe.model_validate(whole | changes)


def make_base(folder: Path) -> Path:
    """An untrained BERT of two layers as a SentenceTransformer folder; its vocabulary is the words above."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    texts = [text for tool_id in _TOOLS for text in (*goals(tool_id), _TOOLS[tool_id][2], tool_id)]
    texts += [*no_tool_goals(), *(query.text for query in queries())]
    words = sorted({word for text in texts for word in text.lower().replace(".", " ").replace("_", " ").split()})
    letters = [mark + letter for letter in "abcdefghijklmnopqrstuvwxyz0123456789" for mark in ("", "##")]
    vocabulary = {token: number for number, token in enumerate(dict.fromkeys([*special, ".", ",", *letters, *words]))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=128,
    )
    BertModel(config).save_pretrained(folder / "bert")
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, mask_token="[MASK]", **names).save_pretrained(folder / "bert")
    transformer = Transformer(str(folder / "bert"))
    model = SentenceTransformer(modules=[transformer, Pooling(32, "mean"), Normalize()], device="cpu")
    model.save(str(folder / "model"))
    return folder / "model"
