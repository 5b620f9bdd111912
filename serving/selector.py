"""The selector: bundle + catalog + caller -> slice. `Selector.select` reads as the order of the decision."""

from __future__ import annotations

import copy
import logging
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from data.card_text import card_text
from data.catalog import Catalog, content_hash
from data.context import MAX_GOAL_CHARACTERS, Caller, Subgoal
from data.errors import InputError
from data.words import split_identifier
from serving import conformal
from serving.bundle import ABSTENTION, RELEVANCE, TOKENIZER, Bundle, load_bundle
from serving.conformal import MENU_RISK, Bars, bars, read_menu_risk
from serving.cross_encoder import CrossEncoderReranker, corrected, reader_of
from serving.disclosure import approximate_tokens, token_count
from serving.embedding_cache import EmbeddingCache, EmbeddingKey
from serving.encoder import Encoded, Encoder
from serving.evidence import Evidence, evidence, gather, reading_order, same_domain, signals
from serving.explore import Exploration, Showings, eligible_tools, new_enough
from serving.features import Signals
from serving.index import Index, build_index, load_models
from serving.interaction import InteractionWeights
from serving.judged import Judged, Run, merged
from serving.lately import Lately
from serving.lru import Lru
from serving.mask import MaskResult
from serving.memory import UsageMemory
from serving.menu import Menu, MenuLimits, build_menu
from serving.missing import told_what_is_missing
from serving.past import doubt, fitting, known_share, refuse_foreign
from serving.policy import DEFAULT_POLICY, RiskPolicy, verdict
from serving.query import resolve_query
from serving.relevance import SHORT_GOAL_WORDS, Head, abstention, fit_features, relevance
from serving.request_filter import RULES as REQUEST_RULES
from serving.request_filter import request_filter
from serving.settings import SelectorSettings
from serving.slice import Abstention, MenuEntry, Recovery, Slice, StageRecord
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


class Unavailable(NamedTuple):
    """The tools that are down, and the hash of their names."""

    ids: frozenset[str]
    key: str


