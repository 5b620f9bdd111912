"""OTLP protobuf files: whole messages, or messages with their lengths before them, as the OTLP JSON of the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from data.errors import InputError
from data.logs.account import Account
from data.logs.json_stream import BROKEN, MAX_VALUE_BYTES, TOO_LONG, TRUNCATED, Record

_RESOURCE_SPANS = 0x0A  # field 1, a message


def is_protobuf(head: bytes) -> bool:
    """Whether a file begins like OTLP protobuf and not like text."""
    if head.lstrip()[:1] in {b"{", b"["} or not any(byte < 0x20 and byte not in b"\t\n\r" for byte in head):
        return False
    return _RESOURCE_SPANS in head[:5]


def proto_records(stream: BinaryIO, source: str, account: Account) -> Iterator[Record]:
    """Each message of a file as its OTLP JSON: of one message alone, or of several after 4 bytes or a varint of length.

    Raises InputError where opentelemetry-proto is not installed.
    """
    parse = parser(source)
    head = stream.peek(8)[:8]  # type: ignore[attr-defined]
    if head[0] == _RESOURCE_SPANS:
        messages: Iterator[bytes] = iter([stream.read(MAX_VALUE_BYTES)])
    else:
        messages = _framed(stream, source, account, varint=head[0] != 0)
    for number, message in enumerate(messages, start=1):
        where = f"{source}, message {number}"
        account.lines += 1
        value = parse(message)
        if value is None:
            account.skip(BROKEN.replace("JSON", "protobuf"), where)
        else:
            yield Record(value, where)


def _framed(stream: BinaryIO, source: str, account: Account, *, varint: bool) -> Iterator[bytes]:
    number = 0
    while True:
        number += 1
        where = f"{source}, message {number}"
        length = _varint(stream) if varint else int.from_bytes(stream.read(4), "big")
        if not length:
            return
        if length > MAX_VALUE_BYTES:
            account.skip(f"{TOO_LONG}: the rest of the file was not read", where)
            return
        message = stream.read(length)
        if len(message) < length:
            account.skip(TRUNCATED, where)
            return
        yield message


def _varint(stream: BinaryIO) -> int:
    value = shift = 0
    while byte := stream.read(1):
        value |= (byte[0] & 0x7F) << shift
        shift += 7
        if byte[0] < 0x80:
            break
    return value


def parser(source: str) -> Callable[[bytes], dict[str, Any] | None]:
    """bytes -> the message as OTLP JSON, or None for what is no message.

    Raises InputError where opentelemetry-proto is not installed.
    """
    try:
        from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]  # noqa: PLC0415
        from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # noqa: PLC0415
        from opentelemetry.proto.trace.v1.trace_pb2 import TracesData  # noqa: PLC0415
    except ImportError as error:
        raise InputError(
            "OTLP in protobuf needs opentelemetry-proto, which is not installed",
            source=source,
            hint="pip install opentelemetry-proto, or export OTLP JSON",
        ) from error

    def parse(message: bytes) -> dict[str, Any] | None:
        try:
            read = TracesData.FromString(message)
        except DecodeError:
            return None
        value: dict[str, Any] = MessageToDict(read)
        return value

    return parse
