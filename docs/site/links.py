"""A hook of mkdocs: a link that leaves docs/ is checked and shown as a path, since the page has no such neighbour."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(((?:\.\./)+[^)#\s]+)(#[^)]*)?\)")


def on_page_markdown(markdown: str, page: Any, **more: Any) -> str:
    folder = (ROOT / "docs" / page.file.src_uri).parent
    return LINK.sub(lambda link: _shown(link, folder, page.file.src_uri), markdown)


def _shown(link: re.Match[str], folder: Path, source: str) -> str:
    target = (folder / link[2]).resolve()
    if target.is_relative_to(ROOT / "docs"):
        return link[0]  # mkdocs checks its own
    if not target.exists():
        raise FileNotFoundError(f"docs/{source} links to {link[2]}, which is not there")
    return f"{link[1]} (`{target.relative_to(ROOT)}`)"
