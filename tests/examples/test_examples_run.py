"""The examples as a person starts them: `python examples/NAME.py`, with addresses in the environment."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from conversations import EXAMPLES, Service
from scripted_model import Scripted, anthropic_model, openai_model

REFUND = ("orders__refund", {"order": "A-17", "amount": 40})


def run(name: str, service: Service, model: Scripted, person: str) -> str:
    """What the example prints; `person` is typed at its terminal."""
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith(("TOOLCRIB_", "LANGSMITH_"))},
        "TOOLCRIB_URL": service.url,
        "OPENAI_BASE_URL": f"{model.url}/v1",
        "ANTHROPIC_BASE_URL": model.url,
        **{f"{vendor}_{what}": "test" for vendor in ("OPENAI", "ANTHROPIC") for what in ("API_KEY", "MODEL")},
    }
    command = [sys.executable, str(EXAMPLES / name), "refund order A-17, it cost 40 EUR"]
    done = subprocess.run(
        command, input=person, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ["openai_chat.py", "langgraph_agent.py"])
def test_chat_completions(name: str, service: Service) -> None:
    with openai_model([REFUND], "Refunded.") as model:
        printed = run(name, service, model, "y\n")
    assert "would refund 40.00 EUR of A-17: go ahead?" in printed
    assert printed.endswith("Refunded.\n")
    assert [(trace.tool_id, trace.outcome) for trace in service.traces()] == [("orders.refund", "success")]


def test_messages(service: Service) -> None:
    with anthropic_model([("toolcrib__search_tools", {"query": "refund an order"})], [REFUND], "Not done.") as model:
        printed = run("anthropic_messages.py", service, model, "n\n")
    assert printed.endswith("Not done.\n")
    assert [(trace.tool_id, trace.error_class) for trace in service.traces()] == [("orders.refund", "auth")]
