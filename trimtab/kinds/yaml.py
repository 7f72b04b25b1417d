"""Manifests from text: many documents, lists, line numbers; a broken document is reported and does not stop the others.

libyaml composes, the constructors below make values.
"""

from __future__ import annotations

import codecs
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

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


_SEPARATOR = re.compile(r"^---(?=\s|$)", re.MULTILINE)


def parts(text: str) -> Iterator[tuple[int, str]]:
    """Each document with the line on which it begins."""
    starts = _json_starts(text) or _yaml_starts(text)
    line = 1
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        part = text[start:end]
        if part.strip():
            yield line, part
        line += part.count("\n")


def _yaml_starts(text: str) -> list[int]:
    """A `---` at the start of a line can be nothing else."""
    return [0, *(match.start() for match in _SEPARATOR.finditer(text) if match.start())]


def _json_starts(text: str) -> list[int]:
    """Of objects that stand one after the other, as `jq .items[]` writes them and kubectl takes them; else none."""
    starts, at = [], _past_space(text, 0)
    while text[at : at + 1] == "{":
        starts.append(at)
        try:
            at = _past_space(text, json.JSONDecoder().raw_decode(text, at)[1])
        except (ValueError, RecursionError):
            return []
    return [0, *starts[1:]] if at == len(text) else []


def _past_space(text: str, at: int) -> int:
    while text[at : at + 1] in (" ", "\t", "\r", "\n"):
        at += 1
    return at


MAX_BYTES = 64 * 1024**2
MAX_NODES = 1_000_000
MAX_TENANT_BYTES, MAX_TENANT_NODES = 64 * 1024, 5_000  # of text that stands inside an object of a tenant
SUFFIXES = (".yaml", ".yml", ".json")
_SUSPICIOUS = 500  # brackets or columns; fewer cannot nest deeper than libyaml's recursion can bear

if not yaml.__with_libyaml__:  # pragma: no cover
    raise ImportError("PyYAML was built without libyaml: install a wheel, or libyaml's headers and build again")


class Document(NamedTuple):
    """One document: what it says, or what is wrong with it, and where it stands."""

    file: str
    line: int
    value: Any = None
    error: InvalidInput | None = None
    root: yaml.Node | None = None
    base: int = 1  # the line on which the text of libyaml's marks begins
    text: str = ""  # as it was written, comments included

    def line_of(self, path: str) -> int:
        """The line of a path such as spec.metrics[0].type, or of the nearest part of it that exists."""
        node, line = self.root, self.line
        for step in re.findall(r'\["([^"]*)"\]|\[(\d+)\]|([^.\[\]]+)', path):
            node = _child(node, step)
            if node is None:
                break
            line = self.base + node.start_mark.line
        return line


def _child(node: yaml.Node | None, step: tuple[str, str, str]) -> yaml.Node | None:
    quoted, index, name = step
    if isinstance(node, yaml.SequenceNode) and index:
        return node.value[int(index)] if int(index) < len(node.value) else None
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == (quoted or name)), None)
    return None


def documents(text: str | bytes, file: str = "-") -> Iterator[Document]:
    """Every document of a text, lists taken apart; empty ones are skipped."""
    try:
        whole = _text_of(text, file)
    except InvalidInput as error:
        yield Document(file, 1, error=error)
        return
    for line, part in parts(whole):
        document = _document(part, file, line)
        if document.error is not None or document.value is not None:
            yield from _unlisted(document)


def read_within(text: str, path: str) -> Any:
    """YAML that stands inside an object, such as a recommended value: one small document, no anchors."""
    if len(text) > MAX_TENANT_BYTES:
        raise InvalidInput(path, f"{len(text)} characters", f"at most {MAX_TENANT_BYTES} are read")
    found = _document(text, path, 1, MAX_TENANT_NODES, anchors=False)
    if found.error is not None:
        raise InvalidInput(path, f"{found.error.path}: {found.error.value}", found.error.fix)
    return found.value


def _text_of(text: str | bytes, file: str) -> str:
    if len(text) > MAX_BYTES:
        raise InvalidInput(file, "too large", f"files up to {MAX_BYTES // 1024**2} MiB are read; split it")
    if isinstance(text, str):
        return text
    wide = text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))  # as PowerShell writes it
    try:
        return text.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(file, f"byte {error.start}", "this is not UTF-8 text") from None


