"""Poisoned tools among clean ones: what lint finds of them, what it finds in the clean, and what is ever shown.

    python -m benchmarks.poisoned --data FOLDER

The clean ones are 500 tools of public catalogs, drawn by the hash of their ids; false alarms are counted on all of
these catalogs. "Found" means a finding that blocks approval. The same attacks in other words come in two sets: those
in view when the rules were made say what the rules were meant for, those held out say how far they carry.
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

from benchmarks.held_out_words import ATTACKS
from benchmarks.held_out_words import HONEST as HONEST_HELD_OUT
from benchmarks.lint import catalogs
from benchmarks.poison import HONEST, REWORDED, clean_beside, described, poisoned
from data.cards import Risk, ToolCard, Trust
from data.catalog import Catalog
from data.invisible import escaped
from data.lint import lint_catalog
from data.registry.approval import BLOCKING, AutoApproval, AutoRule
from data.store.database import open_database
from data.store.registry import Registry

CLEAN = 500
HELD_OUT = tuple(text for texts in ATTACKS.values() for text in texts)


def drawn(found: dict[str, Catalog]) -> list[ToolCard]:
    """CLEAN cards of all catalogs together, each once."""
    every = {card.tool_id: card for catalog in found.values() for card in catalog}
    return [every[key] for key in sorted(every, key=lambda key: hashlib.sha1(key.encode()).hexdigest())[:CLEAN]]


def blocked(catalog: Catalog) -> dict[str, set[str]]:
    """Blocking rules by (escaped) tool id."""
    rules: defaultdict[str, set[str]] = defaultdict(set)
    for finding in lint_catalog(catalog):
        if finding.rule in BLOCKING:
            rules[finding.tool_id].add(finding.rule)
    return rules


def shown_after_approval(cards: list[ToolCard], bad: set[str]) -> tuple[int, int]:
    """How many of `bad` are shown after rules that approve trusted sources, and after all the rest is approved."""
    rules = AutoApproval(auto_approve=(AutoRule(name="trusted", source="*", max_risk=Risk.DESTRUCTIVE),))
    with tempfile.TemporaryDirectory() as folder:
        database = open_database(Path(folder) / "registry.db")
        registry = Registry(database)
        registry.offer(cards, "all", "benchmark", rules=rules)
        by_rules = len(bad & {card.tool_id for card in registry.shown()})
        registry.approve_all("benchmark")
        by_person = len(bad & {card.tool_id for card in registry.shown()})
        database.close()
    return by_rules, by_person


def show_wordings() -> None:
    """Print how many sentences are found of each set: attacks, by kind where they have one, and honest ones."""
    for what, texts in (("in view", REWORDED), ("held out", HELD_OUT)):
        print(f"attacks in other words, {what}: {alarmed(texts)} of {len(texts)}")
    for kind, texts in ATTACKS.items():
        print(f"  {kind}: {alarmed(texts)} of {len(texts)}")
    for what, texts in (("in view", HONEST), ("held out", HONEST_HELD_OUT)):
        print(f"honest sentences, {what}: {alarmed(texts)} of {len(texts)}")


def alarmed(texts: tuple[str, ...]) -> int:
    """How many of the texts block the approval of a plain tool."""
    return sum(bool(blocked(Catalog([card]))) for card in described(texts))


def show_shown(what: str, cards: list[ToolCard], bad: set[str]) -> None:
    """Print how many of `bad` would be shown, the cards being third parties' and being taken as trusted."""
    trusting = [card.model_copy(update={"trust": Trust.TRUSTED}) for card in cards]
    third, trusted = shown_after_approval(cards, bad), shown_after_approval(trusting, bad)
    print(f"  {what} ({len(bad)}), of third parties: {third}; taken as trusted: {trusted}")


def main() -> None:
    """Print the share found by kind, the false alarms by catalog, and what would be shown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    found = catalogs(parser.parse_args().data)
    bad = poisoned()
    clean = drawn(found)
    mixed = Catalog([*clean, *clean_beside(), *(card for _, card in bad)])
    rules = blocked(mixed)
    kinds: defaultdict[str, Counter[bool]] = defaultdict(Counter)
    for kind, card in bad:
        hit = escaped(card.tool_id) in rules
        kinds[kind][hit] += 1
        if not hit:
            print(f"missed ({kind}): {escaped(card.description)[:140]} {escaped(str(card.input_schema))[:140]}")
    for kind, counts in kinds.items():
        print(f"{kind}: {counts[True]} of {counts.total()}")
    total = sum(counts[True] for counts in kinds.values())
    alarms_of_clean = len(set(rules) & {escaped(card.tool_id) for card in clean})
    print(f"found {total} of {len(bad)}, {len(kinds)} kinds; false alarms in the {CLEAN} clean: {alarms_of_clean}")
    show_wordings()
    for name, catalog in found.items():
        alarms = blocked(catalog)
        counted = Counter(rule for several in alarms.values() for rule in several)
        print(f"{name}: {len(alarms)} of {len(catalog)} tools blocked: {dict(counted)}")
    ids = {card.tool_id for _, card in bad}
    print("shown after rules, and after a person has approved all that lint lets pass:")
    show_shown("poisoned among clean", list(mixed), ids)
    held_out = described(HELD_OUT)
    show_shown("held-out wordings", held_out, {card.tool_id for card in held_out})


if __name__ == "__main__":
    main()
