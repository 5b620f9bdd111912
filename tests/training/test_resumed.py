"""Resuming: a training that was stopped anywhere ends in the very bundle of one that was not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny
import torch
from sentence_transformers import SentenceTransformer
from tiny import Trained
from transformers import TrainerCallback

from data.card_text import card_text
from data.errors import InputError
from data.jsonl import save_catalog
from serving.bundle import load_bundle
from training import pipeline
from training.cross_encoder import CrossEncoderSettings, ScoredPair, train_cross_encoder
from training.pipeline import TrainResult, train
from training.retriever import Pair, RetrieverSettings, train_retriever

ROOT = Path(__file__).resolve().parents[2]
STAGES = ("tune_retriever", "learn_retriever", "learn_cross_encoder", "learn_interaction", "learn_heads")

Again = Callable[..., TrainResult]


@pytest.fixture
def again(trained: Trained, tmp_path: Path, new_store: Callable[[], Path], monkeypatch: pytest.MonkeyPatch) -> Again:
    """The training of the workshop once more, to another place; `changes` of the recipe."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    store = new_store()

    def run(traces: Path = trained.traces, *, restart: bool = False, **changes: Any) -> TrainResult:
        recipe = tiny.recipe(trained.base, **changes)
        out = tmp_path / "again" / "bundle"
        return train(trained.catalog, traces, recipe, out, tracking_root=store, restart=restart)

    return run


class Stop(TrainerCallback):  # type: ignore[misc]
    """Interrupts a fine-tuning after so many steps, and counts those that were taken."""

    def __init__(self, after: int | None = None) -> None:
        self.after = after
        self.taken = 0

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.taken += 1
        if state.global_step == self.after:
            raise KeyboardInterrupt


