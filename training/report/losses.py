"""Losses: the seven failure classes with their worst cases, the pairs that are confused, and each server's share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from training.report.failures import KINDS
from training.report.markup import Html, el, join, table
from training.report.words import count, percent


class Name(NamedTuple):
    """How a failure class is told: its title, what happened, where the fix lives, and the fix."""

    title: str
    what: str
    where: str
    fix: str


NAMES: dict[str, Name] = {
    "split": Name(
        "several steps asked as one",
        "The request needs several tools, and the menu holds only some of them.",
        "the agent's plan",
        "Have the agent ask a step at a time, or send the steps as several subgoals of one decision.",
    ),
    "withheld": Name(
        "withheld by a rule",
        "A rule on the caller or on the request dropped the right tool before anything was scored.",
        "grants and policy",
        "Look at the rule each example names: grant what is missing, correct the card's requirements, or tell rightly"
        " whether the request writes. Training cannot mend this.",
    ),
    "not_retrieved": Name(
        "not found",
        "The right tool is not among the candidates, so nothing after retrieval can save it.",
        "catalog text",
        "Tools without a past: write a summary and examples in the users' words (toolcrib catalog lint, suggest)."
        " Tools with one: more logged requests like these.",
    ),
    "turned_away": Name(
        "turned away, though a tool fits",
        "The request was told that nothing fits.",
        "training",
        "Lower head.turned_away in the recipe; train on requests like these. Unlike most failures this one is a"
        " threshold: it trades against tools shown where nothing fits.",
    ),
    "below_menu": Name(
        "found, but off the menu",
        "A candidate that had no place, or whose text did not fit the token budget.",
        "logs and catalog text",
        "See how long a menu would have to be (below). A rank far down: more traces, or clearer cards. A limit of"
        " tokens: shorter cards.",
    ),
    "outranked": Name(
        "on the menu, another first",
        "The agent sees the right tool, but a wrong one stands above it.",
        "catalog text",
        "See the confused pairs below: tell twins apart, or declare them equal. Many of them with a past: more traces.",
    ),
    "not_turned_away": Name(
        "tools shown, though nothing fits",
        "Nothing in the catalog serves this request, and a menu came all the same.",
        "logs",
        "Log requests that nothing fitted (tool_id null); raise head.turned_away. Missing tools show up here too.",
    ),
}


def classes(report: Mapping[str, Any]) -> Html | None:
    """Each class with its count, its fix, and the worst cases folded away."""
    found: Mapping[str, Any] = report.get("failures") or {}
    if not found:
        return None
    order = sorted((kind for kind in KINDS if kind in found), key=lambda kind: -found[kind]["count"])
    return join(
        el("h2", "What went wrong, and where the fix lives", id="failures"),
        el(
            "p",
            "Each request that failed is in one class, the most frequent first. Examples are the worst of their class:"
            " the farthest down, the surest of what is wrong.",
            class_="muted",
        ),
        *(_class(kind, found[kind]) for kind in order if found[kind]["count"]),
        _absent([kind for kind in order if not found[kind]["count"]]),
    )


def _class(kind: str, row: Mapping[str, Any]) -> Html:
    name = NAMES[kind]
    said = f"{count(row['count'])} of {count(row['of'])} ({percent(row['count'] / row['of'] if row['of'] else None)})"
    cold = f", {count(row['cold'])} of tools without a past" if row["cold"] else ""
    return el(
        "section",
        el(
            "header",
            el("h3", name.title),
            el("span", f"fix: {name.where}", class_="chip"),
            el("span", said + cold, class_="count"),
        ),
        el("p", name.what, class_="muted"),
        el("p", name.fix),
        el(
            "details",
            el("summary", f"the worst {len(row['examples'])}" if len(row["examples"]) > 1 else "the case"),
            *map(_example, row["examples"]),
        ),
        class_="failure",
    )


def _absent(kinds: list[str]) -> Html | None:
    if not kinds:
        return None
    return el("p", "No request failed as: " + "; ".join(NAMES[kind].title for kind in kinds) + ".", class_="muted")


def _example(row: Mapping[str, Any]) -> Html:
    instead = [
        join(el("code", one["tool_id"]), "" if one["relevance"] is None else f" {one['relevance']:.3f}")
        for one in row["instead"]
    ]
    right = [el("code", tool) for tool in row["gold"]] or [el("span", "none")]
    past = el("small", " no past") if row.get("cold") else None
    return el(
        "div",
        _line("asked", row["text"]),
        _line("right", join(_listed(right), past)),
        _line("shown", _listed(instead)) if instead else None,
        _line("why", row["note"]),
        class_="example",
    )


def _line(label: str, said: str | Html) -> Html:
    return el("div", el("span", label, class_="label"), el("span", said))


def confused(report: Mapping[str, Any]) -> Html | None:
    """The pairs that are confused most, with what would tell them apart."""
    pairs = report.get("confusions") or []
    if not pairs:
        return None
    return join(
        el("h2", "Confused with one another", id="confusions"),
        el(
            "p",
            "The right tool, and the wrong one that stands first in its place; how often, of the requests that the"
            " right one serves; and how alike their cards read (cosine).",
            class_="muted",
        ),
        *map(_pair, pairs),
    )


def _pair(row: Mapping[str, Any]) -> Html:
    gold, instead = el("code", row["gold"]), el("code", row["instead"])
    alike = "" if row["similarity"] is None else f", alike {row['similarity']:.2f}"
    back = f", {row['back']} the other way round" if row["back"] else ""
    title, fix = _advice(row["advice"], gold, instead)
    return el(
        "section",
        el(
            "header",
            el("span", gold, " ← ", instead),
            el("span", title, class_="chip"),
            el("span", f"{row['count']} of {row['of']}{back}{alike}", class_="count muted"),
        ),
        el("p", fix),
        el("details", el("summary", "asked as"), *(el("div", text, class_="example") for text in row["examples"])),
        class_="pair",
    )


def _advice(advice: str, gold: Html, instead: Html) -> tuple[str, Html]:
    examples, not_for, prefer_over = (el("code", field) for field in ("examples", "not_for", "prefer_over"))
    if advice == "equals":
        return "likely the same", join(
            "Retire one, or declare them equal: ",
            el("code", "gold_alt"),
            " in queries, ",
            el("code", "mining.equivalents"),
            " in training.",
        )
    if advice == "tell_apart":
        said = join("Give ", instead, " a ", not_for, " that says what ", gold, " does, and ", gold, " ")
        return "near twins", join(said, examples, " like these; ", prefer_over, " if it is the better one.")
    return "unlike cards", join("Nothing to tell apart: ", gold, " needs ", examples, " like these, or more traces.")


def per_domain(report: Mapping[str, Any]) -> Html | None:
    """Each server's requests, tools, quality and commonest failure."""
    found = report.get("domains") or []
    if len(found) < 2:
        return None
    rows = [
        [
            el("em", "all others") if row["domain"] is None else el("code", row["domain"] or "(none)"),
            count(row["tools"]),
            count(row["n"]),
            f"{row['ndcg@10']:.3f}",
            f"{count(row['failed'])} ({row['failed'] / row['n'] * 100:.0f}%)",
            NAMES[row["mostly"]].title if row["mostly"] else "–",
        ]
        for row in found
    ]
    return join(
        el("h2", "By server", id="domains"),
        el("p", "Requests by the domain of their right tool, most failures first.", class_="muted"),
        table(
            ["domain", "tools", "requests", "nDCG@10", "failed", "mostly"],
            rows,
            numbers=["tools", "requests", "nDCG@10", "failed"],
        ),
    )


def _listed(parts: list[Html]) -> Html:
    said: list[str | Html] = []
    for part in parts:
        said += [", ", part] if said else [part]
    return join(*said)
