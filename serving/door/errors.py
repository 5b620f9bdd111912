"""Errors as a client sees them: one JSON form, and every code with its status in one table."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from starlette.responses import JSONResponse

from data.errors import ToolcribError

INVALID_JSON = "invalid_json"
INVALID_REQUEST = "invalid_request"
UNAUTHENTICATED = "unauthenticated"
NOT_PERMITTED = "not_permitted"
NOT_FOUND = "not_found"
UNKNOWN_SLICE = "unknown_slice"
UNKNOWN_HANDLE = "unknown_handle"
UNKNOWN_TICKET = "unknown_ticket"
METHOD_NOT_ALLOWED = "method_not_allowed"
NOT_SHOWN = "not_shown"
TOO_LARGE = "too_large"
UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type"
INVALID_BODY = "invalid_body"
INTERNAL = "internal"
NO_RERANKER = "no_reranker"
MODEL_FAILED = "model_failed"
IDENTITY_UNAVAILABLE = "identity_unavailable"
OVERLOADED = "overloaded"
TOO_MANY_SPANS = "too_many_spans"
STORE_UNAVAILABLE = "store_unavailable"

CODES: Mapping[str, tuple[int, str]] = MappingProxyType(
    {
        INVALID_JSON: (400, "the body is not strict JSON in UTF-8"),
        INVALID_REQUEST: (400, "the request is well formed and cannot be meant"),
        UNAUTHENTICATED: (401, "no credential, or one that is not accepted; which of the two is not said"),
        NOT_PERMITTED: (403, "the credential does not grant what was asked for"),
        NOT_FOUND: (404, "nothing is served under this path"),
        UNKNOWN_SLICE: (404, "no such slice for this caller; somebody else's looks the same"),
        UNKNOWN_HANDLE: (404, "no such stored result for this caller; somebody else's looks the same"),
        UNKNOWN_TICKET: (404, "no such open ticket for this caller; somebody else's looks the same"),
        NO_RERANKER: (404, "the served bundle has no cross-encoder"),
        METHOD_NOT_ALLOWED: (405, "the path is served, with another method"),
        NOT_SHOWN: (409, "the tool is not among those that the slice shows to this caller now"),
        TOO_LARGE: (413, "the body is larger than the service reads"),
        UNSUPPORTED_MEDIA_TYPE: (415, "the body is not declared as `application/json`"),
        INVALID_BODY: (422, "the body is JSON and breaks a rule of its route, or a bound on depth, count or length"),
        TOO_MANY_SPANS: (429, "too much of this sender's spans is kept already; `Retry-After` says when to try again"),
        INTERNAL: (500, "a failure of the service; nothing about it is told"),
        MODEL_FAILED: (500, "a model gave something that cannot be used, and nothing can stand in for it"),
        IDENTITY_UNAVAILABLE: (503, "who asks cannot be told: grants or signing keys cannot be read; nobody is let in"),
        OVERLOADED: (503, "more work than can be answered in time; `Retry-After` says when to try again"),
        STORE_UNAVAILABLE: (503, "what has to be read or kept before answering is out of reach"),
    }
)
"""Code -> (its usual HTTP status, what it means). Codes are for programs and stay; messages are for people."""


class DoorError(ToolcribError):
    """A refusal on its way to the client.

    `path` is the JSON path of the field at fault (`$.caller.scopes`), or empty. `headers` go onto the response.
    Nothing in it may come from what the caller is not allowed to see.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        path: str = "",
        hint: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.status, self.code, self.message, self.path, self.hint = status, code, message, path, hint
        self.headers: Mapping[str, str] = MappingProxyType(dict(headers or {}))
        super().__init__(f"{status} {code}: {message}")


def overloaded(seconds: int) -> DoorError:
    """The refusal for load; come back after so many seconds."""
    return DoorError(
        503,
        OVERLOADED,
        "there is more work than can be answered in time",
        hint=f"try again in {seconds} s",
        headers={"Retry-After": str(seconds)},
    )


def answered(error: DoorError) -> JSONResponse:
    """The whole response."""
    return JSONResponse(as_json(error), status_code=error.status, headers=dict(error.headers))


def as_json(error: DoorError) -> dict[str, dict[str, str]]:
    """The body of every error response: always these four fields, all of them text."""
    return {"error": {"code": error.code, "message": error.message, "path": error.path, "hint": error.hint}}
