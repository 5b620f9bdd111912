"""Calibration by parts of the catalog, and abstention on queries whose right tools are taken away."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import tiny
from tiny import Trained

from data.context import Subgoal
from data.queries import Query
from serving.selector import Selector
from serving.settings import SelectorSettings
from serving.slice import Slice, StageRecord
from training.answers import Answer
from training.calibration import LEAST_CASES, calibration
from training.decisions import same_names
from training.plots import reliability_figure
from training.removed_gold import removed_gold

TOOLS = [f"{domain}.tool{n}" for domain in ("honest", "boastful") for n in range(10)]


def answer(number: int) -> Answer:
    """One right tool among twenty. `honest` tools state how often they are right, `boastful` ones always 0.9."""
    draw = np.random.default_rng(number)
    chance = draw.random(10).round(3)
    right = [tool for tool, p in zip(TOOLS, chance, strict=False) if draw.random() < p]
    stated = {tool: float(chance[i]) if i < 10 else 0.9 for i, tool in enumerate(TOOLS)}
    found = Slice(
        request_id="r",
        catalog_version="c",
        bundle_version="b",
        policy_version="p",
        caller_key="k",
        subgoal=Subgoal(goal="g"),
        query="g",
        menu=(),
        record=(StageRecord(stage="relevance", kept=20, scores=stated),),
    )
    return Answer(Query(qid=str(number), text="g", gold=tuple(right) or (TOOLS[0],)), found, True)


ANSWERS = [answer(n) for n in range(100)]


def measured(answers: list[Answer]) -> dict[str, object]:
    return calibration(answers, lambda tool: tool.startswith("honest"), lambda tool: tool.partition(".")[0])


def test_a_part_that_boasts_is_told_from_one_that_is_honest() -> None:
    found = measured(ANSWERS)
    warm, cold, domains = (found["slices"][name] for name in ("warm", "cold", "domains"))  # type: ignore[index]
    assert warm["n"] == cold["n"] == 1000
    assert warm["ece"] < 0.06
    assert cold["ece"] == pytest.approx(0.9)
    assert domains["boastful"] == {"n": 1000, "ece": pytest.approx(0.9)}
    assert 0.4 < found["ece"] < 0.5  # type: ignore[operator]
    assert sum(b["count"] for b in found["bins"]) == 2000  # type: ignore[attr-defined]


def test_parts_of_few_candidates_claim_no_error() -> None:
    few = measured(ANSWERS[: LEAST_CASES // 10 - 1])
    assert few["slices"]["warm"]["ece"] is None  # type: ignore[index]
    assert few["slices"]["domains"] == {}  # type: ignore[index]
    assert few["ece"] is not None


def test_queries_that_nothing_fits_say_nothing_of_relevance() -> None:
    unanswered = [replace(one, query=Query(qid="q", text="g")) for one in ANSWERS]
    assert measured(unanswered) == {"ece": None, "bins": [], "slices": {}}


def test_the_diagram_has_a_line_for_each_part_whose_error_is_known() -> None:
    labels = [text.get_text() for text in reliability_figure(measured(ANSWERS)).axes[0].get_legend().get_texts()]
    assert [label.partition(" (")[0] for label in labels] == ["tools seen in training", "tools never seen"]
    assert reliability_figure({**measured(ANSWERS), "slices": {}}).axes[0].get_legend() is None


# --- removed gold -----------------------------------------------------------------------------------------------------


def test_without_its_tools_a_query_fits_worse_and_the_tools_are_out_of_sight(trained: Trained) -> None:
    selector = Selector.load(trained.bundle, trained.catalog, settings=SelectorSettings(explore_rate=0.0))
    queries = [query for query in tiny.queries() if query.gold and query.gold[0] != tiny.GUARDED]
    answers = [Answer(query, selector.select(query.text, request_id="r"), True) for query in queries]
    found = removed_gold(answers, selector, same_names(trained.catalog))
    assert found["n"] == len(queries)
    assert found["auroc"] is not None
    assert found["auroc"] > 0.6
    gone = selector.judge(queries[0].text, without={queries[0].gold[0]: "removed"})
    assert queries[0].gold[0] not in selector.ranking(gone)


def test_where_nobody_can_be_turned_away_there_is_no_figure(trained: Trained) -> None:
    selector = Selector.load(None, trained.catalog)
    answers = [Answer(query, selector.select(query.text, request_id="r"), False) for query in tiny.queries()[:2]]
    found = removed_gold(answers, selector, {})
    assert found == {"n": 2, "auroc": None, "precision": None, "recall": 0.0}
