"""The base of every record, and the refusal of one that contradicts itself."""

from __future__ import annotations

import msgspec

from trimtab.errors import InvalidPolicy


class Record(msgspec.Struct, frozen=True, kw_only=True, tag_field="is", tag=True, gc=False):
    """The base of every record of ours: frozen, named fields, tagged so that a journal reads it back.

    Frozen records only ever point to older ones, so they cannot form cycles and need no garbage collector.
    """


def require(holds: bool, path: str, value: object, fix: str) -> None:
    """Refuse the whole policy before anything is decided; NaN fails every comparison and so ends here too."""
    if not holds:
        raise InvalidPolicy(path, value, fix)
