"""Screening: which of the examples that the rules made are kept, and why each of the others is not.

Every example gets a `fate`: null is kept, anything else is the reason for dropping it, a key of the report. All
choices follow explicit keys or a sha256, so that the same input keeps the same rows on every engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ibis
import pyarrow as pa

from data.catalog import Catalog
from data.mining.calls import PAIR, Log
from data.mining.options import MiningOptions
from data.mining.rules import NEGATIVE_RULES, POSITIVE_RULES

Computed = Callable[[Any], Any]
"""Computes an Ibis table once, for several readers (`Engine.computed`)."""

REPEATED = "repeated_request"
OVER_POSITIVES = "over_positives_per_tool"
OVER_NEGATIVES = "over_negatives_per_tool"
OVER_HISTORY = "over_history_per_tool"
SERVED = "negative_that_served_the_goal"
SAME_NAME = "negative_named_like_one_that_served"
EQUIVALENT = "negative_equivalent_to_one_that_served"
NO_TOOL_SERVED = "no_tool_request_that_a_tool_served"


def screen_positives(examples: Any, log: Log, options: MiningOptions, computed: Computed) -> Any:
    """Positives with their fate: repeated requests first, then the cap of each tool."""
    unfated = _asked(examples, log).mutate(fate=ibis.null("string"))
    once = _cap_repeats(unfated, log, POSITIVE_RULES, options)
    return _cap_tools(computed(once), log, POSITIVE_RULES, options.positives_per_tool, OVER_POSITIVES, options)


def screen_negatives(
    examples: Any, positives: Any, twins: Any, log: Log, options: MiningOptions, computed: Computed
) -> Any:
    """Negatives with their fate, given every positive that any rule made, kept or not (twins: equivalent_table).

    A tool that served a goal anywhere in the log is no negative for it elsewhere, nor is a tool of the same name on
    another server, nor a stated equivalent: most "negatives" of that kind are right answers nobody labelled.
    """
    served = computed(_asked(positives, log).select("goal_number", "tool").distinct())
    served = served.mutate(served=ibis.literal(True))
    names = served.join(log.cards, "tool").select("goal_number", "name", name_served="served").distinct()
    others = served.join(twins, "tool").select("goal_number", tool="twin", twin_served="served").distinct()
    # computed in steps: a join that spills cannot give its memory to the next one of the same query
    asked = computed(_asked(computed(examples), log))
    told = asked.join(log.cards.select("tool", "name"), "tool").select(*asked.columns, "name")
    told = told.left_join(served, ["goal_number", "tool"]).select(*told.columns, "served")
    told = told.left_join(names, ["goal_number", "name"]).select(*told.columns, "name_served")
    told = told.left_join(others, ["goal_number", "tool"]).select(*told.columns, "twin_served")
    fated = told.select(
        *asked.columns,
        fate=ibis.cases(
            (told.served.notnull(), SERVED),
            (told.name_served.notnull(), SAME_NAME),
            (told.twin_served.notnull(), EQUIVALENT),
            else_=ibis.null("string"),
        ),
    )
    once = _cap_repeats(computed(fated), log, NEGATIVE_RULES, options)
    return _cap_tools(computed(once), log, NEGATIVE_RULES, options.negatives_per_tool, OVER_NEGATIVES, options)


def screen_history(ended: Any, log: Log, options: MiningOptions, computed: Computed) -> Any:
    """Ends of calls with their fate. What is kept does not depend on how a call ended, so that rates stay true."""
    unfated = _asked(ended, log).mutate(reason=ibis.literal("history"), fate=ibis.null("string"))
    once = _cap_repeats(unfated, log, (), options)
    return _cap_tools(computed(once), log, (), options.history_per_tool, OVER_HISTORY, options)


def screen_no_tool(requests: Any, positives: Any, log: Log) -> Any:
    """No-tool requests with their fate: none that a tool served for the same tenant, and each of them once."""
    asked = ("tenant", "goal_number")
    served = _asked(positives, log).select(*asked, served=ibis.literal(True)).distinct()
    told = requests.left_join(served, asked).select(*requests.columns, "served")
    contradicted = ibis.ifelse(told.served.notnull(), ibis.literal(NO_TOOL_SERVED), ibis.null("string"))
    return _drop_beyond(
        told.select(*requests.columns, fate=contradicted),
        by=asked,
        order=lambda t: (t.ts.asc(nulls_first=False), t.trace_id),
        limit=1,
        fate=REPEATED,
    )


def equivalent_table(equivalents: Mapping[str, Sequence[str]], catalog: Catalog) -> pa.Table:
    """tool, twin: the stated pairs in both directions. Not transitive: what was not stated is not assumed.

    Ids that the catalog does not have say nothing here.
    """
    place = catalog.row
    stated = {(place[a], place[b]) for a, others in equivalents.items() for b in others if a in place and b in place}
    rows = sorted(stated | {(b, a) for a, b in stated})
    schema = pa.schema([("tool", pa.int64()), ("twin", pa.int64())])
    return pa.table({"tool": [a for a, _ in rows], "twin": [b for _, b in rows]}, schema=schema)


def _asked(examples: Any, log: Log) -> Any:
    """Examples with the request that they answer: goal_number and tenant."""
    words = log.words().select("decision", "goal_number", "tenant")
    return examples.join(words, "decision").select(*examples.columns, "goal_number", "tenant")


def _cap_repeats(examples: Any, log: Log, rules: Sequence[str], options: MiningOptions) -> Any:
    """One request, logged again and again, counts `repeat_cap` times for a tool: the firmest, then the earliest."""
    return _drop_beyond(
        examples,
        by=("tenant", "goal_number", "tool"),
        order=lambda t: (_firmness(t, rules), t.ts.asc(nulls_first=False), t.trace_id),
        limit=options.repeat_cap,
        fate=REPEATED,
        words=log.words().select("decision", "trace_id"),
    )


def _cap_tools(examples: Any, log: Log, rules: Sequence[str], limit: int, fate: str, options: MiningOptions) -> Any:
    """A popular tool keeps `limit` examples: the firmest, then an arbitrary but fixed choice."""
    words = log.words()
    lot = (ibis.literal(f"{options.seed} ") + words.goal_key + words.trace_id).hexdigest("sha256").substr(0, 24)
    return _drop_beyond(
        examples,
        by=("tool",),
        order=lambda t: (_firmness(t, rules), t.lot),
        limit=limit,
        fate=fate,
        words=words.select("decision", lot=lot),
    )


def _drop_beyond(
    examples: Any,
    *,
    by: Sequence[str],
    order: Callable[[Any], Any],
    limit: int,
    fate: str,
    words: Any = None,
) -> Any:
    """Give `fate` to all but the first `limit` of each group, counting only the rows that have none yet.

    Only the groups that are too large are put in order, since most never are, and only they are given the columns of
    `words` (decision, and what the order needs).
    """
    alive = examples.filter(examples.fate.isnull())
    sizes = alive.group_by(list(by)).aggregate(size=alive.count())
    crowded = alive.semi_join(sizes.filter(sizes.size > limit), list(by))
    if words is not None:
        crowded = crowded.join(words, "decision")
    window = ibis.window(group_by=list(by), order_by=list(order(crowded)))
    placed = crowded.mutate(place=ibis.row_number().over(window))
    identity = [name for name in PAIR if name in examples.columns]
    late = placed.filter(placed.place >= limit).select(*identity, late=ibis.literal(fate))
    told = examples.left_join(late, identity).select(*examples.columns, "late")
    return told.mutate(fate=ibis.coalesce(told.fate, told.late)).drop("late")


def _firmness(examples: Any, rules: Sequence[str]) -> Any:
    if not rules:
        return ibis.literal(0)
    return ibis.cases(*((examples.reason == rule, place) for place, rule in enumerate(rules)), else_=len(rules))
