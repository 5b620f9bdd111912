"""What a report tells besides failures: the chain's intervals, confused pairs, servers, menus and the worth of logs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tiny
from report_rows import answer
from tiny import Trained

from data.cards import ToolCard
from data.catalog import Catalog
from serving.bundle import load_bundle
from serving.selector import Selector
from training.report.chain import chain, chain_intervals
from training.report.confusions import confusions
from training.report.curves import learning_curve, menu_curve, only, with_usage
from training.report.domains import DOMAINS, domains

RANKED = {"m.a": 0.8, "m.b": 0.5, "n.c": 0.2}
CATALOG = Catalog(
    [
        ToolCard(tool_id="m.a", name="a", domain="m"),
        ToolCard(tool_id="m.b", name="b", domain="m"),
        ToolCard(tool_id="n.c", name="c", domain="n"),
        ToolCard(tool_id="n.a", name="a", domain="n"),
    ]
)
VECTORS = np.array([[1, 0], [0.8, 0.6], [0, 1], [1, 0]], np.float32)


# --- the chain ----------------------------------------------------------------------------------------------------


def test_each_link_is_a_share_of_what_the_one_before_kept() -> None:
    given = [
        answer(["m.a"], RANKED),
        answer(["m.b"], RANKED),
        answer(["n.c"], RANKED),
        answer(["z"], RANKED),
        answer([], RANKED),
    ]
    found = chain(given)
    assert found["R_retrieve"] == pytest.approx(3 / 4)
    assert found["R_filter"] == 1.0
    assert found["R_menu"] == pytest.approx(2 / 3)
    assert found["R_select"] == pytest.approx(1 / 2)
    assert found["product"] == pytest.approx(3 / 4 * 2 / 3 * 1 / 2)
    assert found["R_decompose"] is None


def test_an_interval_holds_its_link_and_narrows_with_more_queries() -> None:
    few = [answer(["m.a" if i % 4 else "m.b"], RANKED) for i in range(20)]
    many = few * 20
    for given in (few, many):
        links, intervals = chain(given), chain_intervals(given, seed=0)
        assert set(intervals) == {"R_retrieve", "R_filter", "R_menu", "R_select", "product"}
        for link, (low, high) in intervals.items():
            value = links[link]
            assert value is not None
            assert low <= value <= high
    widths = [np.ptp(chain_intervals(given, seed=0)["R_select"]) for given in (few, many)]
    assert widths[0] > 3 * widths[1]


def test_without_an_answerable_query_there_is_no_chain() -> None:
    assert chain([answer([], RANKED)])["product"] is None
    assert chain_intervals([answer([], RANKED)], seed=0) == {}


# --- confused pairs -----------------------------------------------------------------------------------------------


def test_the_most_frequent_pair_is_first_with_its_likeness_and_requests() -> None:
    given = [answer(["m.b"], RANKED, text=f"number {i}") for i in range(3)]
    given += [answer(["n.c"], RANKED), answer(["m.a"], RANKED), answer([], RANKED), answer(["m.b"], {"m.b": 0.9})]
    first, second = confusions(given, CATALOG, VECTORS)
    assert (first["gold"], first["instead"], first["count"], first["of"]) == ("m.b", "m.a", 3, 4)
    assert first["similarity"] == pytest.approx(0.8)
    assert first["examples"] == ["number 0", "number 1"]
    assert (second["gold"], second["count"], second["advice"]) == ("n.c", 1, "say_more")


@pytest.mark.parametrize(
    ("gold", "ranking", "advice"),
    [
        ("n.a", {"m.a": 0.9, "n.a": 0.8}, "equals"),
        ("m.b", {"m.a": 0.9, "m.b": 0.8}, "tell_apart"),
        ("n.c", {"m.a": 0.9, "n.c": 0.8}, "say_more"),
    ],
    ids=["same name and text", "near", "far"],
)
def test_what_to_do_follows_from_how_alike_the_two_are(gold: str, ranking: dict[str, float], advice: str) -> None:
    (pair,) = confusions([answer([gold], ranking)], CATALOG, VECTORS)
    assert pair["advice"] == advice


def test_near_tools_confused_both_ways_are_likely_equals() -> None:
    given = [answer(["m.b"], {"m.a": 0.9, "m.b": 0.8}), answer(["m.a"], {"m.b": 0.9, "m.a": 0.8})]
    pairs = confusions(given, CATALOG, VECTORS)
    assert [(pair["advice"], pair["back"]) for pair in pairs] == [("equals", 1), ("equals", 1)]


def test_without_vectors_likeness_is_not_known() -> None:
    (pair,) = confusions([answer(["m.b"], RANKED)], CATALOG, None)
    assert (pair["similarity"], pair["advice"]) == (None, "say_more")


# --- servers ------------------------------------------------------------------------------------------------------


def test_servers_with_most_failures_come_first_and_the_rest_is_one_row() -> None:
    names = [f"s{i:02}" for i in range(DOMAINS + 3)]
    catalog = Catalog(ToolCard(tool_id=f"{name}.t", name="t", domain=name) for name in names)
    given = [answer([f"{name}.t"], {f"{name}.t": 0.9}) for name in names]
    given += [answer(["s05.t"], {"s01.t": 0.9, "s05.t": 0.2})] * 2
    rows = domains(given, catalog)
    assert len(rows) == DOMAINS + 1
    first, rest = rows[0], rows[-1]
    assert (first["domain"], first["n"], first["failed"], first["mostly"]) == ("s05", 3, 2, "outranked")
    assert (rest["domain"], rest["n"], rest["tools"], rest["mostly"]) == (None, 3, 3, None)
    assert sum(row["n"] for row in rows) == len(given)


# --- curves -------------------------------------------------------------------------------------------------------


def test_a_longer_menu_finds_no_less_and_costs_more(trained: Trained) -> None:
    selector = Selector.load(trained.bundle, trained.catalog)
    ids = trained.catalog.ids
    ranking = {tool: 1.0 - at / 20 for at, tool in enumerate(ids)}
    given = [answer([ids[0]], ranking), answer([ids[4]], ranking, warm=False), answer([], ranking)]
    found = menu_curve(given, selector)
    points = {point["size"]: point for point in found["points"]}
    assert [points[k]["all"] for k in (1, 4, 5, 40)] == [0.5, 0.5, 1.0, 1.0]
    assert (points[1]["warm"], points[1]["cold"]) == (1.0, 0.0)
    assert points[1]["tokens"] < points[5]["tokens"]
    assert found["served"]["size"] == 2.0
    assert found["served"]["recall"] == 0.5


def test_a_memory_of_some_requests_is_the_memory_had_the_others_never_been_asked(trained: Trained) -> None:
    bundle = load_bundle(trained.bundle)
    groups = np.unique(bundle.usage.group)
    half = only(bundle.usage, frozenset(groups[::2].tolist()))
    assert 0 < len(half.tool) < len(bundle.usage.tool)
    assert set(half.group[half.query].tolist()) <= set(groups[::2].tolist())
    assert with_usage(bundle, half).usage is half
    assert len(load_bundle(trained.bundle).usage.tool) == len(bundle.usage.tool)


def test_the_learning_curve_ends_at_the_bundle_as_it_is(trained: Trained) -> None:
    found = learning_curve(load_bundle(trained.bundle), trained.catalog, tiny.queries())
    assert [point["share"] for point in found["points"]] == [0.0, 0.1, 0.25, 0.5, 1.0]
    requests = [point["requests"] for point in found["points"]]
    assert requests == sorted(requests)
    assert requests[0] == 0
    last = found["points"][-1]
    assert last["interval"][0] <= last["ndcg@10"] <= last["interval"][1]
    assert last["ndcg@10"] - found["points"][3]["ndcg@10"] == pytest.approx(found["doubling"]["gain"])
    assert found["queries"] == 12


def test_where_no_time_is_left_the_learning_curve_is_left_out(trained: Trained) -> None:
    assert learning_curve(load_bundle(trained.bundle), trained.catalog, tiny.queries(), seconds=0.0) == {}


def test_a_bundle_without_a_past_has_no_learning_curve(own_bundle: Path, trained: Trained) -> None:
    queries = [query for query in tiny.queries() if not query.gold]
    assert learning_curve(load_bundle(own_bundle), trained.catalog, queries) == {}
