"""Training on several devices: `accelerate launch -m training`, proved with two processes on the CPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tiny import Trained, recipe

from data.jsonl import save_catalog
from serving.bundle import load_bundle
from serving.selector import Selector


@pytest.mark.slow
def test_two_processes_train_one_bundle_that_serves(trained: Trained, tmp_path: Path) -> None:
    save_catalog(tmp_path / "catalog.jsonl", trained.catalog)
    how = recipe(trained.base).model_dump(mode="json")
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(how), encoding="utf-8")
    out = tmp_path / "runs" / "bundle"

    launch = [sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2"]
    given = ["--catalog", tmp_path / "catalog.jsonl", "--traces", trained.traces, "--recipe", tmp_path / "recipe.yaml"]
    done = subprocess.run(
        [*launch, "-m", "training", *map(str, given), "-o", str(out)],
        cwd=tmp_path,
        env={
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "ACCELERATE_USE_CPU": "true",
            "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
            "MLFLOW_TRACKING_URI": f"sqlite:///{tmp_path / 'runs.db'}",
        },
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stderr.count("retriever:") == 2, "both processes train"
    bundle = load_bundle(out)
    assert bundle.manifest.mlflow_run, "the first process tracks"
    assert [path.name for path in out.parent.iterdir()] == ["bundle"], "no process leaves its own folder behind"
    assert Selector.load(out, trained.catalog).select("read the mail for anna", request_id="r").menu
