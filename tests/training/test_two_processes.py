"""Training on several devices: `accelerate launch -m training`, proved with two processes on the CPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tiny
import yaml
from sentence_transformers import SentenceTransformer
from tiny import Trained, recipe

from data.card_text import card_text
from data.jsonl import save_catalog
from serving.bundle import load_bundle
from serving.selector import Selector
from training.retriever import Pair, RetrieverSettings, train_retriever

ROOT = Path(__file__).resolve().parents[2]
LAUNCH = [sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2"]


def launched(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*LAUNCH, *command],
        cwd=folder,
        env={
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "ACCELERATE_USE_CPU": "true",
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests" / "training")]),
            "MLFLOW_TRACKING_URI": f"sqlite:///{folder / 'runs.db'}",
        },
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )


DEADLY = """
import os, signal, sys
from training import __main__ as command, retriever

class Deadly(retriever.WholeCheckpoints):
    def on_step_end(self, args, state, control, **_):
        if state.global_step == 15:
            os.kill(os.getpid(), signal.SIGKILL)

retriever.WholeCheckpoints = Deadly
sys.exit(command.main())
"""


@pytest.mark.slow
def test_two_processes_train_one_bundle_that_serves_and_killed_ones_go_on(trained: Trained, tmp_path: Path) -> None:
    save_catalog(tmp_path / "catalog.jsonl", trained.catalog)
    how = recipe(trained.base).model_dump(mode="json")
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(how), encoding="utf-8")
    (tmp_path / "deadly.py").write_text(DEADLY, encoding="utf-8")
    given = ["--catalog", tmp_path / "catalog.jsonl", "--traces", trained.traces, "--recipe", tmp_path / "recipe.yaml"]
    out, other = tmp_path / "runs" / "bundle", tmp_path / "killed" / "bundle"

    done = launched(["-m", "training", *map(str, given), "-o", str(out)], tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stderr.count("retriever:") == 2, "both processes train"
    bundle = load_bundle(out)
    assert bundle.manifest.mlflow_run, "the first process tracks"
    validation = bundle.manifest.metrics["validation"]
    alone = trained.metrics["validation"]["ndcg@10"]
    assert validation["ndcg@10_low"] <= alone <= validation["ndcg@10_high"], "as good as one process, within noise"
    assert [path.name for path in out.parent.iterdir()] == ["bundle"], "no process leaves its own folder behind"
    assert Selector.load(out, trained.catalog).select("read the mail for anna", request_id="r").menu

    killed = launched([str(tmp_path / "deadly.py"), *map(str, given), "-o", str(other)], tmp_path)
    assert killed.returncode != 0
    assert [path.name for path in other.parent.iterdir()] == [".bundle.unfinished"]
    resumed = launched(["-m", "training", *map(str, given), "-o", str(other)], tmp_path)
    assert resumed.returncode == 0, resumed.stderr[-3000:]
    assert resumed.stderr.count("going on with the unfinished training") == 1
    assert load_bundle(other).version == bundle.version
    assert [path.name for path in other.parent.iterdir()] == ["bundle"]


SHARED = """
import sys
import numpy as np
import tiny
from sentence_transformers import SentenceTransformer
from test_two_processes import HOW, logged, without_dropout
from training.arguments import processes
from training.retriever import train_retriever

tuned = train_retriever(without_dropout(sys.argv[1]), logged(), HOW)
if processes().is_main_process:
    np.save(sys.argv[2], tuned.encode([pair.query for pair in logged()]))
"""
HOW = RetrieverSettings(epochs=2, batch_size=8, learning_rate=1e-3)


def logged() -> list[Pair]:
    """48 rows that never clash: the steps of one process are whole, and can be halved."""
    asked = [(card_text(card), goal) for card in tiny.catalog() for goal in tiny.goals(card.tool_id)[:4]]
    return [Pair(goal, card, frozenset([("group", number)])) for number, (card, goal) in enumerate(asked)]


def without_dropout(base: str) -> SentenceTransformer:
    """What is left to chance in each process apart, taken away."""
    turned_off = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return SentenceTransformer(base, device="cpu", config_kwargs=turned_off)


@pytest.mark.slow
def test_two_processes_take_the_very_steps_that_one_takes(trained: Trained, tmp_path: Path) -> None:
    (tmp_path / "shared.py").write_text(SHARED, encoding="utf-8")
    done = launched([str(tmp_path / "shared.py"), str(trained.base), str(tmp_path / "two.npy")], tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    goals = [pair.query for pair in logged()]
    before = without_dropout(str(trained.base)).encode(goals)
    alone = train_retriever(without_dropout(str(trained.base)), logged(), HOW).encode(goals)
    together = np.load(tmp_path / "two.npy")
    assert np.abs(alone - before).max() > 0.1, "there was something to learn"
    assert np.abs(together - alone).max() < 1e-3
