"""What each mining rule contributes: one rule off, memory and head learned anew, measured on held-out requests.

    python -m benchmarks.rules --data DIR --base BUNDLE [--seeds 3] [PART...]

The encoder of BUNDLE stays as it is. livemcpbench: five folds over its tasks, the traces of the other tasks teach, and
the tasks measure; livemcpbench-calls: what the agents wanted before each call that succeeded measures instead.
toolbench: all its traces teach; the requests of stabletoolbench measure, but those that the traces ask, on the tools
of both. failures: on metatool, two fifths of the calls of a log fail, by each error class.
Gains are averaged over the seeds, intervals are over requests.
"""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

from benchmarks import sets
from benchmarks.log_quality import (
    Remembering,
    Taught,
    cell,
    compared,
    encoder_of,
    livemcpbench_calls,
    mined_from,
    taught,
)
from benchmarks.sets import Set
from data.card_text import query_text
from data.catalog import Catalog
from data.jsonl import load_catalog, load_queries, load_traces
from data.mining.goals import normal_goal
from data.mining.miner import Mined
from data.mining.options import MiningOptions
from data.traces import Trace
from serving.card_vectors import encode_cards
from training.recipe import Recipe

Row = dict[str, Any]


@dataclass(frozen=True)
class Off:
    """A change of the rules: options, what is read off a trace before mining, and rules whose examples are dropped."""

    options: Mapping[str, Any] = field(default_factory=dict)
    read: Callable[[Trace], Trace] = lambda trace: trace
    without: tuple[str, ...] = ()


def succeeded(trace: Trace) -> Trace:
    """As if nobody had looked whether the call worked."""
    return trace.model_copy(update={"outcome": "success", "error_class": "none"}) if trace.tool_id else trace


BOTH: Mapping[str, Off] = {
    "all rules": Off(),
    "outcomes not read: every call a success": Off(read=succeeded),
    "repeats not capped": Off({"repeat_cap": 100_000}),
    "shown, not chosen: off": Off(without=("shown_not_chosen",)),
    "failed, then another succeeded: off": Off(without=("failed_then_other_succeeded",)),
}
LIVEMCPBENCH: Mapping[str, Off] = {
    **BOTH,
    "verdicts on tasks not read": Off({"task_failed_weight": 1.0}),
    "calls of failed tasks not taken": Off({"task_failed_weight": 0.01}),
}
UNKNOWN = {
    f"unknown outcomes as positives of weight {weight}": Off({"unknown_weight": weight}) for weight in (0.2, 1.0)
}
SILENT = ("auth", "timeout", "unavailable", "rate_limited")
LOUD = ("validation", "tool_error", "wrong_tool")


def main() -> None:
    parser = argparse.ArgumentParser(description="Turn off one mining rule at a time.")
    parser.add_argument("parts", nargs="*", default=list(PARTS))
    parser.add_argument("--data", type=Path, required=True, help="the folder with the sets")
    parser.add_argument("--base", type=Path, required=True, help="the bundle whose encoder is used")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("runs/rules"))
    given = parser.parse_args()
    logging.getLogger("toolcrib").setLevel(logging.ERROR)
    given.out.mkdir(parents=True, exist_ok=True)
    encoder = encoder_of(given.base)
    for name in given.parts:
        report = PARTS[name](given, encoder)
        (given.out / f"{name}.json").write_text(json.dumps(report, indent=1))


def livemcpbench(given: argparse.Namespace, encoder: Remembering) -> Row:
    folds = [sets.livemcpbench(given.data, fold) for fold in range(sets.FOLDS)]
    return rules_off("livemcpbench", folds, LIVEMCPBENCH, given.seeds, encoder, _seen)


def livemcpbench_steps(given: argparse.Namespace, encoder: Remembering) -> Row:
    folds = [livemcpbench_calls(given.data, fold) for fold in range(sets.FOLDS)]
    return rules_off("livemcpbench, calls", folds, LIVEMCPBENCH, given.seeds, encoder, _seen)


