"""Manifests to try: right ones of every kind, and the same with one thing changed."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

Manifest = dict[str, Any]
Strategy = st.SearchStrategy[Any]

NAMES = st.sampled_from(["web", "api", "worker-1", "db.example"])
CONTAINERS = st.sampled_from(["app", "proxy", "worker-1"])
PERCENT = st.integers(1, 200)
QUANTITY = st.sampled_from(["250m", "1.5", "512Mi", "2G", "1e3", "50", 7, "0.5", "3Ki"])
ANY_NUMBER = st.one_of(QUANTITY, st.sampled_from([0.5, 12.25]))
CRONS = st.sampled_from(["0 8 * * 1-5", "0 18 * * 1-5", "30 2 * * *", "15 10 ? * *", "@daily", "0 0 1 * *"])
ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/Adak"])
DURATIONS = st.sampled_from(["30s", "2m", "1h30m", "500ms"])


def part(required: dict[str, Strategy], optional: dict[str, Strategy] | None = None) -> Strategy:
    return st.fixed_dictionaries(required, optional=optional or {})


def listed(item: Strategy, least: int = 0, most: int = 3) -> Strategy:
    return st.lists(item, min_size=least, max_size=most)


def whole(kind: str, version: str, spec: Strategy) -> Strategy:
    meta = part({"name": NAMES}, {"labels": st.just({"team": "a"})})
    return part({"apiVersion": st.just(version), "kind": st.just(kind), "metadata": meta, "spec": spec})


TARGET_REF = part(
    {
        "kind": st.sampled_from(["Deployment", "StatefulSet", "Rollout"]),
        "name": NAMES,
        "apiVersion": st.sampled_from(["apps/v1", "argoproj.io/v1alpha1"]),
    }
)
OBJECT_REF = part({"kind": st.sampled_from(["Service", "Ingress"]), "name": NAMES}, {"apiVersion": st.just("v1")})
SELECTOR = part(
    {},
    {
        "matchLabels": st.just({"a": "b"}),
        "matchExpressions": listed(
            st.sampled_from([{"key": "k", "operator": "In", "values": ["x", "y"]}, {"key": "k", "operator": "Exists"}])
        ),
    },
)
METRIC_NAME = part({"name": st.sampled_from(["rps", "queue_length"])}, {"selector": SELECTOR})
RESOURCE_TARGET = st.one_of(
    part({"type": st.just("Utilization"), "averageUtilization": PERCENT}),
    part({"type": st.just("AverageValue"), "averageValue": ANY_NUMBER}),
)
VALUE_TARGET = st.one_of(
    part({"type": st.just("Value"), "value": ANY_NUMBER}),
    part({"type": st.just("AverageValue"), "averageValue": ANY_NUMBER}),
)
RESOURCE = st.sampled_from(["cpu", "memory"])


def metric(type_: str, member: str, inner: Strategy) -> Strategy:
    return part({"type": st.just(type_), member: inner})


_RESOURCE_METRIC = metric("Resource", "resource", part({"name": RESOURCE, "target": RESOURCE_TARGET}))
_CONTAINER_METRIC = metric(
    "ContainerResource",
    "containerResource",
    part({"name": RESOURCE, "container": CONTAINERS, "target": RESOURCE_TARGET}),
)
_AVERAGE = part({"type": st.just("AverageValue"), "averageValue": ANY_NUMBER})
_OBJECT = part({"describedObject": OBJECT_REF, "metric": METRIC_NAME, "target": VALUE_TARGET})
METRICS = st.one_of(
    _RESOURCE_METRIC,
    _CONTAINER_METRIC,
    metric("Pods", "pods", part({"metric": METRIC_NAME, "target": _AVERAGE})),
    metric("Object", "object", _OBJECT),
    metric("External", "external", part({"metric": METRIC_NAME, "target": VALUE_TARGET})),
)
PROMETHEUS = metric(
    "Prometheus",
    "prometheus",
    part({"query": st.sampled_from(["sum(up)", "rps"]), "target": VALUE_TARGET}, {"name": NAMES}),
)
_QUERY = part({"query": st.sampled_from(["sum(rate(jobs_total[1m]))", "sum(jobs_waiting)"])})
_QUEUE = {"arrivals": _QUERY, "waiting": _QUERY, "waitBelow": st.sampled_from(["10s", "5m"])}
_QUEUE_OPTIONS = {
    "name": NAMES,
    "concurrency": st.integers(1, 64),
    "targetUtilization": st.integers(1, 100),
    "drainWithin": st.sampled_from(["30s", "10m"]),
}
BACKLOG = metric(
    "Backlog",
    "backlog",
    st.one_of(
        part({**_QUEUE, "serviceTime": st.sampled_from(["200ms", "20s"])}, _QUEUE_OPTIONS),
        part({**_QUEUE, "serviceTimeQuery": _QUERY, "serviceTime": st.just("2s")}, _QUEUE_OPTIONS),
    ),
)

_POLICY = part(
    {"type": st.sampled_from(["Pods", "Percent"]), "value": st.integers(1, 100), "periodSeconds": st.integers(1, 1800)}
)
_RULES = {
    "stabilizationWindowSeconds": st.integers(0, 3600),
    "selectPolicy": st.sampled_from(["Max", "Min", "Disabled"]),
    "policies": listed(_POLICY, least=1),
    "tolerance": st.sampled_from([0, 0.05, "0.1", "50m"]),
}
_FACTORS = {
    "cooldownSeconds": st.integers(0, 600),
    "minFactor": st.sampled_from([0, 0.1, 1]),
    "maxFactor": st.sampled_from([0.5, 1]),
}
BEHAVIOR = part({}, {"scaleUp": part({}, _RULES), "scaleDown": part({}, _RULES)})
OUR_BEHAVIOR = part({}, {"scaleUp": part({}, _RULES | _FACTORS), "scaleDown": part({}, _RULES | _FACTORS)})


@st.composite
def replica_bounds(draw: st.DrawFn) -> Manifest:
    most = draw(st.integers(1, 100))
    spec: Manifest = {"maxReplicas": most}
    if draw(st.booleans()):
        spec["minReplicas"] = draw(st.integers(1, most))
    return spec


def merged(*parts: Strategy) -> Strategy:
    return st.tuples(*parts).map(lambda found: {name: value for one in found for name, value in one.items()})


HPA_SPEC = merged(
    part({"scaleTargetRef": TARGET_REF}, {"metrics": listed(METRICS), "behavior": BEHAVIOR}), replica_bounds()
)
HPAS = whole("HorizontalPodAutoscaler", "autoscaling/v2", HPA_SPEC)


def unique(field: str, items: Strategy) -> Strategy:
    """Lists in which each item has a name of its own."""

    def rename(found: list[Manifest]) -> list[Manifest]:
        return [one | {field: f"{one.get(field, 'x')}-{index}"} for index, one in enumerate(found)]

    return items.map(rename)


AMOUNTS = part({}, {"cpu": st.sampled_from(["100m", 1]), "memory": st.sampled_from(["64Mi", "100M"])})
MORE = part({}, {"cpu": st.sampled_from(["4", 8]), "memory": st.sampled_from(["2Gi", "3000Mi"])})
_CONTAINER = {
    "mode": st.sampled_from(["Auto", "Off"]),
    "minAllowed": AMOUNTS,
    "maxAllowed": MORE,
    "controlledResources": st.sampled_from([["cpu"], ["cpu", "memory"]]),
    "controlledValues": st.sampled_from(["RequestsAndLimits", "RequestsOnly"]),
    "wholeCores": st.booleans(),
}
CONTAINER_POLICIES = unique("containerName", listed(part({"containerName": CONTAINERS}, _CONTAINER)))
RESOURCE_POLICY = part({}, {"containerPolicies": CONTAINER_POLICIES})
VERTICAL = part(
    {},
    {
        "resourcePolicy": RESOURCE_POLICY,
        "apply": st.sampled_from(["InPlace", "Recreate", "InPlaceOrRecreate", "Never"]),
    },
)


def intervals(weights: Strategy) -> Strategy:
    pair = st.tuples(st.integers(1, 9), st.integers(0, 9)).map(
        lambda p: {"startReplicaCount": p[0], "lastReplicaCount": p[0] + p[1]}
    )
    return listed(merged(part({"vpaWeight": weights}), st.one_of(pair, st.just({}))), least=1)


@st.composite
def buckets(draw: st.DrawFn) -> list[Manifest]:
    found, low = [], 1
    cpu, memory = draw(st.sampled_from([(True, True), (True, False), (False, True)]))
    for _ in range(draw(st.integers(1, 3))):
        high = low + draw(st.integers(0, 4))
        bucket: Manifest = {"replicas": {"min": low, "max": high}}
        if cpu:
            bucket["cpu"] = {"min": "500m", "max": draw(st.sampled_from(["500m", 2]))}
        if memory:
            bucket["memory"] = {"min": "1G", "max": "4G"}
        found.append(bucket)
        low = high + 1 + draw(st.integers(0, 2))
    return found


_MARGIN = part({}, {"value": st.sampled_from(["50m", "10M"]), "percentage": st.integers(0, 100)})
BASE = part({}, {"cpu": _MARGIN, "memory": _MARGIN})
FRACTIONS = st.sampled_from([0, 0.4, 0.6, 1])
_BUCKET_BLEND = part(
    {"buckets": buckets()},
    {"sizing": st.sampled_from(["Guarded", "Share"]), "overlapPercent": st.sampled_from([0, 25.5]), "base": BASE},
)
BLEND = st.one_of(
    part({"weights": part({"intervals": intervals(FRACTIONS)})}),
    part({"buckets": _BUCKET_BLEND}),
    part({"capacity": part({}, {"base": AMOUNTS, "preferred": MORE, "hysteresis": st.just(0.2)})}),
)
SCHEDULES = unique(
    "name",
    listed(part({"name": NAMES, "start": CRONS, "end": CRONS, "minReplicas": st.integers(0, 9)}, {"timezone": ZONES})),
)
_HORIZON = {"horizon": st.sampled_from(["startup", 300, "5m", "1500ms"])}
_FORECAST = st.one_of(
    part({"model": st.sampled_from(["linear", "dsp", "percentile"])}, _HORIZON | {"exact": st.booleans()}),
    part({"model": st.sampled_from(["seasonal", "learned"])}, _HORIZON),
)
_FALLBACK = part({"replicas": st.integers(0, 9)}, {"allowDecrease": st.booleans()})
_TUNING_LIMITS = part(
    {},
    {
        "target": part({}, {"min": st.sampled_from([40, "50"]), "max": st.just(80)}),
        "tolerance": part({}, {"min": st.just(0), "max": st.just("0.1")}),
        "stabilizationWindowSeconds": part({}, {"min": st.just(0), "max": st.just(600)}),
    },
)
_TUNING = part({"mode": st.sampled_from(["Advise", "Nightly"])}, {"limits": _TUNING_LIMITS, "timezone": ZONES})
_PRIORITY = {"priority": st.sampled_from(["savings", "balanced", "reliability"])}
_LEVEL = {"serviceLevel": st.sampled_from(["0.8", ".65", "1", "1.0", "0.05"])}
_OBJECTIVE = st.one_of(part({}, _PRIORITY | _LEVEL), part({"price": st.integers(1, 10000)}, _LEVEL))
_PROMISE = part({"query": st.just("p99"), "below": st.sampled_from(["300ms", "2s"])})
_EXTRA = {
    "mode": st.sampled_from(["Auto", "Shadow", "Paused"]),
    "forecast": _FORECAST,
    "schedules": SCHEDULES,
    "onMetricFailure": part({}, {"holdSeconds": st.integers(0, 600), "then": _FALLBACK}),
    "metrics": listed(st.one_of(METRICS, PROMETHEUS, BACKLOG)),
    "behavior": OUR_BEHAVIOR,
    "tuning": _TUNING,
}
_PRICED = {"objective": _OBJECTIVE, "metrics": listed(_RESOURCE_METRIC)}
AUTOSCALERS = whole(
    "Autoscaler",
    "trimtab.dev/v1alpha1",
    st.one_of(
        merged(part({"scaleTargetRef": TARGET_REF}, _EXTRA | {"vertical": VERTICAL}), replica_bounds()),
        merged(part({"scaleTargetRef": TARGET_REF, "vertical": VERTICAL, "blend": BLEND}, _EXTRA), replica_bounds()),
        merged(part({"scaleTargetRef": TARGET_REF} | _PRICED, {"forecast": _FORECAST}), st.just({"maxReplicas": 9})),
        part({"scaleTargetRef": TARGET_REF, "vertical": VERTICAL}, {"schedules": SCHEDULES}),
        merged(
            part({"scaleTargetRef": TARGET_REF, "objective": part({"latency": _PROMISE})}), st.just({"maxReplicas": 9})
        ),
    ),
)

_FFT = part({}, {"marginFraction": st.just("0.1"), "minNumOfSpectrumItems": st.integers(1, 99)})
_ESTIMATORS = part({}, {"fft": listed(_FFT), "maxValue": listed(part({}, {"marginFraction": st.just("0.1")}))})
_DSP = part(
    {},
    {
        "sampleInterval": st.just("60s"),
        "historyLength": st.sampled_from(["7d", "360h"]),
        "estimators": _ESTIMATORS,
    },
)
_HISTOGRAM = part({}, {"maxValue": st.just("100"), "halfLife": st.just("24h"), "epsilon": st.just("0.001")})
_PERCENTILE = part({}, {"percentile": st.just("0.95"), "marginFraction": st.just("0.15"), "histogram": _HISTOGRAM})
_ALGORITHM = st.one_of(
    part({"algorithmType": st.just("dsp")}, {"dsp": _DSP}),
    part({"algorithmType": st.just("percentile")}, {"percentile": _PERCENTILE}),
)
_CRON_SPECS = unique(
    "name",
    listed(
        part({"name": NAMES, "start": CRONS, "end": CRONS, "targetReplicas": st.integers(0, 50)}, {"timezone": ZONES})
    ),
)
EHPAS = whole(
    "EffectiveHorizontalPodAutoscaler",
    "autoscaling.crane.io/v1alpha1",
    merged(
        HPA_SPEC,
        part(
            {},
            {
                "scaleStrategy": st.sampled_from(["Auto", "Preview"]),
                "specificReplicas": st.integers(0, 9),
                "crons": _CRON_SPECS,
                "prediction": part({"predictionAlgorithm": _ALGORITHM}, {"predictionWindowSeconds": st.just(600)}),
            },
        ),
    ),
)

_OF_BUCKETS = {
    "baseResourcesPerReplica": BASE,
    "sizing": st.sampled_from(["Guarded", "Share", "MaxOfVpaAndShare", "NeverShrink"]),
    "overlapPercent": st.sampled_from([0, 10, 30.5]),
    "growPastLast": st.booleans(),
}
_CHANGE = part({}, {"value": st.sampled_from(["200m", "100M"]), "percentage": st.integers(0, 100)})
_HPA_TEMPLATE = merged(part({}, {"metrics": listed(METRICS)}), replica_bounds())
_FLAT = merged(
    part(
        {"targetRef": TARGET_REF, "hpaTemplate": _HPA_TEMPLATE},
        {
            "vpaTemplate": part({}, {"resourcePolicy": RESOURCE_POLICY}),
            "scaleUpStabilizationWindow": DURATIONS,
            "scaleDownStabilizationWindow": DURATIONS,
            "minCpuChange": _CHANGE,
            "minMemChange": _CHANGE,
        },
    ),
    st.one_of(
        part({"weightBasedScalingIntervals": intervals(FRACTIONS)}),
        part({"buckets": buckets()}, _OF_BUCKETS),
    ),
)
_SIDE = part(
    {},
    {
        "updatePolicy": part({"updateMode": st.sampled_from(["Auto", "Off"])}),
        "minChange": part({}, {"cpu": _CHANGE, "memory": _CHANGE}),
        "stabilizationDuration": DURATIONS,
    },
)
_HALF = {"scaleUp": _SIDE, "scaleDown": _SIDE, "deploy": st.booleans()}
_WINDOW = part({"begin": st.just("220000+0100"), "end": st.just("230000-0530")})
_NESTED = merged(
    part(
        {
            "targetRef": TARGET_REF,
            "hpa": part({"template": part({"spec": _HPA_TEMPLATE})}, _HALF),
            "vpa": part({}, _HALF | {"template": part({"spec": part({}, {"resourcePolicy": RESOURCE_POLICY})})}),
        },
        {"maintenanceTimeWindow": _WINDOW},
    ),
    st.one_of(
        part({"weightBasedScalingIntervals": intervals(st.integers(0, 100))}),
        part({"buckets": buckets()}, _OF_BUCKETS),
    ),
)
HVPAS = whole("Hvpa", "autoscaling.k8s.io/v1alpha1", st.one_of(_FLAT, _NESTED))
# Without an HPA of its own: nothing asks for replicas, unless buckets do.
_VERTICAL_HALF = part(
    {"targetRef": TARGET_REF, "vpa": part({}, _HALF | {"template": part({"spec": part({}, {})})})},
    {"hpa": part({}, _HALF)},
)
VERTICAL_HVPAS = whole(
    "Hvpa",
    "autoscaling.k8s.io/v1alpha1",
    merged(
        _VERTICAL_HALF,
        st.one_of(
            part({"weightBasedScalingIntervals": intervals(st.integers(0, 100))}),
            part({"buckets": buckets()}, _OF_BUCKETS),
        ),
    ),
)

_STRATEGY = part(
    {}, {"completionStrategyType": st.sampled_from(["Once", "Periodical"]), "periodSeconds": st.integers(1, 86400)}
)
_CONFIG = st.dictionaries(
    st.sampled_from(["ehpa.deployment-min-replicas", "replicas.workload-min-replicas", "default-min-replicas"]),
    st.sampled_from(["1", "5"]),
)
ANALYTICS = whole(
    "Analytics",
    "analysis.crane.io/v1alpha1",
    part(
        {
            "type": st.sampled_from(["HPA", "Resource", "Replicas"]),
            "resourceSelectors": listed(
                part(
                    {"kind": st.just("Deployment"), "apiVersion": st.just("apps/v1")},
                    {"name": NAMES, "labelSelector": SELECTOR},
                ),
                least=1,
            ),
        },
        {"completionStrategy": _STRATEGY, "config": _CONFIG},
    ),
)
RECOMMENDATIONS = whole(
    "Recommendation",
    "analysis.crane.io/v1alpha1",
    part(
        {
            "targetRef": part(
                {"kind": st.just("Deployment"), "name": NAMES}, {"namespace": st.sampled_from(["shop", "team-1"])}
            ),
            "type": st.just("HPA"),
        },
        {"completionStrategy": _STRATEGY, "adoptionType": st.sampled_from(["Status", "StatusAndAnnotation", "Auto"])},
    ),
)

_MARKS = {"highWatermark": st.sampled_from(["400m", 9, "1e3"]), "lowWatermark": st.sampled_from(["150m", "0.2"])}
_EXTERNAL_MARKS = part({"metricName": st.sampled_from(["rps", "latency.max"])} | _MARKS, {"metricSelector": SELECTOR})
_RESOURCE_MARKS = part({"name": RESOURCE} | _MARKS, {"metricSelector": SELECTOR})
_PERCENTS = st.sampled_from([0, 20, "12.5", 90])
WATERMARKS = whole(
    "WatermarkPodAutoscaler",
    "datadoghq.com/v1alpha1",
    merged(
        part(
            {
                "scaleTargetRef": TARGET_REF,
                "metrics": listed(
                    st.one_of(
                        metric("External", "external", _EXTERNAL_MARKS), metric("Resource", "resource", _RESOURCE_MARKS)
                    ),
                    least=1,
                ),
            },
            {
                "algorithm": st.sampled_from(["absolute", "average"]),
                "tolerance": st.sampled_from([0, 0.01, "0.2", "50m"]),
                "convergeTowardsWatermark": st.sampled_from(["highwatermark", "lowwatermark"]),
                "replicaScalingAbsoluteModulo": st.integers(1, 3),
                "minAvailableReplicaPercentage": st.integers(0, 100),
                "scaleUpLimitFactor": _PERCENTS,
                "scaleDownLimitFactor": _PERCENTS,
                "upscaleForbiddenWindowSeconds": st.sampled_from([0, 30, 600]),
                "downscaleForbiddenWindowSeconds": st.sampled_from([0, 30, 7200]),
                "upscaleDelayAboveWatermarkSeconds": st.sampled_from([0, 120, 4000]),
                "downscaleDelayBelowWatermarkSeconds": st.sampled_from([0, 120, 4000]),
                "readinessDelaySeconds": st.sampled_from([0, 30]),
                "readinessDelay": st.sampled_from([0, 30]),
                "tolerateZero": st.booleans(),
                "dryRun": st.booleans(),
            },
        ),
        replica_bounds(),
    ),
)

_LINE = part({"historySize": st.integers(1, 60), "lookAhead": st.sampled_from([1, 1500, 10000, 7_200_000])})
_COMPONENT = st.sampled_from(["additive", "add", "multiplicative", "mul"])
_SEASON = part(
    {
        "trend": _COMPONENT,
        "seasonal": _COMPONENT,
        "seasonalPeriods": st.sampled_from([6, 5760]),
        "storedSeasons": PERCENT,
    },
    {"alpha": FRACTIONS, "beta": FRACTIONS, "gamma": FRACTIONS, "dampedTrend": st.booleans()},
)
_OF_MODELS = {
    "perSyncPeriod": st.integers(1, 3),
    "calculationTimeout": PERCENT,
    "startInterval": DURATIONS,
    "resetDuration": DURATIONS,
}
_MODELS = st.one_of(
    part({"type": st.just("Linear"), "name": NAMES, "linear": _LINE}, _OF_MODELS),
    part({"type": st.just("HoltWinters"), "name": NAMES, "holtWinters": _SEASON}, _OF_MODELS),
)
_NO_TOLERANCE = part({}, {name: rule for name, rule in _RULES.items() if name != "tolerance"})
PREDICTIVE_HPAS = whole(
    "PredictiveHorizontalPodAutoscaler",
    "jamiethompson.me/v1alpha1",
    merged(
        part(
            {"scaleTargetRef": TARGET_REF, "models": listed(_MODELS, least=1)},
            {
                "metrics": listed(METRICS),
                "behavior": part({}, {"scaleUp": _NO_TOLERANCE, "scaleDown": _NO_TOLERANCE}),
                "downscaleStabilization": st.sampled_from([0, 60, 7200]),
                "cpuInitializationPeriod": st.sampled_from([0, 30, 300]),
                "initialReadinessDelay": st.sampled_from([0, 30]),
                "tolerance": st.sampled_from([0.0, 0.1, 0.25]),
                "syncPeriod": st.sampled_from([1000, 15000, 20500]),
                "decisionType": st.sampled_from(["maximum", "minimum", "mean", "median"]),
            },
        ),
        replica_bounds(),
    ),
)

CUSTOM_HPA_VALUES = merged(
    part(
        {
            "target": part({"deployment": NAMES, "namespace": st.just("shop"), "value": st.sampled_from([1, 2.5, 70])}),
            "prometheus": part({"url": st.just("http://prometheus"), "port": st.just(9090), "query": st.just("up")}),
        },
        {
            "behavior": part(
                {},
                {f"scale{way}Cooldown": st.sampled_from([0, 12.5, 60]) for way in ("Up", "Down")}
                | {f"scale{way}MinFactor": st.sampled_from([0, 0.1, 0.5]) for way in ("Up", "Down")}
                | {f"scale{way}MaxFactor": st.sampled_from([0.2, 0.5, 1]) for way in ("Up", "Down")},
            ),
            "dryRun": st.booleans(),
            "exact": st.booleans(),
        },
    ),
    replica_bounds().map(lambda bounds: {"minReplicas": 1} | bounds),
)

_TRIGGERS = st.one_of(
    part(
        {
            "type": st.just("prometheus"),
            "metadata": part(
                {"query": st.just("sum(rps)"), "threshold": st.sampled_from(["5", "12.5"])},
                {"activationThreshold": st.just("2"), "serverAddress": st.just("http://prometheus")},
            ),
        },
        {"metricType": st.sampled_from(["AverageValue", "Value"])},
    ),
    part({"type": RESOURCE, "metricType": st.just("Utilization"), "metadata": st.just({"value": "60"})}),
    part(
        {
            "type": st.just("cron"),
            "metadata": st.just({"timezone": "UTC", "start": "0 8 * * *", "end": "0 18 * * *", "desiredReplicas": "4"}),
        }
    ),
)
SCALED_OBJECTS = whole(
    "ScaledObject",
    "keda.sh/v1alpha1",
    part(
        {
            "scaleTargetRef": part({"name": NAMES}),
            "maxReplicaCount": st.integers(6, 60),
            "triggers": listed(_TRIGGERS, least=1),
        },
        {
            "minReplicaCount": st.integers(0, 4),
            "fallback": part({"failureThreshold": st.integers(1, 5), "replicas": st.integers(0, 8)}),
            "advanced": part({}, {"horizontalPodAutoscalerConfig": part({}, {"behavior": BEHAVIOR})}),
        },
    ),
)
VPAS = whole(
    "VerticalPodAutoscaler",
    "autoscaling.k8s.io/v1",
    part(
        {"targetRef": TARGET_REF},
        {
            "updatePolicy": part({}, {"updateMode": st.sampled_from(["Auto", "Recreate", "InPlaceOrRecreate", "Off"])}),
            "resourcePolicy": RESOURCE_POLICY,
        },
    ),
)

# What people steer with, and what some kinds have no field for.
ANNOTATIONS = part(
    {},
    {
        "predictive": st.sampled_from(["true", "false"]),
        "trimtab.dev/exact": st.sampled_from(["true", "false"]),
        "trimtab.dev/bridge": st.just("1.25"),
        "trimtab.dev/tuning": st.just("Advise"),
        "trimtab.dev/paused": st.sampled_from(["true", "false"]),
        "trimtab.dev/pin": st.just("3"),
    },
)


@st.composite
def annotated(draw: st.DrawFn, manifests: Strategy) -> Manifest:
    manifest: Manifest = draw(manifests)
    return manifest | {"metadata": manifest["metadata"] | {"annotations": draw(ANNOTATIONS)}}


CUSTOM = st.one_of(AUTOSCALERS, EHPAS, HVPAS, ANALYTICS, RECOMMENDATIONS)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) below a value."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    return [found for key in keys for found in [(value, key), *places(value[key])]]


WRONG = st.sampled_from(
    [-1, 0, 1, 3, 0.5, 101, 2**31, "", "x", "-5", "Off", "10%", True, [], {}, ["a"], {"a": 1}, None]
)


@st.composite
def changed(draw: st.DrawFn, manifests: Strategy) -> Manifest:
    """A manifest with one thing of its spec left out, renamed, or given another value."""
    manifest: Manifest = copy.deepcopy(draw(manifests))
    inside, key = draw(st.sampled_from(places(manifest["spec"])))
    how = draw(st.sampled_from(["leave out", "rename", "replace", "replace", "replace"]))
    if how == "replace":
        inside[key] = draw(WRONG)
    elif how == "rename" and isinstance(inside, dict):
        inside[f"{key}x"] = inside.pop(key)
    else:
        del inside[key]
    return manifest
