"""`python -m toolcrib`: the same command."""

from __future__ import annotations

import sys

from toolcrib.cli import main

if __name__ == "__main__":
    sys.exit(main())
