"""The arguments that several commands share, so that one word means one thing everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

CatalogOption = Annotated[Path, typer.Option("--catalog", "-c", help="The tools: a catalog.jsonl.", show_default=False)]
BundleOption = Annotated[
    str, typer.Option("--bundle", "-b", help="A trained bundle's folder, or 'none' for no trained model.")
]
TracesOption = Annotated[
    Path, typer.Option("--traces", "-t", help="What happened: a traces.parquet, or the plain .jsonl form.")
]
PartitionOption = Annotated[
    str, typer.Option("--partition-by", help="Write a folder of files for each: day, tenant or day,tenant.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else there.")]

ServedBundleOption = Annotated[
    str,
    typer.Option(
        "--bundle",
        "-b",
        help="A bundle's folder, a registered one (models:/toolcrib@champion), or 'none'.",
        show_default=False,
    ),
]
ServedCatalogOption = Annotated[
    Path | None, typer.Option("--catalog", "-c", help="The tools: a catalog.jsonl, followed when it changes.")
]
ServedRegistryOption = Annotated[
    str | None,
    typer.Option(
        "--registry",
        help="In place of --catalog: the registry whose approved tools are served and followed, a path or a URL; "
        "default: TOOLCRIB_REGISTRY.",
    ),
]
ConfigOption = Annotated[
    Path | None, typer.Option("--config", help="The service's YAML file: who is let in, bounds, stores.")
]
FollowedPolicyOption = Annotated[
    Path | None, typer.Option("--policy", help="A risk policy.yaml, followed when it changes.")
]


def partitions(given: str) -> list[str]:
    """The columns that `--partition-by` names."""
    return [column for column in given.split(",") if column]
