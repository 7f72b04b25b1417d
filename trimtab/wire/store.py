"""store: the objects of one collection as last seen, and who wants to hear of changes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from trimtab.errors import TrimtabError
from trimtab.wire.objects import HasMeta

T = TypeVar("T", bound=HasMeta)
Key = tuple[str, str]
OnChange = Callable[[Key, "T | None", "T | None"], None]
log = logging.getLogger(__name__)


class Store(Generic[T]):
    """The objects as last seen, by (namespace, name); of what is not to be kept, none.

    Callbacks get (key, new or None, old or None).
    """

    def __init__(self, keep: Callable[[T], bool] | None = None) -> None:
        self.keep = keep
        self.items: dict[Key, T] = {}
        self.synced = asyncio.Event()
        self.heard_at = float("-inf")  # by the clock since boot; how fresh the content is
        self.unreadable = 0
        self.trouble: TrimtabError | None = None  # why it is not being followed right now
        self._listeners: list[OnChange[T]] = []

    def in_trouble(self, why: TrimtabError) -> bool:
        """Whether this is news: what stays wrong is said once."""
        known, self.trouble = self.trouble, why
        return str(known) != str(why)

    def on_change(self, listener: OnChange[T]) -> None:
        self._listeners.append(listener)

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[T]:
        return iter(self.items.values())

    def get(self, namespace: str, name: str) -> T | None:
        return self.items.get((namespace, name))

    def put(self, item: T) -> None:
        if self.keep is not None and not self.keep(item):
            return
        key = key_of(item)
        old = self.items.get(key)
        self.items[key] = item
        self._tell(key, item, old)

    def drop(self, key: Key) -> None:
        old = self.items.pop(key, None)
        if old is not None:
            self._tell(key, None, old)

    def replace(self, fresh: dict[Key, T]) -> None:
        """A new list: tell only what differs from what was known."""
        for key in self.items.keys() - fresh.keys():
            self.drop(key)
        for key, item in fresh.items():
            known = self.items.get(key)
            if known is None or known.metadata.resource_version != item.metadata.resource_version:
                self.put(item)
        self.synced.set()

    def _tell(self, key: Key, new: T | None, old: T | None) -> None:
        """An object that somebody cannot make sense of costs nobody the others."""
        for listener in self._listeners:
            try:
                listener(key, new, old)
            except Exception as error:
                self.unreadable += 1
                log.warning("%s/%s could not be understood and is left out: %s", *key, error)


def key_of(item: HasMeta) -> Key:
    return item.metadata.namespace, item.metadata.name
