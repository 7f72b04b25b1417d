"""Forecasts are measured by what came, and `/metrics` says so."""

from __future__ import annotations

import pytest

from tests.live.build import AT, custom, object_tick, spec, subject
from trimtab.core.model import Forecast, Missing, Observation, Quantile, Reason, TotalSample
from trimtab.journal import ObjectName
from trimtab.live.tell.telemetry import CHECKS, ForecastErrors, ObjectSignal, Telemetry

WEB = ObjectSignal(ObjectName("Autoscaler", "shop", "web"), 0, "query")


def test_a_forecast_is_compared_when_its_time_has_come() -> None:
    errors = ForecastErrors()
    errors.note(WEB, AT, forecast=110.0, horizon_s=60.0, load=50.0)
    assert errors.errors == {}
    errors.note(WEB, AT + 59, forecast=None, horizon_s=60.0, load=80.0)
    assert errors.errors == {}
    errors.note(WEB, AT + 60, forecast=None, horizon_s=60.0, load=100.0)
    assert errors.errors == {WEB: pytest.approx(0.1)}
    errors.saw([])
    assert errors.errors == {}


def test_a_load_that_is_not_known_or_nothing_says_nothing() -> None:
    errors = ForecastErrors()
    for load in (None, 0.0):
        errors.note(WEB, AT, forecast=10.0, horizon_s=60.0, load=None)
        errors.note(WEB, AT + 60, forecast=None, horizon_s=60.0, load=load)
    assert errors.errors == {}


def test_few_forecasts_wait_however_far_they_look() -> None:
    errors = ForecastErrors()
    for tick in range(5000):
        errors.note(WEB, AT + tick, forecast=1.0, horizon_s=1e6, load=1.0)
    assert len(errors._due[WEB]) <= CHECKS + 1


def test_the_error_is_a_metric() -> None:
    query = {"query": "q", "target": {"type": "AverageValue", "averageValue": "10"}}
    written = spec(metrics=[{"type": "Prometheus", "prometheus": query}], forecast={"model": "linear", "horizon": 60})
    about, told, errors = subject(custom(spec=written)), Telemetry(), ForecastErrors()
    told.watchers.append(errors.saw)
    told.extra.append(errors.lines)
    soon = Forecast(made_at=AT, expires_at=AT + 60, demand=(Quantile(0.5, 30.0),), model="linear")
    silent = Missing(reason=Reason.EXPIRED)
    for at, load, forecast in ((AT, 20.0, soon), (AT + 60, 40.0, silent)):
        sample = TotalSample(value=load, at=at)
        seen = Observation(at=at, spec_replicas=2, status_replicas=2, samples=(sample,), forecasts=(forecast,))
        told.saw([object_tick(about, seen)])
    labels = 'kind="Autoscaler",namespace="shop",name="web",source="query"'
    assert f"trimtab_forecast_error{{{labels}}} -0.25\n" in told.render()
