"""What a repository's folders say about its manifests: which are patches, which templates, which never meet."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Any

from trimtab.kinds.yaml import HELM_TEMPLATE, Document

_CHOICES = frozenset({"overlays", "environments", "envs", "clusters", "stages"})  # of whose folders one is applied
_PATCHES = ("patches", "patchesStrategicMerge", "patchesJson6902")


def patch_files(documents: Iterable[Document]) -> set[str]:
    """The files that a kustomization among these lays over others; alone they are no whole objects."""
    return {
        os.path.normpath(PurePath(document.file).parent / path)
        for document in documents
        if isinstance(document.value, dict) and document.value.get("kind") in ("Kustomization", "Component", None)
        for path in _patch_paths(document.value)
    }


def _patch_paths(kustomization: dict[str, Any]) -> Iterator[str]:
    for field in _PATCHES:
        written = kustomization.get(field)
        for patch in written if isinstance(written, list) else []:
            path = patch.get("path") if isinstance(patch, dict) else patch
            if isinstance(path, str) and "\n" not in path:
                yield path


def is_patch(document: Document, patches: set[str]) -> bool:
    named = isinstance(document.value, dict) and "$patch" in document.value
    return named or os.path.normpath(document.file) in patches


def is_template(document: Document) -> bool:
    """Helm has not rendered it yet, so nobody knows what it will say."""
    if document.error is not None:
        return document.error.fix == HELM_TEMPLATE
    value = document.value if isinstance(document.value, dict) else {}
    return _holds_braces(value.get("spec")) or _holds_braces(value.get("metadata"))


def _holds_braces(value: Any) -> bool:
    if isinstance(value, dict):
        return any("{{" in str(name) or _holds_braces(inner) for name, inner in value.items())
    if isinstance(value, list):
        return any(map(_holds_braces, value))
    return isinstance(value, str) and "{{" in value


def never_together(first: Document, second: Document) -> bool:
    """Folders below `overlays` and its like are applied one at a time."""
    one, other = PurePath(first.file).parent.parts, PurePath(second.file).parent.parts
    shared = next((at for at, parts in enumerate(zip(one, other, strict=False)) if parts[0] != parts[1]), None)
    return shared is not None and shared > 0 and one[shared - 1] in _CHOICES
