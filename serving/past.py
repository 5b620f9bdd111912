"""The past of a bundle and the catalog it meets: a catalog may have grown and shrunk since, or be another one.

Measured on BFCL's bundle with a part of its 1,138 past tools beside MetaTool's 199 new ones: with half of the past's
tools here 5% of the requests for them were turned away because "nothing fitted" something like it before, with a
quarter 20%, with a tenth 30% (and of those for new tools 50, 78 and 97%). Not counting votes that nothing fits it was
none (and 2, 3 and 7%), and the tools that were used before were still found as well.
"""

from __future__ import annotations

from typing import Literal

from data.catalog import Catalog
from data.errors import InputError
from serving.bundle import Bundle
from serving.memory import Usage

FOREIGN_BELOW = 0.1
"""Of another catalog's past fewer of the tools are here, some equal names or not..."""
KNOWN_FROM = 0.1
"""... unless at least this share of the catalog is known from the past: a small part of a large past, by no chance."""
THIN_BELOW = 0.5
"""With fewer of the past's tools here, that nothing fitted a request then says little of what would fit it now."""

Kinship = Literal["own", "thin", "foreign"]


def kinship(usage: Usage, catalog: Catalog) -> Kinship:
    """What the past is to the catalog. A catalog is its own where there is no past."""
    share = known_share(usage, catalog)
    here = sum(tool in catalog for tool in usage.tools)
    if share < FOREIGN_BELOW and here < KNOWN_FROM * len(catalog):
        return "foreign"
    return "thin" if share < THIN_BELOW else "own"


def known_share(usage: Usage, catalog: Catalog) -> float:
    """Share of the past's tools that the catalog has; 1 without any past."""
    return sum(tool in catalog for tool in usage.tools) / len(usage.tools) if usage.tools else 1.0


def refuse_foreign(bundle: Bundle, catalog: Catalog) -> None:
    """Raise InputError for a catalog that is not the one whose past the bundle has."""
    past = bundle.usage.tools
    if kinship(bundle.usage, catalog) == "foreign":
        here = sum(tool in catalog for tool in past)
        raise InputError(
            f"the bundle was trained on another catalog: {here or 'none'} of the {len(past)} tools in its past is here",
            source=str(bundle.path),
            hint="train a bundle on this catalog's traces, or allow a foreign catalog to carry the model over",
        )


def fitting(usage: Usage, catalog: Catalog) -> Usage:
    """The past as far as it speaks of this catalog: of another catalog's past nothing does."""
    return Usage.empty(usage.vectors.shape[1]) if kinship(usage, catalog) == "foreign" else usage


def doubt(usage: Usage, catalog: Catalog) -> str:
    """What a decision says of a past that hardly speaks of its catalog; empty where it does.

    Without a figure: callers read it, and how many tools there are that others see is nobody's to know.
    """
    kin = kinship(usage, catalog)
    if kin == "own":
        return ""
    used = "that nothing fitted a request before does not count" if kin == "thin" else "nothing of it is used"
    return f"few of the tools in the bundle's past are in the catalog: {used}; train again"
