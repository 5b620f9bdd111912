"""Strict YAML: one document of plain JSON values, without repeated keys, each value with its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from data.errors import InputError

MAX_REPEATED = 100_000
"""Values that aliases stand for, all together: a few lines of them could spell more than memory holds."""

Lines = dict[tuple[str | int, ...], int]
"""Line, from 1, of each value by its path of keys and positions."""

# the C loader reads a large document ten times as fast; it is there wherever PyYAML brings its binary
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_JSON_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float")}
_TEXT_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("str", "timestamp", "value")}


def read_yaml(path: Path) -> tuple[Any, Lines]:
    """The document of a file, and the line of each of its values. An empty file is None.

    A date stays the text that it is. Raises InputError, with the line, for a missing file, text that is not UTF-8,
    broken YAML, several documents, a repeated key, a key that is no text, a tag, and a value that contains itself.
    """
    source = str(path)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror or error}", source=source, hint="check the path and its permissions"
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 (byte {error.start + 1})", source=source, hint="save it as UTF-8") from error
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None, {}
        reading = _Reading(source, loader)
        return reading.value(node, ()), reading.lines
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error)
        line = mark.line + 1 if mark is not None else None
        raise InputError(f"not readable as YAML: {problem}", source=source, line=line) from error
    except RecursionError as error:
        raise InputError("nested too deeply", source=source) from error
    finally:
        loader.dispose()


class _Reading:
    """The walk over one document: what it has met so far, so that it ends."""

    def __init__(self, source: str, loader: Any) -> None:
        self.source, self.loader = source, loader
        self.lines: Lines = {}
        self.seen: set[int] = set()
        self.repeated = 0
        self.open: set[int] = set()

    def value(self, node: yaml.Node, path: tuple[str | int, ...]) -> Any:
        self.lines[path] = node.start_mark.line + 1
        self.repeated += id(node) in self.seen
        self.seen.add(id(node))
        if self.repeated > MAX_REPEATED:
            raise self.error(f"its aliases stand for more than {MAX_REPEATED:,} values", node)
        if id(node) in self.open:
            raise self.error("contains itself", node)
        self.open.add(id(node))
        try:
            if isinstance(node, yaml.MappingNode):
                return self.mapping(node, path)
            if isinstance(node, yaml.SequenceNode):
                return [self.value(item, (*path, number)) for number, item in enumerate(node.value)]
            return self.scalar(node)
        finally:
            self.open.discard(id(node))

    def mapping(self, node: yaml.MappingNode, path: tuple[str | int, ...]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, inner in node.value:
            # a number or a date as a key is the text that was written: '200' is how a response is named
            if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
                raise self.error("a key must be a single word", key)
            if key.value in found:
                raise self.error(f"key '{key.value}' is repeated", key)
            found[key.value] = self.value(inner, (*path, key.value))
        return found

    def scalar(self, node: yaml.Node) -> Any:
        if node.tag in _TEXT_TAGS:
            return node.value
        if node.tag in _JSON_TAGS:
            try:
                return self.loader.construct_object(node)
            except ValueError as error:
                raise self.error(f"'{node.value}' is no number", node) from error
        raise self.error(f"the tag {node.tag} is not read", node)

    def error(self, problem: str, node: yaml.Node) -> InputError:
        return InputError(problem, source=self.source, line=node.start_mark.line + 1)
