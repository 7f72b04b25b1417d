"""What the operator reports, kind by kind: the field names their users know, and ours. Only the schemas use these."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from trimtab.kinds.manifest_part import ManifestPart

Time = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
Int32 = Annotated[int, WithJsonSchema({"type": "integer", "format": "int32"})]
Int64 = Annotated[int, WithJsonSchema({"type": "integer", "format": "int64"})]
Open = dict[str, Any]


class Condition(ManifestPart):
    """One aspect of the object's state."""

    type: str
    status: Literal["True", "False", "Unknown"]
    last_transition_time: Time | None = None
    observed_generation: Int64 | None = None
    reason: str | None = None
    message: str | None = None


Conditions = Annotated[
    list[Condition],
    Field(json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}),
]


class ReportedSize(ManifestPart):
    container: str
    cpu: str | None = None
    memory: str | None = None


class BridgeStatus(ManifestPart):
    factor: str
    """How many times their written cpu ready pods have now."""
    pods: Int32
    """So many have it."""
    left_out: list[str] | None = None
    """Containers that a resize would restart, or that ask for no cpu."""


class TuningFiguresStatus(ManifestPart):
    j: str
    """Pods, violations and starts, priced, over the clairvoyant optimum."""
    violations: str
    cost: str
    churn_per_day: str


class TuningEvidenceStatus(ManifestPart):
    days: Int32
    before: TuningFiguresStatus
    after: TuningFiguresStatus


class TuningStatus(ManifestPart):
    verdict: str
    """Of the last night: Switched, Advised, Waits, Kept, WentBack, Unknown, Untunable; Waiting before the first."""
    reason: str | None = None
    last_night: Time | None = None
    in_force: str | None = None
    """The settings that scale the workload now; "as written" where tuning replaced none."""
    replaced: str | None = None
    """The settings that these replaced."""
    since: Time | None = None
    promised_j: str | None = None
    """J of a day as the backtest promised it, over an optimum that keeps minReplicas."""
    realized_j: str | None = None
    """J of the last day under these settings."""
    advice: str | None = None
    """Settings that would be better."""
    evidence: TuningEvidenceStatus | None = None
    """The backtest of the last night."""


class OurStatus(ManifestPart):
    """What every kind of ours remembers and explains."""

    observed_generation: Int64 | None = None
    """The generation of the object that was last acted on."""
    conditions: Conditions | None = None
    mode: str | None = None
    """Auto, Shadow or Paused, whoever said so; Frozen: the whole installation."""
    last_decision: str | None = None
    """Why the last decision came out as it did, in one sentence."""
    sized: str | None = None
    """Pods that have the size in force, of all pods, such as 3/5; Advice: sizes are not written."""
    bridge: BridgeStatus | None = None
    """What ready pods have beyond their written size, for a while."""
    tuning: TuningStatus | None = None
    """What tuning found in the last night, and what is in force."""
    memory: Open | None = None
    """What outlives a restart: cooldowns, last scalings; has a version."""


class AutoscalerStatus(OurStatus):
    """HPA's field names, and ours."""

    last_scale_time: Time | None = None
    current_replicas: Int32 | None = None
    desired_replicas: Int32 | None = None
    current_metrics: list[Open] | None = None
    """As in autoscaling/v2."""
    targets: str | None = None
    """Each metric's value and target, as `kubectl get` shows it."""
    sizes: list[ReportedSize] | None = None
    """What each container's requests should be."""
    startup_seconds: float | None = None
    """How long nine of ten pods take to become ready."""


class EffectiveHpaStatus(OurStatus):
    expect_replicas: Int32 | None = None
    current_replicas: Int32 | None = None
    last_scale_time: Time | None = None


class BlockedScaling(ManifestPart):
    """A move that did not happen, and why."""

    reason: str
    scaling_status: Open | None = None


class HvpaStatus(OurStatus):
    replicas: Int32 | None = None
    target_selector: str | None = None
    hpa_weight: Int32 | None = None
    vpa_weight: Int32 | None = None
    override_scale_up_stabilization: bool | None = None
    last_blocked_scaling: list[BlockedScaling] | None = None
    last_scaling: Open | None = None
    last_error: Open | None = None


class ReportedObject(ManifestPart):
    kind: str | None = None
    api_version: str | None = None
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None


class Mission(ManifestPart):
    """One target, and the recommendation it got."""

    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    kind: str | None = None
    api_version: str | None = None
    target_ref: ReportedObject | None = None
    last_start_time: Time | None = None
    message: str | None = None


class AnalyticsStatus(ManifestPart):
    last_update_time: Time | None = None
    conditions: Conditions | None = None
    recommendations: list[Mission] | None = None
    config: dict[str, str] | None = None
    """The configuration in force, defaults included."""
    observed_spec: str | None = None
    """A digest of the spec of the last round; another one asks for a new round."""


class RecommendationStatus(ManifestPart):
    recommended_value: str | None = None
    """YAML: what to apply."""
    recommended_info: str | None = None
    current_info: str | None = None
    action: str | None = None
    description: str | None = None
    target_ref: ReportedObject | None = None
    last_update_time: Time | None = None
    conditions: Conditions | None = None
    observed_spec: str | None = None
    """A digest of the spec of the last round; another one asks for a new round."""
    evidence: Open | None = None
    """The numbers the recommendation rests on."""
