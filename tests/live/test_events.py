"""Events bear the tick's time, fit the API server's limits, and undo nothing when they fail."""

from __future__ import annotations

import asyncio
import logging

import pytest

from tests.live.build import AT, AUTOSCALERS, custom
from tests.live.memory_api import MemoryApi
from trimtab.errors import NotLeading
from trimtab.live.tell.status_writer import LONGEST, Happening, tell
from trimtab.wire.from_kubernetes import rfc3339

EVENTS = "/api/v1/namespaces/shop/events"


def told(api: MemoryApi, what: Happening) -> None:
    asyncio.run(tell(api.kube(), AUTOSCALERS, custom(), what, AT))


def test_an_event_names_its_object_and_the_time_of_the_tick() -> None:
    api = MemoryApi()
    told(api, Happening("Undone", "x" * 2 * LONGEST, warning=True))
    (event,) = api.objects.values()
    assert event["involvedObject"]["uid"] == "uid-web" and event["involvedObject"]["kind"] == "Autoscaler"
    assert event["firstTimestamp"] == event["lastTimestamp"] == rfc3339(AT)
    assert len(event["message"]) == LONGEST and event["type"] == "Warning"


def test_an_event_that_is_refused_is_only_logged(caplog: pytest.LogCaptureFixture) -> None:
    api = MemoryApi()
    api.refused[("POST", EVENTS)] = 403
    with caplog.at_level(logging.WARNING):
        told(api, Happening("SuccessfulRescale", "New size: 4"))
    assert "event SuccessfulRescale for shop/web" in caplog.text and api.objects == {}


def test_who_does_not_lead_writes_none() -> None:
    api = MemoryApi(leads=False)
    with pytest.raises(NotLeading):
        told(api, Happening("SuccessfulRescale", ""))
    assert api.asked == []
