"""`python -m training`, or `accelerate launch -m training` on several devices: one training from the command line.

Every process mines the same rows and takes its share of the retriever's batches; the first one does the rest. The same
command finishes a training that was stopped.
"""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from data.errors import ToolcribError
from data.jsonl import load_catalog
from training.pipeline import train
from training.recipe import load_recipe


def main() -> int:
    """Exit code 0, or 2 with one line on standard error."""
    parser = argparse.ArgumentParser(prog="training", description="Train a bundle from a catalog and traces.")
    parser.add_argument("--catalog", type=Path, required=True)
    parser.add_argument("--traces", type=Path, required=True)
    parser.add_argument("--recipe", type=Path)
    parser.add_argument("--out", "-o", type=Path, required=True)
    parser.add_argument("--restart", action="store_true", help="throw away what an unfinished training has left")
    given = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(message)s")
    logging.getLogger("toolcrib").setLevel(logging.INFO)
    try:
        recipe = load_recipe(given.recipe)
        result = train(load_catalog(given.catalog), given.traces, recipe, given.out, restart=given.restart)
    except ToolcribError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(result.bundle)
    return 0


if __name__ == "__main__":
    sys.exit(main())
