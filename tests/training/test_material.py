"""Material: a request never finds itself in the past, and nobody is taught against what may be right."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from data.cards import ToolCard
from data.catalog import Catalog
from serving.index import index_of
from serving.memory import LOST, SERVED, WON, unit
from training.decisions import Decision, Ended, same_names
from training.material import FEW, Material, head_requests, interaction_examples, remember, short_past

NAMES = ("mail.send", "post.send", "mail.read", "files.read", "clock.now")
CATALOG = Catalog(ToolCard(tool_id=name, name=name.partition(".")[2], domain=name.partition(".")[0]) for name in NAMES)
NOW = datetime(2026, 6, 1, tzinfo=UTC)


def decision(goal: str, *tools: str, group: int = 0) -> Decision:
    served = tuple((tool, 1.0) for tool in tools)
    return Decision(goal, group, "", None, served, (), None, "valid", True)


def material(decisions: list[Decision], equivalents: dict[str, frozenset[str]] | None = None) -> Material:
    rng = np.random.default_rng(0)
    vectors = unit(rng.normal(size=(len(decisions), 6)).astype(np.float32))
    cards = unit(rng.normal(size=(len(NAMES), 6)).astype(np.float32))
    return Material(
        catalog=CATALOG,
        index=index_of(CATALOG, cards, None),
        decisions=decisions,
        vectors=vectors,
        usage=remember(decisions, vectors, 180.0),
        equivalents=equivalents or {},
        same_name=same_names(CATALOG),
        candidates=40,
    )


def candidate(made: Material, chosen: int, tool: str) -> tuple[float, float, bool, bool]:
    """count, nearest, right and unsure of one candidate of one request."""
    requests, rows = head_requests(made, [chosen])
    place = rows[0].tolist().index(CATALOG.row[tool])
    r = requests[0]
    return float(r.signals.count[place]), float(r.signals.nearest[place]), bool(r.right[place]), bool(r.unsure[place])


def test_a_request_does_not_find_itself_nor_its_repetitions_in_the_past() -> None:
    twice = [decision(goal, "files.read", group=1) for goal in ("read a file", "Read a  file")]
    made = material([*twice, decision("now", "clock.now", group=2)])
    assert candidate(made, 0, "files.read")[:3] == (0.0, 0.0, True)


def test_other_requests_of_the_same_tool_are_its_past() -> None:
    made = material([decision("read a file", "files.read", group=1), decision("open it", "files.read", group=2)])
    assert candidate(made, 0, "files.read")[0] == 1.0


def test_a_request_of_an_unlogged_tool_meets_a_past_without_that_tool() -> None:
    read = [
        decision(goal, "files.read", group=group) for group, goal in enumerate(("read a file", "open it", "see it"))
    ]
    other = [decision(goal, "clock.now", group=group) for group, goal in enumerate(("what time is it", "now"), 10)]
    logged, unlogged = material([*read, *other]), frozenset({"files.read"})
    (seen,), (rows,) = head_requests(logged, [0], unlogged)
    place = rows.tolist().index(CATALOG.row["files.read"])
    assert seen.right[place]
    assert (seen.signals.count[place], seen.signals.vote[place], seen.signals.nearest[place]) == (0.0, 0.0, 0.0)
    assert seen.signals.vote.sum() == pytest.approx(1.0), "all votes go to its rivals"
    made_of = logged.vectors[0] @ logged.vectors[3:].T
    assert seen.signals.reach == pytest.approx(float(made_of.max())), "the nearest past request is a rival's"


def test_a_label_weighs_as_its_rule_says_and_any_other_candidate_one() -> None:
    passed = (("mail.read", 0.2), ("clock.now", 0.2))
    weak = replace(decision("read mail, clock now", "files.read"), tools=(("files.read", 0.3),), wrong=passed)
    (request,), (rows,) = head_requests(material([replace(weak, menu_known=True)]), [0])
    weights = dict(zip((CATALOG.ids[row] for row in rows), request.weight.tolist(), strict=True))
    assert weights.pop("files.read") == pytest.approx(0.3)
    said = [weights.pop(tool) for tool, _ in passed if tool in weights]
    assert said == pytest.approx([0.2] * len(said))
    assert said
    assert set(weights.values()) <= {1.0}


@pytest.mark.parametrize(("known", "expected"), [(True, 0.1), (False, 1.0)])
def test_a_candidate_counts_less_as_wrong_where_the_log_says_that_it_was_not_shown(
    known: bool, expected: float
) -> None:
    shown = replace(decision("read mail, send, clock now", "files.read"), wrong=(("mail.read", 1.0),), menu_known=known)
    (request,), (rows,) = head_requests(replace(material([shown]), unshown_weight=0.1), [0])
    weights = dict(zip((CATALOG.ids[row] for row in rows), request.weight.tolist(), strict=True))
    assert (weights.pop("files.read"), weights.pop("mail.read", 1.0)) == (1.0, 1.0)
    assert list(weights.values()) == pytest.approx([expected] * len(weights))
    assert weights


def test_a_tool_of_the_same_name_is_unsure_and_a_declared_equivalent_is_right() -> None:
    plain = material([decision("send a letter", "mail.send")])
    assert candidate(plain, 0, "post.send")[2:] == (False, True)
    declared = material([decision("send a letter", "mail.send")], {"mail.send": frozenset(["post.send"])})
    assert candidate(declared, 0, "post.send")[2:] == (True, False)
    assert candidate(declared, 0, "mail.read")[2:] == (False, False)


def test_what_nothing_fitted_has_no_right_candidate() -> None:
    requests, _ = head_requests(material([decision("sing", group=1), decision("send", "mail.send", group=2)]), [0])
    assert not requests[0].right.any()
    assert requests[0].gold == 0


def test_memory_holds_what_was_asked_and_what_became_of_it() -> None:
    asked = decision("send", "mail.send", group=4)
    decisions = [
        replace(asked, tenant="t"),
        replace(decision("made up", "mail.read"), asked=False),
        decision("sing", group=5),
    ]
    ended = [
        Ended("send", 4, "t", None, "post.send", False),
        Ended("send", 4, "t", None, "mail.send", True),
        Ended("sing", 6, "", None, "post.send", False),
    ]
    vectors, goals = np.eye(3, 6, dtype=np.float32), np.eye(6, dtype=np.float32)[[0, 0, 5]]
    usage = remember(decisions, vectors, 180.0, (ended, goals))
    assert usage.tools == ("mail.send", "post.send")
    assert usage.group.tolist() == [4, 5, 6], "a call for what is remembered anyway needs no row of its own"
    np.testing.assert_array_equal(usage.vectors, np.eye(6, dtype=np.float32)[[0, 2, 5]])
    links = [
        (int(query), usage.tools[tool] if tool >= 0 else None, float(weight), int(kind), usage.tenants[tenant])
        for query, tool, weight, kind, tenant in zip(
            usage.query, usage.tool, usage.weight, usage.kind, usage.tenant, strict=True
        )
    ]
    assert links == [
        (0, "mail.send", 1.0, SERVED, "t"),
        (1, None, 1.0, SERVED, ""),
        (0, "post.send", 1.0, LOST, "t"),
        (0, "mail.send", 1.0, WON, "t"),
        (2, "post.send", 1.0, LOST, ""),
    ]


def test_a_short_past_has_a_few_requests_of_some_tools_and_all_of_the_others() -> None:
    asked = [decision(f"read {n}", "files.read", group=n) for n in range(30)]
    asked += [decision(f"send {n}", "mail.send", group=100 + n) for n in range(30)]
    called = [Ended(f"read {n}", n, "", None, "files.read", n % 2 == 0) for n in range(30)]
    vectors = unit(np.random.default_rng(0).normal(size=(60, 6)).astype(np.float32))
    usage = remember(asked, vectors, 180.0, (called, vectors[:30]))
    seen = set()
    for seed in range(40):
        short = short_past(usage, frozenset({"files.read"}), seed)
        served = short.tool[short.kind == SERVED]
        count = int((served == short.tools.index("files.read")).sum())
        assert int((short.kind != SERVED).sum()) == count, "a call stays with the request that it was for"
        assert int((served == short.tools.index("mail.send")).sum()) == 30
        seen.add(count)
    assert seen == set(range(1, FEW + 1))


def test_an_outcome_of_a_half_life_ago_counts_half() -> None:
    old, new = (replace(decision("send", "mail.send"), ts=ts) for ts in (NOW - timedelta(days=30), NOW))
    called = Ended("send", 0, "", NOW - timedelta(days=60), "mail.send", False)
    usage = remember([old, new], np.eye(2, 6, dtype=np.float32), 30.0, ([called], np.eye(1, 6, dtype=np.float32)))
    assert usage.weight.tolist() == pytest.approx([0.5, 1.0, 0.25])


def test_a_clock_that_is_years_ahead_makes_nothing_else_old() -> None:
    times = (NOW - timedelta(days=30), NOW, NOW + timedelta(days=9000))
    decisions = [replace(decision("send", "mail.send"), ts=ts) for ts in times]
    usage = remember(decisions, np.eye(3, 6, dtype=np.float32), 30.0, now=NOW)
    assert usage.weight.tolist() == pytest.approx([0.5, 1.0, 1.0]), "a time that cannot be is taken for none"


def test_what_was_shown_by_chance_counts_by_the_inverse_of_its_chance_in_the_memory_and_in_the_head() -> None:
    tried = replace(decision("read a file", "files.read", group=1), tools=(("files.read", 10.0),))
    made = material([tried, decision("open it", "files.read", group=2), decision("see", "mail.read", group=3)])
    assert made.usage.weight.tolist() == [10.0, 1.0, 1.0]
    assert candidate(made, 1, "files.read")[0] == 10.0
    (request,), (rows,) = head_requests(made, [0])
    assert request.weight[rows.tolist().index(CATALOG.row["files.read"])] == 10.0


def test_outcomes_without_a_time_do_not_age() -> None:
    usage = remember([decision("a", "mail.send"), decision("b", "mail.send")], np.eye(2, 6, dtype=np.float32), 1.0)
    assert usage.weight.tolist() == [1.0, 1.0]


def test_an_interaction_example_holds_the_right_tools_and_no_excluded_or_unsure_one() -> None:
    decisions = [replace(decision("send a letter", "mail.send", group=1), wrong=(("clock.now", 0.3),))]
    made = material(decisions)
    states = [np.ones((3, 6), np.float32)]
    (example,) = interaction_examples(made, [0], states, 2, frozenset(["files.read"]))
    names = [NAMES[row] for row in example.candidates]
    assert names[int(np.argmax(example.right))] == "mail.send"
    assert "clock.now" in names, "a tool that was shown and passed over is worth a comparison"
    assert not {"files.read", "post.send"} & set(names)
    assert len(set(names)) == len(names)


def test_a_request_whose_right_tool_is_excluded_makes_no_example() -> None:
    made = material([decision("send a letter", "mail.send")])
    states = [np.ones((3, 6), np.float32)]
    assert interaction_examples(made, [0], states, 5, frozenset(["mail.send"])) == []
