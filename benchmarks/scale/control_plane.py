"""The bed's control plane for a large fleet: what only serves tests is left out, so that it is built in minutes."""

from __future__ import annotations

import json

from tests.bed import Bed

HOME = "trimtab-system"  # of the operator's lease and account
OPERATOR = f"system:serviceaccount:{HOME}:trimtab"
HPA_CONTROLLER = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
CONTROLLERS = "deployment-controller,replicaset-controller,serviceaccount-controller,namespace-controller"
HPA = "horizontal-pod-autoscaler-controller"
FAST = ("--kube-api-qps=1000", "--kube-api-burst=2000", "--concurrent-deployment-syncs=20")
USUAL = ("--kube-api-qps=20", "--kube-api-burst=30", "--horizontal-pod-autoscaler-sync-period=15s")
EVENTS = {"type": "User", "qps": 5, "burst": 2000, "cacheSize": 100}


def lighten(bed: Bed) -> None:
    """Only requests of those who are measured are logged, controllers' events are few, and pods know their nodes."""
    rules = [{"level": "Metadata", "users": [OPERATOR, HPA_CONTROLLER]}, {"level": "None"}]
    policy = _written(bed, "audit", "audit.k8s.io/v1", "Policy", omitStages=["RequestReceived"], rules=rules)
    limits = {"apiVersion": "eventratelimit.admission.k8s.io/v1alpha1", "kind": "Configuration", "limits": [EVENTS]}
    plugins = [{"name": "EventRateLimit", "configuration": limits}]
    admission = _written(bed, "admission", "apiserver.config.k8s.io/v1", "AdmissionConfiguration", plugins=plugins)
    bed.stop_part("scheduler")
    restarted(
        bed,
        "apiserver",
        policy.format("audit-policy-file"),
        "--enable-admission-plugins=EventRateLimit",
        admission.format("admission-control-config-file"),
    )
    restarted(bed, "controller-manager", f"--controllers={CONTROLLERS}", *FAST)


def restarted(bed: Bed, part: str, *flags: str) -> int:
    """Started anew with these flags; its process id."""
    bed.stop_part(part)
    bed.start_part(part, *flags)
    pid = bed.processes.pid(part)
    assert pid is not None
    return pid


def _written(bed: Bed, name: str, version: str, kind: str, **content: object) -> str:
    """A flag for the file, without its name."""
    path = bed.directory / f"{name}.json"
    path.write_text(json.dumps({"apiVersion": version, "kind": kind, **content}))
    return f"--{{}}={path}"
