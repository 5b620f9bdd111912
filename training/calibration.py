"""Calibration: whether stated relevance comes true, on the whole and on parts of the catalog."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from training.answers import Answer
from training.metrics import calibration_bins, expected_calibration_error

DOMAINS = 12
"""So many domains, those with the most candidates, are measured by themselves."""
LEAST_CASES = 200
"""The calibration error of fewer candidates is mostly chance."""


def calibration(
    answers: Sequence[Answer], has_past: Callable[[str], bool], domain_of: Callable[[str], str]
) -> dict[str, Any]:
    """`ece` and `bins` over all candidates of answered queries, and the same of parts of them under `slices`.

    `warm` and `cold` are the candidates with and without a past in the bundle; `domains` those of the largest domains,
    without bins. Each part has `n` candidates; below `LEAST_CASES` a domain is left out, and the error of warm or cold
    ones is None.
    """
    every: list[tuple[str, float, bool]] = [
        (tool, stated, tool in answer.good)
        for answer in answers
        if answer.query.gold
        for tool, stated in answer.relevance.items()
    ]
    if not every:
        return {"ece": None, "bins": [], "slices": {}}
    by_domain: defaultdict[str, list[tuple[str, float, bool]]] = defaultdict(list)
    for case in every:
        by_domain[domain_of(case[0])].append(case)
    largest = Counter({name: len(of) for name, of in by_domain.items() if name and len(of) >= LEAST_CASES})
    slices: dict[str, Any] = {
        name: _reliability([case for case in every if has_past(case[0]) == past])
        for name, past in (("warm", True), ("cold", False))
    }
    slices["domains"] = {
        name: {key: value for key, value in _reliability(by_domain[name]).items() if key != "bins"}
        for name, _ in largest.most_common(DOMAINS)
    }
    whole = _reliability(every)
    return {"ece": _error(every), "bins": whole["bins"], "slices": slices}


def _reliability(cases: Sequence[tuple[str, float, bool]]) -> dict[str, Any]:
    bins = calibration_bins([stated for _, stated, _ in cases], [right for _, _, right in cases])
    return {
        "n": len(cases),
        "ece": _error(cases) if len(cases) >= LEAST_CASES else None,
        "bins": [{"predicted": b.predicted, "observed": b.observed, "count": b.count} for b in bins],
    }


def _error(cases: Sequence[tuple[str, float, bool]]) -> float | None:
    return expected_calibration_error([stated for _, stated, _ in cases], [right for _, _, right in cases])
