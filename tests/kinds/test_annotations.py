"""Keys of annotations and labels have one home."""

from __future__ import annotations

import ast
from pathlib import Path

import trimtab
from trimtab.kinds.annotations import KEDA_PAUSED, OURS

HOME = Path("kinds/annotations.py")
WORDS_OF_HELP = Path("cli/choices.py")  # held equal to their owners by tests/cli/test_help.py
PACKAGE = Path(trimtab.__file__).parent


def keys_in(path: Path) -> set[str]:
    """Texts that are a key as a whole; the API's own version is none."""
    texts = {node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)}
    whole = {text for text in texts if isinstance(text, str) and " " not in text and text != f"{OURS}v1alpha1"}
    return {text for text in whole if text.startswith(OURS) or text == KEDA_PAUSED}


def test_keys_are_spelled_in_one_module() -> None:
    spelled = {path.relative_to(PACKAGE): keys_in(path) for path in PACKAGE.rglob("*.py")}
    assert len(spelled[HOME]) > 10
    assert {path: keys for path, keys in spelled.items() if keys and path not in (HOME, WORDS_OF_HELP)} == {}
