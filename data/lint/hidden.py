"""Text that is not what it looks like: invisible, out of sight, encoded, or of letters that pass for others."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from data.cards import ToolCard
from data.findings import Finding
from data.invisible import escaped, invisible_characters, look_alike_words, mixed_scripts
from data.lint.texts import cut, finding

# a reader's window ends long before; a model reads on
_GAP = re.compile(r"(?<=\S)\s{12,}(?=\S)")
_WIDE = re.compile(r"[^\S\r\n]{60,}")
_TALL = 12
_CODE = re.compile(r"[A-Za-z0-9+/_-]{24,}={0,2}|(?:[0-9a-fA-F]{2}[ :]?){16,}")
_ESCAPES = re.compile(r"(?:\\x[0-9a-f]{2}|\\u[0-9a-f]{4}|%[0-9a-f]{2}|&#x?[0-9a-f]{2,6};){8,}", re.I)
_MIN_DECODED = 16
_NAMES = frozenset({"tool_id", "name", "domain"})


def lint_hidden(card: ToolCard, texts: list[tuple[str, str]]) -> Iterator[Finding]:
    """What of a card's texts a reviewer would not see as it is."""
    for field, text in texts:
        hidden = invisible_characters(text)
        if hidden:
            points = ", ".join(f"U+{ord(character):04X}" for character in hidden[:8])
            yield finding("invisible-text", card, field, f"holds {points}: {cut(escaped(_around(text, hidden[0])))}")
        if field in _NAMES:
            scripts = mixed_scripts(text)
            if scripts:
                yield finding("mixed-scripts", card, field, f"mixes {' and '.join(scripts)} letters")
        elif not text.isascii():
            words = look_alike_words(text)
            if words:
                shown = cut(", ".join(words[:5]))
                yield finding("mixed-scripts", card, field, f"holds words of mixed alphabets: {shown}")
        if len(text) > _MIN_DECODED:
            if any(gap.group().count("\n") >= _TALL or _WIDE.search(gap.group()) for gap in _GAP.finditer(text)):
                yield finding("out-of-sight", card, field, "goes on after a gap that ends what a reader sees")
            escapes = _ESCAPES.search(text)
            if escapes:
                yield finding("encoded-text", card, field, f"holds '{cut(escapes.group())}'")
            elif message := encoded_message(text):
                yield finding("encoded-text", card, field, f"holds a code that says '{cut(message)}'")


def encoded_message(text: str) -> str:
    """What a base64 or hexadecimal code in the text says where that is words, else nothing: ids and keys say none."""
    for match in _CODE.finditer(text):
        code = match.group()
        readings = [_from_base64(code)]
        digits = re.sub("[ :]", "", code)
        if len(digits) % 2 == 0 and re.fullmatch("[0-9a-fA-F]+", digits):
            readings.append(bytes.fromhex(digits))
        for raw in readings:
            if len(raw) >= _MIN_DECODED and raw.isascii():
                message = raw.decode("ascii")
                if message.isprintable() and message.count(" ") >= 2:
                    return message
    return ""


def _from_base64(code: str) -> bytes:
    plain = code.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4))
    except binascii.Error:
        return b""


def _around(text: str, character: str) -> str:
    at = text.index(character)
    return text[max(0, at - 40) : at + 80]
