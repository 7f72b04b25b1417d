"""events: what happened to an object, as Events that `kubectl describe` shows; only when something changed."""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

from trimtab.errors import NotLeading, TrimtabError
from trimtab.wire.from_kubernetes import rfc3339
from trimtab.wire.kube import Kube
from trimtab.wire.objects import Custom
from trimtab.wire.resources import EVENTS, Resource

log = logging.getLogger(__name__)
LONGEST = 1000  # the API server refuses longer messages


class Happening(NamedTuple):
    reason: str
    message: str
    warning: bool = False


async def tell(writer: Kube, resource: Resource, about: Custom, what: Happening, at: float) -> None:
    """Best effort: an event that cannot be written must not undo what it speaks of."""
    try:
        await writer.create(Custom, EVENTS, about.metadata.namespace, body(resource, about, what, at))
    except NotLeading:
        raise
    except TrimtabError as error:
        log.warning("event %s for %s/%s: %s", what.reason, about.metadata.namespace, about.metadata.name, error)


def body(resource: Resource, about: Custom, what: Happening, at: float) -> dict[str, Any]:
    meta, now = about.metadata, rfc3339(at)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{meta.name[:200]}.", "namespace": meta.namespace},
        "involvedObject": {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "namespace": meta.namespace,
            "name": meta.name,
            "uid": meta.uid,
        },
        "reason": what.reason,
        "message": what.message[:LONGEST],
        "type": "Warning" if what.warning else "Normal",
        "source": {"component": "trimtab"},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
