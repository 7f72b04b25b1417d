"""Adapters for thesis.json."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.golden.harness import Case, Excuse
from trimtab.bench import thesis
from trimtab.core.decide import decide
from trimtab.core.demand.log import SPACING_S, DemandLog
from trimtab.core.forecast import linear
from trimtab.core.model import Forecast, Memory, Missing, Observation, Pod, PodSamples
from trimtab.core.startup import mean_startup_s
from trimtab.policy import Bounds, ForecastChoice, Metric, MetricKind, Policy, Size, Tolerance, Utilization
from trimtab.series import Frame


def evaluate_trial(case: Case) -> None:
    given, pairing = case["input"], case["input"]["pairing"]
    for name, weights in {"sum": (1.0, 1.0), "eru": (1.0, 0.0), "qos": (0.0, 1.0)}.items():
        ours, theirs = thesis.scores(np.array(given["predictive"]), np.array(given["reactive"]), weights)
        trial = thesis.compare(ours[pairing["predictive"]], theirs[pairing["reactive"]])
        wanted = case["expected"][name]
        assert trial.n == wanted["n"]
        published = [wanted[key] for key in ("mean", "stdDev", "z", "p")]
        assert trial[1:5] == pytest.approx(published, abs=5e-6)  # the inputs are rounded
        assert trial[5:] == pytest.approx([wanted["pairedT"], wanted["pairedPOneSidedNormal"]], abs=1e-4)


def traffic_profile(case: Case) -> None:
    profile = tuple(thesis.Segment(*segment) for segment in case["input"]["segments"])
    wanted = case["expected"]
    assert thesis.duration_s(profile) == wanted["totalSeconds"]
    rates = [thesis.rate_at(profile, second) for second in np.arange(0.05, wanted["totalSeconds"], 0.1).tolist()]
    assert sum(rates) * 0.1 == pytest.approx(wanted["totalRequests"])
    assert max(rates) == pytest.approx(wanted["peakRps"], abs=0.02)  # a ramp ends at its peak


def line_of_best_fit(case: Case) -> None:
    slope, intercept = linear.fit_line(np.array(case["input"]["seconds"]), np.array(case["input"]["cpu"]))
    assert slope == pytest.approx(case["expected"]["slope"], abs=1e-9)
    assert intercept == pytest.approx(case["expected"]["intercept"], abs=1e-9)


def predict(case: Case) -> None:
    """The line comes as slope and intercept; two points of it are as good."""
    given = case["input"]
    times = np.array([-10.0, 0.0])
    values = given["intercept"] + given["slope"] * (given["now"] + times)
    predicted = linear.predict(times, values, given["podInitSeconds"], linear.LinearOptions(exact=True))
    assert predicted == pytest.approx(case["expected"]["predicted"])


def record_observation(case: Case) -> None:
    """The log keeps the distance between observations, the line takes those inside its window."""
    given, log, at = case["input"], DemandLog(), 10_000.0
    assert (given["multiplier"], given["capSeconds"], given["minSpacingSeconds"]) == (20, 180, SPACING_S)
    for age in (*given["previousAgesSeconds"], 0.0):
        log.note(at - age, "cpu", 50.0)
    observed = log.recent("cpu", at, 1000.0)
    counted = linear.recent_of(observed, at, given["podInitSeconds"], linear.LinearOptions(exact=True))
    assert len(counted) == case["expected"]["stored"]


def average_init_time(case: Case) -> None:
    pods = tuple(
        Pod(name=str(index), created_at=-pod["createdSecondsAgo"], ready_since=-pod["readySecondsAgo"])
        for index, pod in enumerate(case["input"]["pods"])
    )
    assert mean_startup_s(pods, exact=True) == case["expected"]["averageSeconds"]


def predictive_replicas(case: Case) -> None:
    given, wanted = case["input"], case["expected"]
    times = np.array([age for age, _ in given["history"]] + [0.0])
    values = np.array([value for _, value in given["history"]] + [given["currentUtilization"]], dtype=float)
    if wanted["slopePerSecond"] is not None:
        assert linear.fit_line(times, values)[0] == pytest.approx(wanted["slopePerSecond"], abs=1e-8)
    assert _replicas(given, None, False) == wanted["replicasReactive"]
    for exact, key in ((True, "replicasCode"), (False, "replicasSeedRule")):
        predicted = None
        if wanted["predicted"] is not None:
            predicted = linear.predict(times, values, given["podInitSeconds"], linear.LinearOptions(exact=exact))
        if exact and predicted is not None:
            assert predicted == pytest.approx(wanted["predicted"], abs=1e-6)
        assert _replicas(given, predicted, exact) == wanted[key]


def _replicas(given: Case, predicted: float | None, exact: bool) -> int:
    """What decide() makes of the observed and the predicted utilisation."""
    count, metric = given["currentReplicas"], Metric(kind=MetricKind.RESOURCE, name="cpu")
    pods = tuple(
        Pod(name=str(i), created_at=0, started_at=0, ready_since=0, requests=Size(cpu_cores=100.0))
        for i in range(count)
    )
    tolerance = Tolerance(up=given["tolerance"], down=given["tolerance"])
    policy = Policy(
        signals=(Utilization(metric=metric, percent=given["targetUtilization"], tolerance=tolerance),),
        settle=(),
        bounds=Bounds(min_replicas=1, max_replicas=100),
        forecast=ForecastChoice(model="linear", exact=exact),
    )
    at = 10_000.0
    usage = PodSamples(values={pod.name: float(given["currentUtilization"]) for pod in pods}, at=at)
    forecasts: tuple[Forecast | Missing, ...] = ()
    if predicted is not None:
        frame = Frame(("cpu",), at - 30.0, 30.0, np.array([[predicted, predicted]]))
        forecasts = tuple(linear.forecast(frame, 10.0, at, linear.LinearOptions(per_pod=True)))
    seen = Observation(
        at=at, spec_replicas=count, status_replicas=count, pods=pods, samples=(usage,), forecasts=forecasts
    )
    return decide(policy, seen, Memory()).plan.replicas


ADAPTERS: dict[str, Callable[[Case], None]] = {
    "evaluateTrial": evaluate_trial,
    "trafficProfile": traffic_profile,
    "lineOfBestFit": line_of_best_fit,
    "predict": predict,
    "recordObservation": record_observation,
    "averageInitTime": average_init_time,
    "predictiveReplicas": predictive_replicas,
}
EXCUSED: dict[str, Excuse] = {}
