"""Mining rules: each reads one kind of evidence off a log, as example rows before any screening.

An example rule returns the columns of EVIDENCE: label is 1.0 or 0.0, weight is in (0, clip], reason is the rule's
name. A rule that makes no example returns the (decision, tool) pairs that it is about, to be counted.
"""

from __future__ import annotations

from typing import Any

import ibis

from data.mining.calls import EMPTY, FAILED, PAIR, SILENT, SUCCEEDED, UNKNOWN, VALIDATION, Log
from data.mining.options import MiningOptions

EVIDENCE = (*PAIR, "step", "ts", "label", "weight", "reason")

POSITIVE_RULES = (
    "gold_label",
    "chosen_succeeded",
    "chosen_empty",
    "chosen_validation",
    "unknown_outcome",
    "card_text_positive",
)
"""Rules of label 1, firmest first: where a cap has to choose, the firmer example stays."""
NEGATIVE_RULES = ("failed_then_other_succeeded", "shown_not_chosen")
"""Rules of label 0, firmest first."""
COUNTED_RULES = ("says_nothing", "failed_alone", "outside_gold", "retrieved_not_shown", "no_tool")
"""Rules that make no example of a tool."""


def gold_label(log: Log, options: MiningOptions) -> Any:
    """The tools that a human named: label 1, weight 1, whatever became of the call.

    A labelled decision gets its positives from here alone.
    """
    return _examples(log.gold, 1.0, 1.0, "gold_label")


def chosen_succeeded(log: Log, options: MiningOptions) -> Any:
    """Chosen, and the call succeeded: weight 1, less where the task failed."""
    return _chosen(log, options, SUCCEEDED, 1.0, "chosen_succeeded")


def chosen_empty(log: Log, options: MiningOptions) -> Any:
    """Chosen, and it succeeded with nothing to return: a weaker positive, since it may be a failure in disguise."""
    return _chosen(log, options, EMPTY, options.empty_weight, "chosen_empty")


def chosen_validation(log: Log, options: MiningOptions) -> Any:
    """Chosen, but called with wrong arguments: a weak positive, never a negative."""
    return _chosen(log, options, VALIDATION, options.validation_weight, "chosen_validation")


def unknown_outcome(log: Log, options: MiningOptions) -> Any:
    """Chosen, and nobody knows how it went: a weak positive if `unknown_weight` says so, else a count."""
    return _chosen(log, options, UNKNOWN, options.unknown_weight, "unknown_outcome")


def not_known(log: Log) -> Any:
    """What `unknown_outcome` applies to, whether or not its weight takes examples of it."""
    return log.called.filter((log.called.standing == UNKNOWN) & ~log.called.labelled).select(*PAIR)


def card_text_positive(log: Log, options: MiningOptions, of_log: Any) -> Any:
    """A card's own texts as requests, for the tools that no example in `of_log` has as its tool.

    There is no time and no tenant. Two texts of a card that differ only in case or white space are one.
    """
    wanted = log.texts.filter(ibis.literal(options.card_text_weight > 0)).anti_join(of_log, "tool")
    first = wanted.step.min().over(ibis.window(group_by=["tool", "goal_key"]))
    said = wanted.mutate(first=first, ts=ibis.null(of_log.ts.type()))
    return _examples(said.filter(said.step == said.first), 1.0, options.card_text_weight, "card_text_positive")


def says_nothing(log: Log) -> Any:
    """Called, and met by auth, timeout, unavailable or rate_limited: no example, in either direction."""
    return log.called.filter(log.called.standing == SILENT).select(*PAIR)


def preference_pairs(log: Log, options: MiningOptions) -> Any:
    """Who failed and who then served the same goal in the same trace: PAIR of the loser, better, weight, and more.

    "Then" is a later step, or a later time within the step. A tool that a human named for the decision is better
    than one that failed there without being named, whatever the order. `validation` and the silent errors are no
    failures here, nor is an empty answer that the log calls a success or does not judge.

    The weight is shared out over the tools that served the decision: a goal that took several tools says less about
    each one that failed at it, which may have been needed too. A failure without an error class counts less.
    """
    winners = _winners(log)
    failed = log.called.filter(log.called.standing == FAILED).anti_join(winners, PAIR)
    joined = failed.join(winners.select("decision", "won_step", "won_ts", "served", better="tool"), "decision")
    later = (joined.won_step > joined.step) | (
        (joined.won_step == joined.step) & (joined.won_ts > joined.ts).fill_null(False)
    )
    pairs = joined.filter(joined.labelled | later.fill_null(False))
    factor = ibis.ifelse(pairs.unclassified, _real(options.unclassified_weight), _real(1.0))
    weight = factor / pairs.served.cast("float64") * _inverse(pairs.propensity, options)
    return pairs.select(*PAIR, "step", "ts", "better", weight=weight)


