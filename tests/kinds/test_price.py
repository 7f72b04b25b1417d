"""Every object has a price limit, counted: whatever is accepted asks for no more than this."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.errors import TrimtabError
from trimtab.kinds import KINDS, read
from trimtab.kinds.autoscaler import LONGEST_HORIZON_S
from trimtab.kinds.custom_hpa import CustomHpa
from trimtab.kinds.metric import LONGEST_QUERY, MOST_FORECASTS, MOST_METRICS
from trimtab.kinds.schedule import MOST_PER_DAY
from trimtab.policy import Policy

REF = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
DAYS = 9  # spans are made for a day back and eight ahead


def policy_of(kind: str, version: str, spec: dict[str, Any], at: float = 1_794_811_716.0, **notes: str) -> Policy:
    meta = {"name": "x", "namespace": "tenant", "annotations": notes}
    found = read({"apiVersion": version, "kind": kind, "metadata": meta, "spec": {"scaleTargetRef": REF} | spec})
    policy: Policy = found.to_policy(at)  # type: ignore[attr-defined]
    return policy


def autoscaler(at: float = 1_794_811_716.0, **spec: Any) -> Policy:
    return policy_of("Autoscaler", "trimtab.dev/v1alpha1", {"maxReplicas": 9} | spec, at)


def ehpa(at: float = 1_794_811_716.0, **spec: Any) -> Policy:
    version = "autoscaling.crane.io/v1alpha1"
    return policy_of("EffectiveHorizontalPodAutoscaler", version, {"maxReplicas": 9} | spec, at)


def query(index: int, length: int = 30) -> dict[str, Any]:
    text = f"sum(rate(requests_{index}[5m]))".ljust(length, " ")
    return {"type": "Prometheus", "prometheus": {"query": text, "target": {"type": "Value", "value": "1"}}}


def refusal(made: Any) -> str:
    with pytest.raises(TrimtabError) as found:
        made()
    return str(found.value)


_FIELD = st.sampled_from(["*", "*/2", "0", "7", "1-59/2", "0,30", "10-20", "*/15", "5"])
_CRONS = st.builds(
    " ".join,
    st.tuples(
        _FIELD,
        st.sampled_from(["*", "0", "8", "*/6", "9-17"]),
        st.sampled_from(["*", "2-31", "15"]),
        st.sampled_from(["*", "2", "6-8"]),
        st.sampled_from(["*", "1-5", "0"]),
    ),
)
_PAIRS = st.lists(st.tuples(_CRONS, _CRONS, st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata"])), max_size=30)
ANY_MOMENT = st.integers(1_600_000_000, 2_200_000_000).map(float)


@given(_PAIRS, ANY_MOMENT)
def test_the_spans_of_an_object_are_counted_for_any_month(pairs: list[tuple[str, str, str]], at: float) -> None:
    schedules = [
        {"name": f"s{index}", "start": start, "end": end, "timezone": zone, "minReplicas": 2}
        for index, (start, end, zone) in enumerate(pairs)
    ]
    crons = [
        {"name": f"s{index}", "start": start, "end": end, "timezone": zone, "targetReplicas": 2}
        for index, (start, end, zone) in enumerate(pairs)
    ]
    for made in (lambda: autoscaler(at, schedules=schedules), lambda: ehpa(at, crons=crons)):
        try:
            policy = made()
        except TrimtabError:
            continue
        # A day that is set back has an hour more, and each schedule may be open when the first day begins.
        assert len(policy.bounds.spans) <= MOST_PER_DAY * (DAYS + 1) + len(pairs)


@pytest.mark.parametrize("start, end", [("*/2 * 2-31 * *", "1-59/2 * 2-31 * *"), ("*/2 * * 7 *", "1-59/2 * * 7 *")])
def test_a_schedule_that_is_busy_in_another_month_is_refused(start: str, end: str) -> None:
    said = refusal(lambda: autoscaler(schedules=[{"name": "a", "start": start, "end": end, "minReplicas": 2}]))
    assert "spec.schedules[0].start" in said and f"more than {MOST_PER_DAY} times per day" in said


def test_many_schedules_are_counted_together() -> None:
    some = [{"name": f"s{n}", "start": "0 0-11 * * *", "end": "15 0-11 * * *", "minReplicas": 2} for n in range(3)]
    assert autoscaler(schedules=some[:2]).bounds.spans
    said = refusal(lambda: autoscaler(schedules=some))
    assert "spec.schedules: " in said and f"more than {MOST_PER_DAY} times per day" in said


@given(st.integers(0, 60), st.integers(1, 10_000), st.booleans())
def test_metrics_queries_and_forecasts_are_counted(count: int, length: int, forecast: bool) -> None:
    spec: dict[str, Any] = {"forecast": {"model": "linear"}} if forecast else {}
    try:
        policy = autoscaler(metrics=[query(index, length) for index in range(count)], **spec)
    except TrimtabError:
        assert count > MOST_METRICS or length > LONGEST_QUERY or (forecast and count > MOST_FORECASTS)
        return
    assert len(policy.signals) <= (MOST_FORECASTS if forecast else MOST_METRICS)
    assert sum(len(signal.metric.query) for signal in policy.signals) <= MOST_METRICS * LONGEST_QUERY


def test_too_many_forecasts_are_refused_with_the_limit() -> None:
    metrics = [query(index) for index in range(MOST_FORECASTS + 1)]
    assert re.search(
        rf"spec\.forecast: .*at most {MOST_FORECASTS} metrics",
        refusal(lambda: autoscaler(metrics=metrics, forecast={"model": "linear"})),
    )
    pods = [
        {"type": "External", "external": {"metric": {"name": f"m{n}"}, "target": {"type": "Value", "value": "1"}}}
        for n in range(MOST_FORECASTS + 1)
    ]
    algorithm = {"predictionAlgorithm": {"algorithmType": "dsp"}}
    assert "spec.prediction: " in refusal(lambda: ehpa(metrics=pods, prediction=algorithm))
    hpa = {"maxReplicas": 9, "metrics": pods}
    read_hpa = lambda **notes: policy_of("HorizontalPodAutoscaler", "autoscaling/v2", hpa, **notes)  # noqa: E731
    assert len(read_hpa().signals) == MOST_FORECASTS + 1
    assert 'annotations["predictive"]' in refusal(lambda: read_hpa(predictive="true"))


@pytest.mark.parametrize("horizon", ["300000h", "1h1s", 3601, "9" * 40 + "h", "61m", "1d"])
def test_a_forecast_looks_an_hour_ahead_at_most(horizon: str | int) -> None:
    said = refusal(lambda: autoscaler(forecast={"model": "linear", "horizon": horizon}))
    assert "spec.forecast.horizon" in said and "up to 1h" in said


@given(st.one_of(st.integers(), st.from_regex(r"\A[0-9]{1,9}(\.[0-9]{1,3})?(ms|s|m|h|d)\Z")))
def test_no_horizon_is_longer(horizon: str | int) -> None:
    try:
        policy = autoscaler(forecast={"model": "linear", "horizon": horizon})
    except TrimtabError:
        return
    assert policy.forecast is not None and 0 <= (policy.forecast.horizon_s or 0.0) <= LONGEST_HORIZON_S


@pytest.mark.parametrize(
    "settings, path",
    [
        ({"historyLength": "90d"}, "dsp.historyLength"),
        ({"sampleInterval": "1ms"}, "dsp.sampleInterval"),
        ({"estimators": {"fft": [{}] * 11}}, "dsp.estimators.fft"),
    ],
)
def test_what_a_prediction_reads_is_bounded(settings: dict[str, Any], path: str) -> None:
    prediction = {"predictionAlgorithm": {"algorithmType": "dsp", "dsp": settings}}
    assert f"spec.prediction.predictionAlgorithm.{path}" in refusal(lambda: ehpa(prediction=prediction))


@pytest.mark.parametrize("key", ["trimtab.dev/pin", "trimtab.dev/pin-until", "trimtab.dev/paused-until"])
@pytest.mark.parametrize("text", ["9" * 200_000, "2026-11-15T18:00:00Z" + " " * 200_000, "\n" * 9])
def test_annotations_are_read_as_far_as_they_may_be_long(key: str, text: str) -> None:
    notes: dict[str, Any] = {key: text}
    said = refusal(lambda: policy_of("Autoscaler", "trimtab.dev/v1alpha1", {"maxReplicas": 9}, **notes))
    assert key in said and len(said) < 1000


def test_of_very_many_mistakes_the_first_are_named() -> None:
    said = refusal(lambda: autoscaler(**{f"zz{number}": number for number in range(5000)}))
    assert "spec.zz0" in said and "4950 more" in said and len(said) < 20_000


def test_what_is_nested_without_end_is_refused() -> None:
    deep: Any = "1"
    for _ in range(950):
        deep = [deep]
    target = {"type": "AverageValue", "averageValue": deep}
    metric = {"type": "External", "external": {"metric": {"name": "m"}, "target": target}}
    assert "averageValue" in (said := refusal(lambda: autoscaler(metrics=[metric]))) or "nested too deeply" in said


def _numbers(schema: Any, path: str = "") -> list[tuple[str, dict[str, Any]]]:
    """Every number in a schema, with the names on the way to it."""
    if isinstance(schema, list):
        return [found for child in schema for found in _numbers(child, path)]
    if not isinstance(schema, dict) or "x-kubernetes-int-or-string" in schema:  # a quantity: its length is bounded
        return []
    below = [found for name, child in schema.items() for found in _numbers(child, f"{path}.{name}")]
    return below + ([(path, schema)] if schema.get("type") in ("number", "integer") else [])


@pytest.mark.parametrize("kind", dict.fromkeys((*KINDS.values(), CustomHpa)))
def test_no_number_is_without_end(kind: Any) -> None:
    """What is finite when it is read can still be infinite when something is multiplied by it."""
    schema = kind.model_json_schema(by_alias=True)
    schema["properties"].pop("status", None)
    for path, number in _numbers(schema):
        if "Status" not in path and "metadata" not in path.lower():
            assert {"minimum", "exclusiveMinimum"} & set(number), path
            assert {"maximum", "exclusiveMaximum"} & set(number), path
