"""`toolcrib demo`: the whole loop on real packaged data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo_command(
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for everything that it makes.")] = Path(
        "runs/demo"
    ),
) -> None:
    """The whole loop on real packaged data.

    Import tools and requests, mine, train, measure beside baselines, and show three decisions.
    """
    from toolcrib.demo import demo

    demo(out)
