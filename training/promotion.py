"""Promotion: a registered bundle becomes the champion if it is not worse on the same queries; the way back is kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from data.catalog import Catalog
from data.queries import Query
from serving.bundle import load_bundle
from training.comparison import Compared, Rows, compare, compare_no_tool, compare_side_by_side, refusals
from training.recorded import record_evaluation, recorded_pair
from training.registered import registered
from training.tracking import (
    BUNDLE_TAG,
    CHAMPION,
    DEFAULT_ROOT,
    MODEL,
    VALIDATION_TAG,
    TrackingError,
    open_client,
    track,
)

BEFORE_TAG = "toolcrib.champion_before"
"""On a version that became the champion: the number of the one that was it before."""

QUALITY = "ndcg@10"
CALIBRATION = "ece"
LATENCY = "p95_ms"

QUALITY_LOSS = 0.005
"""nDCG@10 that a challenger may lose where only the means of the two trainings are known."""
CALIBRATION_LOSS = 0.01
"""Calibration error that it may gain there."""
LATENCY_FACTOR = 1.5
"""How many times slower it may be; the same bundle on a busy machine differs by a quarter."""


@dataclass(frozen=True)
class Promotion:
    """What was decided about which version, and why, as a sentence; `compared` where both answered the same queries.

    `against`: what speaks against it, a sentence each. `notes`: on what footing it was compared, where that is not
    plain. `forced`: the reason that was given to promote it in spite of `against`.
    """

    promoted: bool
    version: str
    reason: str
    compared: tuple[Compared, ...] = ()
    against: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    forced: str = ""


def promote(
    bundle: Path,
    root: Path = DEFAULT_ROOT,
    *,
    catalog: Catalog | None = None,
    queries: Sequence[Query] = (),
    force: str = "",
) -> Promotion:
    """Give the registered version of `bundle` the alias `champion`, if it is not worse than the one that has it.

    With a catalog and queries both are evaluated on them, and their evaluations recorded; they are also asked side by
    side, over a catalog with poisoned cards in it. Otherwise the recorded evaluations count, where they are of one
    catalog and share queries: see `training.comparison`. Where there are none, the means of the two trainings have to
    do, and the reason says so. `force`, a reason in words, promotes in spite of a refusal. Every decision is a run
    named `promotion`, a refusal too.

    Raises BundleError for a folder that is no bundle, TrackingError for a bundle that is not registered in this store
    and for a store that cannot be reached, and what an evaluation raises.
    """
    name, client = load_bundle(bundle).version, open_client(root)
    found = client.search_model_versions(f"name = '{MODEL}' and tags.`{BUNDLE_TAG}` = '{name}'")
    if not found:
        raise TrackingError(
            f"bundle {name} in {bundle} is not registered in this tracking store "
            "(train it with the same MLFLOW_TRACKING_URI, or start from the folder whose mlruns/ holds its run)"
        )
    candidate = max(found, key=lambda version: int(version.version))
    champion = _champion(client)
    beside: tuple[Compared, ...] = ()
    notes: list[str] = []
    if catalog is not None and queries:
        notes += _evaluate(candidate, bundle, catalog, queries, root)
        if champion is not None and champion.version != candidate.version:
            rival = registered(f"models:/{MODEL}/{champion.version}", root)()
            notes += _evaluate(champion, rival, catalog, queries, root)
            from training.side_by_side import side_by_side

            beside = tuple(compare_side_by_side(*side_by_side(bundle, rival, catalog, queries)))
    decision = replace(_decide(client, candidate, champion, beside), notes=tuple(notes))
    if force and not decision.promoted:
        reason = f"version {decision.version} is the champion by force ({force}), although {decision.reason}"
        decision = replace(decision, promoted=True, reason=reason, forced=force)
    if decision.promoted and (champion is None or champion.version != candidate.version):
        if champion is not None:
            client.set_model_version_tag(MODEL, candidate.version, BEFORE_TAG, champion.version)
        client.set_registered_model_alias(MODEL, CHAMPION, candidate.version)
    _log(root, decision, champion)
    return decision


def roll_back(root: Path = DEFAULT_ROOT) -> Promotion:
    """Give the alias `champion` back to the version that had it before the present champion.

    Raises TrackingError where nothing is the champion, or was before, and for a store that cannot be reached.
    """
    client = open_client(root)
    champion = _champion(client) if client.search_registered_models(f"name = '{MODEL}'") else None
    before = None if champion is None else champion.tags.get(BEFORE_TAG)
    if champion is None or before is None:
        who = "there is no champion" if champion is None else f"nothing was before version {champion.version}"
        raise TrackingError(f"{who}: there is nothing to roll back to (promote a bundle instead)")
    client.set_registered_model_alias(MODEL, CHAMPION, before)
    decision = Promotion(
        True, str(before), f"version {before} is the champion again: version {champion.version} is rolled back"
    )
    _log(root, decision, champion)
    return decision


def _evaluate(version: Any, bundle: Path, catalog: Catalog, queries: Sequence[Query], root: Path) -> list[str]:
    """Evaluate and record; gives what is to be said of a bundle that was trained on another catalog.

    It is measured as it would serve here: carried over.
    """
    from training.evaluation import evaluate_loaded  # heavier than all else here

    found = load_bundle(bundle)
    report = evaluate_loaded(found, catalog, queries, allow_foreign_catalog=True)
    record_evaluation(report, root, trained_by=version.run_id, note=f"for the promotion of version {version.version}")
    if found.manifest.catalog_version in ("", catalog.version):
        return []
    here = sum(tool in catalog for tool in found.usage.tools)
    return [
        f"version {version.version} was trained on another catalog: {here} of the {len(found.usage.tools)} tools in its"
        " past are here, and it was measured as it would serve here, carried over"
    ]


def _decide(client: Any, candidate: Any, champion: Any | None, beside: tuple[Compared, ...]) -> Promotion:
    number = str(candidate.version)
    if QUALITY not in _validation(candidate):
        against = f"it was registered without {QUALITY}"
        return Promotion(False, number, f"version {number} is not promoted: {against}", against=(against,))
    if champion is None:
        return Promotion(True, number, f"version {number} is the champion: there was none before")
    if str(champion.version) == number:
        return Promotion(True, number, f"version {number} is the champion already")
    rows = _same_queries(client, candidate, champion)
    if isinstance(rows, str):
        return _by_means(candidate, champion, rows)
    return _by_queries(number, str(champion.version), (*compare(*rows[0]), *compare_no_tool(*rows[1]), *beside))


def _same_queries(client: Any, candidate: Any, champion: Any) -> tuple[tuple[Rows, Rows], tuple[Rows, Rows]] | str:
    """The recorded rows of both, of answered queries and of those that nothing fits; or why none can be compared."""
    pair = recorded_pair(client, *(version.tags[BUNDLE_TAG] for version in (candidate, champion)))
    if pair is None:
        return "no evaluation of both is recorded"
    ours, theirs = pair
    if ours["catalog_version"] != theirs["catalog_version"]:
        return "they were evaluated on different catalogs"
    rows = (ours["per_query"], theirs["per_query"])
    asked = [{row["question"] for row in side} for side in rows]
    return (rows, (ours["per_no_tool"], theirs["per_no_tool"])) if asked[0] & asked[1] else "they share no query"


def _by_queries(number: str, rival: str, found: tuple[Compared, ...]) -> Promotion:
    against = tuple(refusals(found))
    if against:
        reason = f"version {number} is not promoted against version {rival}, the champion: {'; '.join(against)}"
        return Promotion(False, number, reason, found, against)
    n = max(one.n for one in found)
    reason = f"version {number} is the champion: not worse than version {rival} on the same {n} queries"
    return Promotion(True, number, reason, found)


def _by_means(candidate: Any, champion: Any, why: str) -> Promotion:
    """By the figures of the two trainings, each on its own requests: a guard against a bad bundle, no proof."""
    number, ours, theirs = str(candidate.version), _validation(candidate), _validation(champion)
    worse = tuple(
        f"{figure} {ours[figure]:.4g} against {theirs[figure]:.4g} ({allowed})"
        for figure, is_worse, allowed in _RULES
        if figure in ours and figure in theirs and is_worse(ours[figure], theirs[figure])
    )
    rival = f"version {champion.version}, the champion"
    footing = f"by the means of their trainings, as {why}"
    if worse:
        said = f"it is worse than {rival}: {'; '.join(worse)}; {footing}"
        return Promotion(False, number, f"version {number} is not promoted, {said}", against=worse)
    compared = ", ".join(f"{name} {ours[name]:.4g} against {theirs[name]:.4g}" for name in ours if name in theirs)
    said = f"not worse than {rival} ({compared}; {footing})"
    return Promotion(True, number, f"version {number} is the champion: {said}")


_RULES: tuple[tuple[str, Callable[[float, float], bool], str], ...] = (
    (QUALITY, lambda ours, theirs: ours < theirs - QUALITY_LOSS, f"it may lose {QUALITY_LOSS}"),
    (CALIBRATION, lambda ours, theirs: ours > theirs + CALIBRATION_LOSS, f"it may gain {CALIBRATION_LOSS}"),
    (LATENCY, lambda ours, theirs: ours > theirs * LATENCY_FACTOR, f"it may be {LATENCY_FACTOR} times as long"),
)


def _champion(client: Any) -> Any | None:
    aliases: Mapping[str, str] = client.get_registered_model(MODEL).aliases
    return client.get_model_version(MODEL, aliases[CHAMPION]) if CHAMPION in aliases else None


def _validation(version: Any) -> dict[str, float]:
    """The figures stored with a version; one that was not measured is null there and left out here."""
    figures: dict[str, float | None] = json.loads(version.tags.get(VALIDATION_TAG, "{}"))
    return {name: value for name, value in figures.items() if value is not None}


def _log(root: Path, decision: Promotion, champion: Any | None) -> None:
    """One run for the decision, with what it rests on."""
    tags = {"promoted": str(decision.promoted).lower(), "version": decision.version}
    if decision.forced:
        tags["forced"] = decision.forced
    with track(root, name="promotion", tags=tags) as run:
        before = None if champion is None else str(champion.version)
        run.document({**asdict(decision), "champion_before": before}, "promotion.json")
        run.metrics({"promoted": float(decision.promoted)})
        figures = {one.figure.replace(" ", "_").replace(",", ""): one for one in decision.compared}
        run.metrics(
            {name: {"ours": f.ours, "theirs": f.theirs, "difference": f.difference} for name, f in figures.items()}
        )
