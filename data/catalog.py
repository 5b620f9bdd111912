"""Catalog: an ordered, immutable set of approved cards whose version is the hash of its content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from functools import cached_property

from data.cards import ToolCard
from data.errors import InputError


def card_json(card: ToolCard) -> str:
    """The canonical JSON of a card: every field, keys sorted; equal cards give equal text."""
    return json.dumps(card.model_dump(mode="json"), sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def content_hash(texts: Iterable[str]) -> str:
    """sha256 over a sequence of texts, their boundaries included; hexadecimal, 64 characters."""
    digest = hashlib.sha256()
    for text in texts:
        raw = text.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "big"))
        digest.update(raw)
    return digest.hexdigest()


class Catalog:
    """Approved cards in registration order. Position in the catalog is the tool's row in every array.

    Raises InputError for a repeated `tool_id`. An empty catalog is a value; whoever needs tools says so.
    """

    def __init__(self, cards: Iterable[ToolCard]) -> None:
        self.cards: tuple[ToolCard, ...] = tuple(cards)
        self.row: dict[str, int] = {}
        for position, card in enumerate(self.cards):
            if card.tool_id in self.row:
                raise InputError(
                    f"tool id '{card.tool_id}' is used by card {self.row[card.tool_id] + 1} and card {position + 1}",
                    field="tool_id",
                    hint="tool ids are unique in a catalog; rename or remove one",
                )
            self.row[card.tool_id] = position

    @cached_property
    def version(self) -> str:
        """First 16 hexadecimal digits of the content hash over all cards, in order."""
        return content_hash(card_json(card) for card in self.cards)[:16]

    @cached_property
    def ids(self) -> tuple[str, ...]:
        return tuple(card.tool_id for card in self.cards)

    def __len__(self) -> int:
        return len(self.cards)

    def __iter__(self) -> Iterator[ToolCard]:
        return iter(self.cards)

    def __contains__(self, tool_id: object) -> bool:
        return tool_id in self.row

    def __getitem__(self, tool_id: str) -> ToolCard:
        return self.cards[self.row[tool_id]]
