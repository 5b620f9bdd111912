"""`toolcrib catalog`: tools in, tools checked, tools approved."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from data.cards import Trust
from data.errors import InputError
from data.findings import SEVERITIES, Finding, fails, to_json, to_sarif, to_text
from data.importers import CATALOG_FORMATS, import_catalog
from data.importers.live import DEFAULT_TIMEOUT_S
from data.jsonl import load_catalog, load_traces, read_objects, save_catalog
from data.lint.suppressions import read_suppressions, suppressed
from data.overlay import read_overlay
from data.registry.approval import read_auto_approval
from data.suggest import MAX_EXAMPLES, suggest, write_overlay
from data.trace_store import read_traces
from toolcrib.commands import approvals
from toolcrib.commands.approvals import WhoOption, registry_at, say_offered, who_or_user
from toolcrib.screen import say
from toolcrib.sources import read_source

app = typer.Typer(help="Import, check and approve a catalog of tools.", no_args_is_help=True)
app.command("diff")(approvals.diff_command)
app.command("approve")(approvals.approve_command)
app.command("reject")(approvals.reject_command)
app.command("history")(approvals.history_command)
app.command("export")(approvals.export_command)


class LintFormat(StrEnum):
    """Forms of a lint report."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"


class FailOn(StrEnum):
    """From which severity on a check fails."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    NEVER = "never"

    def fails(self, findings: list[Finding]) -> bool:
        """Whether it does."""
        if self is FailOn.NEVER:
            return False
        return fails(findings, next(severity for severity in SEVERITIES if severity == self.value))


class TrustWord(StrEnum):
    """Whether a source's own hints about its tools are believed."""

    TRUSTED = "trusted"
    THIRD_PARTY = "third_party"


@app.command("import")
def import_command(
    form: Annotated[str, typer.Option("--format", help=f"What SRC holds: {', '.join(CATALOG_FORMATS)}.")],
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[SRC]",
            help="The file or folder, the http(s) address of an MCP server, or MODULE:ATTRIBUTE of LangChain tools.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The catalog to write; default: catalog.jsonl, with --registry none."),
    ] = None,
    domain: Annotated[
        str | None,
        typer.Option("--server", "--domain", help="The server's or application's name; not for jsonl, bfcl."),
    ] = None,
    tenant: Annotated[str, typer.Option("--tenant", help="Whose tools they are; only this tenant sees them.")] = "",
    trust: Annotated[
        TrustWord | None, typer.Option("--trust", help="Whether the source's hints are believed; not for jsonl, bfcl.")
    ] = None,
    skip_bad: Annotated[
        bool,
        typer.Option("--skip-bad", help="Leave out what is no tool and import the rest; else nothing is imported."),
    ] = False,
    command: Annotated[
        str | None, typer.Option("--command", help="Start this MCP server and ask it over stdio, instead of SRC.")
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option("--header", metavar="NAME=VARIABLE", help="Send this header with the value of this variable."),
    ] = None,
    passed: Annotated[
        list[str] | None, typer.Option("--env", metavar="VARIABLE", help="Give the started server this variable.")
    ] = None,
    overlay: Annotated[
        Path | None, typer.Option("--overlay", help="A YAML file with what owners add to the tools, by tool id.")
    ] = None,
    registry: Annotated[
        str | None, typer.Option("--registry", help="Offer the tools to this registry: a path or a database's URL.")
    ] = None,
    name: Annotated[
        str, typer.Option("--source", help="What the registry calls the source; default: the server's name, or SRC.")
    ] = "",
    rules: Annotated[
        Path | None, typer.Option("--auto-approve", help="A YAML file of rules by which no person need approve.")
    ] = None,
    who: WhoOption = "",
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.1, help="Seconds for a live server.")
    ] = DEFAULT_TIMEOUT_S,
) -> None:
    """Read tools of another form, or of a live MCP server, and write them as a catalog."""
    if registry is None and (name or rules is not None):
        raise InputError("--source and --auto-approve are for a registry", hint="give --registry")
    src = read_source(source, command, header or [], passed or [], timeout)
    believed = None if trust is None else Trust[trust.name]
    catalog, report = import_catalog(src, form, domain=domain, trust=believed, tenant=tenant, skip_bad=skip_bad)
    unused: tuple[str, ...] = ()
    if overlay is not None:
        catalog, unused = read_overlay(overlay).apply(catalog)
    say(report.to_text())
    for key in unused:
        say(f"  note: {overlay}: '{key}' fits no tool of this source")
    if registry is not None:
        allowed = None if rules is None else read_auto_approval(rules)
        own_name = name or "/".join(part for part in (tenant, domain or report.source) if part)
        with registry_at(registry) as opened:
            say_offered(opened.offer(catalog, own_name, who_or_user(who), rules=allowed), own_name)
    if out is not None or registry is None:
        written = out or Path("catalog.jsonl")
        save_catalog(written, catalog)
        say(f"{len(catalog)} tools written to {written} (version {catalog.version})")


@app.command("lint")
def lint_command(
    catalog: Annotated[Path, typer.Argument(metavar="CATALOG", help="The catalog.jsonl to check.")],
    form: Annotated[LintFormat, typer.Option("--format", help="How to print the findings.")] = LintFormat.TEXT,
    fail_on: Annotated[
        FailOn, typer.Option("--fail-on", help="The least grave finding that makes the exit code 1.")
    ] = FailOn.ERROR,
    suppress: Annotated[
        Path | None, typer.Option("--suppress", help="A YAML file of findings that are right as they are, and why.")
    ] = None,
    bundle: Annotated[
        str | None,
        typer.Option("--bundle", "-b", help="Compare and search by this bundle's vectors too, or by 'none'."),
    ] = None,
    own_words: Annotated[
        bool, typer.Option("--self-test/--no-self-test", help="Whether each tool must be found by its own words.")
    ] = True,
) -> None:
    """Check the tools' texts, names, risks and schemas. Exit code 1 where a finding is as grave as --fail-on."""
    from toolcrib.linting import findings_of

    accepted = [] if suppress is None else read_suppressions(suppress)
    findings = suppressed(findings_of(load_catalog(catalog), bundle, own_words), accepted)
    if form is LintFormat.TEXT:
        say(to_text(findings))
    elif form is LintFormat.JSON:
        print(to_json(findings))
    else:
        lines = {str(row.get("tool_id")): number for number, row in read_objects(catalog)}
        print(to_sarif(findings, str(catalog), lines))
    if fail_on.fails(findings):
        raise typer.Exit(1)


@app.command("suggest")
def suggest_command(
    catalog: Annotated[Path, typer.Argument(metavar="CATALOG", help="The catalog.jsonl to suggest for.")],
    traces: Annotated[
        Path | None, typer.Option("--traces", "-t", help="Traces, .parquet or .jsonl: the words that people used.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The overlay to write, for review.")] = Path(
        "suggested.yaml"
    ),
    examples: Annotated[int, typer.Option("--examples", min=0, help="At most so many for each tool.")] = MAX_EXAMPLES,
) -> None:
    """Propose summaries, examples and not_for as an overlay: from cards, traces and neighbours."""
    log = [] if traces is None else load_traces(traces) if traces.suffix == ".jsonl" else read_traces(traces)
    tools = load_catalog(catalog)
    found = suggest(tools, log, examples)
    if not found:
        say("nothing to suggest")
        return
    write_overlay(out, found)
    counts = Counter(field for fields in found.values() for field in fields)
    said = ", ".join(f"{field} for {count}" for field, count in counts.items())
    say(f"suggestions for {len(found)} of {len(tools)} tools written to {out}: {said}")
