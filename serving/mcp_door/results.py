"""Results: an upstream's answer as the model gets it, capped, with a handle to the rest, and without credentials."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import mcp_types as types

from serving.mcp_door.credentials import Credentials

MEDIA_CHARACTERS = 4_000_000
"""Of images, sounds and files in one answer, as the protocol writes them; what is over is left out, and said to be."""

Keep = Callable[[str], str]
"""Keeps a text that is too long, and gives its beginning with a note on the rest."""


def texts_of(content: Sequence[types.ContentBlock]) -> str:
    """The texts of an answer, one under the other."""
    return "\n".join(text for block in content if (text := _text_of(block)) is not None)


def cleaned(result: types.CallToolResult, credentials: Credentials) -> types.CallToolResult:
    """The answer without credentials, and without what is between its server and the protocol's library."""
    raw = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    fields = {name: raw[name] for name in ("content", "structuredContent", "isError") if name in raw}
    return types.CallToolResult.model_validate(credentials.hidden_json(fields))


def capped(result: types.CallToolResult, cap: int, keep: Keep) -> types.CallToolResult:
    """The answer with at most `cap` characters of text.

    A short one is passed on as it is. Of a long one the model gets the beginning; `keep` has the whole: its texts, or
    where it has none, its structured content.
    """
    text = texts_of(result.content)
    structured = "" if result.structured_content is None else json.dumps(result.structured_content, ensure_ascii=False)
    whole = text if text.strip() else structured
    content = _without_large_media(result.content)
    if len(whole) > cap:
        others = [block for block in content if _text_of(block) is None]
        return types.CallToolResult(content=[_block(keep(whole)), *others], is_error=result.is_error)
    return types.CallToolResult(
        content=content if text.strip() or not structured else [_block(structured), *content],
        structured_content=result.structured_content if len(structured) <= cap else None,
        is_error=result.is_error,
    )


def _without_large_media(content: Sequence[types.ContentBlock]) -> list[types.ContentBlock]:
    """The answer with no more of what is not text than there is room for."""
    kept: list[types.ContentBlock] = []
    left = MEDIA_CHARACTERS
    for block in content:
        size = 0 if _text_of(block) is not None else len(block.model_dump_json(by_alias=True, exclude_none=True))
        if size <= left:
            left -= size
            kept.append(block)
        else:
            kept.append(_block(f"[{block.type}, {size:,} characters, left out: too large]"))
    return kept


def _text_of(block: types.ContentBlock) -> str | None:
    if isinstance(block, types.TextContent):
        return block.text
    if isinstance(block, types.EmbeddedResource) and isinstance(block.resource, types.TextResourceContents):
        return block.resource.text
    return None


def _block(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)


def answer(text: str, *, error: bool = False, structured: dict[str, Any] | None = None) -> types.CallToolResult:
    """An answer of the door's own."""
    return types.CallToolResult(content=[_block(text)], structured_content=structured, is_error=error)
