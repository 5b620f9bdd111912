"""Mining options: what each kind of evidence weighs, and how much of it is kept."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

PROPENSITY_CLIP = 10.0
"""An example counts at most this many times for having been unlikely to be shown.

Without a bound one tool that was explored at a propensity of 0.001 would outweigh a thousand ordinary calls. Ten
keeps the correction exact down to a propensity of 0.1 and trades bias for variance below.
"""

Share = Annotated[float, Field(gt=0.0, le=1.0, allow_inf_nan=False)]
ShareOrOff = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]


class MiningOptions(BaseModel):
    """Weights are relative to a plain success, which weighs 1. An unknown option is an error, not ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    task_failed_weight: Share = 0.3
    """Factor for a call that worked, or whose outcome is unknown, in a task that failed."""
    empty_weight: Share = 0.5
    """A success that returned nothing: often right, sometimes an error in disguise."""
    validation_weight: Share = 0.3
    """Chosen but called with wrong arguments: the choice may well have been right."""
    unknown_weight: ShareOrOff = 0.0
    """Chosen, and the log does not say how it went. 0 takes no example."""
    unclassified_weight: Share = 0.5
    """Factor for a hard negative whose failure has no error class: it may have been an expired token."""
    soft_negative_weight: Share = 0.3
    """Shown at the first position and passed over while another tool served the goal."""
    card_text_weight: ShareOrOff = 0.3
    """A card's own summary, example or alias as a request, for a tool without a positive. 0 takes no example."""
    propensity_clip: float = Field(default=PROPENSITY_CLIP, ge=1.0, le=1000.0)
    """Upper bound of the inverse propensity; see PROPENSITY_CLIP."""
    repeat_cap: int = Field(default=1, ge=1)
    """How often one request (tenant, normalised goal) may count for one tool and one label, and in its history."""
    positives_per_tool: int = Field(default=500, ge=1)
    """Positives kept for one tool: the firmest rules first, then by the order of a hash."""
    negatives_per_tool: int = Field(default=500, ge=1)
    """Negatives kept for one tool, in the same order."""
    history_per_tool: int = Field(default=500, ge=1)
    """Calls of one tool whose end is kept for its history, by the order of a hash, whether they succeeded or not."""
    seed: int = 0
    """Changes which examples a cap keeps, and nothing else."""
    equivalents: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Tools that do the same: neither is a negative where the other is a positive. Read in both directions."""