def test_finished_stages_are_not_repeated_and_the_bundle_is_the_same(
    again: Again, trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def stopping_at(last: str | None) -> None:
        for name in STAGES:
            real = getattr(pipeline, name)

            def stage(shop: Any, *rest: Any, name: str = name, real: Callable[..., None] = real) -> None:
                if name == last:
                    if name == "learn_retriever":
                        (shop.folder / "retriever.onnx").write_bytes(b"half of what it is to be")
                    raise KeyboardInterrupt
                done.append(name)
                real(shop, *rest)

            patch.setattr(pipeline, name, stage)

    for last in ("learn_retriever", "learn_cross_encoder", "learn_heads"):
        with monkeypatch.context() as patch:
            stopping_at(last)
            with pytest.raises(KeyboardInterrupt):
                again()
    with monkeypatch.context() as patch:
        stopping_at(None)
        patch.setattr(pipeline, "mine", lambda *_, **__: pytest.fail("mined twice"))
        result = again()
    assert done == list(STAGES)
    assert load_bundle(result.bundle).version == load_bundle(trained.bundle).version
    assert result.metrics["retriever"] == pytest.approx(trained.metrics["retriever"])
    assert os.listdir(tmp_path / "again") == ["bundle"]


@pytest.mark.slow
def test_a_training_that_is_killed_while_it_tunes_goes_on_from_its_checkpoint(
    again: Again, trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_catalog(tmp_path / "catalog.jsonl", trained.catalog)
    program = f"""
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {str(ROOT / "tests" / "training")!r})
import tiny
from data.jsonl import load_catalog
from training import retriever
from training.pipeline import train

class Deadly(retriever.WholeCheckpoints):
    def on_step_end(self, args, state, control, **_):
        if state.global_step == 15:
            os.kill(os.getpid(), signal.SIGKILL)

retriever.WholeCheckpoints = Deadly
catalog = load_catalog(Path({str(tmp_path / "catalog.jsonl")!r}))
out, store = Path({str(tmp_path / "again" / "bundle")!r}), Path({str(tmp_path / "store")!r})
train(catalog, Path({str(trained.traces)!r}), tiny.recipe(Path({str(trained.base)!r})), out, tracking_root=store)
"""
    killed = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-3000:]
    assert os.listdir(tmp_path / "again") == [".bundle.unfinished"]
    tuning = tmp_path / "again" / ".bundle.unfinished" / "scratch" / "tuning"
    assert [path.name for path in tuning.iterdir()] == ["checkpoint-10"]

    seen = Stop()
    monkeypatch.setattr("training.retriever.WholeCheckpoints", lambda: seen)
    result = again()
    assert 0 < seen.taken < 15, "it starts after the tenth step of its twenty-odd, not at the first"
    assert load_bundle(result.bundle).version == load_bundle(trained.bundle).version


def test_another_training_is_refused_by_name_unless_it_may_start_over(
    again: Again, trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tiny.write_traces_jsonl(tmp_path / "other.jsonl", tiny.traces()[10:])
    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "tune_retriever", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            again()
        with pytest.raises(InputError, match=r"\.bundle\.unfinished.*not of this: traces changed since"):
            again(other)
        with pytest.raises(InputError, match="not of this: recipe changed since"):
            again(seed=1)
        with pytest.raises(KeyboardInterrupt):  # so far it comes, which is past the refusal
            again(other, restart=True)
        with pytest.raises(InputError, match="traces changed since"):
            again()


def test_two_trainings_of_one_bundle_at_a_time_are_one_too_many(again: Again, monkeypatch: pytest.MonkeyPatch) -> None:
    def meanwhile(*_: Any) -> None:
        with pytest.raises(InputError, match="another training is making this bundle"):
            again()
        raise KeyboardInterrupt

    monkeypatch.setattr(pipeline, "tune_retriever", meanwhile)
    with pytest.raises(KeyboardInterrupt):
        again()


# --- one fine-tuning, stopped in the middle ------------------------------------------------------------------------


def weights(model: Any) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


def same(ours: Any, theirs: Any) -> bool:
    one, other = weights(ours), weights(theirs)
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_a_retriever_that_was_stopped_has_the_weights_of_one_that_was_not(trained: Trained, tmp_path: Path) -> None:
    pairs = [
        Pair(goal, card_text(card), frozenset([("tool", card.tool_id)]))
        for card in tiny.catalog()
        for goal in tiny.goals(card.tool_id)
    ]
    how = RetrieverSettings(epochs=1.5, batch_size=4, learning_rate=1e-3)

    def tuned(stop: Stop, folder: Path | None) -> SentenceTransformer:
        model = SentenceTransformer(str(trained.base), device="cpu")
        return train_retriever(model, pairs, how, [stop], folder)

    through = tuned(Stop(), None)
    for after in (13, 25):
        with pytest.raises(KeyboardInterrupt):
            tuned(Stop(after), tmp_path)
    torn = tmp_path / "checkpoint-30"
    torn.mkdir()  # a kill while it was being written: no mark in it
    resumed = Stop()
    assert same(tuned(resumed, tmp_path), through)
    assert resumed.taken == 33 - 20


def test_a_cross_encoder_that_was_stopped_has_the_weights_of_one_that_was_not(trained: Trained, tmp_path: Path) -> None:
    cards = {card.tool_id: card_text(card) for card in tiny.catalog()}
    pairs = [
        ScoredPair(goal, text, float(other == tool))
        for tool in list(cards)[:6]
        for goal in tiny.goals(tool)
        for other, text in list(cards.items())[:4]
    ]
    how = CrossEncoderSettings(layers=1, batch_size=4, epochs=2, learning_rate=1e-3)
    through = train_cross_encoder(trained.base, pairs, how, [Stop()])
    with pytest.raises(KeyboardInterrupt):
        train_cross_encoder(trained.base, pairs, how, [Stop(15)], tmp_path)
    resumed = Stop()
    assert same(train_cross_encoder(trained.base, pairs, how, [resumed], tmp_path), through)
    assert resumed.taken == 22 - 10
