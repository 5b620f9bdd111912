"""Evaluations on record: each a run of its own under the run that trained the bundle, found again in pairs."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from training.tracking import DEFAULT_ROOT, EXPERIMENT, open_client, store_failed, track, tracking_uri

REPORT = "report.json"
PAGE = "report.html"
EVALUATED_TAG = "toolcrib.evaluated_bundle"
CATALOG_TAG = "toolcrib.catalog_version"
QUESTIONS_TAG = "toolcrib.questions"
_LATEST = 50


def record_evaluation(
    report: Mapping[str, Any], root: Path = DEFAULT_ROOT, *, trained_by: str | None = None, note: str = ""
) -> str:
    """Write an evaluation down as a run named `evaluation`: figures, plots, the report as JSON and as a page.

    `trained_by`: the run that trained the bundle, under which it is nested where the store knows it. Gives the run's
    id. Raises TrackingError where the store cannot be reached.
    """
    from training.plots import evaluation_figures
    from training.report.page import page

    tags = {
        EVALUATED_TAG: str(report["bundle_version"]),
        CATALOG_TAG: str(report["catalog_version"]),
        QUESTIONS_TAG: _questions(report),
    }
    if trained_by is not None and _knows(root, trained_by):
        tags["mlflow.parentRunId"] = trained_by
    with track(root, name="evaluation", tags=tags) as run:
        run.parameters({"bundle": report["bundle_version"], "catalog": report["catalog_version"], "note": note})
        parts = ("rungs", "abstention", "chain", "menu", "latency_ms", "queries")
        run.metrics({**{name: report[name] for name in parts}, "calibration": _calibration(report["calibration"])})
        run.metrics({f"failures.{kind}": row["count"] for kind, row in report["failures"].items()})
        run.document(report, REPORT)
        run.text(page(report, note=note), PAGE)
        for name, figure in evaluation_figures(report).items():
            run.figure(figure, f"plots/{name}")
        return run.run_id


def recorded_pair(client: Any, ours: str, theirs: str) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The latest evaluations of two bundle versions, those on the same catalog and queries if there are such.

    None where one of them was never evaluated. Raises TrackingError where the store cannot be read.
    """
    try:
        one, other = (_runs(client, version) for version in (ours, theirs))
        if not one or not other:
            return None
        same = ((a, b) for a in one for b in other if _asked(a) == _asked(b))
        pair = next(same, (one[0], other[0]))
        return _report(client, pair[0]), _report(client, pair[1])
    except Exception as error:
        raise store_failed("read the evaluations in", tracking_uri(), error) from error


def _runs(client: Any, version: str) -> list[Any]:
    experiment = client.get_experiment_by_name(EXPERIMENT)
    if experiment is None:
        return []
    found = client.search_runs(
        [experiment.experiment_id],
        f"tags.`{EVALUATED_TAG}` = '{version}' and attributes.status = 'FINISHED'",
        order_by=["attributes.start_time DESC"],
        max_results=_LATEST,
    )
    return list(found)


def _asked(run: Any) -> tuple[str, str]:
    return run.data.tags.get(CATALOG_TAG, ""), run.data.tags.get(QUESTIONS_TAG, "")


def _report(client: Any, run: Any) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        found = Path(client.download_artifacts(run.info.run_id, REPORT, folder))
        report: dict[str, Any] = json.loads(found.read_text(encoding="utf-8"))
    return report


def _calibration(found: Mapping[str, Any]) -> dict[str, Any]:
    """The errors of the whole and of warm and cold tools; domains have names that no metric may have."""
    slices = {name: part["ece"] for name, part in (found.get("slices") or {}).items() if "ece" in part}
    return {"ece": found["ece"], **{f"{name}.ece": value for name, value in slices.items()}}


def _knows(root: Path, run_id: str) -> bool:
    from mlflow.exceptions import MlflowException

    try:
        open_client(root).get_run(run_id)
    except MlflowException:  # trained elsewhere, or deleted
        return False
    return True


def _questions(report: Mapping[str, Any]) -> str:
    """A digest of what was asked, whatever the order."""
    asked = sorted(row["question"] for name in ("per_query", "per_no_tool") for row in report[name])
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:16]