def toolbench(given: argparse.Namespace, encoder: Remembering) -> Row:
    of, called = toolbench_set(given.data)
    lines = {**BOTH, **UNKNOWN, "an empty error field is a success": Off(read=_believing(given.data))}

    def groups(_: Taught) -> np.ndarray[Any, Any]:
        return np.array([bool(query.right & called) for query in of.queries], np.bool_)

    return rules_off("toolbench", [of], lines, given.seeds, encoder, groups)


def toolbench_set(data: Path) -> tuple[Set, set[str]]:
    """The traces of toolbench, the requests of stabletoolbench that are not among them, the tools of both; and the
    tools that the traces call, whatever came of it."""
    traces = tuple(load_traces(data / "toolbench" / "traces.jsonl"))
    asked = {normal_goal(text) for trace in traces for text in (trace.request, trace.goal)}
    cards = {
        card.tool_id: card
        for name in ("stabletoolbench", "toolbench")
        for card in load_catalog(data / name / "tools.jsonl")
    }
    queries = load_queries(data / "stabletoolbench" / "queries.jsonl")
    held_out = tuple(query for query in queries if query.gold and normal_goal(query.text) not in asked)
    return Set(Catalog(cards.values()), traces, held_out), {trace.tool_id for trace in traces if trace.tool_id}


def rules_off(
    name: str,
    folds: Sequence[Set],
    lines: Mapping[str, Off],
    seeds: int,
    encoder: Remembering,
    group: Callable[[Taught], Any],
) -> Row:
    """Line -> counts of what was mined, and nDCG@10 of memory alone and with the head: all requests and a group."""
    report: Row = {}
    first: dict[str, Any] = {}
    print(f"== {name}: nDCG@10 (difference to all rules), means of {seeds} seeds")
    print("| rules | positives | negatives | memory and head | of the group | memory alone, of the group | heads |")
    print("|---|---|---|---|---|---|---|")
    for line, off in lines.items():
        made = [_mined(of, off) for of in folds]
        runs = [
            [taught(of, mined, Recipe(seed=seed), encoder) for of, mined in zip(folds, made, strict=True)]
            for seed in range(seeds)
        ]
        gains = np.mean([np.concatenate([of.gains for of in run]) for run in runs], axis=0)
        memory = np.mean([np.concatenate([of.memory for of in run]) for run in runs], axis=0)
        first = first or {"gains": gains, "memory": memory, "group": np.concatenate([group(of) for of in runs[0]])}
        every = np.ones(len(gains), np.bool_)
        report[line] = {
            "positives": sum(mined.report.positives for mined in made) / len(made),
            "negatives": sum(_count(mined, 0.0) for mined in made) / len(made),
            "all": compared(gains, first["gains"], every),
            "group": compared(gains, first["gains"], first["group"]),
            "memory": compared(memory, first["memory"], first["group"]),
            "heads": sum(of.headed for run in runs for of in run) / sum(len(run) for run in runs),
        }
        of_line = report[line]
        print(
            f"| {line} | {of_line['positives']:.0f} | {of_line['negatives']:.0f} | {cell(of_line['all'])} | "
            f"{cell(of_line['group'])} | {cell(of_line['memory'])} | {of_line['heads']:.0%} |",
            flush=True,
        )
    print(f"{int(first['group'].sum())} of {len(first['group'])} requests are of the group\n")
    return report


