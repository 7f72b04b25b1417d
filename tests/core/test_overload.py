"""The load above which a pod is overloaded, for every QoS class and metric type."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.core.build import CPU, hpa, per_second
from trimtab.core.model import Missing, Pod
from trimtab.core.overload import Yardstick, of_pods
from trimtab.policy import Metric, MetricKind, Objective, PodAverage, Signal, Size, Utilization
from trimtab.wire.from_kubernetes import template_fact
from trimtab.wire.objects import PodSpec

Spec = dict[str, Any]
APP = Metric(kind=MetricKind.CONTAINER, name="cpu", container="app")


def container(name: str, request: str | None = None, limit: str | None = None, **rest: Any) -> Spec:
    parts = {"requests": request, "limits": limit}
    resources = {key: {"cpu": value} for key, value in parts.items() if value}
    return {"name": name, "resources": resources} | rest


def pod(*containers: Spec, init: list[Spec] | None = None, resources: Spec | None = None) -> Pod:
    spec = {"containers": list(containers), "initContainers": init or []}
    return template_fact("web", msgspec.convert(spec | ({"resources": resources} if resources else {}), PodSpec))


def known(found: Pod | None, signal: Signal, objective: Objective | None = None) -> Yardstick:
    policy = replace(hpa(), signals=(signal,), objective=objective)
    yardstick = of_pods(policy, signal, (found,) if found else ())
    assert isinstance(yardstick, Yardstick)
    return yardstick


def percent(target: int = 70, metric: Metric = CPU) -> Utilization:
    return Utilization(metric=metric, percent=target)


BURSTABLE = pod(container("app", "500m", "1"))
GUARANTEED = pod(container("app", "500m", "500m"))
UNLIMITED = pod(container("app", "500m"))
SIDECAR = container("proxy", "100m", "100m", restartPolicy="Always")
SETUP = container("setup", "4", "4")
WHOLE = {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}


@pytest.mark.parametrize(
    ("found", "signal", "said"),
    [
        pytest.param(BURSTABLE, percent(), "500m (the request; limit 1000m)", id="burstable"),
        pytest.param(GUARANTEED, percent(), "400m (80 % of the limit; limit 500m)", id="guaranteed"),
        pytest.param(UNLIMITED, percent(), "500m (the request; no limit)", id="no limit"),
        pytest.param(
            pod(container("app", "500m", "550m")), percent(), "440m (80 % of the limit; limit 550m)", id="a low limit"
        ),
        pytest.param(
            pod(container("app", None, "500m")), percent(), "400m (80 % of the limit; limit 500m)", id="only a limit"
        ),
        pytest.param(
            pod(container("app", "500m", "1"), container("log", "100m", "100m")),
            percent(),
            "580m (97% of the request; limit 1100m)",
            id="each container by its own limit",
        ),
        pytest.param(
            pod(container("app", "500m", "1"), container("log", "100m")),
            percent(),
            "600m (the request; no limit)",
            id="one container without a limit",
        ),
        pytest.param(
            pod(container("app", "500m", "1"), init=[SIDECAR]),
            percent(),
            "580m (97% of the request; limit 1100m)",
            id="native sidecars count",
        ),
        pytest.param(
            pod(container("app", "500m", "1"), init=[SETUP]),
            percent(),
            "500m (the request; limit 1000m)",
            id="init containers do not",
        ),
        pytest.param(
            pod(container("app", "500m", "500m"), container("log", "100m", "100m")),
            percent(metric=APP),
            "400m (80 % of the limit; limit 500m)",
            id="ContainerResource",
        ),
        pytest.param(
            pod(container("app"), container("log"), resources=WHOLE),
            percent(),
            "1000m (the request; limit 2000m)",
            id="pod-level resources",
        ),
        pytest.param(
            pod(container("app", "100m", "100m"), resources={"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}),
            percent(),
            "800m (80 % of the limit; limit 1000m)",
            id="pod-level resources replace the sum",
        ),
        pytest.param(BURSTABLE, percent(80), "500m (the request; limit 1000m)", id="80 % is no fault"),
        pytest.param(BURSTABLE, percent(100), "500m (the request; limit 1000m)", id="100 % is the level"),
        pytest.param(
            BURSTABLE,
            percent(120),
            "686m (8/7 of the target, because the target is above 500m; limit 1000m)",
            id="a target above the level raises it",
        ),
        pytest.param(
            BURSTABLE,
            percent(190),
            "800m (80 % of the limit, because the target is above 500m; limit 1000m)",
            id="up to 80 % of the limit",
        ),
        pytest.param(GUARANTEED, percent(95), "400m (80 % of the limit; limit 500m)", id="no higher than that"),
        pytest.param(
            UNLIMITED,
            percent(200),
            "1143m (8/7 of the target, because the target is above 500m; no limit)",
            id="without a limit nothing caps it",
        ),
        pytest.param(
            pod(container("app")),
            PodAverage(metric=CPU, target=0.35),
            "400m (8/7 of the target of 350m; no limit)",
            id="no requests",
        ),
        pytest.param(
            BURSTABLE, PodAverage(metric=CPU, target=0.3), "500m (the request; limit 1000m)", id="cores, with requests"
        ),
        pytest.param(None, per_second(35.0).signals[0], "40 (8/7 of the target of 35)", id="other metrics"),
    ],
)
def test_the_level_of_a_pod(found: Pod | None, signal: Signal, said: str) -> None:
    assert str(known(found, signal)) == f"overloaded above {said}"


def test_a_percentage_of_no_request_has_no_level() -> None:
    signal = percent()
    assert isinstance(of_pods(hpa(), signal, (pod(container("app")),)), Missing)


def test_a_written_service_level_is_a_share_of_the_request_and_wins() -> None:
    found = known(BURSTABLE, percent(150), Objective(service_level=0.6))
    assert str(found) == "overloaded above 300m (0.6 of the request, objective.serviceLevel; limit 1000m)"


def test_a_level_is_the_mean_of_pods_while_two_templates_run() -> None:
    signal = percent()
    both = of_pods(hpa(), signal, (GUARANTEED, pod(container("app", "1", "1"))))
    assert isinstance(both, Yardstick) and (both.request, both.level) == pytest.approx((0.75, 0.6))


cores = st.integers(1, 4000).map(lambda milli: f"{milli}m")
limits = st.none() | cores


@given(sizes=st.lists(st.tuples(cores, limits), min_size=1, max_size=4), target=st.integers(1, 300))
def test_the_level_is_at_most_what_limits_allow_and_at_least_their_share(
    sizes: list[tuple[str, str | None]], target: int
) -> None:
    written = [(request, limit) for request, limit in sizes if limit is None or int(limit[:-1]) >= int(request[:-1])]
    if not written:
        return
    found = pod(*(container(f"c{index}", *size) for index, size in enumerate(written)))
    level = known(found, percent(target))
    each = [(int(request[:-1]) / 1000, int(limit[:-1]) / 1000 if limit else None) for request, limit in written]
    least = sum(request if limit is None else min(request, 0.8 * limit) for request, limit in each)
    assert level.level >= least - 1e-9
    if level.limit is not None:
        assert level.level <= max(least, 0.8 * level.limit) + 1e-9
    assert level.bridge_counts == (level.limit is not None and 0.8 * level.limit <= level.request + 1e-9)


def test_an_older_journal_knows_pods_without_limits() -> None:
    found = known(Pod(name="a", requests=Size(cpu_cores=0.5)), percent())
    assert (found.level, found.limit) == (0.5, None)
