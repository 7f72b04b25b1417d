"""nanit custom-hpa: the chart's values and the program's environment variables, for one Deployment.

factor = sample / target, capped by the max factors, held by cooldowns and min factors; replicas = ceil(now x factor).
`exact` is the program as it was, quirks included (a scaling to the same number starts the cooldown).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, ValidationError

from trimtab.errors import InvalidInput, InvalidObject
from trimtab.kinds.amounts import Count, CountOrZero, Text
from trimtab.kinds.foreign import Manifest, Translated, exact_parts
from trimtab.kinds.horizontal import MIN_AT_MOST_MAX
from trimtab.kinds.ledger import Ledger
from trimtab.kinds.manifest_part import ManifestPart, without_nulls
from trimtab.kinds.meta import TargetRef
from trimtab.kinds.names import NamespaceName, ObjectName
from trimtab.kinds.problems import invalid_object
from trimtab.policy import Cooldown, Factor, MaxFactor, Metric, MetricKind, MinFactor, RoundUp

_OF_THE_PROGRAM = {
    "controlLoopPeriod",
    "logLevel",
    "port",
    "appNameSuffix",
    "imageTag",
    "tolerations",
    "affinity",
}
_PLACES = {
    "spec.minReplicas": "minReplicas",
    "spec.maxReplicas": "maxReplicas",
    "spec.metrics": "prometheus.query",
    "spec.metrics[0]": "prometheus.query",
    "spec.scaleTargetRef": "target",
    "spec.mode": "dryRun",
    "spec.behavior": "behavior",
} | {
    f"spec.behavior.scale{way}.{ours}": f"behavior.scale{way}{theirs}"
    for way in ("Up", "Down")
    for ours, theirs in (
        ("cooldownSeconds", "Cooldown"),
        ("minFactor", "MinFactor"),
        ("maxFactor", "MaxFactor"),
        ("tolerance", "MinFactor"),  # the program has neither tolerance nor window
        ("stabilizationWindowSeconds", "Cooldown"),
    )
}
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


class CustomHpa(Translated):
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
            custom = cls.model_validate(without_nulls(dict(values)))
            assert custom.translation  # what an Autoscaler cannot mean is refused here too
            return custom
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

    @property
    def title(self) -> str:
        return "custom-hpa values"

    def autoscaler_metadata(self) -> Manifest:
        name = f"{self.target.deployment}-custom-hpa"[:253].rstrip("-.")
        return {"name": name, "namespace": self.target.namespace}

    def as_autoscaler(self, metadata: Manifest, ledger: Ledger) -> Manifest:
        """The program's rules, with HPA's own damping switched off around them; the operator's tick is its rhythm."""
        ledger.places(_PLACES)
        written, rules = self.manifest(), self.behavior
        value = {"type": "Value", "value": f"{self.target.value:.12g}"}
        query = {"query": self.prometheus.query, "target": value}
        ledger.lose("prometheus.url", "is the operator's setting, not the object's")
        ledger.lose("prometheus.port", "is the operator's setting, not the object's")
        for name in sorted(_OF_THE_PROGRAM & set(written)):
            ledger.lose(name, "belongs to the program, not to the object")
        ledger.approximate_written("", written, ("exact",), "an Autoscaler never repeats the program's mistakes")
        cap = MaxFactor(up=float(rules.scale_up_max_factor), down=float(rules.scale_down_max_factor))
        rest = Cooldown(up_s=float(rules.scale_up_cooldown), down_s=float(rules.scale_down_cooldown))
        least = MinFactor(up=float(rules.scale_up_min_factor), down=float(rules.scale_down_min_factor))
        made = {
            "scaleTargetRef": self.workload.manifest(),
            "minReplicas": self.min_replicas,
            "maxReplicas": self.max_replicas,
            "metrics": [{"type": "Prometheus", "prometheus": query}],
            "behavior": {
                "scaleUp": _side("Up", (cap.up, rest.up_s, least.up), 100.0, ledger),
                "scaleDown": _side("Down", (cap.down, rest.down_s, least.down), 1.0, ledger),
            },
        }
        if self.dry_run:
            made["mode"] = "Shadow"
        metric = Metric(kind=MetricKind.PROMETHEUS, query=self.prometheus.query)
        return made | exact_parts(
            signals=[Factor(metric=metric, target=float(self.target.value))],
            settle=[cap, rest, least, RoundUp(epsilon=0.0) if self.exact else RoundUp()],
            replays_noop=True if self.exact else None,
        )


def _side(way: str, rules: tuple[float, float, float], widest: float, ledger: Ledger) -> Manifest:
    """The rules of one direction, with HPA's own damping switched off; factors reach as far as an Autoscaler's can."""
    (cap, rest_s, least), path = rules, f"spec.behavior.scale{way}"
    if round(rest_s) != rest_s:
        ledger.approximate(ledger.source_of(f"{path}.cooldownSeconds"), f"whole seconds: {round(rest_s)}")
    most = ledger.at_most(f"{path}.maxFactor", cap, widest)
    made: Manifest = {
        "stabilizationWindowSeconds": 0,
        "tolerance": 0,
        "cooldownSeconds": round(rest_s),
        "minFactor": ledger.at_most(f"{path}.minFactor", least, widest),
    } | ({"maxFactor": most} if most else {"selectPolicy": "Disabled"})
    percent = ceil(100 * most)
    if way == "Up" and most and (rest_s < 15 or percent > 100):  # more than HPA's doubling within 15 seconds
        made["policies"] = [{"type": "Percent", "value": max(100, percent), "periodSeconds": 1}]
    return made


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
