"""History: whether a tool's past outcomes tell how its next call ends, in real logs.

    python -m benchmarks.history --data DIR --bundle BUNDLE

Every call whose outcome is known is predicted from the calls of all other tasks: by the rate of success of everything,
of the tool shrunk towards that, of the tool towards its server's, and of the tool at the nearest past subgoals towards
all of these. BUNDLE embeds the subgoals.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from data.card_text import query_text
from data.jsonl import load_traces
from serving.bundle import TOKENIZER, load_bundle
from serving.encoder import Encoder
from serving.memory import HISTORY_PRIOR, SHARPNESS
from training.metrics import auroc, bootstrap_interval

SETS = ("livemcpbench", "toolbench")
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Calls:
    """The calls whose outcome is known (n,): task, tool and server as numbers, success as 0.0 or 1.0, unit vectors."""

    task: NDArray[np.int64]
    tool: NDArray[np.int64]
    server: NDArray[np.int64]
    ok: Floats
    vectors: NDArray[np.float32]


def main() -> None:
    parser = argparse.ArgumentParser(description="Whether past outcomes tell how the next call ends.")
    parser.add_argument("--data", type=Path, required=True, help="the folder with the sets")
    parser.add_argument("--bundle", type=Path, required=True, help="its encoder embeds the subgoals")
    given = parser.parse_args()
    manifest = load_bundle(given.bundle).manifest
    encoder = Encoder(given.bundle / manifest.retriever_graph, given.bundle / TOKENIZER)
    print("| log | calls | succeeded | predicted by | log loss | less than the rate of everything [95%] | AUROC |")
    print("|---|---|---|---|---|---|---|")
    for name in SETS:
        calls = read(given.data / name / "traces.jsonl", encoder, manifest.max_query_tokens)
        plain = losses(calls, everything)
        for label, rate in RATES.items():
            found = losses(calls, rate)
            low, high = bootstrap_interval(plain - found, seed=0)
            said = np.array([rate(calls, i, _others(calls, i)) for i in range(len(calls.ok))])
            print(
                f"| {name} | {len(calls.ok)} | {calls.ok.mean():.2f} | {label} | {found.mean():.3f} "
                f"| {(plain - found).mean():+.3f} [{low:+.3f}, {high:+.3f}] | {auroc(said, calls.ok) or 0.5:.3f} |"
            )


def read(path: Path, encoder: Encoder, max_tokens: int) -> Calls:
    """The calls of a log whose outcome is known."""
    traces = [trace for trace in load_traces(path) if trace.tool_id and trace.outcome != "unknown"]
    tools = [str(trace.tool_id) for trace in traces]
    goals = [query_text(trace.goal or trace.request) for trace in traces]
    return Calls(
        task=np.unique([trace.request or trace.trace_id for trace in traces], return_inverse=True)[1],
        tool=np.unique(tools, return_inverse=True)[1],
        server=np.unique([tool.partition(".")[0] for tool in tools], return_inverse=True)[1],
        ok=np.array([float(trace.outcome == "success") for trace in traces]),
        vectors=encoder.encode(goals, max_tokens).vectors,
    )


def everything(calls: Calls, _: int, others: NDArray[np.bool_]) -> float:
    """The rate of all calls, shrunk towards a half."""
    return _rate(calls.ok[others].sum(), float(others.sum()), 0.5)


def of_tool(calls: Calls, i: int, others: NDArray[np.bool_]) -> float:
    """The tool's own rate, shrunk towards that of everything."""
    return _of(calls.tool, calls, i, others, everything(calls, i, others))


def of_server(calls: Calls, i: int, others: NDArray[np.bool_]) -> float:
    """The tool's own rate, shrunk towards its server's, which is towards that of everything."""
    return _of(calls.tool, calls, i, others, _of(calls.server, calls, i, others, everything(calls, i, others)))


def nearby(calls: Calls, i: int, others: NDArray[np.bool_]) -> float:
    """The tool's rate at subgoals like this one, shrunk towards its rate at all."""
    same = others & (calls.tool == calls.tool[i])
    near = np.exp(SHARPNESS * (calls.vectors[same] @ calls.vectors[i] - 1.0)).astype(np.float64)
    return _rate(float(near @ calls.ok[same]), float(near.sum()), of_server(calls, i, others))


RATES: dict[str, Callable[[Calls, int, NDArray[np.bool_]], float]] = {
    "everything": everything,
    "the tool": of_tool,
    "the tool, its server": of_server,
    "the tool nearby, the tool, its server: the head's": nearby,
}


def losses(calls: Calls, rate: Callable[[Calls, int, NDArray[np.bool_]], float]) -> Floats:
    """Log loss (n,) of each call, predicted from the calls of other tasks."""
    said = np.array([rate(calls, i, _others(calls, i)) for i in range(len(calls.ok))])
    loss: Floats = -np.log(np.where(calls.ok > 0.5, said, 1.0 - said))
    return loss


def _others(calls: Calls, i: int) -> NDArray[np.bool_]:
    different: NDArray[np.bool_] = calls.task != calls.task[i]
    return different


def _of(kind: NDArray[np.int64], calls: Calls, i: int, others: NDArray[np.bool_], towards: float) -> float:
    same = others & (kind == kind[i])
    return _rate(calls.ok[same].sum(), float(same.sum()), towards)


def _rate(successes: float, count: float, towards: float) -> float:
    return float((successes + HISTORY_PRIOR * towards) / (count + HISTORY_PRIOR))


if __name__ == "__main__":
    main()
