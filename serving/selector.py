"""The selector: bundle + catalog + caller -> slice. `Selector.select` reads as the order of the decision."""

from __future__ import annotations

import copy
import logging
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from data.catalog import Catalog, content_hash
from data.context import Caller, Subgoal
from serving.bundle import TOKENIZER, Bundle, load_bundle
from serving.disclosure import approximate_tokens, token_count
from serving.embedding_cache import EmbeddingCache
from serving.evidence import evidence, gather, same_domain, signals
from serving.explore import Exploration, Showings, eligible_tools, new_enough
from serving.guarantee import bars_of, needed_by_any, needed_of
from serving.index import Index, build_index
from serving.judged import Judged, Run, merged, named
from serving.lately import Lately
from serving.lru import Lru
from serving.mask import MaskResult, Unavailable, unavailable
from serving.memory import UsageMemory
from serving.menu import Menu, MenuLimits, build_menu
from serving.missing import told_what_is_missing
from serving.models import Models
from serving.past import doubt, fitting, known_share, refuse_foreign
from serving.policy import DEFAULT_POLICY, RiskPolicy, verdict
from serving.query import as_subgoal, resolve_query
from serving.request_filter import RULES as REQUEST_RULES
from serving.request_filter import request_filter
from serving.settings import SelectorSettings
from serving.slice import MenuEntry, Recovery, Slice, StageRecord
from serving.tiebreak import tiebreak

UNTRAINED = "none"

_LOG = logging.getLogger("toolcrib.selector")
_EXTENDED = 64
_LIMITS = ("max_tools", "token_budget")


class Versions(NamedTuple):
    """What a selector decides by, each as a hash of its content; `settings` as their JSON."""

    catalog: str
    bundle: str
    policy: str
    settings: str
    showings: str = ""


