"""The commands, one module a group; this one only puts them together."""

from __future__ import annotations

import typer

from toolcrib.commands import catalog, decision, keys, learning, loop, mcp, policy, serve, traces

app = typer.Typer(
    name="toolcrib",
    help="Pick the right tool for an LLM agent, learned from its own logs, inside rules that always hold.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
)
app.command("demo")(loop.demo_command)
app.add_typer(catalog.app, name="catalog")
app.add_typer(traces.app, name="traces")
app.add_typer(policy.app, name="policy")
app.command("mine")(learning.mine_command)
app.command("train")(learning.train_command)
app.command("evaluate")(learning.evaluate_command)
app.command("promote")(learning.promote_command)
app.command("select")(decision.select_command)
app.command("explain")(decision.explain_command)
app.command("serve")(serve.serve_command)
app.command("mcp")(mcp.mcp_command)
app.add_typer(keys.app, name="keys")