def failed_then_other_succeeded(pairs: Any) -> Any:
    """Chosen and failed, and another tool then succeeded at the same goal: a hard negative, from preference_pairs."""
    losers = pairs.select(*PAIR, "step", "ts", "weight").distinct()
    return _examples(losers, 0.0, losers.weight, "failed_then_other_succeeded")


def failed_alone(log: Log, pairs: Any) -> Any:
    """Called and failed, and no other tool then succeeded: nobody knows whether another would have done better."""
    failed = log.called.filter((log.called.standing == FAILED) & ~log.called.labelled)
    return failed.anti_join(pairs, PAIR).select(*PAIR)


def history(log: Log) -> Any:
    """Called, and the call says something of the tool: it succeeded, or failed by the tool's own fault.

    No example: a tool may fail at what it is the right one for. Whether another one then served, or what a human
    named, does not matter. PAIR, step, ts, won.
    """
    ended = log.called.filter(log.called.standing.isin([SUCCEEDED, FAILED]))
    return ended.select(*PAIR, "step", "ts", won=ended.standing == SUCCEEDED)


def outside_gold(log: Log) -> Any:
    """Called at a decision that a human labelled with other tools, without failing: counted.

    A label is often one path of several, so that the tool is no negative; and it is not what the human said either.
    """
    called = log.called.filter(log.called.labelled & log.called.standing.isin([SUCCEEDED, EMPTY, VALIDATION, UNKNOWN]))
    return called.anti_join(log.gold, PAIR).select(*PAIR)


def shown_not_chosen(log: Log, options: MiningOptions) -> Any:
    """On the menu, not called, and another tool served the goal: a soft negative.

    The weight falls with the square root of the position, because further down the menu a tool was less surely
    looked at, and it is shared out over the tools that served. Retrieved but not shown says nothing.
    """
    winners = _winners(log)
    decided = winners.select("decision", "served").distinct()
    taken = ibis.union(log.called.select(*PAIR), log.gold.select(*PAIR), distinct=False)
    passed = log.shown.anti_join(taken, PAIR).join(decided, "decision")
    looked_at = _real(1.0) / (passed.position + 1).cast("float64").sqrt()
    weight = _real(options.soft_negative_weight) * looked_at / passed.served.cast("float64")
    return _examples(passed, 0.0, weight * _inverse(passed.propensity, options), "shown_not_chosen")


def retrieved_not_shown(log: Log) -> Any:
    """Retrieved for a decision whose menu is known, neither shown nor called: unlabelled."""
    return log.retrieved.anti_join(log.shown, PAIR).anti_join(log.called, PAIR).select(*PAIR)


def no_tool(log: Log) -> Any:
    """Decisions that nothing fits: no call at all, or a human who named no tool. The columns of `decisions`.

    Giving up after calls says nothing of the sort: the tool that fits may have timed out.
    """
    asked = log.decisions
    return asked.filter((asked.uncalled | asked.labelled) & ~asked.any_gold)


def _chosen(log: Log, options: MiningOptions, standing: int, weight: float, reason: str) -> Any:
    chosen = log.called.filter((log.called.standing == standing) & ~log.called.labelled)
    task = ibis.ifelse(chosen.task_failed, _real(options.task_failed_weight), _real(1.0))
    return _examples(chosen, 1.0, _real(weight) * task * _inverse(chosen.propensity, options), reason)


def _winners(log: Log) -> Any:
    """The tools that served each decision: PAIR, won_step, won_ts (null where a human said so), served = how many."""
    called = log.called.filter((log.called.standing == SUCCEEDED) & ~log.called.labelled)
    succeeded = called.select(*PAIR, won_step=called.last_step, won_ts=called.last_ts)
    named = log.gold.select(*PAIR, won_step=ibis.null("int64"), won_ts=ibis.null(called.ts.type()))
    winners = ibis.union(succeeded, named, distinct=False)
    served = winners.group_by("decision").aggregate(served=winners.count())
    return winners.join(served, "decision")


def _inverse(propensity: Any, options: MiningOptions) -> Any:
    """1 / propensity, from 1 to the clip. Compared before dividing, so that the clip is met exactly."""
    clip, one = _real(options.propensity_clip), _real(1.0)
    known = ibis.coalesce(propensity, one)
    bounded = ibis.ifelse(known >= one, one, known)
    return ibis.ifelse(bounded * clip <= one, clip, one / bounded)


def _real(number: float) -> Any:
    """A float64 literal. From text, because Spark reads the digits themselves as a decimal of their own width."""
    return ibis.literal(repr(number)).cast("float64")


def _examples(rows: Any, label: float, weight: Any, reason: str) -> Any:
    return rows.select(
        *(*PAIR, "step", "ts"),
        label=_real(label),
        weight=_real(weight) if isinstance(weight, float) else weight,
        reason=ibis.literal(reason),
    )
