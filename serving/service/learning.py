"""Learning at once: a reported outcome becomes a part of its tenant's memory before the report is answered."""

from __future__ import annotations

import logging

from data.context import Caller
from data.store.records import OutcomeRecord
from data.traces import FAILING_ERRORS
from serving.lately import Outcome
from serving.live import Live
from serving.service.errors import StoreUnavailableError, UnknownSliceError
from serving.service.slices import Slices
from serving.slice import Slice

_LOG = logging.getLogger("toolcrib.service")


def served(outcome: OutcomeRecord) -> bool:
    """Whether an outcome says that the tool served its step: a real call that succeeded in a task that did not fail."""
    return (
        outcome.tool_id is not None
        and outcome.outcome == "success"
        and outcome.error_class == "none"
        and outcome.task_success is not False
        and not outcome.dry_run
    )


def failed(outcome: OutcomeRecord) -> bool:
    """Whether an outcome says that the tool failed by its own fault, in a real call."""
    own = outcome.error_class in ("none", *FAILING_ERRORS)
    return outcome.tool_id is not None and outcome.outcome == "failure" and own and not outcome.dry_run


def learn(live: Live, slices: Slices, who: Caller, outcome: OutcomeRecord) -> None:
    """Let the caller's tenant know how a call ended, if it was of a tool on the menu that the report names.

    Nothing is learned from a slice of somebody else's, from one whose words are not kept, or of what is known already.
    """
    selector = live.current
    won = served(outcome)
    if not (selector.settings.learn_at_once and (won or failed(outcome))) or outcome.tool_id not in selector.catalog:
        return
    assert outcome.tool_id is not None
    try:
        handed = slices.of(who, outcome.slice_id)
    except (UnknownSliceError, StoreUnavailableError) as error:
        _LOG.debug("nothing is learned of slice %s: %s", outcome.slice_id, error)
        return
    query = None if handed.hashed else _query(handed.found, outcome.tool_id)
    if query is None:
        return
    vector, memory = selector.embed(query), selector.memory(who.tenant)
    if vector is None or memory is None:
        return
    if not (won and memory.knows(vector, selector.catalog.row[outcome.tool_id])):
        live.learn(selector.versions.bundle, Outcome(who.tenant, query, outcome.tool_id, won), vector)


def _query(found: Slice, tool_id: str) -> str | None:
    """What the tool was shown for, of several steps the one it fits best; None where it was not shown for any."""
    if all(entry.tool_id != tool_id for entry in found.menu):
        return None
    if not found.parts:
        return found.query
    serves = [part for part in found.parts if tool_id in part.menu]
    return max(serves, key=lambda part: part.relevance.get(tool_id, 0.0)).query if serves else None
