"""Custom-hpa's values and environment variables."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from trimtab.errors import InvalidObject
from trimtab.kinds import CustomHpa
from trimtab.policy import Bounds, Cooldown, Factor, MaxFactor, Metric, MetricKind, MinFactor, Mode, RoundUp

VALUES: dict[str, Any] = {
    "target": {"deployment": "web", "namespace": "shop", "value": 100},
    "minReplicas": 10,
    "maxReplicas": 50,
    "prometheus": {"url": "http://localhost", "port": 80, "query": "up"},
}
ENV = {
    "DEPLOYMENT": "web",
    "NAMESPACE": "shop",
    "TARGET_VALUE": "100",
    "MIN_REPLICAS": "10",
    "MAX_REPLICAS": "50",
    "PROMETHEUS_URL": "http://localhost",
    "PROMETHEUS_PORT": "80",
    "PROMETHEUS_QUERY": "up",
}


def test_the_document_s_install_line_gives_its_defaults() -> None:
    custom = CustomHpa.from_values(VALUES)
    policy = custom.to_policy(0.0)
    assert policy.signals == (Factor(metric=Metric(kind=MetricKind.PROMETHEUS, query="up"), target=100.0),)
    assert policy.settle == (
        MaxFactor(up=1.0, down=1.0),
        Cooldown(up_s=15, down_s=15),
        MinFactor(up=0.1, down=0.1),
        RoundUp(),
    )
    assert policy.bounds == Bounds(min_replicas=10, max_replicas=50)
    assert policy.replays_noop is False
    assert (custom.name, custom.workload.text, custom.control_loop_period) == ("web-custom-hpa", "Deployment/web", 15)


def test_variables_and_values_say_the_same() -> None:
    assert CustomHpa.from_env(ENV).to_policy(0.0) == CustomHpa.from_values(VALUES).to_policy(0.0)


def test_behavior_by_either_way() -> None:
    names = ("Cooldown", "MinFactor", "MaxFactor")
    values = copy.deepcopy(VALUES) | {
        "behavior": {
            f"scale{way}{name}": 2 + i for i, (way, name) in enumerate((w, n) for w in ("Up", "Down") for n in names)
        }
    }
    variables = [f"SCALE_{way}_{name}" for way in ("UP", "DOWN") for name in ("COOLDOWN", "MIN_FACTOR", "MAX_FACTOR")]
    env = ENV | {name: str(2 + i) for i, name in enumerate(variables)}
    policy = CustomHpa.from_env(env).to_policy(0.0)
    assert policy == CustomHpa.from_values(values).to_policy(0.0)
    assert policy.settle[:3] == (MaxFactor(up=4, down=7), Cooldown(up_s=2, down_s=5), MinFactor(up=3, down=6))


def test_exact_is_the_program_as_it_was() -> None:
    policy = CustomHpa.from_env(ENV | {"EXACT": "true"}).to_policy(0.0)
    assert policy.replays_noop is True
    assert policy.settle[-1] == RoundUp(epsilon=0.0)


def test_dry_run_is_shadow() -> None:
    assert CustomHpa.from_env(ENV | {"DRY_RUN": "true"}).to_policy(0.0).admit.mode is Mode.SHADOW


def test_the_chart_s_own_values_are_taken() -> None:
    custom = CustomHpa.from_values(
        VALUES | {"appNameSuffix": "rps", "tolerations": [], "affinity": {}, "imageTag": "1"}
    )
    assert custom.name == "web-custom-hpa-rps"


def test_problems_are_named_by_their_variables() -> None:
    env = {name: value for name, value in ENV.items() if name != "DEPLOYMENT"}
    with pytest.raises(InvalidObject) as caught:
        CustomHpa.from_env(env | {"TARGET_VALUE": "0", "MIN_REPLICAS": "ten", "LOG_LEVEL": "loud"})
    found = {problem.path: str(problem) for problem in caught.value.problems}
    assert set(found) == {"DEPLOYMENT", "TARGET_VALUE", "MIN_REPLICAS", "LOG_LEVEL"}
    assert "at least 1e-09" in found["TARGET_VALUE"]


def test_min_above_max_is_refused() -> None:
    with pytest.raises(InvalidObject, match="minReplicas: 60: must not be above maxReplicas"):
        CustomHpa.from_values(VALUES | {"minReplicas": 60})
