"""Evidence: every source is heard when candidates are gathered, and a withheld tool is not."""

from __future__ import annotations

import numpy as np
import pytest

from data.cards import ToolCard
from data.catalog import Catalog
from serving.evidence import evidence, gather, rankings, same_domain, signals
from serving.features import FEATURES, features
from serving.index import Index, index_of
from serving.memory import Link, UsageMemory, make_usage, unit

NAMES = ("mail.send", "mail.search", "files.read", "files.delete", "clock.now", "notes.append")
CATALOG = Catalog(ToolCard(tool_id=name, name=name.partition(".")[2], domain=name.partition(".")[0]) for name in NAMES)
ALL = np.arange(len(NAMES))
NOBODY_WITHHELD = np.ones(len(NAMES), np.bool_)


@pytest.fixture
def index() -> Index:
    vectors = unit(np.random.default_rng(4).normal(size=(len(NAMES), 5)).astype(np.float32))
    return index_of(CATALOG, vectors, None)


def memory_of(index: Index, *links: tuple[int, str | None]) -> UsageMemory:
    assert index.vectors is not None
    past = unit(np.random.default_rng(5).normal(size=(4, 5)).astype(np.float32))
    usage = make_usage(past, [Link(row, tool, 1.0) for row, tool in links], range(4))
    return UsageMemory(usage, index.vectors, CATALOG.row)


def query_vector(index: Index) -> np.ndarray:
    assert index.vectors is not None
    return unit(index.vectors.sum(axis=0))


def test_without_a_vector_words_alone_gather(index: Index) -> None:
    found = evidence("delete files", None, index, memory_of(index, (0, "clock.now")))
    assert (found.cosine, found.usage) == (None, None)
    rows, scores = gather(found, 3, ALL)
    assert NAMES[rows[0]] == "files.delete"
    assert (np.diff(scores) <= 0).all()
    assert features(signals(found, rows)).shape == (len(rows), len(FEATURES))


def test_a_tool_known_by_its_past_alone_is_gathered(index: Index) -> None:
    memory = memory_of(index, (0, "clock.now"))
    past = unit(np.random.default_rng(5).normal(size=(4, 5)).astype(np.float32))[0]
    found = evidence("append", past, index, memory)
    rows, _ = gather(found, 3, ALL)
    assert {"clock.now", "notes.append"} <= {NAMES[row] for row in rows}


def test_only_the_rows_given_are_gathered(index: Index) -> None:
    found = evidence("delete files", query_vector(index), index, memory_of(index, (0, "files.delete")))
    rows, _ = gather(found, 40, np.array([0, 4]))
    assert set(rows.tolist()) <= {0, 4}
    none, no_scores = gather(found, 40, np.array([], np.int64))
    assert (len(none), len(no_scores)) == (0, 0)


def test_that_a_withheld_tool_has_a_past_changes_no_ranking_of_the_others(index: Index) -> None:
    rows = np.array([row for row, name in enumerate(NAMES) if name != "clock.now"])
    allowed = np.isin(ALL, rows)
    for query in ("delete files", "what time", "mail"):
        made = []
        for memory in (memory_of(index), memory_of(index, (0, "clock.now"), (1, "clock.now"))):
            found = evidence(query, query_vector(index), index, memory, allowed)
            made.append((rankings(found, 40, rows), gather(found, 40, rows)))
        assert made[0][0].keys() == made[1][0].keys()
        assert made[0][1][0].tolist() == made[1][1][0].tolist()
        assert made[0][1][1].tolist() == made[1][1][1].tolist()


def test_tools_of_the_server_used_last_are_near(index: Index) -> None:
    near = same_domain(index, ALL, "mail.search")
    assert {NAMES[row] for row in np.flatnonzero(near)} == {"mail.send", "mail.search"}
    assert not same_domain(index, ALL, "nobody.knows").any()
    assert not same_domain(index, ALL, None).any()


def test_without_domains_nothing_is_near() -> None:
    plain = index_of(Catalog([ToolCard(tool_id="a", name="a"), ToolCard(tool_id="b", name="b")]), None, None)
    assert not same_domain(plain, np.arange(2), "a").any()


def test_what_was_not_measured_is_zero(index: Index) -> None:
    found = evidence("mail", query_vector(index), index, None)
    made = signals(found, ALL)
    assert found.cosine is not None
    np.testing.assert_array_equal(made.shrunk, found.cosine)
    for name in ("vote", "nearest", "count", "interaction", "cross", "same_domain"):
        assert not getattr(made, name).any()
    assert made.reach == 0.0
