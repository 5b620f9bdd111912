"""Features: one row a candidate, and what a tool without a past looks like."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serving.features import FEATURES, Signals, features
from serving.memory import LOST, SERVED, WON, Link, UsageMemory, make_usage, unit

D = 8
TOOLS = ("a", "b", "c", "d", "e")
CARDS = unit(np.random.default_rng(0).normal(size=(len(TOOLS), D)).astype(np.float32))
VECTORS = unit(np.random.default_rng(1).normal(size=(12, D)).astype(np.float32))


def random_signals(k: int, seed: int = 0) -> Signals:
    rng = np.random.default_rng(seed)
    arrays = {field.name: rng.random(k).astype(np.float32) for field in fields(Signals) if field.name != "reach"}
    votes = arrays["vote"] / max(float(arrays["vote"].sum()), 1e-6)
    return Signals(**{**arrays, "vote": votes.astype(np.float32)}, reach=0.5)


def signals_with(links: list[Link], query_seed: int) -> Signals:
    """The signals of all tools after these links, as evidence would put them together."""
    query = unit(np.random.default_rng(query_seed).normal(size=D).astype(np.float32))
    memory = UsageMemory(make_usage(VECTORS, links, range(len(VECTORS))), CARDS, {t: i for i, t in enumerate(TOOLS)})
    scores = memory.scores(query)
    nothing = np.zeros(len(TOOLS), np.float32)
    return Signals(
        cosine=CARDS @ query,
        bm25=np.arange(len(TOOLS), dtype=np.float32),
        name=nothing,
        exact=nothing,
        centroid=scores.centroid,
        shrunk=scores.shrunk,
        vote=scores.vote,
        nearest=scores.nearest,
        count=scores.count,
        interaction=nothing,
        cross=nothing,
        success_rate=scores.success_rate,
        same_domain=nothing,
        reach=scores.reach,
    )


def test_a_column_for_every_name() -> None:
    rows = features(random_signals(7))
    assert rows.shape == (7, len(FEATURES))
    assert rows.dtype == np.float32
    assert len(set(FEATURES)) == len(FEATURES)


@pytest.mark.parametrize(
    ("column", "signal"),
    [
        *((name, name) for name in ("cosine", "name", "exact", "centroid", "shrunk", "vote", "nearest")),
        *((name, name) for name in ("interaction", "cross", "same_domain")),
    ],
)
def test_a_raw_column_is_the_signal_of_its_name(column: str, signal: str) -> None:
    given_signals = random_signals(5)
    np.testing.assert_array_equal(features(given_signals)[:, FEATURES.index(column)], getattr(given_signals, signal))


def test_no_candidates_give_no_rows_and_one_candidate_is_its_own_best() -> None:
    assert features(random_signals(0)).shape == (0, len(FEATURES))
    row = features(random_signals(1))[0]
    gaps = [FEATURES.index(name) for name in ("cosine_gap", "shrunk_gap", "interaction_gap", "cross_gap")]
    assert row[gaps].tolist() == [0.0, 0.0, 0.0, 0.0]
    assert row[FEATURES.index("bm25_share")] == pytest.approx(1.0)


def test_a_query_without_a_known_word_has_no_lexical_best() -> None:
    silent = replace(random_signals(4), bm25=np.zeros(4, np.float32))
    assert not features(silent)[:, FEATURES.index("bm25_share")].any()


def test_nothing_in_a_row_depends_on_where_the_row_stands() -> None:
    whole = random_signals(6)
    order = np.array([3, 1, 5, 0, 2, 4])
    arrays = {name: value[order] for name, value in vars(whole).items() if isinstance(value, np.ndarray)}
    taken = replace(whole, **arrays)
    np.testing.assert_array_equal(features(whole)[order], features(taken))


def test_success_is_the_log_odds_of_the_rate_within_bounds() -> None:
    rates = np.array([0.0, 0.5, 0.8, 1.0], np.float32)
    column = features(replace(random_signals(4), success_rate=rates))[:, FEATURES.index("success")]
    assert column.tolist() == pytest.approx([-np.log(99), 0.0, np.log(4), np.log(99)], abs=1e-4)


def test_silence_about_the_past_is_marked_as_silence() -> None:
    mixed = replace(random_signals(3), count=np.array([0.0, 2.0, 0.0], np.float32))
    rows = features(mixed)
    assert rows[:, FEATURES.index("newness")].tolist() == [1.0, 0.5, 1.0]
    for name in ("cosine_gap", "bm25_share", "interaction_gap"):
        crossed, plain = rows[:, FEATURES.index(f"{name}_new")], rows[:, FEATURES.index(name)]
        np.testing.assert_allclose(crossed, plain * [1.0, 0.5, 1.0], atol=1e-6)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 10), st.sampled_from([*TOOLS, None]), st.sampled_from([SERVED, WON, LOST])),
        max_size=16,
    ),
    st.integers(0, 30),
)
def test_without_its_past_a_catalog_looks_as_if_nothing_had_ever_been_logged(
    past: list[tuple[int, str | None, int]], seed: int
) -> None:
    links = [Link(row, tool, 1.0, kind=SERVED if tool is None else kind) for row, tool, kind in past]
    first_day = signals_with(links, seed).without_past()
    np.testing.assert_allclose(features(first_day), features(signals_with([], seed)), atol=1e-6)