def _document(text: str, file: str, line: int, most: int = MAX_NODES, *, anchors: bool = True) -> Document:
    try:
        _guard_depth(text)
        if not anchors:
            _guard_anchors(text)
        root = yaml.compose(text, Loader=yaml.CSafeLoader)
        value = None if root is None else ValueBuilder(line, most).build(root, 0)
        return Document(file, line, value, root=root, base=line, text=text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = line + (mark.line if mark else 0)
        return Document(file, at, error=InvalidInput(f"line {at}", _problem(error), _hint(text, error)))
    except yaml.YAMLError as error:
        return Document(file, line, error=InvalidInput(f"line {line}", str(error), "this is not YAML"))
    except InvalidInput as error:
        return Document(file, int(error.path.removeprefix("line ") or line), error=error)


def _guard_depth(text: str) -> None:
    """Composing recurses in C: what could nest too deep is walked by events first."""
    brackets = text.count("[") + text.count("{")
    if brackets <= _SUSPICIOUS and max(map(len, text.split("\n"))) <= _SUSPICIOUS:
        return
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        opens = isinstance(event, yaml.CollectionStartEvent)
        depth += 1 if opens else -1 if isinstance(event, yaml.CollectionEndEvent) else 0
        if depth > MAX_DEPTH:
            raise too_deep(event.start_mark.line + 1)


def _guard_anchors(text: str) -> None:
    """Before composing: what is repeated by name is not even counted."""
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise InvalidInput(f"line {event.start_mark.line + 1}", "an anchor", "write it out")


def _problem(error: yaml.MarkedYAMLError) -> str:
    return str(error.problem or error.context or "cannot be read")


def _hint(text: str, error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    lines = text.split("\n")
    line = lines[mark.line] if mark and mark.line < len(lines) else ""
    if "{{" in text:
        return HELM_TEMPLATE
    if "\t" in line[: len(line) - len(line.lstrip())] or "'\\t'" in str(error.problem):
        return "YAML indents with spaces, never with tabs"
    if re.search(r":\s+[*&%@`]", line):
        return "quote this value: it starts with a character that means something to YAML"
    if re.search(r":\s+[^\"'\s].*:\s", line):
        return "quote this value: it has a colon in it"
    return "check the indentation, quotes and brackets of this line and the one before"


def _unlisted(document: Document) -> Iterator[Document]:
    """`kind: List` holds objects, not one object."""
    value = document.value
    listed = isinstance(value, dict) and str(value.get("kind", "")).endswith("List") and "items" in value
    if not listed or not isinstance(value["items"], list | None):
        yield document
        return
    items = [_named(item, value) for item in value["items"] or []]
    nodes = _child(document.root, ("", "", "items"))
    if nodes is None:  # merged in from an anchor: they have no place of their own
        yield from (document._replace(value=item) for item in items)
        return
    for item, node in zip(items, nodes.value, strict=False):
        yield document._replace(line=document.base + node.start_mark.line, value=item, root=node)


def _named(item: Any, within: dict[str, Any]) -> Any:
    """The API server leaves out of a list's items what the list says: a FooList holds Foos."""
    kind = str(within["kind"]).removesuffix("List")
    if not kind or not isinstance(item, dict) or "kind" in item:
        return item
    return {"apiVersion": within.get("apiVersion"), "kind": kind} | item


def load(path: str) -> Iterator[Document]:
    """The documents of a file, of every manifest under a folder, or of the standard input (`-`)."""
    if path == "-":
        yield from documents(sys.stdin.buffer.read(MAX_BYTES + 1), "-")
        return
    place = Path(path)
    if not place.exists():
        yield Document(path, 1, error=InvalidInput(path, "no such file", "check the path"))
        return
    if place.is_file():
        yield from _file(place)
        return
    names = sorted(_below(place))
    if not names:
        said = InvalidInput(path, "empty", f"this folder holds no manifest ({', '.join(SUFFIXES)})")
        yield Document(path, 1, error=said)
    for name in names:
        yield from _file(name, found_in_folder=True)


def _below(folder: Path) -> Iterator[Path]:
    """What may be a manifest; hidden folders and those of packages are their tools' own."""
    for found in folder.rglob("*"):
        inside = found.relative_to(folder).parts[:-1]
        if found.suffix in SUFFIXES and not any(part.startswith(".") or part == "node_modules" for part in inside):
            yield found


def _file(path: Path, found_in_folder: bool = False) -> Iterator[Document]:
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES + 1)
    except OSError as error:
        yield Document(
            str(path), 1, error=InvalidInput(str(path), error.strerror, "check the path and its permissions")
        )
        return
    nobodys = found_in_folder and b"apiVersion" not in text  # a broken one would still say so
    yield from (found for found in documents(text, str(path)) if not nobodys or isinstance(found.value, dict))
