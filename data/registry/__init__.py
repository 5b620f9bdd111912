"""The registry's rules: what states a card's versions pass through, what may be approved, and by whom."""

from __future__ import annotations

from data.registry.approval import BLOCKING, AutoApproval, objections, read_auto_approval
from data.registry.changes import Change, changes
from data.registry.versions import Cause, Event, State, ToolVersions, content_of, folded

__all__ = [
    "BLOCKING",
    "AutoApproval",
    "Cause",
    "Change",
    "Event",
    "State",
    "ToolVersions",
    "changes",
    "content_of",
    "folded",
    "objections",
    "read_auto_approval",
]
