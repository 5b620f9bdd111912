"""Sessions of a simulated agent, turn by turn, made from tasks with written steps and from the habits in real traces.

- *plain*: the steps of one task after another, in a random order of tasks; no step is asked for twice.
- *workflow*: the same, and after each turn the agent does what the agents of the traces did as often: it calls for the
  same step again (a retry, a poll), returns to an earlier step of the session, or goes on to the next one.
- *routine*: a workflow that is run again and again: all sessions have the same tasks in the same order, and their own
  moves.

A step that is asked for again is asked for in the same words, those of the plan: where an agent words it anew each
time, no cache of decisions can know it.
"""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Move = Literal["new", "again", "back"]
MOVES: tuple[Move, ...] = ("new", "again", "back")
Kind = Literal["plain", "workflow", "routine"]
KINDS: tuple[Kind, ...] = ("plain", "workflow", "routine")


@dataclass(frozen=True)
class Step:
    """One step of a task in the words of its plan, and the tools that serve the task."""

    goal: str
    gold: frozenset[str]


@dataclass(frozen=True)
class Call:
    """What a real agent said and sent with a call, as text, and the characters of what came back."""

    said: str
    result_characters: int


@dataclass(frozen=True)
class Turn:
    """A step that is asked for, how the session came to it, and a real call to fill the conversation with."""

    step: Step
    move: Move
    call: Call


@dataclass(frozen=True)
class Material:
    """What sessions are made of. `moves`: how often agents made each move; `same_words`: of the calls of the same tool
    again, the share that were asked for in the same words."""

    tasks: tuple[tuple[Step, ...], ...]
    calls: tuple[Call, ...]
    moves: Mapping[Move, float]
    same_words: float


def load_material(folder: Path) -> Material:
    """Tasks and habits of a set in the plain form whose queries have `steps` and whose traces have calls."""
    tasks = [
        tuple(Step(text, frozenset(query["gold"])) for text in query["steps"])
        for query in _lines(folder / "queries.jsonl")
    ]
    traces = defaultdict[str, list[dict[str, Any]]](list)
    for line in _lines(folder / "traces.jsonl"):
        traces[line["trace_id"]].append(line)
    moves, worded = Counter[Move](), Counter[bool]()
    for trace in traces.values():
        for number in range(1, len(trace)):
            before, now = trace[number - 1], trace[number]
            if now["tool_id"] == before["tool_id"]:
                moves["again"] += 1
                worded[now["subgoal"] == before["subgoal"]] += 1
            else:
                known = {earlier["tool_id"] for earlier in trace[:number]}
                moves["back" if now["tool_id"] in known else "new"] += 1
    calls = [
        Call(line["subgoal"] + json.dumps(line["arguments"]), line["observation_chars"] or 0)
        for trace in traces.values()
        for line in trace
    ]
    return Material(
        tuple(tasks),
        tuple(calls),
        {move: moves[move] / moves.total() for move in MOVES},
        worded[True] / worded.total(),
    )


def session(material: Material, kind: Kind, turns: int, seed: str, *, workflow: str) -> list[Turn]:
    """One session. `seed` draws its moves, and its tasks too unless it is a routine: those `workflow` draws."""
    draw, tasks = random.Random(seed), material.tasks
    order = (random.Random(workflow) if kind == "routine" else draw).sample(range(len(tasks)), len(tasks))
    ahead = iter([step for number in order for step in tasks[number]])
    chances: Mapping[Move, float] = {"new": 1.0} if kind == "plain" else material.moves
    known, made = list[Step](), list[Turn]()
    while len(made) < turns:
        (move,) = draw.choices(list(chances), list(chances.values()))
        earlier = [step for step in known if step != made[-1].step] if made else []
        if not made or (move == "back" and not earlier):
            move = "new"
        step = next(ahead) if move == "new" else made[-1].step if move == "again" else draw.choice(earlier)
        if step not in known:
            known.append(step)
        made.append(Turn(step, move, draw.choice(material.calls)))
    return made


def moved(sessions: Sequence[Sequence[Turn]]) -> dict[Move, float]:
    """How often the sessions made each move, the first turns left out."""
    counts = Counter(turn.move for turns in sessions for turn in turns[1:])
    return {move: counts[move] / counts.total() for move in MOVES}


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
