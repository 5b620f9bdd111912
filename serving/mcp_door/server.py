"""The protocol's side: requests of both of its eras, the handshake's and the envelope's, into calls of the door.

In the older era a person is asked, and a changed list is told, on the standing connection. In the newer one a call that
waits is answered with the question, and comes again with the answer; changes are told on a stream that is asked for.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from serving.door.errors import DoorError
from serving.door.identity import Identity
from serving.live import Live
from serving.mcp_door.calls import Ask, Client, Decision, Proposed
from serving.mcp_door.door import ToolDoor, UnknownToolError, Waited
from serving.mcp_door.exposure import Listeners
from serving.mcp_door.menus import Place
from serving.mcp_door.own_tools import INSTRUCTIONS

_LOG = logging.getLogger("toolcrib.mcp")

Context = ServerRequestContext[object, Any]
IdentityOf = Callable[[Context], Identity]
"""Who sent a request. Raises DoorError for one that nobody may send."""

NAME = "toolcrib"
_QUESTION = "approve"
_FORM: dict[str, Any] = {
    "type": "object",
    "properties": {"approve": {"type": "boolean", "title": "Run it", "description": "yes, exactly this call, once"}},
    "required": ["approve"],
}
_SESSION_HEADER = "mcp-session-id"


class _Waiting(Exception):  # noqa: N818 (not an error: the answer is a question)
    """The call waits for a person, who is asked by the answer to this request."""

    def __init__(self, question: str, proposed: Proposed) -> None:
        self.question, self.proposed = question, proposed


class _Announcing(Server[object]):
    """Says in the handshake that its list of tools may change."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """As the base class."""
        says = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(says, experimental_capabilities, extensions)


class DoorServer:
    """One server for any number of connections. `identity_of` tells who sent a request, `asked_s` bounds a question."""

    def __init__(self, door: ToolDoor, live: Live, identity_of: IdentityOf, *, version: str, asked_s: float) -> None:
        self._door, self._live, self._identity_of, self._asked_s = door, live, identity_of, asked_s
        self.listeners = Listeners()
        self.protocol: Server[object] = _Announcing(
            NAME,
            version=version,
            instructions=INSTRUCTIONS,
            lifespan=self._connection,
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_subscriptions_listen=self._listen,
            get_tool_input_schema=lambda _: None,
        )
        # what a waiting call hands to its client comes back sealed, for the same call of the same principal only
        security = RequestStateSecurity.ephemeral(ttl=asked_s)
        security.bind_principal = self._principal
        self.protocol.middleware.append(RequestStateBoundary(security, default_audience=NAME))

    async def changed(self) -> None:
        """Tell whoever has another list of tools now than when they were told last."""
        await self.listeners.tell(self._live.current)

    @asynccontextmanager
    async def _connection(self, _: Server[object]) -> AsyncIterator[object]:
        key = object()
        try:
            yield key
        finally:
            self.listeners.forget((key, ""))

    async def _list(self, context: Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        identity = self._who(context)
        if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            tell = context.session.send_tool_list_changed
            self.listeners.listen(_key(context), identity.caller, self._live.current, tell)
        return types.ListToolsResult(tools=self._door.listed(identity), ttl_ms=0, cache_scope="private")

    async def _call(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        identity = self._who(context)
        client = Client(self._ask(context, identity, params), context.session.report_progress)
        try:
            return await self._door.answer(identity, params.name, params.arguments or {}, client, _waited(params))
        except UnknownToolError:
            raise MCPError(types.INVALID_PARAMS, f"there is no tool '{params.name}'") from None
        except MCPError:
            raise
        except _Waiting as waiting:
            asked = types.ElicitRequest(
                params=types.ElicitRequestFormParams(message=waiting.question, requested_schema=_FORM)
            )
            return types.InputRequiredResult(input_requests={_QUESTION: asked}, request_state=_state(waiting.proposed))
        except Exception:  # the protocol's library would send its text to the caller
            _LOG.exception("a call failed inside the door")
            raise MCPError(types.INTERNAL_ERROR, "the door failed to answer; try again") from None

    async def _listen(
        self, context: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        identity, bus, key = self._who(context), InMemorySubscriptionBus(), object()
        self.listeners.listen(key, identity.caller, self._live.current, lambda: bus.publish(ToolsListChanged()))
        try:
            return await ListenHandler(bus)(context, params)
        finally:
            self.listeners.forget(key)

    def _ask(self, context: Context, identity: Identity, params: types.CallToolRequestParams) -> Ask | None:
        """How the person behind the client is asked; None where the client cannot ask, or may not confirm."""
        capabilities = context.session.client_capabilities
        elicitation = None if capabilities is None else capabilities.elicitation
        if not identity.may_confirm or elicitation is None or (elicitation.url and not elicitation.form):
            return None
        if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return self._ask_now(context)
        answered = (params.input_responses or {}).get(_QUESTION)

        async def ask(question: str, proposed: Proposed) -> Decision:
            if isinstance(answered, types.ElicitResult) and _state(proposed) == params.request_state:
                return _decision(answered)
            raise _Waiting(question, proposed)

        return ask

    def _ask_now(self, context: Context) -> Ask:
        async def ask(question: str, _: Proposed) -> Decision:
            with anyio.move_on_after(self._asked_s):
                try:
                    return _decision(await context.session.elicit_form(question, _FORM, context.request_id))
                except MCPError as error:
                    _LOG.info("a client could not ask its user: %d", error.code)
            return "later"

        return ask

    def _who(self, context: Context) -> Identity:
        try:
            return self._identity_of(context)
        except DoorError as error:
            raise MCPError(types.INVALID_REQUEST, error.message) from error

    def _principal(self, context: Context) -> str:
        who = self._who(context).caller
        return f"{who.tenant}/{who.principal}"


def _decision(answered: types.ElicitResult) -> Decision:
    if answered.action == "cancel":
        return "later"
    approved = answered.action == "accept" and (answered.content or {}).get("approve") is True
    return "approve" if approved else "refuse"


def _state(proposed: Proposed) -> str:
    """What comes back with the answer to the question, sealed on its way."""
    return json.dumps([proposed.place.slice_id, proposed.place.tool_id, proposed.ticket])


def _waited(params: types.CallToolRequestParams) -> Waited | None:
    if params.request_state is None or not params.input_responses:
        return None
    slice_id, tool_id, ticket = json.loads(params.request_state)  # it was sealed: nobody else has written it
    return Waited(Place(slice_id, tool_id), ticket)


def _key(context: Context) -> object:
    """The standing connection of a request: its own life, or among those of one HTTP server its session."""
    headers = getattr(context.request, "headers", {})
    return context.lifespan_context, headers.get(_SESSION_HEADER, "")
