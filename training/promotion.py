"""Promotion: a registered bundle becomes the champion if its validation figures are not worse than the champion's."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from serving.bundle import load_bundle
from training.tracking import BUNDLE_TAG, CHAMPION, DEFAULT_ROOT, MODEL, VALIDATION_TAG, TrackingError, open_client

QUALITY = "ndcg@10"
CALIBRATION = "ece"
LATENCY = "p95_ms"

QUALITY_LOSS = 0.005
"""nDCG@10 that a challenger may lose: below the noise of a thousand requests."""
CALIBRATION_LOSS = 0.01
"""Calibration error that it may gain."""
LATENCY_FACTOR = 1.5
"""How many times slower it may be; the same bundle on a busy machine differs by a quarter."""


@dataclass(frozen=True)
class Promotion:
    """What was decided about which version, and why, as a sentence."""

    promoted: bool
    version: str
    reason: str


def promote(bundle: Path, root: Path = DEFAULT_ROOT) -> Promotion:
    """Give the registered version of `bundle` the alias `champion`, if it is not worse than the one that has it.

    Worse, by the figures stored with each version: nDCG@10 lower by over QUALITY_LOSS, calibration error higher by
    over CALIBRATION_LOSS, or p95 latency over LATENCY_FACTOR times as long. A figure that either side lacks is passed
    over, save quality. Raises BundleError for a folder that is no bundle, TrackingError for a bundle that is not
    registered in this store and for a store that cannot be reached.
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
    decision = _decide(candidate, champion)
    if decision.promoted:
        client.set_registered_model_alias(MODEL, CHAMPION, candidate.version)
    return decision


def _decide(candidate: Any, champion: Any | None) -> Promotion:
    number = str(candidate.version)
    ours = _validation(candidate)
    if QUALITY not in ours:
        return Promotion(False, number, f"version {number} is not promoted: it was registered without {QUALITY}")
    if champion is None:
        return Promotion(True, number, f"version {number} is the champion: there was none before")
    if str(champion.version) == number:
        return Promotion(True, number, f"version {number} is the champion already")
    theirs = _validation(champion)
    worse = [
        f"{figure} {ours[figure]:.4g} against {theirs[figure]:.4g} ({allowed})"
        for figure, is_worse, allowed in _RULES
        if figure in ours and figure in theirs and is_worse(ours[figure], theirs[figure])
    ]
    rival = f"version {champion.version}, the champion"
    if worse:
        return Promotion(
            False, number, f"version {number} is not promoted, it is worse than {rival}: {'; '.join(worse)}"
        )
    compared = ", ".join(f"{name} {ours[name]:.4g} against {theirs[name]:.4g}" for name in ours if name in theirs)
    return Promotion(True, number, f"version {number} is the champion: not worse than {rival} ({compared})")


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
