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

    `earlier`: a catalog with some of the same cards, whose JSON of them need not be made again. Raises InputError for a
    repeated `tool_id`. An empty catalog is a value; whoever needs tools says so.
    """

    def __init__(self, cards: Iterable[ToolCard], earlier: Catalog | None = None) -> None:
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
        self._texts = [self._text_there(card, earlier) for card in self.cards] if earlier is not None else None

    @cached_property
    def version(self) -> str:
        """First 16 hexadecimal digits of the content hash over all cards, in order."""
        return content_hash(self.texts)[:16]

    @property
    def texts(self) -> list[str]:
        """The canonical JSON of every card, in order; made once."""
        if self._texts is None:
            self._texts = [card_json(card) for card in self.cards]
        return self._texts

    def rows_in(self, earlier: Catalog) -> list[int]:
        """By card the row that the equal card has in `earlier`, or -1 where it has none."""
        return [self._row_in(earlier, row) for row in range(len(self.cards))]

    def _row_in(self, earlier: Catalog, row: int) -> int:
        card = self.cards[row]
        there = earlier.row.get(card.tool_id, -1)
        if there < 0:
            return -1
        other = earlier.cards[there]
        if other is card:
            return there
        # by their JSON, which tells apart what Python does not: 1, 1.0 and true are equal there; but for the order of
        # the parameters, in which they are read
        equal = earlier.texts[there] == self.texts[row] and other.parameter_names == card.parameter_names
        return there if equal else -1

    @staticmethod
    def _text_there(card: ToolCard, earlier: Catalog) -> str:
        row = earlier.row.get(card.tool_id, -1)
        return earlier.texts[row] if row >= 0 and earlier.cards[row] is card else card_json(card)

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
