"""What a page shows in fences: YAML to apply, commands to type."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path
    for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md"))
    if "decisions" not in path.parts and "reference" not in path.parts
)
INLINE = re.compile(r"`((?:kubectl )?trimtab [a-z][^`\n\[]*)`")  # a `[` makes it a pattern of commands, not one
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def blocks(page: Path, *languages: str) -> list[str]:
    return [text for language, text in FENCE.findall(page.read_text()) if language in languages]


def commands(page: Path) -> Iterator[list[str]]:
    """Every `trimtab ...` of a page, in fences and in the text, as words; what a shell does around it is left out."""
    fenced = "\n".join(blocks(page, "", "console", "bash", "sh")).replace("\\\n", " ").splitlines()
    for line in (*fenced, *INLINE.findall(FENCE.sub("", page.read_text()))):
        for part in re.split(r"\s\|\s|\s&&\s|;\s|\s2?>\s\S+", line.removeprefix("$ ")):
            if (words := _words(part))[:1] == ["trimtab"] or words[:2] == ["kubectl", "trimtab"]:
                yield words


def _words(part: str) -> list[str]:
    try:
        words = shlex.split(part, comments=True)
    except ValueError:  # half of a quotation: not a command
        return []
    first = next((number for number, word in enumerate(words) if "=" not in word), 0)  # behind VARIABLE=VALUE
    return words[first:]
