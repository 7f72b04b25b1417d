"""How patches change an object, and who owns which field afterwards (managedFields, as far as trimtab asks)."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

Object = dict[str, Any]
FieldPath = tuple[str, ...]  # as FieldsV1 writes them: "f:spec", 'k:{"name":"app"}'
KEYED = ("containers", "initContainers")  # lists that are merged by name; all others are one value
OWNED = ("spec", "status", "data")  # what ownership is kept of, beside labels and annotations
ABSENT = object()


class Entry(NamedTuple):
    """One row of managedFields: who, how, through which door."""

    manager: str
    operation: str = "Update"
    subresource: str = ""


class Ownership(NamedTuple):
    at: str
    paths: frozenset[FieldPath]


Owners = dict[Entry, Ownership]


def merged(now: Any, patch: Any) -> Any:
    """RFC 7386; what does not change is shared, not copied."""
    if not isinstance(patch, dict):
        return patch
    result = dict(now) if isinstance(now, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value) if isinstance(value, dict) else value
    return result


def strategic(now: Any, patch: Any) -> Any:
    """The same, but containers are merged by name."""
    if not isinstance(patch, dict):
        return patch
    result = dict(now) if isinstance(now, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif key in KEYED and isinstance(result.get(key), list):
            result[key] = _by_name(result[key], value)
        else:
            result[key] = strategic(result.get(key), value)
    return result


def _by_name(now: list[Object], patch: list[Object]) -> list[Object]:
    changes = {item["name"]: item for item in patch}
    kept = [strategic(item, changes.pop(item["name"], {})) for item in now]
    return kept + list(changes.values())


def without(now: Any, path: FieldPath) -> Any:
    """The object with one field less."""
    if not isinstance(now, dict):
        return now
    key = path[0][2:]
    if key not in now or path[0].startswith("k:"):
        return now
    if len(path) == 1:
        return {name: value for name, value in now.items() if name != key}
    return now | {key: without(now[key], path[1:])}


def leaves(found: Object) -> dict[FieldPath, Any]:
    """Every owned field of an object with its value."""
    paths: dict[FieldPath, Any] = {}
    for key in OWNED:
        if key in found:
            _add_leaves(found[key], (f"f:{key}",), paths)
    meta = found.get("metadata") or {}
    for key in ("labels", "annotations"):
        if key in meta:
            _add_leaves(meta[key], ("f:metadata", f"f:{key}"), paths)
    return paths


def _add_leaves(value: Any, path: FieldPath, paths: dict[FieldPath, Any]) -> None:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            _add_leaves(inner, (*path, f"f:{key}"), paths)
    elif isinstance(value, list) and path[-1][2:] in KEYED:
        for item in value:
            _add_leaves(item, (*path, f'k:{{"name":"{item["name"]}"}}'), paths)
    else:
        paths[path] = value


def changed(before: Object, after: Object) -> tuple[set[FieldPath], set[FieldPath]]:
    """The fields that have another value now, and those that are gone; equal parts are not walked through."""
    parts = [key for key in OWNED if before.get(key) is not after.get(key)]
    old, new = ({key: found[key] for key in parts if key in found} for found in (before, after))
    for found, part in ((before, old), (after, new)):
        part["metadata"] = found.get("metadata") or {}
    then, now = leaves(old), leaves(new)
    return {path for path, value in now.items() if then.get(path, ABSENT) != value}, then.keys() - now.keys()


def updated(owners: Owners, entry: Entry, before: Object, after: Object, at: str) -> Owners:
    """Who changes a field owns it alone."""
    new, gone = changed(before, after)
    if not new and not gone:
        return owners
    result = {key: Ownership(held.at, held.paths - new - gone) for key, held in owners.items()}
    mine = result.get(entry, Ownership(at, frozenset()))
    result[entry] = Ownership(at, mine.paths | new)
    return {key: held for key, held in result.items() if held.paths}


def conflicts(owners: Owners, entry: Entry, now: Object, wanted: Object) -> list[str]:
    """Who owns a field that an apply would change."""
    have, want = leaves(now), leaves(wanted)
    differ = {path for path, value in want.items() if path in have and have[path] != value}
    return [key.manager for key, held in owners.items() if key != entry and held.paths & differ]


def applied(now: Object, wanted: Object, owners: Owners, entry: Entry, at: str) -> tuple[Object, Owners]:
    """Server-side apply: what is written is ours, what we wrote before and do not write now goes."""
    want = leaves(wanted)
    after = strategic(now, wanted)
    before_ours = owners.get(entry, Ownership(at, frozenset())).paths
    others = frozenset[FieldPath]().union(*(held.paths for key, held in owners.items() if key != entry))
    for path in before_ours - want.keys() - others:
        after = without(after, path)
    new, gone = changed(now, after)
    result = {key: Ownership(held.at, held.paths - new - gone) for key, held in owners.items() if key != entry}
    result[entry] = Ownership(at, frozenset(want))
    return after, {key: held for key, held in result.items() if held.paths}


def managed_fields(owners: Owners) -> list[Object]:
    """As the API server shows it. Writes of a scale bear no date there."""
    return [_row(entry, held) for entry, held in owners.items()]


def _row(entry: Entry, held: Ownership) -> Object:
    tree: Object = {}
    for path in sorted(held.paths):
        branch = tree
        for name in path:
            branch = branch.setdefault(name, {})
    row = {"manager": entry.manager, "operation": entry.operation, "fieldsType": "FieldsV1", "fieldsV1": tree}
    dated = {} if entry.subresource == "scale" else {"time": held.at}
    return row | dated | ({"subresource": entry.subresource} if entry.subresource else {})


def encoded(value: Any) -> bytes:
    return msgspec.json.encode(value)
