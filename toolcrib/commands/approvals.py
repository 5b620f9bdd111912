"""`toolcrib catalog diff | approve | reject | history | export`: the registry's commands."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from data.errors import InputError
from data.jsonl import save_catalog
from data.registry.approval import objections
from data.registry.changes import changes
from data.registry.versions import ToolVersions
from toolcrib.screen import print_json, say, show_table

if TYPE_CHECKING:
    from data.store.registry import Offered, Registry

RegistryOption = Annotated[
    str,
    typer.Option("--registry", envvar="TOOLCRIB_REGISTRY", help="The registry: a path or a database's URL."),
]
WhoOption = Annotated[str, typer.Option("--by", help="Who decides; default: the name of the operating system's user.")]
NoteOption = Annotated[str, typer.Option("--note", help="Why; kept in the history.")]

_SHORT = 12


@contextmanager
def registry_at(url: str) -> Iterator[Registry]:
    """The registry in a database, closed again at the end."""
    from data.store.database import open_database
    from data.store.registry import Registry

    database = open_database(url)
    try:
        yield Registry(database)
    finally:
        database.close()


def who_or_user(who: str) -> str:
    """The name given, or that of the operating system's user. InputError where there is neither."""
    try:
        return who or getpass.getuser()
    except (OSError, KeyError) as error:
        raise InputError(
            "the operating system has no name for its user", field="--by", hint="say who decides"
        ) from error


def say_offered(offered: Offered, source: str) -> None:
    """What an import into the registry came to."""
    counts = ", ".join(f"{count} {fate}" for fate, count in offered.counts.items() if count) or "nothing new"
    say(f"{source}: {counts}")
    if offered.pending:
        say(f"{len(offered.pending)} wait for approval: toolcrib catalog diff")


