"""Reports for a person on the screen: what mining made, how a bundle measures, what a promotion compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from toolcrib.screen import say, show_table

if TYPE_CHECKING:
    from data.mining.report import MiningReport
    from training.promotion import Promotion

_GROUPS = ("all", "warm", "cold")


def show_mining(report: MiningReport) -> None:
    """Per rule, what it found and what was kept; then the losses by reason and the totals."""
    rows = [(rule, f"{found:,}", f"{report.examples.get(rule, 0):,}") for rule, found in report.found.items()]
    show_table(
        f"{report.rows:,} calls in {report.decisions:,} decisions",
        ("rule", "found", "examples"),
        rows,
        right=("found", "examples"),
    )
    for title, counts in (("calls left out", report.rows_dropped), ("examples left out", report.dropped)):
        kept = {reason: count for reason, count in counts.items() if count}
        if kept:
            say(f"{title}: " + ", ".join(f"{reason} {count:,}" for reason, count in kept.items()))
    seen, tools = report.tools_with_positive, report.tools_with_positive + len(report.tools_without_positive)
    say(
        f"{report.positives:,} positives, {report.negatives:,} negatives, {report.preferences:,} preferences, "
        f"{report.no_tool:,} requests that no tool fits, the end of {report.history:,} calls; "
        f"{seen:,} of {tools:,} tools have a positive"
    )


def show_evaluation(report: Mapping[str, Any]) -> None:
    """nDCG@10 with its interval for each rung and group, recalls, then abstention, calibration, chain and latency."""
    rungs: Mapping[str, Any] = report["rungs"]
    groups = [g for g in _GROUPS if any(rows.get(g, {}).get("n") for rows in rungs.values())]
    first: Mapping[str, Any] = next(iter(rungs.values()), {})
    columns = [f"{group} (n = {first.get(group, {}).get('n', 0):,})" for group in groups]
    body = [
        (
            name,
            *(_with_interval(rows.get(g, {})) for g in groups),
            *(_figure(rows.get("all", {}).get(f"recall@{k}")) for k in (1, 5, 40)),
        )
        for name, rows in rungs.items()
    ]
    recalls = ("recall@1", "recall@5", "recall@40")
    show_table(
        "nDCG@10 [95% interval], and recall over all", ("rung", *columns, *recalls), body, right=(*columns, *recalls)
    )
    gains = {rung: row["all"] for rung, row in (report.get("gains") or {}).items() if "all" in row}
    if gains:
        say("selector against " + ", ".join(f"{rung} {_gain(row)}" for rung, row in gains.items()))
    for part in ("abstention", "calibration", "chain", "menu"):
        figures = {
            name: value for name, value in (report.get(part) or {}).items() if not isinstance(value, (list, dict))
        }
        if figures:
            say(f"{part}: " + ", ".join(f"{name} {_figure(value)}" for name, value in figures.items()))
    if "counterfactual" in report:
        _show_counterfactual(report["counterfactual"])
    latency: Mapping[str, Mapping[str, float]] = report.get("latency_ms") or {}
    if latency:
        times = [(stage, f"{row['p50']:.2f}", f"{row['p95']:.2f}") for stage, row in latency.items()]
        show_table("Latency, ms", ("stage", "p50", "p95"), times, right=("p50", "p95"))


def show_promotion(decision: Promotion) -> None:
    """Each figure on both sides with its verdict, what speaks against it a line each, then the decision."""
    if decision.compared:
        rows = [
            (one.figure, str(one.n), _number(one.ours), _number(one.theirs), one.change, one.rule, one.verdict)
            for one in decision.compared
        ]
        columns = ("figure", "n", "challenger", "champion", "difference [95%]", "allowed", "verdict")
        show_table("Challenger and champion, on the same queries", columns, rows, right=columns[1:4])
    for note in decision.notes:
        say(f"note: {note}", style="yellow")
    if len(decision.against) > 1 and not decision.forced:
        say(decision.reason.partition(": ")[0] + ":", style="bold")
        for sentence in decision.against:
            say(f"- {sentence}")
    else:
        say(decision.reason, style="bold")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _show_counterfactual(found: Mapping[str, Any]) -> None:
    """The estimates with their intervals, then whether to believe them and why not."""
    estimates: Mapping[str, Mapping[str, Any]] = found["estimates"]
    if estimates:
        rows = [
            (name.replace("_", " "), *(_estimate(row, key) for key in ("value", "gain")))
            for name, row in [("logged", found["logged"]), *estimates.items()]
        ]
        columns = ("success", "gain on the log")
        show_table("Success, had it served these decisions [95% interval]", ("estimate", *columns), rows, right=columns)
    for reason in found["because"]:
        say(f"do not believe the estimates: {reason}" if estimates else f"not estimated: {reason}")


def _estimate(row: Mapping[str, Any], key: str) -> str:
    value, interval = row.get(key), row.get("interval" if key == "value" else "gain_interval")
    if value is None:
        return "-"
    sign = "+" if key == "gain" else ""
    return f"{value:{sign}.3f}" + (f" [{interval[0]:{sign}.3f}, {interval[1]:{sign}.3f}]" if interval else "")


def _with_interval(row: Mapping[str, Any]) -> str:
    if not row.get("n"):
        return "-"
    interval = row.get("ndcg@10_interval")
    return f"{row['ndcg@10']:.3f}" + (f" [{interval[0]:.3f}, {interval[1]:.3f}]" if interval else "")


def _gain(row: Mapping[str, Any]) -> str:
    low, high = row["interval"]
    return f"{row['gain']:+.3f} [{low:+.3f}, {high:+.3f}]"


def _figure(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else "-" if value is None else str(value)