class Models(NamedTuple):
    """What is loaded from a bundle; None where it has none."""

    encoder: Encoder | None
    weights: InteractionWeights | None
    head: Head | None
    fit: Head | None
    cross: CrossEncoderReranker | None


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
        self._models: Models = earlier._models if earlier is not None and same else self._load(bundle)
        self.encoder, self._weights, self._head, self._fit, self._cross = self._models
        self.index: Index = build_index(
            catalog, bundle, self.encoder, self._weights, earlier.index if earlier is not None else None
        )
        self._bars = self._menu_bars()
        self.down = _unavailable(())
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
        self.down = _unavailable(tool_ids)

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
            encoded = self._encode(query, run)
        with run.stage("retrieve"):
            memory = self.memory(who.tenant)
            vector = encoded.vectors[0] if encoded is not None else None
            found = evidence(query, vector, self.index, memory, allowed, tenant=who.tenant)
            if self._doubt and vector is not None:
                run.degrade("retrieve", self._doubt, "standing")
            rows, fused = gather(found, candidates or self.settings.candidates, np.flatnonzero(permitted))
            run.note("retrieve", len(rows), scores=self._named(rows, fused))
        with run.stage("rerank"):
            seen = self._rerank(query, encoded, found, rows, self._last_tool(who, mask.allowed), run)
        with run.stage("relevance"):
            rows, relevant, stance = self._judge(query, found, rows, seen, run)
            needed = self._needed(found, rows, relevant, run)
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
        needed = self._needed_by_any(standing)
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
        if self._embeddings is None or self.bundle is None:
            return None
        found = self._embeddings.kept(self._embedding_key(query))
        return None if found is None else found.vectors[0]

    def embed(self, query: str) -> NDArray[np.float32] | None:
        """The unit vector (d,) of a query as decisions see it; None without an encoder, or where it fails."""
        encoded = self._encode(query, Run())
        return None if encoded is None else encoded.vectors[0]

    def token_cost(self, tool_id: str) -> int:
        """Tokens that a tool takes on the menu."""
        return int(self._tokens[self.catalog.row[tool_id]])

    # The stages

    def _embedding_key(self, query: str) -> EmbeddingKey:
        assert self.bundle is not None
        limit, states = self.bundle.manifest.max_query_tokens, self._weights is not None
        return EmbeddingKey(query, self.versions.bundle, limit, states, self.settings.threads)

    def _without(self, mask: MaskResult, left_out: Mapping[str, str], run: Run) -> NDArray[np.bool_]:
        """What the mask let through but for some tools; the record names those of them that it did let through."""
        allowed = mask.allowed.copy()
        gone = {tool: why for tool, why in left_out.items() if tool in self.catalog and allowed[self.catalog.row[tool]]}
        allowed[[self.catalog.row[tool] for tool in gone]] = False
        run.note("left_out", int(allowed.sum()), gone)
        return allowed

    def _encode(self, query: str, run: Run) -> Encoded | None:
        if self.encoder is None or self.bundle is None:
            return None
        encoder, limit, states = self.encoder, self.bundle.manifest.max_query_tokens, self._weights is not None

        def encode() -> Encoded:
            encoded = encoder.encode([query], limit, states=states)
            if not np.isfinite(encoded.vectors).all():
                raise ValueError("its vector is not finite")
            return encoded

        try:
            return encode() if self._embeddings is None else self._embeddings.get(self._embedding_key(query), encode)
        except Exception as error:  # a model that fails must cost order, never the answer
            run.degrade("encode", f"the encoder failed ({error}); lexical search alone")
            return None

    def _rerank(
        self, query: str, encoded: Encoded | None, found: Evidence, rows: NDArray[np.int64], last: str | None, run: Run
    ) -> Signals:
        seen = signals(found, rows, same_domain=same_domain(self.index, rows, last))
        if encoded is None or not len(rows):
            return seen
        try:
            if self._weights is not None and self.index.tokens is not None and encoded.states is not None:
                scores = self._weights.scores(encoded.states[0], self.index.tokens, rows, seen.cosine)
                reranked = replace(seen, interaction=scores)
            elif self._cross is not None:
                scores = self._read_pairs(self._cross, query, rows, seen, run)
                reranked = replace(seen, cross=scores)
            else:
                return seen
            if not np.isfinite(scores).all():
                raise ValueError("a score is not finite")
            run.note("rerank", len(rows), scores=self._named(rows, scores))
            return reranked
        except Exception as error:  # a model that fails must cost order, never the answer
            run.degrade("rerank", f"the reranker failed ({error}); first-stage scores alone")
        return seen

    def _last_tool(self, who: Caller, allowed: NDArray[np.bool_]) -> str | None:
        """The tool used just before; one that the caller may not see has no server to be near to."""
        last = next(iter((who.recent.tools or who.used_tools)[-1:]), None)
        return last if last is not None and last in self.catalog and allowed[self.catalog.row[last]] else None

    def _read_pairs(
        self, cross: CrossEncoderReranker, query: str, rows: NDArray[np.int64], seen: Signals, run: Run
    ) -> NDArray[np.float32]:
        """The cosines, those of the first candidates corrected by the cross-encoder, as deep as the time allows."""
        assert self.bundle is not None
        read = reading_order(seen, self.bundle.manifest.rerank_depth)
        texts = [card_text(self.index.catalog.cards[row]) for row in rows[read]]
        deadline = time.perf_counter() + self.settings.rerank_budget_ms / 1000
        logits, reached = cross.scores(query, texts, deadline=deadline)
        if reached < len(read):
            run.degrade("rerank", f"the time budget ended after {reached} of {len(read)} candidates", "late")
        return corrected(seen.cosine, logits, read)

    def _judge(
        self, query: str, found: Evidence, rows: NDArray[np.int64], seen: Signals, run: Run
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], Abstention]:
        """The candidates, best first, with their relevance (NaN without a trained head), and whether anything fits."""
        if self._head is None or found.cosine is None:
            if self.bundle is not None:
                if self._head is None:
                    run.degrade("relevance", "the bundle has no relevance head; the fused order stands", "standing")
                else:
                    run.degrade("relevance", "no vectors for this query; the fused order stands")
            return rows, np.full(len(rows), np.nan), Abstention()
        try:
            relevant = relevance(self._head, seen)
            if not np.isfinite(relevant).all():
                raise ValueError("a relevance is not finite")
            stance = self._stance(query, found, seen, relevant)
        except Exception as error:  # a model that fails must cost order, never the answer
            run.degrade("relevance", f"the head failed ({error}); the fused order stands")
            return rows, np.full(len(rows), np.nan), Abstention()
        order = np.lexsort((rows, -relevant))
        run.note("relevance", len(rows), scores=self._named(rows[order], relevant[order]))
        return rows[order], relevant[order], stance

    def _stance(self, query: str, found: Evidence, seen: Signals, relevant: NDArray[np.float64]) -> Abstention:
        """Whether anything fits, by the abstention head where the bundle has one.

        A catalog without any past turns nobody away: the head has learned from a catalog that had one.
        """
        if self._fit is None or self.bundle is None or found.usage is None or found.usage.reach == 0.0:
            return Abstention()
        nothing = 0.0 if self._doubt else found.usage.nothing
        fit = float(self._fit.probabilities(fit_features(relevant, seen, nothing))[0])
        if not np.isfinite(fit):
            raise ValueError("whether anything fits is not finite")
        short = len(split_identifier(query)) <= SHORT_GOAL_WORDS
        named = bool((seen.exact > 0).any() or (short and (seen.name >= 1.0).any()))
        manifest = self.bundle.manifest
        return abstention(fit, query, manifest.missing_below, manifest.widen_below, named=named)

    def _needed(
        self, found: Evidence, rows: NDArray[np.int64], relevant: NDArray[np.float64], run: Run
    ) -> NDArray[np.bool_] | None:
        """Which tools (n,) a menu with the guarantee of the settings needs; `rows` are the candidates, best first."""
        alpha = self.settings.menu_alpha
        if alpha is None or not len(rows):
            return None
        if self._bars is None or found.usage is None or np.isnan(relevant).any():
            why = "the bundle does not know its risk" if self._bars is None else "there is no relevance to go by"
            run.degrade("menu", f"the menu has no guarantee: {why}", "standing")
            return None
        is_new = found.usage.count[rows] <= 0
        for kind, bar, there in (("warm", self._bars.warm, ~is_new), ("cold", self._bars.cold, is_new)):
            if bar is None and there.any():
                run.degrade("menu", f"no menu of {kind} tools misses as little as {alpha:g}", "standing")
        needed = np.zeros(len(self.catalog), np.bool_)
        needed[rows[conformal.needed(relevant, is_new, self._bars)]] = True
        return needed

    def _needed_by_any(self, judged: Sequence[Judged]) -> NDArray[np.bool_] | None:
        masks = [one.needed for one in judged if one.needed is not None]
        return np.logical_or.reduce(masks) if masks and len(masks) == len(judged) else None

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

    def _load(self, bundle: Bundle | None) -> Models:
        if bundle is None:
            return Models(None, None, None, None, None)
        head, fit = (Head(bundle.file(name)) if bundle.has(name) else None for name in (RELEVANCE, ABSTENTION))
        cross = reader_of(bundle, self.settings.threads) if bundle.manifest.reranker == "cross_encoder" else None
        encoder, weights = load_models(bundle, self.settings.threads)
        return Models(encoder, weights, head, fit, cross)

    def _menu_bars(self) -> Bars | None:
        if self.settings.menu_alpha is None or self.bundle is None or not self.bundle.has(MENU_RISK):
            return None
        return bars(read_menu_risk(self.bundle.file(MENU_RISK)), self.settings.menu_alpha)

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

    def _named(self, rows: NDArray[np.int64], scores: NDArray[np.floating]) -> dict[str, float]:
        ids = self.index.catalog.ids
        return {ids[row]: round(float(score), 6) for row, score in zip(rows.tolist(), scores.tolist(), strict=True)}


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


def as_subgoal(given: Subgoal | str) -> Subgoal:
    """A text as a subgoal of which nothing more is known. InputError for one that is too long or no proper text."""
    if isinstance(given, Subgoal):
        return given
    try:
        return Subgoal(goal=given)
    except ValueError as error:
        problem = "is too long" if len(given) > MAX_GOAL_CHARACTERS else "is no text that can be encoded"
        raise InputError(problem, field="goal", hint="give one step, not a transcript") from error


def _days(moments: Sequence[datetime | None]) -> NDArray[np.float64]:
    """Moments as days since the epoch, NaN for none."""
    return np.array([np.nan if moment is None else moment.timestamp() / 86_400 for moment in moments])


def _unavailable(tool_ids: Iterable[str]) -> Unavailable:
    ids = frozenset(tool_ids)
    return Unavailable(ids, content_hash(sorted(ids)))


def _caller_key(caller: Caller, down: Unavailable, lately: Lately) -> str:
    version = lately.version(caller.tenant)
    return content_hash([caller.model_dump_json(), down.key, *([version] if version else [])])[:16]
