"""What people have decided to live with: a comment beside it, or a baseline of what was there before."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from trimtab.errors import InvalidInput
from trimtab.kinds.lint.finding import Finding
from trimtab.kinds.yaml import Document

BASELINE = ".trimtab-baseline"  # read where it lies in a linted folder
_COMMENT = re.compile(r"#\s*trimtab:ignore=([\w,-]+)")


def ignored_rules(document: Document, line: int) -> set[str]:
    """Rules that a comment names on this line, on the one above it, or above everything in the document."""
    lines = _lines(document.text)
    at = line - document.base
    near = lines[max(0, at - 1) : at + 1]
    return {rule for text in (*near, *_head(lines)) for named in _COMMENT.findall(text) for rule in named.split(",")}


@lru_cache(maxsize=4)
def _lines(text: str) -> list[str]:
    """Findings of one file come together; a list of thousands of objects is one text."""
    return text.split("\n")


def _head(lines: list[str]) -> list[str]:
    """Comments before the first word."""
    end = next((at for at, line in enumerate(lines) if line.strip() and line[0] not in "#-%"), len(lines))
    return lines[:end]


class Fingerprint(NamedTuple):
    """A finding wherever it moves to in its file."""

    file: str
    object: str
    rule: str
    path: str


def fingerprint(finding: Finding, folder: Path) -> Fingerprint:
    file = finding.file if finding.file == "-" else Path(os.path.relpath(finding.file, folder)).as_posix()
    return Fingerprint(file, finding.object, finding.rule, finding.path)


def read_baseline(path: Path) -> set[Fingerprint]:
    try:
        known = json.loads(path.read_text(encoding="utf-8"))["findings"]
        return {Fingerprint(**entry) for entry in known}
    except OSError as error:
        raise InvalidInput(str(path), error.strerror, "write it first: --update-baseline") from None
    except (ValueError, KeyError, TypeError):
        raise InvalidInput(str(path), "not a baseline", "write it again: --update-baseline") from None


def baseline_text(findings: Iterable[Finding], folder: Path) -> str:
    known = sorted({fingerprint(finding, folder) for finding in findings})
    return json.dumps({"findings": [entry._asdict() for entry in known]}, indent=2) + "\n"
