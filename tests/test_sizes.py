"""The package stays small: its code lines have a limit, and functions stay short.

Module length has no limit: it made people split code that is only ever used together.
"""

from __future__ import annotations

import ast
import io
import tokenize
from pathlib import Path
from statistics import median

import trimtab

PACKAGE = Path(trimtab.__file__).parent
LIMIT_FILE = Path(__file__).parent / "code_lines_limit.txt"
SOURCES = {path: path.read_text() for path in sorted(PACKAGE.rglob("*.py"))}
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def code_lines(source: str) -> int:
    """Count the lines that hold code: no comments, docstrings or blank lines."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            docstring = node.body[0]
            lines.difference_update(range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1))
    return len(lines)


def test_code_lines_are_counted_without_comments_docstrings_and_blank_lines() -> None:
    function = 'def f():\n    """Do.\n\n    More.\n    """\n    text = """a\n    b"""\n    return text  # x\n'
    source = '"""Module."""\n\n# why\n' + function
    assert code_lines(source) == 4


def test_the_package_stays_within_its_limit_of_code_lines() -> None:
    limit = next(int(line) for line in LIMIT_FILE.read_text().splitlines() if line.strip().isdigit())
    total = sum(map(code_lines, SOURCES.values()))
    assert total <= limit, f"{total} code lines; {LIMIT_FILE.name} allows {limit}: what does the new code replace?"


def test_functions_are_short() -> None:
    lengths = {
        f"{path.relative_to(PACKAGE)}:{node.lineno} {node.name}": (node.end_lineno or 0) - node.lineno + 1
        for path, text in SOURCES.items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }
    ordered = sorted(lengths.values())
    longest = sorted(lengths, key=lengths.__getitem__, reverse=True)
    assert ordered[-1] <= 74, f"split {longest[0]}"
    assert ordered[int(0.9 * (len(ordered) - 1))] <= 15, f"more than a tenth is long: {longest[:20]}"
    assert median(ordered) <= 6
