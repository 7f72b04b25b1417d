"""custom-hpa (document 002): the chart's values and the program's environment variables, for one Deployment.

factor = sample / target, capped by the max factors, held by cooldowns and min factors; replicas = ceil(now x factor).
`exact` is the program as it was, quirks included (a scaling to the same number starts the cooldown).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, ValidationError

from trimtab.errors import InvalidInput, InvalidObject
from trimtab.kinds.amounts import Count, CountOrZero, Text
from trimtab.kinds.horizontal import MIN_AT_MOST_MAX
from trimtab.kinds.manifest_part import ManifestPart, without_nulls
from trimtab.kinds.meta import TargetRef
from trimtab.kinds.names import NamespaceName, ObjectName
from trimtab.kinds.problems import invalid_object
from trimtab.policy import (
    Admit,
    Bounds,
    Cooldown,
    Factor,
    MaxFactor,
    Metric,
    MetricKind,
    MinFactor,
    Mode,
    Policy,
    RoundUp,
)

Seconds = Annotated[float, Field(ge=0, le=86400, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]


class CustomTarget(ManifestPart):
    deployment: ObjectName
    namespace: NamespaceName
    value: Annotated[float, Field(ge=1e-9, le=1e18, allow_inf_nan=False)]


class PrometheusAt(ManifestPart):
    url: Text
    port: Annotated[int, Field(ge=1, le=65535)]
    query: Text


class CustomBehavior(ManifestPart):
    scale_up_cooldown: Seconds = 15
    scale_down_cooldown: Seconds = 15
    scale_up_min_factor: Share = 0.1
    scale_up_max_factor: Share = 1.0
    scale_down_min_factor: Share = 0.1
    scale_down_max_factor: Share = 1.0


class CustomHpa(ManifestPart):
    """One control loop; tolerations, affinity and the image are read by the chart alone."""

    target: CustomTarget
    min_replicas: CountOrZero
    max_replicas: Count
    prometheus: PrometheusAt
    control_loop_period: Annotated[float, Field(gt=0, le=86400, allow_inf_nan=False)] = 15
    behavior: CustomBehavior = CustomBehavior()
    dry_run: bool = False
    exact: bool = False
    log_level: Literal["trace", "debug", "info", "warn", "error"] = "info"
    port: Annotated[int, Field(ge=1, le=65535)] = 3000
    app_name_suffix: str = ""
    image_tag: str | None = None
    tolerations: list[Any] | None = None
    affinity: dict[str, Any] | None = None

    rules: ClassVar = (MIN_AT_MOST_MAX,)

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> CustomHpa:
        try:
            return cls.model_validate(without_nulls(dict(values)))
        except ValidationError as error:
            raise invalid_object("custom-hpa values", cls, error) from None

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> CustomHpa:
        """The variables the program reads; problems are named by their variables."""
        try:
            return cls.from_values(_values_of(env))
        except InvalidObject as error:
            by_path = {path: name for name, path in _ENV.items()}
            named = [
                InvalidInput(by_path.get(problem.path, problem.path), problem.value, problem.fix)
                for problem in error.problems
            ]
            raise InvalidObject("environment variables", named) from None

    @property
    def name(self) -> str:
        suffix = f"-{self.app_name_suffix}" if self.app_name_suffix else ""
        return f"{self.target.deployment}-custom-hpa{suffix}"

    @property
    def workload(self) -> TargetRef:
        names = {"apiVersion": "apps/v1", "kind": "Deployment", "name": self.target.deployment}
        return TargetRef.model_validate(names)

    def to_policy(self, at: float) -> Policy:
        rules = self.behavior
        metric = Metric(kind=MetricKind.PROMETHEUS, query=self.prometheus.query)
        return Policy(
            signals=(Factor(metric=metric, target=float(self.target.value)),),
            settle=(
                MaxFactor(up=float(rules.scale_up_max_factor), down=float(rules.scale_down_max_factor)),
                Cooldown(up_s=float(rules.scale_up_cooldown), down_s=float(rules.scale_down_cooldown)),
                MinFactor(up=float(rules.scale_up_min_factor), down=float(rules.scale_down_min_factor)),
                RoundUp(epsilon=0.0) if self.exact else RoundUp(),
            ),
            bounds=Bounds(min_replicas=self.min_replicas, max_replicas=self.max_replicas),
            admit=Admit(mode=Mode.SHADOW if self.dry_run else Mode.AUTO),
            replays_noop=self.exact,
        )


_ENV = {
    "DEPLOYMENT": "target.deployment",
    "NAMESPACE": "target.namespace",
    "TARGET_VALUE": "target.value",
    "MIN_REPLICAS": "minReplicas",
    "MAX_REPLICAS": "maxReplicas",
    "PROMETHEUS_URL": "prometheus.url",
    "PROMETHEUS_PORT": "prometheus.port",
    "PROMETHEUS_QUERY": "prometheus.query",
    "CONTROL_LOOP_PERIOD": "controlLoopPeriod",
    "SCALE_UP_COOLDOWN": "behavior.scaleUpCooldown",
    "SCALE_DOWN_COOLDOWN": "behavior.scaleDownCooldown",
    "SCALE_UP_MIN_FACTOR": "behavior.scaleUpMinFactor",
    "SCALE_UP_MAX_FACTOR": "behavior.scaleUpMaxFactor",
    "SCALE_DOWN_MIN_FACTOR": "behavior.scaleDownMinFactor",
    "SCALE_DOWN_MAX_FACTOR": "behavior.scaleDownMaxFactor",
    "DRY_RUN": "dryRun",
    "EXACT": "exact",
    "LOG_LEVEL": "logLevel",
    "PORT": "port",
}
_TEXTS = ("DEPLOYMENT", "NAMESPACE", "PROMETHEUS_URL", "PROMETHEUS_QUERY", "LOG_LEVEL")


def _values_of(env: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {"target": {}, "prometheus": {}}
    for name, path in _ENV.items():
        if env.get(name, "") != "":
            *parents, leaf = path.split(".")
            place = values
            for parent in parents:
                place = place.setdefault(parent, {})
            place[leaf] = env[name] if name in _TEXTS else _typed(env[name])
    return values


def _typed(text: str) -> object:
    """What the variable says, as a number or a flag; anything else is left for the model to refuse."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


def is_custom_hpa(manifest: Mapping[str, Any]) -> bool:
    """The chart's values have no kind; their target gives them away."""
    target = manifest.get("target")
    return "kind" not in manifest and isinstance(target, Mapping) and "deployment" in target