class Selector:
    """Chooses menus from one catalog with one bundle. Threads may share it.

    `embeddings` may be shared with other selectors, whatever their bundle. What an `earlier` selector has loaded and
    made, of the same bundle and of cards that are the same, is shared with it; decisions are the same as without. A
    catalog that follows an earlier one is never refused as foreign: what was approved is to be served.
    """

    def __init__(
        self,
        bundle: Bundle | None,
        catalog: Catalog,
        policy: RiskPolicy = DEFAULT_POLICY,
        settings: SelectorSettings | None = None,
        embeddings: EmbeddingCache | None = None,
        earlier: Selector | None = None,
    ) -> None:
        self.bundle, self.catalog, self.policy = bundle, catalog, policy
        self.settings = settings or SelectorSettings()
        bundle_version = bundle.version if bundle is not None else UNTRAINED
        self.versions = Versions(catalog.version, bundle_version, policy.version, self.settings.model_dump_json())
        self._embeddings = embeddings
        same = earlier is not None and (earlier.versions.bundle, earlier.settings) == (bundle_version, self.settings)
        self.models: Models = earlier.models if earlier is not None and same else Models(bundle, self.settings)
        self.encoder = self.models.encoder
        self.index: Index = build_index(
            catalog, bundle, self.encoder, self.models.weights, earlier.index if earlier is not None else None
        )
        self._bars = bars_of(bundle, self.settings)
        self.down = unavailable(())
        self._spent = np.zeros(len(catalog), np.int64)
        self._seen_days = _days([card.first_seen for card in catalog.cards])
        self._lately = Lately()
        # of functions and not of methods: a selector that has been replaced is let go of at once, with all its arrays
        self._bundled = lru_cache(maxsize=64)(partial(_memory_of, bundle, self.index))
        self._extended: Lru[tuple[str, str], UsageMemory] = Lru(_EXTENDED)
        self._filtered = lru_cache(maxsize=64)(partial(_filter_record, catalog.ids))
        self._tokens = self._token_costs(earlier)
        self._core = [row for row, card in enumerate(catalog.cards) if card.core]
        self._doubt = doubt(bundle.usage, catalog) if bundle is not None else ""
        if bundle is not None and not self.settings.allow_foreign_catalog and not same:
            refuse_foreign(bundle, catalog)
        if self._doubt:
            share = known_share(bundle.usage, catalog) if bundle is not None else 1.0
            _LOG.warning("%s (%.0f%%)", self._doubt, 100 * share)

    @classmethod
    def load(
        cls,
        bundle: Path | None,
        catalog: Catalog,
        *,
        policy: RiskPolicy | None = None,
        settings: SelectorSettings | None = None,
        embeddings: EmbeddingCache | None = None,
    ) -> Selector:
        """Load a bundle folder for `catalog`; None = no trained model, ranking by BM25 alone.

        Raises BundleError for a bundle that must not be served, InputError for an empty catalog and for a catalog that
        shares no tool with the bundle's past.
        """
        found = load_bundle(bundle) if bundle is not None else None
        return cls(found, catalog, policy or DEFAULT_POLICY, settings, embeddings)

    def with_policy(self, policy: RiskPolicy) -> Selector:
        """A selector that differs in its policy alone and shares all that was loaded; this one stays as it is."""
        other = copy.copy(self)
        other.policy, other.versions = policy, self.versions._replace(policy=policy.version)
        return other

    def with_showings(self, showings: Showings) -> Selector:
        """A selector that differs in what budgets of exploration have been spent and shares all that was loaded."""
        other = copy.copy(self)
        other._spent = np.array([showings.by_tool.get(tool, 0) for tool in self.catalog.ids], np.int64)
        other.versions = self.versions._replace(showings=showings.version)
        return other

    def with_lately(self, lately: Lately) -> Selector:
        """A selector that differs in what happened since the bundle was trained and shares all that was loaded."""
        other = copy.copy(self)
        other._lately = lately
        return other

    def memory(self, tenant: str) -> UsageMemory | None:
        """The past as one tenant sees it, that of the bundle and what happened since."""
        bundled, version = self._bundled(tenant), self._lately.version(tenant)
        if bundled is None or not version:
            return bundled
        found = self._extended.get((tenant, version))
        if found is None:
            row = self.catalog.row
            seen = [(outcome, vector) for outcome, vector in self._lately.of(tenant) if outcome.tool_id in row]
            found = bundled
            if seen:
                found = bundled.extended(
                    np.stack([vector for _, vector in seen]),
                    np.array([row[outcome.tool_id] for outcome, _ in seen]),
                    np.array([outcome.won for outcome, _ in seen]),
                )
            self._extended.put((tenant, version), found, 1)
        return found

    def explore_rate(self, tenant: str) -> float:
        """The share of a tenant's requests that may try a tool."""
        return self.settings.explore_rates.get(tenant, self.settings.explore_rate)

    @property
    def unavailable(self) -> frozenset[str]:
        """The tools that are down."""
        return self.down.ids

    def set_unavailable(self, tool_ids: Iterable[str]) -> None:
        """Tools that are down: masked from the next request on. Replaces the set that was."""
        self.down = unavailable(tool_ids)

    def caller_key(self, caller: Caller) -> str:
        """Names all that a decision takes from who asks, from which tools are down at this moment, and from what was
        served lately."""
        return _caller_key(caller, self.down, self._lately)

    def select(
        self,
        subgoal: Subgoal | str,
        caller: Caller | None = None,
        *,
        request_id: str = "",
        max_tools: int | None = None,
        token_budget: int | None = None,
    ) -> Slice:
        """Decide which tools to show for one subgoal.

        `max_tools` and `token_budget` narrow the limits of the settings, and never widen them. The same versions,
        arguments and `request_id` give the same slice; without a request id, one is drawn. Raises InputError for a goal
        that is empty or too long and for a limit that is none.
        """
        limits = self.limits(max_tools, token_budget)
        down = self.down  # one moment for all
        judged = told_what_is_missing(self, self.judge(subgoal, caller, down=down), down)
        return self.show(judged, limits, request_id or uuid.uuid4().hex)

    def judge(
        self,
        subgoal: Subgoal | str,
        caller: Caller | None = None,
        *,
        down: Unavailable | None = None,
        without: Mapping[str, str] | None = None,
        candidates: int | None = None,
    ) -> Judged:
        """The first part of a decision: who may be shown for one subgoal, best first, and whether anything fits.

        `down`, for the parts of a decision that are about one moment. `without`: tools to leave out besides, each with
        the reason for the record. `candidates`: how many, if not as many as the settings say. Raises InputError for a
        goal that is empty or too long.
        """
        goal, who = as_subgoal(subgoal), caller or Caller()
        run, down = Run(), down or self.down  # read once: a decision is about one moment

        with run.stage("query"):
            query = resolve_query(goal, who.recent)
        with run.stage("mask"):
            mask = self.index.mask.apply(who, down.ids)
            run.record.append(mask.record)
        with run.stage("filter"):
            wanted = request_filter(self.index.risk, goal)
            allowed = self._without(mask, without, run) if without else mask.allowed
            permitted = allowed & wanted.keep
            run.record.append(self._filtered(mask, wanted.rule.tobytes()))
        with run.stage("encode"):
            encoded = self.models.encode(query, self._embeddings, run)
        with run.stage("retrieve"):
            memory = self.memory(who.tenant)
            vector = encoded.vectors[0] if encoded is not None else None
            found = evidence(query, vector, self.index, memory, allowed, tenant=who.tenant)
            if self._doubt and vector is not None:
                run.degrade("retrieve", self._doubt, "standing")
            rows, fused = gather(found, candidates or self.settings.candidates, np.flatnonzero(permitted))
            run.note("retrieve", len(rows), scores=named(self.catalog.ids, rows, fused))
        with run.stage("rerank"):
            before = same_domain(self.index, rows, self._last_tool(who, mask.allowed))
            seen = signals(found, rows, same_domain=before)
            seen = self.models.rerank(query, encoded, seen, rows, self.index, run)
        with run.stage("relevance"):
            rows, relevant, stance = self.models.judge(
                query, found, rows, seen, self.catalog.ids, run, doubtful=bool(self._doubt)
            )
            needed = needed_of(self._bars, self.settings.menu_alpha, found, rows, relevant, len(self.catalog), run)
        with run.stage("tiebreak"):
            order = self._order(rows, relevant)
        return Judged(
            goal=goal,
            query=query,
            who=who,
            caller_key=_caller_key(who, down, self._lately),
            rows=rows[order],
            relevant=relevant[order],
            stance=stance,
            allowed=allowed,
            permitted=permitted,
            run=run,
            needed=needed,
        )

    def show(self, judged: Judged, limits: MenuLimits, request_id: str, recovery: Recovery | None = None) -> Slice:
        """The second part of a decision: the menu, with a verdict on each of its tools."""
        run = judged.run
        with run.stage("menu"):
            menu = self.menu([judged], limits, request_id, run)
        with run.stage("policy"):
            entries = tuple(self.with_verdict(entry, judged) for entry in menu.entries)
        return Slice(
            request_id=request_id,
            catalog_version=self.versions.catalog,
            bundle_version=self.versions.bundle,
            policy_version=self.versions.policy,
            caller_key=judged.caller_key,
            subgoal=judged.goal,
            query=judged.query,
            menu=entries,
            ranking=self.ranking(judged),
            abstention=judged.stance,
            degradations=tuple(run.degradations),
            record=tuple(run.record),
            recovery=recovery,
            timings_ms=run.timings,
        ).sealed()

    def menu(self, judged: Sequence[Judged], limits: MenuLimits, request_id: str, run: Run) -> Menu:
        """One menu for one subgoal or several of one caller, whose rankings give their best in turn.

        Entries have no verdicts yet; their relevance is the best over the subgoals, NaN without a trained head.
        """
        catalog, who, allowed = self.index.catalog, judged[0].who, judged[0].allowed
        standing = [one for one in judged if one.stands]
        ranked = merged(standing, len(catalog))
        best = np.full(len(catalog), np.nan)
        for one in standing:
            best[one.rows] = np.fmax(best[one.rows], one.relevant)
        needed = needed_by_any(standing)
        menu = build_menu(
            catalog.ids,
            self._tokens,
            allowed,
            core=self._core,
            used=[catalog.row[tool] for tool in who.used_tools if tool in catalog.row],
            ranked=ranked.tolist(),
            relevance=best[ranked].tolist(),
            limits=limits,
            exploration=self._exploration(standing, best, request_id) if standing else None,
            ahead=max(1, len({int(one.rows[0]) for one in standing if len(one.rows)})),
            needed=needed,
        )
        left_out = dict(menu.left_out)
        if needed is not None:
            short = [t for t, why in left_out.items() if why in _LIMITS and needed[catalog.row[t]]]
            if short:
                run.degrade(
                    "menu", f"{len(short)} of the tools that the guarantee needs do not fit the menu", "standing"
                )
        for tool_id, limit in menu.left_out.items():
            if catalog[tool_id].core:
                run.degrade("menu", f"core tool '{tool_id}' does not fit the menu ({limit})", "standing")
        if menu.slot is not None:
            tried = zip(menu.slot.tried.tolist(), menu.slot.chance.tolist(), strict=True)
            run.note("explore", len(menu.slot.tried), scores={catalog.ids[row]: chance for row, chance in tried})
        if not standing:
            left_out = {catalog.ids[row]: "abstained" for one in judged for row in one.rows.tolist()}
        run.note("menu", len(menu.entries), left_out)
        return menu

    def with_verdict(self, entry: MenuEntry, judged: Judged) -> MenuEntry:
        """The entry with what the risk policy says of a call of it for this subgoal."""
        what, rule = verdict(self.policy, self.catalog[entry.tool_id], judged.who, judged.goal)
        known = None if entry.relevance is not None and np.isnan(entry.relevance) else entry.relevance
        return entry.model_copy(update={"verdict": what, "rule": rule, "relevance": known})

    def limits(self, max_tools: int | None = None, token_budget: int | None = None) -> MenuLimits:
        """The limits of a menu: those of the settings, narrowed by what a request gives. InputError for a bad one."""
        asked = MenuLimits(
            self.settings.token_budget if token_budget is None else token_budget,
            self.settings.max_tools if max_tools is None else max_tools,
        )
        return MenuLimits(
            min(asked.token_budget, self.settings.token_budget), min(asked.max_tools, self.settings.max_tools)
        )

    def ranking(self, judged: Judged) -> tuple[str, ...]:
        """The ids of the candidates, best first."""
        return tuple(self.index.catalog.ids[row] for row in judged.rows.tolist())

    def vector(self, query: str) -> NDArray[np.float32] | None:
        """The vector by which a query was decided, where it is still at hand; nothing is encoded for it."""
        key = self.models.embedding_key(query)
        found = self._embeddings.kept(key) if self._embeddings is not None and key is not None else None
        return None if found is None else found.vectors[0]

    def embed(self, query: str) -> NDArray[np.float32] | None:
        """The unit vector (d,) of a query as decisions see it; None without an encoder, or where it fails."""
        encoded = self.models.encode(query, self._embeddings, Run())
        return None if encoded is None else encoded.vectors[0]

    def token_cost(self, tool_id: str) -> int:
        """Tokens that a tool takes on the menu."""
        return int(self._tokens[self.catalog.row[tool_id]])

    # The stages

    def _without(self, mask: MaskResult, left_out: Mapping[str, str], run: Run) -> NDArray[np.bool_]:
        """What the mask let through but for some tools; the record names those of them that it did let through."""
        allowed = mask.allowed.copy()
        gone = {tool: why for tool, why in left_out.items() if tool in self.catalog and allowed[self.catalog.row[tool]]}
        allowed[[self.catalog.row[tool] for tool in gone]] = False
        run.note("left_out", int(allowed.sum()), gone)
        return allowed

    def _last_tool(self, who: Caller, allowed: NDArray[np.bool_]) -> str | None:
        """The tool used just before; one that the caller may not see has no server to be near to."""
        last = next(iter((who.recent.tools or who.used_tools)[-1:]), None)
        return last if last is not None and last in self.catalog and allowed[self.catalog.row[last]] else None

    def _order(self, rows: NDArray[np.int64], relevant: NDArray[np.float64]) -> NDArray[np.int64]:
        if np.isnan(relevant).any():
            return np.arange(len(rows))
        return tiebreak(relevant, self.index.cost[rows], self.index.p50[rows], rows, self.settings.margin)

    def _exploration(self, standing: Sequence[Judged], best: NDArray[np.float64], request_id: str) -> Exploration:
        """What these subgoals may try; `best` (n,) is the relevance of their candidates."""
        settings, who, n = self.settings, standing[0].who, len(self.catalog)
        memory = self.memory(who.tenant)
        observed, failed = (memory.observations, memory.failed_calls) if memory is not None else np.zeros((2, n), int)
        candidates = np.zeros(n, np.bool_)
        for one in standing:
            candidates[one.rows] = True
        eligible = eligible_tools(
            candidates & (self._spent < settings.explore_showings),
            self.index.risk,
            observed - failed,
            failed,
            width=settings.explore_width,
            explore_writes=settings.explore_writes,
        )
        eligible &= new_enough(self._seen_days, standing[0].allowed, settings.explore_days)
        return Exploration(request_id, self.explore_rate(who.tenant), eligible, best, observed)

    # What is made once

    def _token_costs(self, earlier: Selector | None) -> NDArray[np.int64]:
        """Tokens that each tool takes on the menu; those of cards that are the same are known."""
        counter = self.encoder.count if self.encoder is not None else approximate_tokens
        same = earlier is not None and earlier._tokenizer() == self._tokenizer()
        kept = self.catalog.rows_in(earlier.catalog) if earlier is not None and same else [-1] * len(self.catalog)
        costs = [
            int(earlier._tokens[row]) if earlier is not None and row >= 0 else token_count(card, "selection", counter)
            for row, card in zip(kept, self.catalog.cards, strict=True)
        ]
        return np.array(costs, np.int64)

    def _tokenizer(self) -> str:
        """The hash of the tokenizer that counts."""
        return self.bundle.manifest.files[TOKENIZER] if self.bundle is not None else ""


