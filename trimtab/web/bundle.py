"""The page's script and style, which `make page` builds from page/ and the wheel carries."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from html import escape
from pathlib import Path

from trimtab.errors import InvalidInput

STATIC = Path(__file__).parent / "static"


@cache
def part(name: str) -> str:
    path = STATIC / name
    if not path.exists():
        raise InvalidInput("page", str(path), "it was not built: run `make page` (an installed wheel carries it)")
    return path.read_text(encoding="utf-8")


def shell() -> str:
    """The dashboard's only document; everything else comes by script."""
    return (
        f"{_head('trimtab')}"
        '<link rel="stylesheet" href="/page.css"></head><body>'
        "<noscript>This page needs JavaScript; `trimtab explain` says the same in a terminal.</noscript>"
        '<script src="/page.js"></script></body></html>\n'
    )


def document(title: str, content: str) -> str:
    """One file that needs no network: JSON, style and script inside, and nothing else may run or be loaded."""
    style, script = part("page.css"), part("page.js").replace("</script", "<\\/script")
    policy = f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}"
    data = content.replace("<", "\\u003c")
    return (
        f'{_head(title)}<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">'
        f"<style>{style}</style></head><body>"
        f'<script type="application/json" id="report">{data}</script>'
        f"<script>{script}</script></body></html>\n"
    )


def _head(title: str) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title>"
        '<link rel="icon" href="data:,">'
    )


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
