"""Examples of the API's document: one request a route, each of which is answered by the service as it stands here."""

from __future__ import annotations

from typing import Any

SELECT: dict[str, Any] = {
    "goal": "refund the last order of customer 4711",
    "mutation": True,
    "caller": {"principal": "ann", "used_tools": []},
    "format": "text",
}
DESCRIBE: dict[str, Any] = {"slice_id": "0123456789abcdef", "tool_id": "shop.refund", "level": "invocation"}
CHECK: dict[str, Any] = {
    "slice_id": "0123456789abcdef",
    "tool_id": "shop.refund",
    "arguments": {"order": "A-17", "amount": 12.5},
}
CONFIRM: dict[str, Any] = {"ticket": "the ticket of a check", "decision": "approve", "note": "seen by Ben"}
OUTCOMES: dict[str, Any] = {
    "outcomes": [
        {
            "key": "run-7/step-2",
            "slice_id": "0123456789abcdef",
            "tool_id": "shop.refund",
            "outcome": "success",
            "latency_ms": 180.0,
        }
    ]
}
OBSERVATION: dict[str, Any] = {
    "slice_id": "0123456789abcdef",
    "tool_id": "shop.orders",
    "content": "order A-17: 12.50 EUR, paid ...",
    "cap_characters": 2000,
}
RERANK: dict[str, Any] = {
    "query": "how do I cancel a subscription",
    "documents": ["shop.cancel: end a subscription", "shop.orders: list orders"],
    "top_n": 1,
}
