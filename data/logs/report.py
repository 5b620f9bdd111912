"""The import report: what was read, what became traces, what did not and why, and whether it is enough."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from data.cards import Frozen
from data.catalog import Catalog
from data.logs.account import Account
from data.logs.names import Names
from data.logs.tally import Tally

SHOWN, SHOWN_IN_TEXT = 20, 8
FIRST_POINT, LAST_POINT = 250, 4_000
FIRST_GAIN = "51% to 58%"
"""The learning curve of the usage memory, measured on two public sets (docs/logs.md): with 250 logged requests this
share of the gain in nDCG@10 that 4,000 bring."""


class Skipped(Frozen):
    """How often something was met, and where first."""

    count: int
    first: str = ""


class Unresolved(Frozen):
    """A logged name without a tool. `how` is unknown, with the nearest tools, or ambiguous, with those it may be."""

    name: str
    how: str
    count: int
    candidates: tuple[str, ...]


class LogReport(Frozen):
    """One import, counted.

    lines             lines, or items of arrays and documents, that were read; `records` those of the format
    traces            rows of the trace file: calls, and steps without a call; `tasks` distinct traces in a row
    skipped, noticed  by reason: what made no trace; what did, and should be known
    goals             which words the goals are: model, search, plan, request
    outcomes          by outcome, no_call included; `error_classes` of the calls; `rules` that judged them
    tools             the most called tools; `tools_called` in all, `tools_rare` under 5 calls, `tools_never` without
    known_menu        share of the rows whose offered tools are known
    names             calls by the way their name was resolved; `unresolved` the most frequent names that were not, of
                      `unresolved_names` different ones (about that many, where it is over 100,000)
    repeats           calls folded into an earlier one; `duplicates` rows that another trace has word for word
    personal          finds of personal data by kind; `redacted` whether they were masked
    """

    format: str
    sources: tuple[str, ...]
    files: int
    lines: int
    records: int
    traces: int
    tasks: int
    skipped: dict[str, Skipped]
    noticed: dict[str, Skipped]
    ignored: dict[str, int] = Field(default_factory=dict)
    goals: dict[str, int]
    outcomes: dict[str, int]
    error_classes: dict[str, int]
    rules: dict[str, int]
    tools: dict[str, int]
    tools_called: int
    tools_rare: int
    tools_never: int
    tools_served: int
    agents: dict[str, int]
    known_menu: float
    with_time: float
    judged_tasks: float
    earliest: datetime | None
    latest: datetime | None
    names: dict[str, int]
    unresolved: tuple[Unresolved, ...]
    unresolved_names: int
    repeats: int
    duplicates: int
    personal: dict[str, int]
    redacted: bool
    enough: str


def report(
    format: str,
    sources: tuple[str, ...],
    account: Account,
    tally: Tally,
    names: Names,
    catalog: Catalog,
    redacted: bool,
) -> LogReport:
    """The report of an import that has ended."""
    ranked = sorted(names.unresolved.items(), key=lambda entry: (-entry[1], entry[0]))[:SHOWN]
    return LogReport(
        format=format,
        sources=sources,
        files=account.files,
        lines=account.lines,
        records=account.records,
        traces=tally.lines,
        tasks=tally.traces,
        skipped={
            what: Skipped(count=n, first=account.first.get(what, "")) for what, n in account.skipped.most_common()
        },
        noticed={
            what: Skipped(count=n, first=account.first.get(what, "")) for what, n in account.noticed.most_common()
        },
        goals=dict(tally.goals.most_common()),
        outcomes=dict(tally.outcomes.most_common()),
        error_classes=dict(tally.error_classes.most_common()),
        rules=dict(tally.rules.most_common()),
        tools=dict(tally.tools.most_common(SHOWN)),
        tools_called=len(tally.tools),
        tools_rare=sum(count < 5 for count in tally.tools.values()),
        tools_never=len(catalog) - len(tally.tools),
        tools_served=len(tally.served),
        agents=dict(tally.agents.each.most_common(SHOWN)),
        known_menu=_share(tally.with_menu, tally.lines),
        with_time=_share(tally.with_time, tally.lines),
        judged_tasks=_share(tally.judged_tasks, tally.lines),
        earliest=tally.earliest,
        latest=tally.latest,
        names=dict(names.how.most_common()),
        unresolved=tuple(
            Unresolved(
                name=name,
                how=how,
                count=count,
                candidates=names.candidates.get(name) or names.nearest(name),
            )
            for (how, name), count in ranked
        ),
        unresolved_names=names.distinct,
        repeats=tally.repeats,
        duplicates=tally.duplicates,
        personal=dict(tally.personal.most_common()),
        redacted=redacted,
        enough=_enough(tally, catalog),
    )


def to_text(told: LogReport) -> str:
    """The report as lines for a person; empty parts are left out."""
    lines = [
        f"{', '.join(told.sources) or 'the packaged data'} ({told.format}): "
        f"{told.files:,} files, {told.lines:,} lines, {told.records:,} records",
        f"  {told.traces:,} traces of {told.tasks:,} tasks; {told.repeats:,} repeated calls folded, "
        f"{told.duplicates:,} suspected duplicates",
        _counts("outcomes", told.outcomes),
        _counts("error classes", told.error_classes),
        _counts("goals are the words of", told.goals),
        f"  known menu {told.known_menu:.0%}, time {told.with_time:.0%}, task verdict {told.judged_tasks:.0%}",
        f"  from {told.earliest:%Y-%m-%d %H:%M} to {told.latest:%Y-%m-%d %H:%M} UTC"
        if told.earliest and told.latest
        else "",
        f"  tools: {told.tools_called:,} called ({told.tools_rare:,} of them under 5 times), "
        f"{told.tools_never:,} never; {told.tools_served:,} with a success",
        _counts("most called", dict(list(told.tools.items())[:8])),
        _counts("agents", told.agents),
        _counts("names resolved by", told.names),
    ]
    for one in told.unresolved[:SHOWN_IN_TEXT]:
        hint = "may be" if one.how == "ambiguous" else "nearest"
        near = f"; {hint}: {', '.join(one.candidates)}" if one.candidates else ""
        lines.append(f"  {one.how} name, {one.count:,} calls: {one.name}{near}")
    if told.unresolved_names > SHOWN_IN_TEXT:
        lines.append(f"  {told.unresolved_names:,} different names without a tool in all")
    lines += [f"  skipped {one.count:,}: {reason}{_first(one)}" for reason, one in told.skipped.items()]
    lines += [f"  noticed {one.count:,}: {reason}{_first(one)}" for reason, one in told.noticed.items()]
    lines.append(_counts("keys that were ignored", told.ignored))
    if told.personal:
        done = "masked" if told.redacted else "left as they are; --redact masks them"
        lines.append(f"{_counts('personal data', told.personal)} ({done})")
    lines.append(f"  is this enough? {told.enough}")
    return "\n".join(line for line in lines if line)


def _counts(what: str, counts: dict[str, int]) -> str:
    return f"  {what}: {', '.join(f'{name} {count:,}' for name, count in counts.items())}" if counts else ""


def _first(one: Skipped) -> str:
    return f" (first: {one.first})" if one.first else ""


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0


def _enough(tally: Tally, catalog: Catalog) -> str:
    """What the measured points of the learning curve say of this volume; between them nothing is made up."""
    successes = sum(tally.served.values())
    curve = f"{FIRST_POINT:,} logged requests brought {FIRST_GAIN} of the gain that {LAST_POINT:,} brought"
    if successes < FIRST_POINT:
        verdict = f"a start, below the first measured point: {curve}"
    elif successes < LAST_POINT:
        verdict = f"yes, and more helps: {curve}"
    else:
        verdict = f"yes: as many as were measured ({LAST_POINT:,}), or more"
    unseen = len(catalog) - len(tally.served)
    tail = f"; {unseen:,} tools have no success and are ranked by their card alone" if unseen else ""
    return f"{successes:,} successful calls of {len(tally.served):,} of {len(catalog):,} tools: {verdict}{tail}"
