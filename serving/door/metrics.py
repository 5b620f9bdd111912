"""Prometheus metrics of the service. No label ever holds a tool, a principal or a tenant.

| metric | what |
|---|---|
| `toolcrib_http_requests_total{route,status}` | answers |
| `toolcrib_http_turned_away_total` | requests refused for load at the door, before they were looked at |
| `toolcrib_http_seconds{route}` | time to answer |
| `toolcrib_stage_seconds{stage}` | time of each stage of a decision that was computed |
| `toolcrib_decisions_total{cached}` | decisions |
| `toolcrib_abstentions_total{outcome}` | decisions after which nothing fitted, by what to do instead |
| `toolcrib_degradations_total{stage}` | stages that did not run as configured |
| `toolcrib_rerank_skipped_total{reason}` | rerankings that ended early or failed |
| `toolcrib_unrecorded_total` | decisions that were answered and could not be kept |
| `toolcrib_verdicts_total{verdict}` | checks of calls |
| `toolcrib_confirmations_total{decision}` | what people decided |
| `toolcrib_outcomes_total{outcome,error_class}` | reported outcomes |
| `toolcrib_swaps_total{what,accepted}` | new bundles, catalogs and policies |
| `toolcrib_spans_total{fate}` | spans that agents sent: accepted (repeated ones too), rejected |
| `toolcrib_spans_waiting` | spans that no trace was made of yet, when it was last looked |
| `toolcrib_span_traces_total{fate}` | traces of them: made, failed |
| `toolcrib_span_calls_total` | lines of the trace store that they made |
| `toolcrib_spans_unusable_total{reason}` | what made none, by the import's reasons |
| `toolcrib_slice_cache_hit_ratio`, `toolcrib_embedding_cache_hit_ratio` | hits / lookups since the start |
| `toolcrib_pool_depth`, `toolcrib_pool_shed` | decisions waiting or running; requests refused for load so far |
| `toolcrib_policy_refused` | changes of the policy file that could not be used, since the start |
| `toolcrib_store_queue_depth`, `toolcrib_store_degraded` | records not yet kept; 1 while the spool stands in |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from data.traces import ErrorClass, Outcome
from serving.slice import Slice

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class Metrics:
    """The metrics of one application, in a registry of their own: two applications in a process do not mix."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = self._counter("http_requests", "Answers.", "route", "status")
        self._turned_away = self._counter("http_turned_away", "Requests refused at the door for load.")
        self._seconds = self._histogram("http_seconds", "Time to answer.", "route")
        self._stages = self._histogram("stage_seconds", "Time of each stage of a computed decision.", "stage")
        self._decisions = self._counter("decisions", "Decisions.", "cached")
        self._abstentions = self._counter("abstentions", "Decisions after which nothing fitted.", "outcome")
        self._degradations = self._counter("degradations", "Stages that did not run as configured.", "stage")
        self._skipped = self._counter("rerank_skipped", "Rerankings that ended early or failed.", "reason")
        self._unrecorded = self._counter("unrecorded", "Decisions answered and not kept.")
        self._verdicts = self._counter("verdicts", "Checks of calls.", "verdict")
        self._confirmations = self._counter("confirmations", "What people decided.", "decision")
        self._outcomes = self._counter("outcomes", "Reported outcomes.", "outcome", "error_class")
        self._spans = self._counter("spans", "Spans that agents sent.", "fate")
        self._span_traces = self._counter("span_traces", "Traces of streamed spans.", "fate")
        self._span_calls = self._counter("span_calls", "Lines of the trace store that streamed spans made.")
        self._unusable = self._counter("spans_unusable", "What streamed spans made nothing of.", "reason")
        self._swaps = self._counter("swaps", "New bundles, catalogs and policies.", "what", "accepted")

    def gauge(self, name: str, what: str, read: Callable[[], float]) -> None:
        """A figure that is read when the metrics are."""
        Gauge(f"toolcrib_{name}", what, registry=self.registry).set_function(read)

    def exposition(self) -> bytes:
        """All metrics in Prometheus' text form."""
        return generate_latest(self.registry)

    def turned_away(self) -> None:
        """One request refused at the door, before it was looked at."""
        self._turned_away.inc()

    def answered(self, route: str, status: int, seconds: float) -> None:
        """One answer of the HTTP door."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    # What the intake of spans tells

    def spans(self, *, accepted: int, rejected: int) -> None:
        """One request with spans."""
        self._spans.labels("accepted").inc(accepted)
        self._spans.labels("rejected").inc(rejected)

    def trace_made(self, calls: int, unusable: Mapping[str, int]) -> None:
        """One trace was made; `unusable` counts by reason what made no line."""
        self._span_traces.labels("made").inc()
        self._span_calls.inc(calls)
        for reason, count in unusable.items():
            self._unusable.labels(reason).inc(count)

    def trace_failed(self) -> None:
        """One trace could not be made."""
        self._span_traces.labels("failed").inc()

    # What the service tells (serving.service.observer.Observer)

    def decided(self, found: Slice, *, cached: bool, recorded: bool) -> None:
        self._decisions.labels(str(cached).lower()).inc()
        if not recorded:
            self._unrecorded.inc()
        if found.abstention.outcome != "menu":
            self._abstentions.labels(found.abstention.outcome).inc()
        for degradation in found.degradations:
            self._degradations.labels(degradation.stage).inc()
            if degradation.stage == "rerank":
                self._skipped.labels(degradation.kind).inc()
        if not cached:
            for stage, milliseconds in found.timings_ms.items():
                self._stages.labels(stage).observe(milliseconds / 1000)

    def checked(self, verdict: str, rule: str) -> None:
        self._verdicts.labels(verdict).inc()

    def confirmed(self, decision: str) -> None:
        self._confirmations.labels(decision).inc()

    def reported(self, outcome: Outcome, error_class: ErrorClass) -> None:
        self._outcomes.labels(outcome, error_class).inc()

    def swapped(self, what: str, *, accepted: bool) -> None:
        self._swaps.labels(what, str(accepted).lower()).inc()

    def _counter(self, name: str, what: str, *labels: str) -> Counter:
        return Counter(f"toolcrib_{name}", what, labels, registry=self.registry)

    def _histogram(self, name: str, what: str, *labels: str) -> Histogram:
        return Histogram(f"toolcrib_{name}", what, labels, registry=self.registry, buckets=_SECONDS)
