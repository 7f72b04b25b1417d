"""Status and events are written when something changed, and not otherwise."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from aiohttp import web

from tests.live.build import AT, AUTOSCALERS, custom
from tests.wire.fake import Fake
from trimtab.core.explain import DecisionCondition
from trimtab.live.tell.status import with_conditions
from trimtab.live.tell.status_writer import MEASURED_EVERY_S, StatusWriter


def condition(
    kind: str = "ScalingActive", status: bool = True, reason: str = "Fine", message: str = ""
) -> DecisionCondition:
    return DecisionCondition(type=kind, status=status, reason=reason, message=message)


def told(*says: tuple[dict[str, Any], DecisionCondition, float], before: dict[str, Any] | None = None) -> list[Any]:
    """(path, body) of what is written for these statuses, one after the other."""
    found = []

    async def handler(request: web.Request) -> web.StreamResponse:
        found.append((request.path.rsplit("/", 1)[-1], json.loads(await request.read())))
        return web.json_response({})

    async def run() -> None:
        async with Fake(handler) as fake:
            kube = fake.kube()
            status_writer, about = StatusWriter(kube), custom(**(before or {}))
            for status, one, at in says:
                await status_writer.say(AUTOSCALERS, about, status, [one], at)
            await kube.close()

    asyncio.run(run())
    return found


def test_the_same_is_said_once() -> None:
    status = {"currentReplicas": 3, "memory": {"version": 1}}
    found = told((status, condition(), AT), (status, condition(), AT + 1000))
    assert [path for path, _ in found] == ["status"]
    assert found[0][1]["status"]["currentReplicas"] == 3 and found[0][1]["kind"] == "Autoscaler"


def test_what_would_write_nothing_is_no_news() -> None:
    async def run() -> list[bool]:
        async with Fake(lambda _: _empty()) as fake:
            kube = fake.kube()
            status_writer, about, status = StatusWriter(kube), custom(), {"targets": "cpu: 9%"}
            before = status_writer.is_news(about, status, [condition()], AT)
            await status_writer.say(AUTOSCALERS, about, status, [condition()], AT)
            measured = {"targets": "cpu: 8%"}
            after = [
                status_writer.is_news(about, status, [condition()], AT + 1000),
                status_writer.is_news(about, measured, [condition()], AT + MEASURED_EVERY_S - 1),
                status_writer.is_news(about, measured, [condition()], AT + MEASURED_EVERY_S),
                status_writer.is_news(about, status, [condition(reason="Other")], AT + 1),
            ]
            await kube.close()
            return [before, *after]

    assert asyncio.run(run()) == [True, False, False, True, True]


async def _empty() -> web.Response:
    return web.json_response({})


def test_a_new_leader_does_not_repeat_what_stands_there() -> None:
    status = {"currentReplicas": 3}
    written = with_conditions(status, [condition()], {}, AT)
    assert told((status, condition(), AT + 5), before=written) == []


def test_measurements_alone_wait_and_news_do_not() -> None:
    quiet = [({"targets": f"cpu: {n}%"}, condition(message=f"{n}"), AT + n) for n in range(5)]
    assert len(told(*quiet)) == 1
    late = ({"targets": "cpu: 9%"}, condition(), AT + MEASURED_EVERY_S)
    assert len(told(*quiet, late)) == 2
    assert len(told(*quiet, ({"targets": "cpu: 4%", "desiredReplicas": 4}, condition(), AT + 5))) == 2


def test_a_condition_that_turns_bad_is_an_event_once() -> None:
    bad = condition(status=False, reason="FailedGetResourceMetric", message="no answer")
    found = told(({}, condition(), AT), ({}, bad, AT + 1), ({"desiredReplicas": 2}, bad, AT + 2))
    events = [body for path, body in found if path == "events"]
    assert [(one["reason"], one["type"], one["message"]) for one in events] == [
        ("FailedGetResourceMetric", "Warning", "no answer")
    ]
    assert events[0]["involvedObject"]["name"] == "web"


def test_a_conflict_is_bad_news_and_its_absence_is_not() -> None:
    assert [path for path, _ in told(({}, condition("Conflict", False, "NoConflict"), AT))] == ["status"]
    assert [path for path, _ in told(({}, condition("Conflict", True, "Conflict"), AT))] == ["status", "events"]


def test_ignored_fields_are_warned_of_once() -> None:
    served = condition("Ready", True, "FieldsIgnored", "spec.hpa.selector: nothing is selected by it")
    found = told(({}, served, AT), ({"desiredReplicas": 2}, served, AT + 1))
    assert [body["type"] for path, body in found if path == "events"] == ["Warning"]


def test_a_size_that_is_held_is_bad_news_and_its_absence_is_not() -> None:
    for kind in ("ResizeBlocked", "ResizePending"):
        assert [path for path, _ in told(({}, condition(kind, False, "NothingInTheWay"), AT))] == ["status"]
        assert [path for path, _ in told(({}, condition(kind, True, "ExceedsQuota"), AT))] == ["status", "events"]


def test_a_status_that_stays_keeps_its_time_and_foreign_conditions_stay() -> None:
    before = {"conditions": [{"type": "Theirs", "status": "True"}]}
    first = with_conditions({}, [condition()], before, AT)
    second = with_conditions({}, [condition(reason="Other")], first, AT + 100)
    times = [one.get("lastTransitionTime") for one in second["conditions"] if one["type"] == "ScalingActive"]
    assert times == [first["conditions"][1]["lastTransitionTime"]]
    assert second["conditions"][0] == {"type": "Theirs", "status": "True"}
    third = with_conditions({}, [condition(status=False)], second, AT + 100)
    assert third["conditions"][1]["lastTransitionTime"] != times[0]
