"""Sharing: what many decisions have in common is taken out of each and put back when one is read."""

from __future__ import annotations

import json
from typing import Any

from data.catalog import content_hash
from data.store.records import SHARED_STAGES, Decision, Mask, Withheld


def taken_apart(decision: Decision) -> tuple[Decision, Mask | None]:
    """The decision without what its shared stages dropped, and that; None where it has no such stage.

    The two share their contents with the decision given, which stays as it is.
    """
    record = decision.body.get("record")
    if not isinstance(record, list) or not any(_is_shared(stage) for stage in record):
        return decision, None
    withheld = {stage["stage"]: stage["dropped"] for stage in record if _is_shared(stage)}
    digest = decision.mask_digest or content_hash([json.dumps(withheld, sort_keys=True)])
    rest = [{**stage, "dropped": {}} if _is_shared(stage) else stage for stage in record]
    apart = decision.model_copy(update={"body": {**decision.body, "record": rest}, "mask_digest": digest})
    # not validated, and so not copied either
    return apart, Mask.model_construct(digest=digest, withheld=withheld)


def put_together(decision: Decision, withheld: Withheld) -> Decision:
    """The decision with what its shared stages dropped."""
    record = decision.body.get("record", [])
    whole = [
        {**stage, "dropped": withheld[stage["stage"]]} if _is_stage(stage) and stage["stage"] in withheld else stage
        for stage in record
    ]
    return decision.model_copy(update={"body": {**decision.body, "record": whole}})


def _is_shared(stage: Any) -> bool:
    return _is_stage(stage) and stage["stage"] in SHARED_STAGES and bool(stage.get("dropped"))


def _is_stage(stage: Any) -> bool:
    return isinstance(stage, dict) and "stage" in stage
