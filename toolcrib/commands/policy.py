"""`toolcrib policy test | schema`: a risk policy held against expected verdicts, and the form of its file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from data.jsonl import load_catalog
from toolcrib.commands.options import JsonOption
from toolcrib.screen import print_json, say, show_table

app = typer.Typer(help="Test a risk policy, and see how one is written.", no_args_is_help=True)
_FAILED = 1


@app.command("test")
def hold_command(
    policy: Annotated[Path, typer.Argument(metavar="POLICY", help="The policy.yaml to test.")],
    cases: Annotated[Path, typer.Argument(metavar="CASES", help="A cases.yaml: what is expected of it.")],
    catalog: Annotated[
        Path | None, typer.Option("--catalog", "-c", help="The tools, where cases name them by id.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Hold a policy against a table of expected verdicts; exit code 1 if one is not met."""
    from serving.policy_cases import load_cases, run_cases
    from serving.policy_file import load_policy

    tools = None if catalog is None else load_catalog(catalog)
    rules = load_policy(policy)
    results = run_cases(rules, load_cases(cases), tools)
    failed = [result for result in results if not result.passed]
    if as_json:
        print_json(
            {
                "policy_version": rules.version,
                "cases": len(results),
                "failed": len(failed),
                "results": [result.model_dump(mode="json") for result in results],
            }
        )
    else:
        if failed:
            rows = [
                (each.name, _said(each.expect, each.expect_rule), _said(each.verdict, each.rule)) for each in failed
            ]
            show_table("Not as expected", ("case", "expected", "found"), rows)
        say(f"{len(results) - len(failed)} of {len(results)} cases are as expected (policy {rules.version})")
    if failed:
        raise typer.Exit(_FAILED)


@app.command("schema")
def schema_command() -> None:
    """Print the JSON Schema of a policy file, for editors and other checkers."""
    from serving.policy_file import policy_json_schema

    print_json(policy_json_schema())


def _said(verdict: str, rule: str | None) -> str:
    return verdict if rule is None else f"{verdict} by {rule}"
