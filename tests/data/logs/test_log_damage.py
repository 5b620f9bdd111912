"""Damaged records: whatever stands where something else should, an import counts it and goes on."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from desk import DESK
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data.logs.account import Account
from data.logs.forms import form_of
from data.logs.importing import READERS
from data.logs.json_stream import Record
from data.logs.names import Names
from data.logs.outcomes import Judge
from data.logs.tally import Tally
from data.logs.to_traces import Maker

CALL = {"id": "c", "type": "function", "function": {"name": "mail__search", "arguments": '{"q": "x"}'}}
CHAT = [
    {"role": "user", "content": [{"type": "text", "text": "find x"}]},
    {"role": "assistant", "content": "I look", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c", "content": "found"},
]
BLOCKS = [
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "mail__search", "input": {"q": "x"}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text"}]}]},
]
PARTS = '[{"role": "user", "parts": [{"type": "text", "content": "find x"}]}]'


def pair(key: str, value: Any) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": value}}


NAMES, JUDGE = Names(DESK), Judge()
SPAN = {
    "traceId": "a" * 32,
    "spanId": "b" * 16,
    "parentSpanId": "c" * 16,
    "name": "execute_tool mail__search",
    "startTimeUnixNano": "1770000000000000000",
    "endTimeUnixNano": "1770000000000000001",
    "attributes": [pair("gen_ai.tool.name", "mail__search"), pair("gen_ai.input.messages", PARTS)],
    "events": [{"name": "gen_ai.choice", "attributes": [pair("message", "{}")]}],
    "status": {"code": 2, "message": "no"},
}
RUN = {"id": "r", "trace_id": "t", "run_type": "llm", "inputs": {"messages": [CHAT]}, "outputs": {"generations": [[]]}}
OBSERVATION = {
    "id": "o",
    "traceId": "t",
    "type": "TOOL",
    "name": "mail__search",
    "input": {},
    "output": [],
    "scores": [],
}
SAMPLES: dict[str, Any] = {
    "openai": {"request": {"messages": CHAT, "tools": [CALL]}, "response": {"choices": [{"message": CHAT[1]}]}},
    "anthropic": {"sessionId": "s", "messages": BLOCKS, "tools": [{"name": "x", "input_schema": {}}], "metadata": {}},
    "otel": {"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [{"spans": [SPAN]}]}]},
    "mlflow": {"info": {"trace_id": "t", "assessments": [{"name": "task"}], "tags": {}}, "data": {"spans": [SPAN]}},
    "langsmith": {**RUN, "child_runs": [{**RUN, "id": "s", "run_type": "tool"}], "feedback": [{"key": "success"}]},
    "langfuse": {"id": "t", "input": {"question": "x"}, "observations": [OBSERVATION], "scores": [{"name": "task"}]},
    "mcp": {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search", "arguments": {"q": "x y"}}},
}
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.sampled_from(["[", '{"a":1}']),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


def test_every_form_has_a_sample_and_is_told_by_it() -> None:
    assert {form: form_of(sample) for form, sample in SAMPLES.items()} == {form: form for form in READERS}


def places(value: Any) -> list[tuple[Any, Any]]:
    """(container, key) of everything inside a value."""
    if isinstance(value, dict):
        return [place for key, inner in value.items() for place in [(value, key), *places(inner)]]
    if isinstance(value, list):
        return [place for at, inner in enumerate(value) for place in [(value, at), *places(inner)]]
    return []


@pytest.mark.parametrize("form", SAMPLES)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_a_damaged_record_is_never_fatal(form: str, data: st.DataObject) -> None:
    damaged = copy.deepcopy(SAMPLES[form])
    for _ in range(data.draw(st.integers(1, 3))):
        container, key = data.draw(st.sampled_from(places(damaged)))
        container[key] = data.draw(ANYTHING)
        if not places(damaged):
            break
    form_of(damaged)
    account = Account()
    maker = Maker(form, NAMES, JUDGE, account, Tally())
    list(maker.traces(READERS[form]([Record(damaged, "log, line 1"), Record(SAMPLES[form], "log, line 2")], account)))
    assert account.records + account.skipped.total() >= 1
