"""The body of an OTLP/HTTP request, and of its answer: protobuf or JSON, compressed or not, within its bounds."""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal

from starlette.responses import Response

from data.errors import InputError
from data.logs.json_stream import loads
from data.logs.otlp_proto import parser
from serving.door.errors import INVALID_BODY, INVALID_JSON, TOO_LARGE, UNSUPPORTED_MEDIA_TYPE, DoorError

Kind = Literal["protobuf", "json"]

_MEDIA: dict[str, Kind] = {"application/x-protobuf": "protobuf", "application/json": "json"}
_TYPE_OF = {kind: name for name, kind in _MEDIA.items()}
_HINT = "send application/x-protobuf or application/json, plain or with Content-Encoding: gzip"
_RPC_CODES = {400: 3, 401: 16, 403: 7, 413: 3, 415: 3, 422: 3, 429: 8, 503: 14}
"""HTTP status -> the code of a google.rpc.Status that means the same; 2 is `unknown`."""


def kind_of(content_type: str | None) -> Kind | None:
    """What a body is declared as; None for anything else than the two kinds."""
    return _MEDIA.get((content_type or "").partition(";")[0].strip().lower())


def document_of(raw: bytes, headers: Mapping[str, str], limit: int) -> dict[str, Any]:
    """The OTLP JSON of a body; `limit` bounds its bytes once more when it is unpacked.

    Raises DoorError: 400 for what cannot be read, 413 for what is too large, 415 for another kind or encoding.
    """
    kind = kind_of(headers.get("content-type"))
    if kind is None:
        raise DoorError(415, UNSUPPORTED_MEDIA_TYPE, "the body is neither protobuf nor JSON", hint=_HINT)
    encoding = headers.get("content-encoding", "identity").strip().lower()
    if encoding == "gzip":
        raw = _inflated(raw, limit)
    elif encoding not in ("", "identity"):
        raise DoorError(415, UNSUPPORTED_MEDIA_TYPE, "the body has an encoding that is not read here", hint=_HINT)
    return _of_protobuf(raw) if kind == "protobuf" else _of_json(raw)


def too_large(limit: int) -> DoorError:
    """The refusal of a body that is over its bound."""
    return DoorError(
        413, TOO_LARGE, f"the body is over {limit} bytes", hint="export smaller batches, or raise otlp.request_bytes"
    )


def success(kind: Kind, rejected: Counter[str]) -> Response:
    """200, with a partial success where spans were rejected."""
    said = "; ".join(f"{reason}: {count}" for reason, count in rejected.most_common())
    total = rejected.total()
    if kind == "json":
        partial = {"partialSuccess": {"rejectedSpans": str(total), "errorMessage": said}} if total else {}
        return _response(kind, 200, json.dumps(partial).encode())
    inner = b"\x08" + _varint(total) + _text_field(said) if total else b""
    return _response(kind, 200, b"\x0a" + _varint(len(inner)) + inner if inner else b"")


def failure(kind: Kind, error: DoorError) -> Response:
    """The error as OTLP wants it, a google.rpc.Status; its message has the code, what is wrong and what to do."""
    said = f"{error.code}: {error.message}" + (f" ({error.hint})" if error.hint else "")
    code = _RPC_CODES.get(error.status, 2)
    if kind == "json":
        body = json.dumps({"code": code, "message": said}).encode()
    else:
        body = b"\x08" + _varint(code) + _text_field(said)
    return _response(kind, error.status, body, error.headers)


def _response(kind: Kind, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> Response:
    return Response(body, status, dict(headers or {}), media_type=_TYPE_OF[kind])


def _inflated(raw: bytes, limit: int) -> bytes:
    decoder = zlib.decompressobj(wbits=31)
    try:
        plain = decoder.decompress(raw, limit + 1)
    except zlib.error as error:
        raise DoorError(400, INVALID_BODY, "the body is not gzip", hint=_HINT) from error
    if len(plain) > limit:
        raise too_large(limit)
    if not decoder.eof:
        raise DoorError(400, INVALID_BODY, "the gzip body is cut off", hint="send it again")
    return plain


def _of_protobuf(raw: bytes) -> dict[str, Any]:
    try:
        parse = parser("")
    except InputError as error:
        raise DoorError(
            415, UNSUPPORTED_MEDIA_TYPE, "protobuf is not read here", hint="send application/json"
        ) from error
    value = parse(raw)
    if value is None:
        raise DoorError(400, INVALID_BODY, "the body is no ExportTraceServiceRequest", hint="send OTLP traces")
    return {"resourceSpans": value.get("resourceSpans", [])}


def _of_json(raw: bytes) -> dict[str, Any]:
    try:
        value = loads(raw.decode("utf-8"))
    except ValueError as error:  # broken UTF-8 too
        raise DoorError(400, INVALID_JSON, "the body is not JSON in UTF-8", hint="send OTLP traces") from error
    spans = value.get("resourceSpans", []) if isinstance(value, dict) else None
    if not isinstance(spans, list):
        raise DoorError(400, INVALID_BODY, "the body is no ExportTraceServiceRequest", hint="send OTLP traces")
    return {"resourceSpans": spans}


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def _text_field(said: str) -> bytes:
    """Field 2, a string."""
    body = re.sub(r"[\ud800-\udfff]", "?", said).encode()
    return b"\x12" + _varint(len(body)) + body
