"""Contract 10: a model that fails costs order, never the answer, and never widens what may be called."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny
from tiny import Trained

from data.context import Caller, Subgoal
from serving.bundle import ABSTENTION, INTERACTION, RELEVANCE, Manifest, load_bundle, seal
from serving.encoder import Encoded
from serving.interaction import InteractionWeights
from serving.selector import Selector
from serving.slice import Slice

CALLER = Caller(allowed_tools=tuple(tool for tool in tiny.catalog().ids if tool != "files.delete_file"))
GOALS = [tiny.goals(tool)[0] for tool in tiny.catalog().ids] + tiny.no_tool_goals()[:3]

Break = Callable[[Selector, pytest.MonkeyPatch], None]


def explode(*_: Any, **__: Any) -> Any:
    raise RuntimeError("out of memory")


def encoder_raises(selector: Selector, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(selector.encoder, "encode", explode)


def encoder_gives_no_numbers(selector: Selector, patch: pytest.MonkeyPatch) -> None:
    nothing = np.full((1, 32), np.nan, np.float32)
    patch.setattr(selector.encoder, "encode", lambda *_, **__: Encoded(nothing, [np.full((4, 32), np.nan, np.float32)]))


def reranker_raises(selector: Selector, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(InteractionWeights, "scores", explode)


def reranker_gives_no_numbers(selector: Selector, patch: pytest.MonkeyPatch) -> None:
    def nothing(*arguments: Any) -> Any:
        return np.full(len(arguments[3]), np.nan, np.float32)

    patch.setattr(InteractionWeights, "scores", nothing)


def relevance_raises(selector: Selector, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(selector.models.head, "probabilities", explode)


def relevance_gives_no_numbers(selector: Selector, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(selector.models.head, "probabilities", lambda rows: np.full(len(rows), np.nan))


def abstention_raises(selector: Selector, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(selector.models.fit, "probabilities", explode)


BREAKS: list[tuple[Break, str]] = [
    (encoder_raises, "encode"),
    (encoder_gives_no_numbers, "encode"),
    (reranker_raises, "rerank"),
    (reranker_gives_no_numbers, "rerank"),
    (relevance_raises, "relevance"),
    (relevance_gives_no_numbers, "relevance"),
    (abstention_raises, "relevance"),
]


@pytest.fixture
def selector(trained: Trained) -> Selector:
    return Selector(load_bundle(trained.bundle), tiny.catalog())


def assert_no_wider(broken: Slice, whole: Slice) -> None:
    """Only tools that the rules let through, with the verdicts that they have anyway."""
    verdicts = {entry.tool_id: (entry.verdict, entry.rule) for entry in whole.menu}
    for entry in broken.menu:
        assert entry.tool_id in (CALLER.allowed_tools or ())
        assert verdicts.get(entry.tool_id, (entry.verdict, entry.rule)) == (entry.verdict, entry.rule)


@pytest.mark.parametrize(("break_it", "stage"), BREAKS, ids=lambda value: getattr(value, "__name__", value))
def test_a_model_that_fails_is_noted_and_the_answer_stands(
    selector: Selector, monkeypatch: pytest.MonkeyPatch, break_it: Break, stage: str
) -> None:
    whole = [selector.select(goal, CALLER, request_id="r") for goal in GOALS]
    assert all(found.degradations == () for found in whole)
    break_it(selector, monkeypatch)
    for goal, before in zip(GOALS, whole, strict=True):
        found = selector.select(goal, CALLER, request_id="r")
        assert stage in [degradation.stage for degradation in found.degradations]
        assert found.menu
        assert_no_wider(found, before)
        assert all(entry.relevance is None or 0.0 <= entry.relevance <= 1.0 for entry in found.menu)
        assert "NaN" not in found.model_dump_json()
        assert found.canonical() == selector.select(goal, CALLER, request_id="r").canonical()


@pytest.mark.parametrize(("break_it", "stage"), BREAKS, ids=lambda value: getattr(value, "__name__", value))
def test_a_reading_request_stays_a_reading_request_when_a_model_fails(
    selector: Selector, monkeypatch: pytest.MonkeyPatch, break_it: Break, stage: str
) -> None:
    break_it(selector, monkeypatch)
    found = selector.select(Subgoal(goal="delete the folder", mutation=False), CALLER, request_id="r")
    assert all(selector.catalog[tool].risk == 0 for tool in found.ranking)
    assert all(selector.catalog[entry.tool_id].risk == 0 for entry in found.menu)


def remove(bundle: Path, *names: str) -> Path:
    manifest = Manifest.model_validate_json((bundle / "manifest.json").read_text())
    for name in names:
        (bundle / name).unlink()
    changes = {"reranker": "none"} if INTERACTION in names else {}
    seal(bundle, manifest.model_copy(update=changes))
    return bundle


def test_a_bundle_without_a_head_serves_the_fused_order_and_says_so(own_bundle: Path) -> None:
    selector = Selector.load(remove(own_bundle, RELEVANCE, ABSTENTION), tiny.catalog())
    found = selector.select(tiny.goals("mail.send_message")[0], CALLER, request_id="r")
    assert [(d.stage, d.what) for d in found.degradations] == [
        ("relevance", "the bundle has no relevance head; the fused order stands")
    ]
    assert found.ranking[0] == "mail.send_message"
    assert found.abstention.outcome == "menu"
    assert all(entry.relevance is None for entry in found.menu)


def test_a_bundle_without_an_interaction_is_whole(own_bundle: Path) -> None:
    selector = Selector.load(remove(own_bundle, INTERACTION), tiny.catalog())
    found = selector.select("send the email", CALLER, request_id="r")
    assert found.degradations == ()
    assert "rerank" not in [record.stage for record in found.record]


def test_a_bundle_without_an_abstention_head_turns_nobody_away(own_bundle: Path) -> None:
    selector = Selector.load(remove(own_bundle, ABSTENTION), tiny.catalog())
    for goal in tiny.no_tool_goals()[:4]:
        found = selector.select(goal, CALLER, request_id="r")
        assert found.abstention.outcome == "menu"
        assert found.degradations == ()


def test_a_request_that_nothing_fits_is_turned_away_and_core_tools_stay(selector: Selector) -> None:
    found = selector.select("compose a song for anna and paint a wall in berlin", CALLER, request_id="r")
    assert found.abstention.outcome == "missing_capability"
    assert [entry.tool_id for entry in found.menu] == [tiny.CORE]
    assert found.abstention.advice
