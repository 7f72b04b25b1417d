"""Values from YAML's nodes: strings stay strings (no dates, no 12:30 as 750), duplicate keys are errors.

What anchors unfold to is counted, so that a small file cannot become a large one.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from trimtab.errors import InvalidInput

MAX_DEPTH = 100
_WORDS = {"int": "a whole number", "float": "a number", "bool": "true or false"}
_BOOLS = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}
_INT = re.compile(r"[+-]?(0[bB][01_]+|0[xX][0-9a-fA-F_]+|0o?[0-7_]+|[0-9][0-9_]*)$")
_LONGEST_NUMBER = 1000  # characters; Python refuses to print, and to read, numbers of a few thousand digits
HELM_TEMPLATE = "this looks like a Helm template: render it first (helm template CHART)"


class ValueBuilder:
    """Values from nodes; counts what it makes."""

    def __init__(self, line: int, most: int) -> None:
        self._line, self._made, self._most = line, 0, most

    def build(self, node: yaml.Node, depth: int) -> Any:
        self._made += 1
        if self._made > self._most:
            raise self._refuse(node, "anchors", f"this unfolds to more than {self._most} values; write it out")
        if depth > MAX_DEPTH:
            raise too_deep(self._line + node.start_mark.line)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(child, depth + 1) for child in node.value]
        return self._mapping(node, depth)

    def _mapping(self, node: yaml.Node, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key, child in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                merged |= self._merged(child, depth)
                continue
            name = key.value if isinstance(key, yaml.ScalarNode) else None
            if name is None:
                if isinstance(key, yaml.MappingNode):  # {{ .Values.x }} is a mapping for a key
                    raise self._refuse(key, "{{", HELM_TEMPLATE)
                raise self._refuse(key, "a key", "keys are plain words")
            if name in made:
                raise self._refuse(key, name, "this key stands here twice; the second would win in silence")
            made[name] = self.build(child, depth + 1)
        return merged | made if merged else made

    def _merged(self, node: yaml.Node, depth: int) -> dict[str, Any]:
        value = self.build(node, depth + 1)
        parts = value if isinstance(value, list) else [value]
        if not all(isinstance(part, dict) for part in parts):
            raise self._refuse(node, "<<", "only mappings can be merged")
        return {name: inner for part in reversed(parts) for name, inner in part.items()}

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        tag, text = node.tag.rpartition(":")[2], node.value
        if tag in ("str", "timestamp", "value"):
            return text
        if tag == "null":
            return None
        if tag not in ("int", "bool", "float"):
            raise self._refuse(node, node.tag, "manifests have no tags of their own")
        try:
            return self._plain(tag, node)
        except (KeyError, ValueError):
            value = text if len(text) <= 40 else f"{text[:20]}..."
            raise self._refuse(node, value, f"this cannot be read as {_WORDS[tag]}") from None

    def _plain(self, tag: str, node: yaml.ScalarNode) -> Any:
        if len(node.value) > _LONGEST_NUMBER:
            raise ValueError("too long")
        if tag == "bool":
            return _BOOLS[node.value.lower()]
        return self._int(node.value) if tag == "int" else self._float(node)

    def _int(self, text: str) -> int | str:
        if text.isdecimal() and (text[0] != "0" or text == "0"):
            return int(text)
        if not _INT.match(text):
            return text  # 12:30, which YAML 1.1 would read in base sixty
        plain = text.replace("_", "")
        octal = re.fullmatch(r"([+-]?)0o?([0-7]+)", plain)
        return int(octal[1] + octal[2], 8) if octal else int(plain, 0)

    def _float(self, node: yaml.ScalarNode) -> float | str:
        text = node.value.replace("_", "").lower()
        if ":" in text:
            return str(node.value)
        if text.lstrip("+-") in (".inf", ".nan"):
            raise self._refuse(node, node.value, "write a finite number")
        return float(text)

    def _refuse(self, node: yaml.Node, value: object, fix: str) -> InvalidInput:
        return InvalidInput(f"line {self._line + node.start_mark.line}", value, fix)


def too_deep(line: int) -> InvalidInput:
    return InvalidInput(f"line {line}", "nesting", f"no manifest nests deeper than {MAX_DEPTH} levels")
