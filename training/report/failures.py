"""Failures: each request that went wrong, in one of seven classes named for where its right tool was lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from training.answers import Answer
from training.metrics import ranked_gains

EXAMPLES = 5
TEXT_CHARACTERS = 300
_INSTEAD = 3

Kind = Literal["split", "withheld", "not_retrieved", "turned_away", "below_menu", "outranked", "not_turned_away"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""In the order of the decision; the last one alone is about requests that nothing fits.

`split`: one step asks for several tools, and the menu has some of them. `withheld`: a rule on the caller or on the
request dropped the right tool. `not_retrieved`: it is not among the candidates. `turned_away`: the request was told
that nothing fits. `below_menu`: a candidate that the menu had no place or tokens for. `outranked`: on the menu, below
a wrong tool. `not_turned_away`: nothing fits, and tools were shown all the same.
"""


@dataclass(frozen=True)
class Failure:
    """One request that went wrong. `badness` orders failures of one kind, the worst largest; `note` says the figure."""

    kind: Kind
    answer: Answer
    badness: float
    note: str


def failure_of(answer: Answer) -> Failure | None:
    """What went wrong with an answer, None where every right tool is shown and one of them is first.

    A request with several right tools counts by the first of them that the menu lacks.
    """
    query = answer.query
    if not query.gold:
        return _shown_for_nothing(answer)
    lost = _lost(answer.shown, answer)
    if (rule := _rule_against(lost, answer)) is not None:
        return Failure("withheld", answer, 0.0, f"by the rule '{rule}'")
    if answer.turned_away:
        fit = answer.slice.abstention.fit or 0.0
        return Failure("turned_away", answer, 1.0 - fit, f"chance that a tool fits: {fit:.3f}")
    if not lost:
        return _outranked(answer)
    if len(lost) < len(set(query.gold)):
        found = len(set(query.gold)) - len(lost)
        return Failure("split", answer, len(lost) / found, f"{found} of {found + len(lost)} right tools shown")
    return _gone(answer)


def failures(answers: Sequence[Answer]) -> dict[str, dict[str, Any]]:
    """Kind -> `count`, `of` (requests that could fail so), `cold` (of tools without a past), and the worst `examples`.

    An example holds the query's id, text and right tools, what was shown first instead with its relevance, and a note.
    """
    found = [failure for answer in answers if (failure := failure_of(answer)) is not None]
    answered = sum(bool(answer.query.gold) for answer in answers)
    table: dict[str, dict[str, Any]] = {}
    for kind in KINDS:
        of = sorted((one for one in found if one.kind == kind), key=lambda one: -one.badness)
        table[kind] = {
            "count": len(of),
            "of": len(answers) - answered if kind == "not_turned_away" else answered,
            "cold": sum(not one.answer.warm for one in of) if kind != "not_turned_away" else 0,
            "examples": [_example(one) for one in of[:EXAMPLES]],
        }
    return table


def _shown_for_nothing(answer: Answer) -> Failure | None:
    if answer.turned_away or not answer.shown:
        return None
    fit = answer.slice.abstention.fit
    if fit is None:
        return Failure("not_turned_away", answer, 0.0, "this bundle turns nobody away")
    return Failure("not_turned_away", answer, fit, f"chance that a tool fits: {fit:.3f}")


def _outranked(answer: Answer) -> Failure | None:
    first = answer.shown[0]
    if first in answer.good:
        return None
    place = next(place for place, tool in enumerate(answer.shown, 1) if tool in answer.good)
    right = answer.shown[place - 1]
    if first not in answer.relevance or right not in answer.relevance:
        return Failure("outranked", answer, float(place), f"in place {place}")
    ahead = answer.relevance[first] - answer.relevance[right]
    return Failure("outranked", answer, ahead, f"in place {place}, relevance {answer.relevance[right]:.3f}")


def _rule_against(lost: Sequence[str], answer: Answer) -> str | None:
    """The rule that dropped the first of the lost tools, where rules dropped all of them and all that equal them."""
    rules = {**answer.dropped_by("filter"), **answer.dropped_by("mask")}
    dropped = [[rules.get(tool) for tool in answer.query.as_good_as(gold)] for gold in lost]
    return dropped[0][0] if dropped and all(all(by) for by in dropped) else None


def _gone(answer: Answer) -> Failure:
    """No right tool is on the menu: the best of them was found too late, or none was found."""
    for place, tool in enumerate(answer.slice.ranking, 1):
        if tool in answer.good:
            limit = answer.dropped_by("menu").get(tool, "")
            return Failure(
                "below_menu", answer, float(place), f"rank {place}" + (f" (limit: {limit})" if limit else "")
            )
    best = max(answer.relevance.values(), default=0.0)
    note = f"best candidate's relevance {best:.3f}" if answer.relevance else "not among the candidates"
    return Failure("not_retrieved", answer, best, note)


def _lost(ranking: Sequence[str], answer: Answer) -> list[str]:
    """The right tools that a ranking lacks; of interchangeable ones as many as it lacks."""
    missing = len(set(answer.query.gold)) - int(ranked_gains(ranking, answer.query).sum())
    named = dict.fromkeys(answer.query.gold)
    absent = [g for g in named if not {*answer.query.as_good_as(g)} & set(ranking)]
    shared = [gold for gold in named if gold not in absent]
    return [*absent, *shared][:missing]


def _example(failure: Failure) -> dict[str, Any]:
    answer = failure.answer
    first = answer.shown or answer.slice.ranking
    wrong = [tool for tool in first if tool not in answer.good][:_INSTEAD]
    return {
        "qid": answer.query.qid,
        "text": shortened(answer.query.text),
        "gold": list(dict.fromkeys(answer.query.gold)),
        "cold": bool(answer.query.gold) and not answer.warm,
        "instead": [{"tool_id": tool, "relevance": answer.relevance.get(tool)} for tool in wrong],
        "note": failure.note,
    }


def shortened(text: str) -> str:
    """A request's text as a report quotes it."""
    return text if len(text) <= TEXT_CHARACTERS else text[: TEXT_CHARACTERS - 1] + "…"