def _filter_record(ids: tuple[str, ...], mask: MaskResult, rule: bytes) -> StageRecord:
    """What the request filter dropped of that which the mask let through; `rule` (n,) int8, as bytes."""
    dropped_by = np.frombuffer(rule, np.int8)
    gone = mask.allowed & (dropped_by >= 0)
    dropped = {ids[row]: REQUEST_RULES[dropped_by[row]] for row in np.flatnonzero(gone).tolist()}
    return StageRecord(stage="filter", kept=int((mask.allowed & ~gone).sum()), dropped=dropped)


def _memory_of(bundle: Bundle | None, index: Index, tenant: str) -> UsageMemory | None:
    if bundle is None or index.vectors is None:
        return None
    return UsageMemory(fitting(bundle.usage, index.catalog), index.vectors, index.catalog.row, tenant, index.domain)


def _days(moments: Sequence[datetime | None]) -> NDArray[np.float64]:
    """Moments as days since the epoch, NaN for none."""
    return np.array([np.nan if moment is None else moment.timestamp() / 86_400 for moment in moments])


def _caller_key(caller: Caller, down: Unavailable, lately: Lately) -> str:
    version = lately.version(caller.tenant)
    return content_hash([caller.model_dump_json(), down.key, *([version] if version else [])])[:16]
