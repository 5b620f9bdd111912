"""Catalog lint: what a reviewer should see before tools are shown to a model."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from data.cards import ToolCard
from data.catalog import Catalog
from data.findings import RULES, Finding, to_json, to_sarif, to_text
from data.lint.claims import lint_claims
from data.lint.descriptions import lint_description, lint_shared_texts
from data.lint.duplicates import lint_near_duplicates
from data.lint.hidden import lint_hidden
from data.lint.names import lint_mentions, lint_name, lint_shadows, owners_of_names
from data.lint.orders import lint_orders
from data.lint.schemas import lint_schema
from data.lint.suppressions import Suppression, read_suppressions, suppressed
from data.lint.texts import finding, model_texts

__all__ = [
    "RULES",
    "Finding",
    "Suppression",
    "lint_card",
    "lint_catalog",
    "model_texts",
    "read_suppressions",
    "suppressed",
    "to_json",
    "to_sarif",
    "to_text",
]


def lint_catalog(catalog: Catalog, vectors: NDArray[np.float32] | None = None) -> list[Finding]:
    """All findings, in the catalog's order; those about several tools last.

    `vectors`, where given, are the (n, d) unit embeddings of the cards, for near-duplicates in other words.
    """
    owners = owners_of_names(catalog)
    found = [one for card in catalog for one in (*lint_card(card), *lint_mentions(card, _texts(card), owners))]
    return [*found, *_lint_together(catalog, vectors)]


def lint_card(card: ToolCard) -> Iterator[Finding]:
    """What can be said of a card without the others."""
    texts = _texts(card)
    yield from lint_hidden(card, texts)
    yield from lint_orders(card, texts)
    yield from lint_name(card)
    yield from lint_claims(card)
    yield from lint_description(card)
    yield from lint_schema(card)


def _texts(card: ToolCard) -> list[tuple[str, str]]:
    return list(model_texts(card))


def _lint_together(catalog: Catalog, vectors: NDArray[np.float32] | None) -> Iterator[Finding]:
    yield from lint_shadows(catalog)
    yield from lint_shared_texts(catalog)
    yield from lint_near_duplicates(catalog.cards, vectors)
    unowned = sum(not card.owner.strip() for card in catalog)
    if unowned:
        yield finding("owner-missing", None, "owner", f"{unowned} of {len(catalog)} tools name no owner")
