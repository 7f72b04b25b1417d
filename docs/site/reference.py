"""The reference, made from the code: `python docs/site/reference.py` writes it, a test says when it is old."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from msgspec import structs

from trimtab.cli import COMMANDS
from trimtab.kinds import annotations
from trimtab.kinds.config_keys import known_keys, plain
from trimtab.kinds.crd import CRDS, Crd, definition
from trimtab.policy import Advice, Inspection

DOCS = Path(__file__).parents[1]
MADE = "<!-- made by docs/site/reference.py: change the code, not this page -->\n"


EXIT_CODES = (
    "Exit codes of all of them: 0 all is well, 1 something was found or refused, 2 it could not be done. Errors are "
    "sentences that name the field, the value and the fix; `TRIMTAB_DEBUG=1` shows where one came from. "
    "`-o json` is for machines."
)


def pages() -> dict[str, str]:
    """Every generated page by its path under docs/."""
    return {
        "reference/commands.md": commands(),
        "reference/fields.md": fields(),
        "reference/annotations.md": annotation_page(),
        "reference/configuration.md": configuration(),
        "decisions/index.md": decisions(),
    }


def commands() -> str:
    found = {
        name: importlib.import_module(f"trimtab.cli.{name.replace('-', '_')}").command for name in sorted(COMMANDS)
    }
    plugin = importlib.import_module("trimtab.cli.kubectl").plugin
    parts = [
        MADE + "# Commands",
        EXIT_CODES,
        *(_command(f"trimtab {name}", command) for name, command in found.items()),
        *(_command(f"kubectl trimtab {name}", command) for name, command in sorted(plugin.commands.items())),
    ]
    return "\n\n".join(parts) + "\n"


def _command(name: str, command: click.Command) -> str:
    context = click.Context(command, info_name=name)
    usage = " ".join(piece for piece in command.collect_usage_pieces(context))
    records = [record for param in command.get_params(context) if (record := param.get_help_record(context))]
    rows = [f"| `{_cell(names)}` | {_cell(text)} |" for names, text in records if "--help" not in names]
    table = ["| option | meaning |", "|---|---|", *rows] if rows else []
    return "\n".join([f"## {name}", "", _prose(command.help or ""), "", f"`{name} {usage}`", "", *table]).rstrip()


def _prose(text: str) -> str:
    """Paragraphs; those that click must not wrap are examples to copy."""
    return "\n\n".join(map(_paragraph, inspect.cleandoc(text).split("\n\n")))


def _paragraph(text: str) -> str:
    if "\b" not in text:
        return _cell(text)
    lines = [line.strip() for line in text.replace("\b", "").strip().splitlines()]
    return "\n".join(["```console", *lines, "```"])


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|").strip()


def fields() -> str:
    intro = (
        "Every field of every kind we define, as the API server checks it. `[]` is a list. Fields of an embedded "
        "Kubernetes type (selectors, metrics) are Kubernetes' own."
    )
    return "\n\n".join([MADE + "# Fields", intro, *map(_kind, CRDS)]) + "\n"


def _kind(crd: Crd) -> str:
    made = definition(crd)
    version = made["spec"]["versions"][0]
    root = version["schema"]["openAPIV3Schema"]
    rows = list(_fields(root["properties"]["spec"], "spec"))
    return "\n".join(
        [f"## {crd.kind}", "", f"`{made['spec']['group']}/{version['name']}`. {root.get('description', '')}", "",
         "| field | type | meaning |", "|---|---|---|", *rows]
    )  # fmt: skip


def _fields(schema: dict[str, Any], path: str) -> Iterator[str]:
    required = schema.get("required", ())
    for name, child in schema.get("properties", {}).items():
        inner, where = child, f"{path}.{name}"
        while inner.get("type") == "array":
            inner, where = inner["items"], f"{where}[]"
        yield f"| `{where}` | {_type(child)}{', required' if name in required else ''} | {_meaning(child)} |"
        yield from _fields(inner, where)


def _type(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("x-kubernetes-int-or-string") or "anyOf" in schema:
        return "number or text"
    return {"array": "list", "integer": "whole number"}.get(schema.get("type", ""), schema.get("type", "any"))


def _meaning(schema: dict[str, Any]) -> str:
    limits = [f"{word} {schema[key]}" for key, word in LIMITS.items() if key in schema]
    default = [f"default `{schema['default']}`"] if "default" in schema else []
    said = [schema["description"].rstrip(".")] if "description" in schema else []
    return _cell(". ".join([*said, ", ".join([*limits, *default])]).strip(". "))


LIMITS = {"minimum": "at least", "maximum": "at most", "minItems": "items at least", "maxItems": "items at most"}


def annotation_page() -> str:
    rows = [f"| `{value}` | {meaning} |" for value, meaning in _commented(Path(annotations.__file__))]
    intro = "Every annotation, label and configuration key that is read or written, ours and other projects'."
    return "\n".join([MADE + "# Annotations and labels", "", intro, "", "| key | meaning |", "|---|---|", *rows]) + "\n"


def _commented(module: Path) -> Iterator[tuple[str, str]]:
    """Constants of text and the comment at their end or above them."""
    lines = module.read_text().splitlines()
    for node in ast.parse("\n".join(lines)).body:
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)):
            continue
        line = lines[node.lineno - 1]
        comment = line.partition("  # ")[2] or lines[node.lineno - 2].removeprefix("# ")
        if isinstance(node.targets[0], ast.Name) and node.targets[0].id != "OURS":
            yield str(node.value.value), _cell(comment)


def configuration() -> str:
    intro = (
        "Keys of `spec.config` of an Analytics, and of `trimtab recommend --set KEY=VALUE`. A key may be written with "
        "the prefix of its generation (`ehpa.`, `replicas.`) or without; an unknown key is refused with the nearest "
        "right one."
    )
    defaults = {field.name: field.default for field in structs.fields(Inspection)}
    keys = {plain(name).removeprefix("resource."): key for advice in Advice for name, key in known_keys(advice).items()}
    rows = [
        f"| `{name}` | {UNITS[key.read.__name__]} | {_default(defaults.get(key.field))} |"
        for name, key in sorted(keys.items())
    ]
    return (
        "\n".join([MADE + "# Configuration of advice", "", intro, "", "| key | a | default |", "|---|---|---|", *rows])
        + "\n"
    )


UNITS = {
    "whole": "whole number",
    "number": "number",
    "ratio": "share between 0 and 1",
    "share": "share between 0 and 1",
    "cores": "number of cores",
    "percent": "percentage",
    "flag": '`"true"` or `"false"`',
    "seconds": "duration, such as `168h`",
    "algorithm": "`exact` or `crane`",
    "zone": "time zone",
    "ladder": "list of sizes, such as `0.25c0.25g,1c2g`",
}


def _default(value: object) -> str:
    return "" if value in (None, (), structs.NODEFAULT) else f"`{value}`"


def decisions() -> str:
    rows = [_decision(path) for path in sorted((DOCS / "decisions").glob("[0-9]*.md"))]
    intro = "Why it is so. A decision that falls is rewritten whole; what it was before is in git."
    return (
        "\n".join([MADE + "# Decisions", "", intro, "", "| | decision | status | since |", "|---|---|---|---|", *rows])
        + "\n"
    )


def _decision(path: Path) -> str:
    lines = path.read_text().splitlines()
    number, _, title = lines[0].removeprefix("# ").partition(": ")
    status, _, since = lines[2].rstrip(".").rpartition(" since ")
    return f"| {number} | [{title[:1].upper()}{title[1:]}]({path.name}) | {status.lower()} | {since} |"


if __name__ == "__main__":
    for name, text in pages().items():
        (DOCS / name).write_text(text)
