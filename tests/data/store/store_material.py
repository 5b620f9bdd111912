"""Records for the tests of the store."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from data.store.records import Decision, OutcomeRecord

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
FUSED = {"mail.search": 0.3, "files.find": 0.2, "web.search": 0.1}
DROPPED = {"mail.delete_all": "scope", "bank.pay": "tenant"}


def at(minutes: float) -> datetime:
    """Minutes after noon."""
    return NOON + timedelta(minutes=minutes)


def body(goal: str = "find the invoice", **changes: Any) -> dict[str, Any]:
    """A slice as JSON: two tools on the menu of three that were retrieved, two masked."""
    menu = [
        {"tool_id": "files.find", "position": 0, "rank": 0, "relevance": 0.9, "propensity": 1.0, "explored": False},
        {"tool_id": "mail.search", "position": 1, "rank": 1, "relevance": 0.4, "propensity": 0.25, "explored": True},
    ]
    return {
        "subgoal": {"goal": goal, "mutation": False, "entities": ["invoice"]},
        "query": goal,
        "caller_key": "0123456789abcdef",
        "menu": [{**entry, "verdict": "allow", "rule": "reads"} for entry in menu],
        "ranking": ["files.find", "mail.search", "web.search"],
        "abstention": {"outcome": "menu", "advice": ""},
        "record": [
            {"stage": "mask", "kept": 3, "dropped": DROPPED, "scores": {}},
            {"stage": "filter", "kept": 3, "dropped": {}, "scores": {}},
            {
                "stage": "retrieve",
                "kept": 3,
                "dropped": {},
                "scores": FUSED,
            },
        ],
        **changes,
    }


def decision(slice_id: str = "s1", **changes: Any) -> Decision:
    """A decision for ann of acme at noon."""
    fields: dict[str, Any] = {
        "slice_id": slice_id,
        "ts": NOON,
        "tenant": "acme",
        "principal": "ann",
        "trace_id": "run 7",
        "step": 3,
        "request_id": f"request of {slice_id}",
        "catalog_version": "c1",
        "bundle_version": "b1",
        "policy_version": "p1",
        "request": "find the invoice and pay it",
        "goal": "find the invoice",
        "mutation": False,
        "embedding": b"\x00\x01\xff",
        "body": body(),
    }
    return Decision.model_validate({**fields, **changes})


def outcome(key: str = "k1", slice_id: str = "s1", **changes: Any) -> OutcomeRecord:
    """A call of files.find that succeeded, a minute after noon."""
    fields: dict[str, Any] = {
        "tenant": "acme",
        "principal": "ann",
        "key": key,
        "ts": at(1),
        "slice_id": slice_id,
        "tool_id": "files.find",
        "arguments": {"name": "invoice"},
        "outcome": "success",
        "latency_ms": 12.5,
        "cost_usd": 0.01,
        "task_success": True,
    }
    return OutcomeRecord.model_validate({**fields, **changes})
