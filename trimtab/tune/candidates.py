"""The family of reactive settings that tuning chooses from: target, tolerance and stabilisation, 135 of them.

A target is a share of what one pod carries at 100 %. Everything else of the policy stays as its owner wrote it.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

from msgspec.structs import replace

from trimtab.core.tuned import Tunable, settings_of, tunable, tuned
from trimtab.policy import Admit, Bridge, Policy, TotalAverage, TunedSettings, Utilization
from trimtab.sim.program import is_cpu_share

TOLERANCES = (0.0, 0.05, 0.1)
WINDOWS_S = (0.0, 60.0, 300.0, 900.0, 1800.0)
TARGETS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8)
CEILINGS = (0.65, 0.70, 0.75, 0.78)  # of a bridge that is written
OLDEST_S = 60.0  # what pods report may be this old: two scrapes of metrics-server and one of a kubelet


class Setting(NamedTuple):
    """Three knobs; `target` is the share of a pod's capacity."""

    target: float
    tolerance: float
    stabilise_s: float


def settings() -> list[Setting]:
    """All of them, in the order that breaks ties."""
    return [Setting(target, *others) for *others, target in product(TOLERANCES, WINDOWS_S, TARGETS)]


def windows_s(policy: Policy) -> tuple[float, ...]:
    """Those that can be advised.

    Right after a decrease the pods that remain still report what they had before it, as if more could go; a window
    that is longer than such reports are old does not follow them.
    """
    least_s = 0.0 if isinstance(tunable(policy), TotalAverage) else OLDEST_S
    return tuple(window_s for window_s in WINDOWS_S if window_s >= least_s)


def setting_of(policy: Policy, pod_capacity: float) -> Setting:
    """What a policy has now."""
    found = settings_of(policy)
    return Setting(_share(tunable(policy), found.target, pod_capacity), found.tolerance, found.window_s)


def tuned_settings(
    policy: Policy, setting: Setting, bridge: Bridge | None, pod_capacity: float, priced: bool = False
) -> TunedSettings:
    """A setting in the words of the policy."""
    per_share = 100.0 if isinstance(tunable(policy), Utilization) else pod_capacity
    return TunedSettings(
        target=setting.target * per_share,
        tolerance=setting.tolerance,
        window_s=setting.stabilise_s,
        ceiling=bridge.ceiling if bridge else None,
        priced=priced,
    )


def with_setting(policy: Policy, setting: Setting, pod_capacity: float) -> Policy:
    """The policy with these three knobs; a stabilisation window is added where it had none."""
    return tuned(policy, tuned_settings(policy, setting, policy.bridge, pod_capacity, policy.objective is not None))


def allowed_settings(policy: Policy, pod_capacity: float) -> list[Setting]:
    """Those for which its metric and the limits of its tuning leave room."""
    return [setting for setting in settings() if _allowed(policy, setting, pod_capacity)]


def _allowed(policy: Policy, setting: Setting, pod_capacity: float) -> bool:
    limits, found = policy.tuning.limits, tuned_settings(policy, setting, None, pod_capacity)
    if found.window_s not in windows_s(policy):
        return False
    return found.target in limits.target and found.tolerance in limits.tolerance and found.window_s in limits.window_s


def _share(signal: Tunable, target: float, pod_capacity: float) -> float:
    return target / (100.0 if isinstance(signal, Utilization) else pod_capacity)


def in_the_lane(policy: Policy, pod_capacity: float) -> Policy:
    """The compiled lane's form of a policy, forecast and schedules included; `scored` says how it differs."""
    simple = replace(
        policy,
        admit=Admit(),
        bounds=replace(policy.bounds, min_replicas=max(1, policy.bounds.min_replicas)),
        forecast=replace(policy.forecast, exact=False) if policy.forecast else None,
        vertical=policy.vertical if policy.blend else None,
        bridge=replace(policy.bridge, resizes_per_hour=None) if policy.bridge else None,
    )
    return simple if is_cpu_share(simple) else _on_the_total(simple, pod_capacity)


def _on_the_total(policy: Policy, pod_capacity: float) -> Policy:
    """It differs where pods are unready or saturated, for a total shows the whole demand at once."""
    signal = tunable(policy)
    target = _share(signal, settings_of(policy).target, pod_capacity) * pod_capacity
    total = TotalAverage(metric=signal.metric, target=target, tolerance=signal.tolerance)
    return replace(policy, signals=(total,))


def scored(policy: Policy) -> tuple[str, ...]:
    """What every candidate was scored with and without, where that is not the policy to the letter."""
    forecast, said = policy.forecast, []
    if not isinstance(tunable(policy), TotalAverage) and not is_cpu_share(policy):
        said.append("simulated on the total load; what pods report may lag behind it")
    if forecast is not None:
        exact = ", without the quirks of its source" if forecast.exact else ""
        said.append(f"every setting was scored with the {forecast.model} forecast{exact}")
    if policy.bounds.spans:
        said.append("every setting was scored with the schedules")
    if policy.vertical is not None:
        said.append("settings were scored at the present size of pods: the vertical part is left out")
    if policy.bridge is not None and policy.bridge.resizes_per_hour is not None:
        said.append("every setting was scored without the limit of resizes per hour")
    if policy.admit != Admit():
        said.append("settings were scored as if the policy were on, neither paused nor pinned")
    if policy.bounds.min_replicas == 0:
        said.append("settings were scored with one replica at least, not zero")
    return tuple(said)