def diff_command(
    registry: RegistryOption,
    tool: Annotated[str | None, typer.Argument(metavar="[TOOL]", help="One tool; default: all that wait.")] = None,
    old: Annotated[str, typer.Option("--from", help="The start of a version's hash; default: the one shown.")] = "",
    new: Annotated[str, typer.Option("--to", help="The start of a version's hash; default: the one that waits.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show what would change if what waits were approved, or the difference of two versions of a tool."""
    with registry_at(registry) as opened:
        tools = opened.waiting() if tool is None else [opened.tool(tool)]
        compared = [_compared(opened, versions, old, new) for versions in tools]
        shown = opened.shown() if compared else []
        against = objections([opened.card(str(entry["version"])) for entry in compared], shown)
    for entry in compared:
        entry["findings"] = [finding.model_dump(mode="json") for finding in against[str(entry["tool_id"])]]
    if as_json:
        print_json({"tools": compared})
        return
    for entry in compared:
        _say_compared(entry)
    say(f"{len(compared)} tools" if compared else "nothing waits for approval")


def approve_command(
    registry: RegistryOption,
    tool: Annotated[
        str | None, typer.Argument(metavar="[TOOL[@VERSION]]", help="The tool, and the start of a hash.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All that waits and that lint lets pass.")] = False,
    source: Annotated[str | None, typer.Option("--source", help="With --all: of this source only.")] = None,
    despite: Annotated[str, typer.Option("--despite", help="The reason to overrule what lint says against it.")] = "",
    who: WhoOption = "",
    note: NoteOption = "",
) -> None:
    """Let a version be shown to models. An older version rolls the tool back."""
    if everything == (tool is not None):
        raise InputError("give a tool, or --all")
    if everything and (despite or note):
        option = "--despite" if despite else "--note"
        raise InputError("a reason is for one tool, not for all", field=option, hint="name the tool in place of --all")
    if source is not None and not everything:
        raise InputError("goes with --all", field="--source", hint="a tool has one source")
    with registry_at(registry) as opened:
        if tool is not None:
            tool_id, version = _named(opened, tool)
            event = opened.approve(tool_id, version, who_or_user(who), note=note, despite=despite.strip())
            say(f"approved {tool_id} {event.content[:_SHORT]}")
            return
        done, left = opened.approve_all(who_or_user(who), source=source)
    say(f"approved {len(done)} tools")
    for tool_id, findings in left.items():
        for finding in findings:
            say(f"waits on: {tool_id}: {finding.rule} ({finding.field}): {finding.message}")
    if left:
        raise typer.Exit(1)


def reject_command(
    registry: RegistryOption,
    tool: Annotated[str, typer.Argument(metavar="TOOL[@VERSION]", help="The tool, and the start of a hash.")],
    who: WhoOption = "",
    note: NoteOption = "",
) -> None:
    """Never show a version: one that waits, or with its hash any other."""
    with registry_at(registry) as opened:
        tool_id, version = _named(opened, tool)
        event = opened.reject(tool_id, version, who_or_user(who), note=note)
    say(f"rejected {tool_id} {event.content[:_SHORT]}")


def history_command(
    registry: RegistryOption,
    tool: Annotated[
        str | None, typer.Argument(metavar="[TOOL]", help="A tool; default: the catalog's versions.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show everything that happened to a tool, or the versions of the catalog that were handed out."""
    with registry_at(registry) as opened:
        if tool is None:
            versions = [{"version": version, "ts": ts.isoformat()} for version, ts in opened.versions()]
            if as_json:
                print_json({"versions": versions})
            else:
                show_table("", ("version", "first handed out"), [tuple(row.values()) for row in versions])
            return
        events = opened.history(tool)
    rows = [
        (
            *(event.ts.isoformat(timespec="seconds"), event.content[:_SHORT], event.state.value, event.cause.value),
            *(event.who, event.source, event.note),
        )
        for event in events
    ]
    columns = ("when", "version", "state", "cause", "who", "source", "note")
    if as_json:
        print_json({"tool_id": tool, "events": [dict(zip(columns, row, strict=True)) for row in rows]})
    else:
        show_table(tool, columns, rows)


def export_command(
    registry: RegistryOption,
    out: Annotated[Path, typer.Option("--out", "-o", help="The catalog to write.")] = Path("catalog.jsonl"),
    version: Annotated[
        str | None, typer.Option("--version", help="A version of before; default: what is shown now.")
    ] = None,
) -> None:
    """Write what is approved, or was in an earlier version, as a catalog."""
    with registry_at(registry) as opened:
        catalog = opened.catalog(version)
    if not len(catalog):
        raise InputError("nothing is approved", source="the registry", hint="see 'toolcrib catalog diff'")
    save_catalog(out, catalog)
    say(f"{len(catalog)} tools written to {out} (version {version or catalog.version})")


def _compared(opened: Registry, versions: ToolVersions, old: str, new: str) -> dict[str, object]:
    """One tool's two versions: by default what is shown, and what waits or came last."""
    after = _whole(versions, new) if new else (versions.pending or list(versions.states))[-1]
    before = _whole(versions, old) if old else versions.approved
    if before == after:
        before = None
    card = opened.card(after)
    found = changes(opened.card(before) if before is not None else None, card)
    return {
        "tool_id": versions.tool_id,
        "version": after,
        "state": versions.states[after].state.value,
        "source": versions.source,
        "before": before,
        "changes": [{"field": one.field, "before": one.before, "after": one.after} for one in found],
    }


def _say_compared(entry: dict[str, object]) -> None:
    say(f"{entry['tool_id']}@{str(entry['version'])[:_SHORT]} ({entry['state']}, from {entry['source']})", style="bold")
    for change in entry["changes"]:  # type: ignore[attr-defined]
        if change["before"] is not None:
            say(f"  - {change['field']}: {_one_line(change['before'])}")
        if change["after"] is not None:
            say(f"  + {change['field']}: {_one_line(change['after'])}")
    for finding in entry["findings"]:  # type: ignore[attr-defined]
        say(f"  ! {finding['rule']} ({finding['field']}): {finding['message']}")


def _one_line(text: str) -> str:
    """A text whose line ends are written out: a tool's text must not pass for lines of this report."""
    return text.replace("\r", "\\r").replace("\n", "\\n")


def _named(opened: Registry, text: str) -> tuple[str, str]:
    """`TOOL@VERSION`, or `TOOL` for the one version that waits. InputError where there is none."""
    tool_id, at, version = text.rpartition("@")
    if at and set(version) <= set("0123456789abcdef") and version:
        return tool_id, version
    waiting = opened.tool(text).pending
    if not waiting:
        raise InputError("no version waits", source=text, hint="name one, as TOOL@VERSION; see 'catalog history'")
    return text, waiting[-1]


def _whole(versions: ToolVersions, start: str) -> str:
    found = [content for content in versions.states if content.startswith(start)]
    if len(found) != 1:
        problem = "several versions begin" if found else "no version begins"
        raise InputError(f"{problem} with '{start}'", source=versions.tool_id, hint="see 'catalog history'")
    return found[0]
