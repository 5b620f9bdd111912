"""Live: the selector that serves now, and its replacement by another without a gap.

A new selector is loaded, verified and warmed beside the old one; then one reference changes. Requests in flight end on
the selector they began with. A new one that cannot be loaded, or whose models fail, is refused, and the old one serves
on. What belongs to the operation and not to what is loaded, the risk policy and the tools that are down or withdrawn,
carries over.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from data.cards import ToolCard
from data.context import MAX_GOAL_CHARACTERS, Caller, Subgoal
from data.errors import ToolcribError
from serving.explore import Showings
from serving.lately import Lately, Outcome
from serving.policy import RiskPolicy
from serving.selector import Selector, Versions

_LOG = logging.getLogger("toolcrib.live")

_PROBES = 3


class UnfitError(ToolcribError):
    """A selector that was loaded and does not decide as it should; it must not serve."""


@dataclass(frozen=True)
class Swap:
    """What became of one attempt. `after` is what serves now; `problem` says why the new one was refused."""

    accepted: bool
    before: Versions
    after: Versions
    seconds: float
    problem: str = ""

    @property
    def changed(self) -> bool:
        """Whether something else serves than before."""
        return self.before != self.after


class Live:
    """Holds the selector that serves. Threads may share it; swaps wait for each other."""

    def __init__(self, selector: Selector) -> None:
        self._current = selector
        self._policy: RiskPolicy | None = None
        self._showings = Showings()
        self._lately = Lately()
        self._down = self.withdrawn = frozenset[str]()
        self._swapping, self._changing = Lock(), Lock()

    @property
    def current(self) -> Selector:
        """The selector to begin a request with; use this one for the whole of it."""
        return self._current

    def swap(self, build: Callable[[], Selector]) -> Swap:
        """Serve what `build` gives from now on, if it is fit to serve; never raises what `build` raises."""
        with self._swapping:
            started, before = time.perf_counter(), self._current.versions
            try:
                fresh = build()
                verify(fresh)
            except Exception as error:  # whatever is wrong with the new one, the old one must serve on
                problem = str(error) or type(error).__name__
                _LOG.warning(
                    "refused, the old one serves on: %s", problem, exc_info=not isinstance(error, ToolcribError)
                )
                return Swap(False, before, before, time.perf_counter() - started, problem)
            with self._changing:
                if self._policy is not None:
                    fresh = fresh.with_policy(self._policy)
                fresh = fresh.with_showings(self._showings)
                # vectors of another encoder say nothing to this one
                if fresh.versions.bundle != self._current.versions.bundle:
                    self._lately = Lately()
                fresh = fresh.with_lately(self._lately)
                self._hide(fresh)
                self._current = fresh
            _LOG.info("swapped: catalog %s, bundle %s", fresh.versions.catalog, fresh.versions.bundle)
            return Swap(True, before, fresh.versions, time.perf_counter() - started)

    def set_unavailable(self, tool_ids: Iterable[str]) -> None:
        """Tools that are down, from the next request on and across swaps. Replaces the set that was."""
        with self._changing:
            self._down = frozenset(tool_ids)
            self._hide(self._current)

    def withdraw(self, tool_ids: Iterable[str]) -> None:
        """Tools that must not be shown or called any more, from the next request on and across swaps, until a selector
        without them serves. Replaces the set that was."""
        with self._changing:
            self.withdrawn = frozenset(tool_ids)
            self._hide(self._current)

    def set_policy(self, policy: RiskPolicy) -> None:
        """The risk policy from the next request on, and across swaps, whatever policy a new selector brings."""
        with self._changing:
            self._policy = policy
            self._current = self._current.with_policy(policy)

    def set_showings(self, showings: Showings) -> None:
        """What exploration has shown until now, from the next request on and across swaps. Replaces what was known."""
        with self._changing:
            if showings.version != self._showings.version:
                self._showings = showings
                self._current = self._current.with_showings(showings)

    def learn(self, bundle: str, outcome: Outcome, vector: NDArray[np.float32]) -> None:
        """One more outcome, from the next request on and until another bundle serves. `bundle`: whose vector it is."""
        with self._changing:
            lately = self._lately.with_outcome(outcome, vector)
            if lately is not self._lately and bundle == self._current.versions.bundle:
                self._lately = lately
                self._current = self._current.with_lately(lately)

    def _hide(self, selector: Selector) -> None:
        selector.set_unavailable(self._down | {tool for tool in self.withdrawn if tool in selector.catalog})


def verify(selector: Selector) -> None:
    """Let a selector decide a few requests of its own catalog, which also warms its models.

    Raises UnfitError where a model fails, and whatever else a decision raises. A reranker that is late is only cold.
    """
    cards, encoder, bundle = selector.catalog.cards, selector.encoder, selector.bundle
    # by itself as well: what another selector with this bundle has embedded, a decision may find in the cache
    if encoder is not None and bundle is not None:
        encoded = encoder.encode([cards[0].name], bundle.manifest.max_query_tokens)
        if not np.isfinite(encoded.vectors).all():
            raise UnfitError(f"bundle {bundle.version}: encode: a vector is not finite")
    for card in cards[:: max(1, len(cards) // _PROBES)][:_PROBES]:
        probe = Subgoal(goal=(card.description.strip() or card.name)[:MAX_GOAL_CHARACTERS])
        found = selector.select(probe, _entitled(card), request_id="warm")
        for degradation in found.degradations:
            if degradation.kind == "failed":
                raise UnfitError(f"bundle {selector.versions.bundle}: {degradation.stage}: {degradation.what}")


def _entitled(card: ToolCard) -> Caller:
    """A caller who holds what a card requires, so that there is a candidate to score."""
    return Caller(
        principal="warm",
        tenant=next(iter(card.tenants), ""),
        scopes=card.requires.scopes,
        connections=card.requires.connections,
        env=next(iter(card.envs), ""),
        region=next(iter(card.regions), ""),
        flags=card.flags,
    )