def failures(given: argparse.Namespace, encoder: Remembering) -> Row:
    """A log in which two fifths of the calls fail, by error class: what becomes of the ranks of their tools."""
    of = sets.sample(sets.metatool(given.data), 800)
    of = replace(of, queries=tuple(sorted(of.queries, key=lambda query: sets.sha1(query.qid))[:800]))
    failing = [trace for trace in of.traces if trace.tool_id and sets.sha1(trace.trace_id) % 10 < 4]
    ids = {trace.trace_id for trace in failing}
    rest = [trace for trace in of.traces if trace.trace_id not in ids]
    rivals = _rivals(of.catalog, failing, encoder)
    others = [_step(trace, 1, rival, "none") for trace, rival in zip(failing, rivals, strict=True)]

    def failed(error: str) -> list[Trace]:
        return [_step(trace, 0, str(trace.tool_id), error) for trace in failing]

    groups: dict[str, dict[str, list[Trace]]] = {
        "nothing came of them": {"not logged": rest}
        | {f"failed by {error}": [*rest, *failed(error)] for error in (*SILENT, *LOUD)},
        "the nearest other tool then succeeded": {"only that logged": [*rest, *others]}
        | {f"failed by {error}": [*rest, *failed(error), *others] for error in (*SILENT, *LOUD)},
    }
    hit = {trace.tool_id for trace in failing}
    chosen = np.array([bool(query.right & hit) for query in of.queries if query.gold], np.bool_)
    report: Row = {}
    print(f"== failures: {len(failing)} of {len(of.traces)} calls, of {len(hit)} tools; means of {given.seeds} seeds")
    for group, logs in groups.items():
        print(f"\n{group}:\n\n| the calls | positives | hard negatives | rank of the right tool | nDCG@10 | same log |")
        print("|---|---|---|---|---|---|")
        first: list[Taught] = []
        for line, log in logs.items():
            mined = mined_from(replace(of, traces=tuple(log)))
            runs = [taught(of, mined, Recipe(seed=seed), encoder) for seed in range(given.seeds)]
            first = first or runs
            gains, against = (np.mean([run.gains for run in made], axis=0) for made in (runs, first))
            figures: dict[str, Any] = {
                "positives": mined.report.positives,
                "negatives": mined.report.examples.get("failed_then_other_succeeded", 0),
                "rank": float(np.mean([run.rank[chosen].mean() for run in runs])),
                "head": compared(gains, against, chosen),
                "same": runs[0].split == first[0].split,
            }
            report[f"{group}: {line}"] = figures
            print(
                f"| {line} | {figures['positives']} | {figures['negatives']} | {figures['rank']:.2f} | "
                f"{cell(figures['head'])} | {'yes' if figures['same'] else 'no'} |",
                flush=True,
            )
    return report


def _step(trace: Trace, step: int, tool: str, error: str) -> Trace:
    outcome = "success" if error == "none" else "failure"
    changes = {"step": step, "tool_id": tool, "outcome": outcome}
    return trace.model_copy(update={**changes, "error_class": error})


def _rivals(catalog: Catalog, again: Sequence[Trace], encoder: Remembering) -> list[str]:
    """The nearest other tool to each request."""
    cards = encode_cards(encoder, catalog.cards, 64).vectors
    goals = encoder.encode([query_text(trace.goal) for trace in again], 64).vectors
    order = np.argsort(-(goals @ cards.T), axis=1, kind="stable")
    return [
        next(catalog.ids[row] for row in rows.tolist() if catalog.ids[row] != trace.tool_id)
        for rows, trace in zip(order, again, strict=True)
    ]


def _mined(of: Set, off: Off) -> Mined:
    mined = mined_from(
        replace(of, traces=tuple(off.read(trace) for trace in of.traces)), MiningOptions.model_validate(off.options)
    )
    kept = pc.invert(pc.is_in(mined.examples["reason"], pc.cast(list(off.without) or [""], "string")))
    return replace(mined, examples=mined.examples.filter(kept))


def _count(mined: Mined, label: float) -> int:
    return int(pc.sum(pc.equal(mined.examples["label"], label)).as_py() or 0)


def _seen(of: Taught) -> Any:
    return of.seen


def _believing(data: Path) -> Callable[[Trace], Trace]:
    """Whatever came with an empty error field is a success, as an adapter takes it that looks no further."""
    lines = (data / "toolbench" / "traces.jsonl").read_text(encoding="utf-8").splitlines()
    claimed = {
        (row["trace_id"], row["step"]): str(row["ok_why"]).startswith(("error field empty", "error text", "empty resp"))
        for row in map(json.loads, lines)
    }
    return lambda trace: succeeded(trace) if claimed[trace.trace_id, trace.step] else trace


PARTS: Mapping[str, Callable[[argparse.Namespace, Any], Row]] = {
    "livemcpbench": livemcpbench,
    "livemcpbench-calls": livemcpbench_steps,
    "toolbench": toolbench,
    "failures": failures,
}

if __name__ == "__main__":
    main()
