"""GenAI attributes: what a span of an instrumented agent says, in each of the vocabularies in use.

OpenTelemetry's conventions of today (`gen_ai.input.messages`) and before (`gen_ai.prompt`, an event a message), MCP's,
OpenInference's, OpenLLMetry's (`traceloop.*`), MLflow's and the Vercel AI SDK's. A span may speak several at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from data.logs.account import Account
from data.logs.events import Call, Turn
from data.logs.messages import tool_names, turns
from data.logs.spans import Kind, Span
from data.logs.trees import arguments_of, request_of
from data.logs.values import boolean, first, items, mapping, milliseconds, number, text, unpacked

Attributes = Mapping[str, Any]

CUT_OFF = "messages that were cut off"

KINDS: dict[str, Kind] = {
    **dict.fromkeys(("execute_tool", "tools/call", "tool", "ai.toolcall", "function"), "tool"),
    **dict.fromkeys(("chat", "text_completion", "generate_content", "llm", "chat_model", "completion"), "chat"),
    **dict.fromkeys(("ai.generatetext.dogenerate", "ai.streamtext.dostream"), "chat"),
    **dict.fromkeys(("invoke_agent", "agent", "invoke_workflow", "workflow", "chain", "create_agent"), "agent"),
    **dict.fromkeys(("ai.generatetext", "ai.streamtext"), "agent"),
}
KIND_KEYS = (
    *("gen_ai.operation.name", "mcp.method.name", "openinference.span.kind", "traceloop.span.kind"),
    *("mlflow.spanType", "ai.operationId", "llm.request.type"),
)
TOOL_KEYS = ("gen_ai.tool.name", "mcp.tool.name", "tool.name", "ai.toolCall.name", "tool_call.function.name")
ARGUMENT_KEYS = (
    *("gen_ai.tool.call.arguments", "mcp.tool.arguments", "mcp.request.arguments", "ai.toolCall.args"),
    *(
        "ai.toolCall.input",
        "tool_call.function.arguments",
        "input.value",
        "mlflow.spanInputs",
        "traceloop.entity.input",
    ),
)
RESULT_KEYS = (
    *("gen_ai.tool.call.result", "mcp.tool.result", "ai.toolCall.result", "ai.toolCall.output", "output.value"),
    *("mlflow.spanOutputs", "traceloop.entity.output"),
)
CALL_ID_KEYS = ("gen_ai.tool.call.id", "ai.toolCall.id", "tool_call.id", "mcp.request.id")
SERVER_KEYS = ("mcp.server.name", "gen_ai.mcp.server.name", "mcp.server", "server.name")
INPUT_KEYS = (
    *("gen_ai.input.messages", "gen_ai.prompt", "llm.prompts", "ai.prompt.messages", "mlflow.spanInputs"),
    *("input.value", "ai.prompt", "traceloop.entity.input"),
)
OUTPUT_KEYS = ("gen_ai.output.messages", "gen_ai.completion", "mlflow.spanOutputs", "output.value")
OFFER_KEYS = ("gen_ai.tool.definitions", "ai.prompt.tools", "mlflow.chat.tools", "gen_ai.request.tools")
AGENT_KEYS = ("gen_ai.agent.name", "agent.name", "ai.telemetry.functionId")
TENANT_KEYS = ("tenant.id", "tenant", "tenant_id", "organization.id", "traceloop.association.properties.tenant")
_INDEXED_INPUT = ("gen_ai.prompt.", "llm.input_messages.")
_INDEXED_OUTPUT = ("gen_ai.completion.", "llm.output_messages.")
_INDEXED_TOOLS = ("llm.request.functions.", "llm.tools.")
_REQUEST_KEYS = ("input.value", "mlflow.spanInputs", "traceloop.entity.input", "gen_ai.prompt")
_VERDICT_NAMES = ("task", "success", "goal", "complet", "resol", "correct")


def is_told(attributes: Attributes) -> bool:
    """Whether a span speaks of a model, an agent or a tool at all."""
    return any(key in attributes for key in (*KIND_KEYS, *TOOL_KEYS)) or any(
        key.startswith(("gen_ai.", "llm.", "traceloop.")) for key in attributes
    )


def span_of(raw: Mapping[str, Any], start: datetime | None, end: datetime | None, account: Account) -> Span:
    """A Span from one of `otel`'s raw spans.

    {trace_id, span_id, parent_id, name, attributes, events: [{name, attributes}], failed, error, where}; `failed` is
    None for a span that has not ended.
    """
    attributes: Attributes = raw["attributes"]
    kind = _kind(attributes, raw["name"])
    shared: dict[str, Any] = {
        "trace_id": raw["trace_id"],
        "span_id": raw["span_id"],
        "parent_id": raw["parent_id"],
        "kind": kind,
        "start": start,
        "end": end,
        "agent": text(first(attributes, AGENT_KEYS)) if kind != "tool" else "",
        "tenant": text(first(attributes, TENANT_KEYS)),
        "task_success": _verdict(raw),
        "where": raw["where"],
    }
    if kind == "tool":
        return Span(**shared, call=_call(raw, start, end))
    asked, answer = _messages(raw, account)
    offered = _offers(attributes)
    if kind == "chat":
        return Span(**shared, asked=tuple(asked), answer=tuple(answer), offered=offered)
    users = [turn.text for turn in asked if turn.role == "user" and turn.text.strip()]
    return Span(**shared, offered=offered, request=users[-1] if users else request_of(first(attributes, _REQUEST_KEYS)))


def _kind(attributes: Attributes, name: str) -> Kind:
    for key in KIND_KEYS:
        found = KINDS.get(text(attributes.get(key)).lower())
        if found is not None:
            return found
    found = KINDS.get(name.split(" ", 1)[0].lower()) if " " in name else None
    if found is not None:
        return found
    if "gen_ai.prompt.0.role" in attributes or "gen_ai.request.model" in attributes:
        return "chat"
    return "tool" if first(attributes, TOOL_KEYS[:2]) is not None else "other"


def _call(raw: Mapping[str, Any], start: datetime | None, end: datetime | None) -> Call:
    attributes: Attributes = raw["attributes"]
    name = text(first(attributes, (*TOOL_KEYS, "traceloop.entity.name")))
    if not name:
        name = raw["name"].split(" ", 1)[-1].strip() if " " in raw["name"] else raw["name"].removesuffix(".tool")
    arguments = unpacked(first(attributes, ARGUMENT_KEYS))
    if arguments is None:
        prefix = "mcp.request.argument."
        arguments = {key[len(prefix) :]: value for key, value in attributes.items() if key.startswith(prefix)} or None
    payload, answered = first(attributes, RESULT_KEYS), any(attributes.get(key) is not None for key in RESULT_KEYS)
    for event in raw["events"]:
        if event["name"] in {"gen_ai.tool.message", "gen_ai.tool.result"}:
            found = first(event["attributes"], ("content", "gen_ai.tool.call.result", "gen_ai.event.content"))
            payload, answered = (found, True) if found is not None else (payload, answered)
    failed: bool | None = raw["failed"]
    return Call(
        name,
        arguments_of(arguments),
        text(first(attributes, SERVER_KEYS)),
        str(first(attributes, CALL_ID_KEYS) or ""),
        answered,
        unpacked(payload),
        # who records no content still says whether a call ended in an error
        None if failed is None else not failed,
        raw["error"],
        start,
        milliseconds(start, end),
        number(first(attributes, ("cost_usd", "gen_ai.usage.cost"))),
    )


def _messages(raw: Mapping[str, Any], account: Account) -> tuple[list[Turn], list[Turn]]:
    """What was sent and what came back: of attributes, of numbered attributes, or of events, whichever has it."""
    sources: list[Attributes] = [raw["attributes"], *(event["attributes"] for event in raw["events"])]
    asked, answer = _said_in(sources, INPUT_KEYS, raw, account), _said_in(sources, OUTPUT_KEYS, raw, account)
    asked = asked or turns(_numbered(raw["attributes"], _INDEXED_INPUT))
    answer = answer or turns(_numbered(raw["attributes"], _INDEXED_OUTPUT))
    if not answer and ("ai.response.text" in raw["attributes"] or "ai.response.toolCalls" in raw["attributes"]):
        calls = [
            {"id": call.get("toolCallId"), "name": call.get("toolName"), "args": first(call, ("input", "args"))}
            for call in map(mapping, items(raw["attributes"].get("ai.response.toolCalls")))
        ]
        said = text(raw["attributes"].get("ai.response.text"))
        answer = turns([{"role": "assistant", "content": said, "tool_calls": calls}])
    sent, back = _events(raw)
    return asked or turns(sent), _as_answer(answer or turns(back))


def _said_in(sources: list[Attributes], keys: tuple[str, ...], raw: Mapping[str, Any], account: Account) -> list[Turn]:
    for key in keys:
        for attributes in sources:
            value = unpacked(attributes.get(key))
            if isinstance(value, str) and value[:1] in {"[", "{"}:
                account.notice(CUT_OFF, raw["where"])
                continue
            value = _choice(value)
            if found := turns(value):
                return found
    return []


def _choice(value: Any) -> Any:
    """The message of a whole response of a provider, where that is what was recorded."""
    if isinstance(value, dict):
        for key in ("choices", "output", "generations"):
            inner = value.get(key)
            if isinstance(inner, list) and inner:
                message = mapping(inner[0]).get("message")
                return [message] if isinstance(message, dict) else inner
    return value


def _as_answer(found: list[Turn]) -> list[Turn]:
    """Only the assistant answers, whatever role an instrumentation gives to a bare text."""
    return [
        turn if turn.role == "assistant" else Turn("assistant", turn.text, turn.calls, ts=turn.ts)
        for turn in found
        if turn.role != "tool"
    ]


def _events(raw: Mapping[str, Any]) -> tuple[list[Any], list[Any]]:
    """The messages that older instrumentations write as an event each."""
    sent: list[Any] = []
    back: list[Any] = []
    for event in raw["events"]:
        name, attributes = event["name"], event["attributes"]
        body = {**attributes, **mapping(attributes.get("gen_ai.event.content")), **mapping(attributes.get("body"))}
        if name == "gen_ai.choice":
            message = mapping(body.get("message")) or body
            calls = items(first(message, ("tool_calls",))) or items(body.get("tool_calls"))
            back.append({"role": "assistant", "content": unpacked(message.get("content")), "tool_calls": calls})
        elif name.startswith("gen_ai.") and name.endswith(".message"):
            role = name.split(".")[1]
            message = {"role": role, "content": unpacked(body.get("content")), "tool_call_id": body.get("id")}
            sent.append({**message, "tool_calls": items(body.get("tool_calls"))})
    return sent, back


def _numbered(attributes: Attributes, prefixes: tuple[str, ...]) -> list[Any]:
    """`prefix.0.role`, `prefix.0.tool_calls.1.name`, ... as the list of objects that they spell out."""
    tree: dict[str, Any] = {}
    for key, value in attributes.items():
        prefix = next((prefix for prefix in prefixes if key.startswith(prefix)), None)
        if prefix is None:
            continue
        node = tree
        *path, last = key[len(prefix) :].split(".")
        for part in path:
            inner = node.setdefault(part, {})
            node = inner if isinstance(inner, dict) else {}
        node[last] = value
    return [_without_wrapper(one) for one in _listed(tree)] if tree else []


def _listed(tree: Any) -> Any:
    if not isinstance(tree, dict):
        return tree
    if tree and all(key.isdigit() for key in tree):
        return [_listed(tree[key]) for key in sorted(tree, key=int)]
    return {key: _listed(value) for key, value in tree.items()}


def _without_wrapper(one: Any) -> Any:
    """OpenInference puts each object into one named after it."""
    if isinstance(one, dict):
        for name in ("message", "tool_call", "tool", "message_content"):
            if set(one) == {name}:
                return _without_wrapper(one[name])
        if "contents" in one:
            one = {**one, "content": one["contents"]}
        return {key: _without_wrapper(value) for key, value in one.items()}
    return [_without_wrapper(part) for part in one] if isinstance(one, list) else one


def _offers(attributes: Attributes) -> tuple[str, ...] | None:
    for key in OFFER_KEYS:
        names = tool_names(attributes.get(key))
        if names is not None:
            return names
    numbered = _numbered(attributes, _INDEXED_TOOLS)
    if numbered:
        return tool_names([unpacked(mapping(tool).get("json_schema")) or tool for tool in map(_plain_tool, numbered)])
    inputs = mapping(first(attributes, ("mlflow.spanInputs", "input.value", "llm.invocation_parameters")))
    return tool_names(inputs.get("tools")) if "tools" in inputs else None


def _plain_tool(tool: Any) -> Any:
    return {"json_schema": tool} if isinstance(tool, str) else tool


def _verdict(raw: Mapping[str, Any]) -> bool | None:
    """A verdict on the task: an evaluation whose name says that it is one."""
    for attributes in _evaluations(raw):
        name = text(attributes.get("gen_ai.evaluation.name")).lower()
        if any(word in name for word in _VERDICT_NAMES):
            label = boolean(attributes.get("gen_ai.evaluation.score.label"))
            score = number(attributes.get("gen_ai.evaluation.score.value"))
            return label if label is not None or score is None else score >= 0.5
    return boolean(first(raw["attributes"], ("task_success", "task.success")))


def _evaluations(raw: Mapping[str, Any]) -> Iterator[Attributes]:
    if "gen_ai.evaluation.name" in raw["attributes"]:
        yield raw["attributes"]
    yield from (event["attributes"] for event in raw["events"] if event["name"].startswith("gen_ai.evaluation"))
