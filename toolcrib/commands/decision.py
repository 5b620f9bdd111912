"""`toolcrib select | explain`: one decision, and why it came out so."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from data.catalog import Catalog
from data.errors import InputError
from data.jsonl import load_catalog
from serving.slice import Slice
from toolcrib.commands.options import BundleOption, CatalogOption, JsonOption
from toolcrib.inputs import read_bundle, read_caller, read_slice, read_subgoal
from toolcrib.screen import print_json
from toolcrib.slices import explain, show_menu


class MenuFormat(StrEnum):
    """Forms in which a menu reaches a model."""

    TEXT = "text"
    MCP = "mcp"
    OPENAI = "openai"
    ANTHROPIC = "anthropic"


def select_command(
    goal: Annotated[str, typer.Argument(metavar="GOAL", help="What the next step should do.")],
    bundle: BundleOption,
    catalog: CatalogOption,
    caller: Annotated[Path | None, typer.Option("--caller", help="Who asks: a caller.json; default: nobody.")] = None,
    read: Annotated[
        bool | None, typer.Option("--read/--write", help="Whether the request only reads; default: not known.")
    ] = None,
    operations: Annotated[str, typer.Option("--operations", help="Operations wanted, separated by commas.")] = "",
    policy: Annotated[Path | None, typer.Option("--policy", help="A risk policy.yaml; default: the built-in.")] = None,
    request_id: Annotated[str, typer.Option("--request-id", help="Seeds exploration, so that it replays.")] = "",
    form: Annotated[
        MenuFormat | None, typer.Option("--format", help="Print the menu in the form that a model gets.")
    ] = None,
    with_record: Annotated[
        bool, typer.Option("--explain", help="The operator's view: also what was withheld, and by which rule.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Choose the tools for one step.

    With --explain the output names tools that the caller may not know of: it is for operators.
    """
    from serving.policy_file import load_policy
    from serving.selector import Selector

    if form is not None and (as_json or with_record):
        raise InputError("--format goes with neither --json nor --explain", source="the command line")
    tools, who, subgoal = load_catalog(catalog), read_caller(caller), read_subgoal(goal, read, operations)
    rules = None if policy is None else load_policy(policy)
    found = Selector.load(read_bundle(bundle), tools, policy=rules).select(subgoal, who, request_id=request_id)
    if form is not None:
        _print_rendered(found, tools, form)
    elif as_json:
        print_json((found if with_record else found.public()).model_dump_json())
    elif with_record:
        explain(found)
    else:
        show_menu(found)


def explain_command(
    saved: Annotated[
        Path, typer.Argument(metavar="SLICE", help="What 'select --json --explain' printed; - reads standard input.")
    ] = Path("-"),
) -> None:
    """Say why a saved menu came out so.

    Stage by stage, who was dropped by what. For operators: it names tools that were withheld.
    """
    explain(read_slice(saved))


def _print_rendered(found: Slice, catalog: Catalog, form: MenuFormat) -> None:
    """The menu as a model gets it, in two parts: what stays the same from turn to turn, then what this turn adds."""
    from serving.disclosure import render

    shown = [entry for entry in found.menu if entry.verdict != "deny"]
    reasons = {reason: [catalog[e.tool_id] for e in shown if e.reason == reason] for reason in ("core", "used")}
    turn = [catalog[entry.tool_id] for entry in shown if entry.reason not in reasons]
    rendered = render([*reasons["core"], *reasons["used"]], turn, "selection", form.value)
    print(rendered.prefix)
    print(rendered.turn)
