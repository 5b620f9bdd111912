"""The last stage: fit the heads on requests that no encoder has seen, and decide which reranker earns its place."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from serving.bundle import ABSTENTION, RELEVANCE, Reranker
from serving.conformal import MENU_RISK
from serving.features import features
from training.abstention import Scored, fit_abstention
from training.head import (
    FIT_WIDTH,
    RELEVANCE_WIDTH,
    Classifier,
    Request,
    export_head,
    first_day,
    fit_relevance,
    out_of_fold,
    probabilities,
    without,
)
from training.material import head_requests, short_past
from training.menu_risk import learn_menu_risk
from training.metrics import bootstrap_interval, expected_calibration_error, paired_difference_interval
from training.rerankers import Readings, drop_reranker_files
from training.tracking import Run
from training.workshop import Workshop

log = logging.getLogger("toolcrib")

Fitter = Callable[[Sequence[Request]], Classifier]

MOST_REMOVED = 1000
"""Requests without their tools that abstention learns from: with more of them it learns nothing new."""
LEAST_REQUESTS = 20
"""With fewer different requests that tell right from wrong no head is fitted: the fused order serves, and says so."""


def learn_heads(shop: Workshop, run: Run) -> None:
    """Fit relevance and abstention; measure both out of fold; keep the reranker only where it helps there."""
    part, recipe = shop.recipe.head, shop.recipe
    assert shop.material is not None
    chosen = shop.chosen("valid", "cold") or shop.chosen("train")
    random.Random(recipe.seed).shuffle(chosen)
    chosen = sorted(chosen[: part.max_requests])
    figures = shop.figures.setdefault("validation", {})
    figures["requests"] = len(chosen)
    requests, candidates = head_requests(shop.material, chosen)
    telling = len({request.group for request in requests if request.tells})
    if telling < LEAST_REQUESTS:
        log.warning("only %d requests are left for the heads: no head is fitted, the fused order serves", telling)
        drop_reranker_files(shop)
        return
    new_tools = newcomers(shop)
    unlogged, rivals = head_requests(shop.material, chosen, new_tools)
    lately = replace(shop.material, usage=short_past(shop.material.usage, new_tools, recipe.seed), memories={})
    readings = Readings(shop)
    views = Views(
        logged=readings.add(chosen, requests, candidates),
        unlogged=readings.add(chosen, unlogged, rivals),
        short=readings.add(chosen, *head_requests(lately, chosen)),
        new=np.array([any(tool in new_tools for tool, _ in shop.decisions[i].tools) for i in chosen], np.bool_),
    )
    views = _choose_reranker(shop, views, partial(fit_relevance, regularisation=part.regularisation, calibrate=False))
    fit = partial(fit_relevance, regularisation=part.regularisation)
    relevant, relevant_unlogged = views.out_of_fold(fit)
    head = fit(views.together)
    gains = _ndcgs(views.logged, relevant)
    figures["ndcg@10"] = float(gains.mean())
    figures["ndcg@10_low"], figures["ndcg@10_high"] = bootstrap_interval(gains, recipe.seed)
    if views.new.any():
        figures["new_tools_ndcg@10"] = float(_ndcgs(views.unlogged, relevant_unlogged)[views.new].mean())
    figures["ece"] = expected_calibration_error(
        np.concatenate(relevant), np.concatenate([request.right for request in views.logged])
    )
    risk = learn_menu_risk(
        shop,
        chosen,
        list(zip(views.logged, candidates, relevant, strict=True)),
        list(zip(views.unlogged, rivals, relevant_unlogged, strict=True)),
        views.new,
    )
    (shop.folder / MENU_RISK).write_text(risk.model_dump_json() + "\n", encoding="utf-8")
    figures["menu_least_alpha_warm"], figures["menu_least_alpha_cold"] = risk.warm.least, risk.cold.least
    figures["relevance_onnx_diff"] = export_head(head, shop.folder / RELEVANCE, RELEVANCE_WIDTH)
    _learn_abstention(shop, readings, list(zip(views.logged, relevant, strict=True)), chosen, head)
    drop_reranker_files(shop)
    run.metrics(figures)


@dataclass(frozen=True)
class Views:
    """The same requests as they were, and as they would be if the newcomers had never been logged, or hardly.

    The second view is what a tool's first request meets. It cannot be had by hiding the past of the right tool alone:
    its rivals' votes, the nearest past request and the candidates themselves would still come from its own past.
    The third is what its next requests meet: without it a head takes a short past for a bad sign, and a tool is worse
    off with its first success than with none. `new` (n,): the requests that a newcomer serves.
    """

    logged: list[Request]
    unlogged: list[Request]
    short: list[Request]
    new: NDArray[np.bool_]

    @property
    def together(self) -> list[Request]:
        """What the head learns from: the views, and the first day of the catalog, on which every tool is new."""
        return [*self.logged, *self.unlogged, *self.short, *first_day(self.logged)]

    def without(self, *names: str) -> Views:
        logged, unlogged, short = (without(view, *names) for view in (self.logged, self.unlogged, self.short))
        return Views(logged, unlogged, short, self.new)

    def out_of_fold(self, fit: Fitter) -> tuple[list[NDArray[np.float64]], list[NDArray[np.float64]]]:
        """Relevance of the candidates of the first two views."""
        found, count = out_of_fold(self.together, fit), len(self.logged)
        return found[:count], found[count : 2 * count]

    def quality(self, fit: Fitter) -> NDArray[np.float64]:
        """nDCG@10 out of fold, each request once (n,): those that a newcomer serves as its first ones."""
        relevant, unlogged = self.out_of_fold(fit)
        return np.where(self.new, _ndcgs(self.unlogged, unlogged), _ndcgs(self.logged, relevant))


def newcomers(shop: Workshop) -> frozenset[str]:
    """The tools that no fine-tuning has seen; where none was held out, some drawn at random play their part."""
    if shop.cold_tools:
        return shop.cold_tools
    used = sorted({tool for decision in shop.decisions for tool, _ in decision.tools})
    return frozenset(random.Random(shop.recipe.seed).sample(used, round(shop.recipe.head.new_share * len(used))))


_SIGNAL: dict[Reranker, str] = {"interaction": "interaction", "cross_encoder": "cross"}
"""Which signal each reranker gives the head."""


def _choose_reranker(shop: Workshop, views: Views, fit: Fitter) -> Views:
    """Compare the head with each reranker and with none, out of fold; the gains and their intervals go on record.

    `auto` takes the one with the largest gain of those whose 95% interval is above zero: what only seems to help costs
    milliseconds in every decision.
    """
    wish = shop.recipe.reranker
    plain = views.without(*_SIGNAL.values())
    best: tuple[float, Reranker, Views] = (0.0, "none", plain)
    trained: dict[Reranker, bool] = {
        "interaction": shop.weights is not None,
        "cross_encoder": bool(shop.reranker_graph),
    }
    quality = plain.quality(fit) if any(trained.values()) else np.zeros(0)
    for name in [name for name, is_there in trained.items() if is_there]:
        with_it = views.without(*(signal for other, signal in _SIGNAL.items() if other != name))
        gains = with_it.quality(fit)
        gain = float(gains.mean() - quality.mean())
        low, high = paired_difference_interval(gains, quality, shop.recipe.seed)
        shop.figures[name] |= {"head_gain": gain, "head_gain_low": low, "head_gain_high": high}
        log.info("%s: nDCG@10 %+.4f [%+.4f, %+.4f] for the head, out of fold", name, gain, low, high)
        if name == wish or (wish == "auto" and low > 0.0 and gain > best[0]):
            best = (gain, name, with_it)
    shop.reranker = best[1]
    log.info("the reranker that serves: %s", shop.reranker)
    return best[2]


def _learn_abstention(
    shop: Workshop, readings: Readings, answered: list[Scored], chosen: Sequence[int], head: Classifier
) -> None:
    """Whether anything fits: from logged requests that nothing fitted, and from `chosen` ones without their tools."""
    part, figures = shop.recipe.head, shop.figures["validation"]

    def scored(which: Sequence[int], *, removed: bool) -> list[Scored]:
        assert shop.material is not None
        if not which:
            return []
        requests, candidates = head_requests(shop.material, which, removed=removed)
        requests = readings.add(which, requests, candidates, wanted=[shop.reranker])
        return [(request, probabilities(head, features(request.signals))) for request in requests]

    nothing = shop.chosen("train", "valid", "cold", answered=False)[: part.max_requests]
    taken = chosen if len(chosen) <= MOST_REMOVED else random.Random(shop.recipe.seed).sample(chosen, MOST_REMOVED)
    everything = sum(shop.decisions[i].asked for i in shop.chosen("train", "valid", "cold"))
    fitted = fit_abstention(
        answered,
        scored(nothing, removed=False),
        scored(taken, removed=True) if part.removed else [],
        answered_weight=everything / len(answered),
        part=part,
    )
    if fitted is None:
        log.info("%d requests that nothing fitted: too few to learn when to say no", len(nothing))
        return
    shop.missing_below, shop.widen_below = fitted.missing_below, fitted.widen_below
    figures |= {f"abstention_{name}": value for name, value in fitted.figures.items()}
    figures["abstention_onnx_diff"] = export_head(fitted.model, shop.folder / ABSTENTION, FIT_WIDTH)


def _ndcgs(requests: Sequence[Request], relevant: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    return np.array([_ndcg(request, of) for request, of in zip(requests, relevant, strict=True)])


def _ndcg(request: Request, relevant: NDArray[np.float64]) -> float:
    """nDCG@10 over the candidates that are right or wrong; right tools that were not among them count as missed."""
    order = np.argsort(-relevant, kind="stable")
    ranked = request.right[order[~request.unsure[order]]][:10]
    discounts = 1.0 / np.log2(np.arange(2, 12))
    gold = max(request.gold, 1)
    return float(min(1.0, (ranked * discounts[: len(ranked)]).sum() / discounts[: min(gold, 10)].sum()))
