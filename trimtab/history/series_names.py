"""Whose series is it? What dashboards write on a series, as a row's name: namespace/Kind/name[/container/pod].

Prometheus and Grafana write {namespace="shop",pod="web-7d9f8b6c5d-x2x4z"}, Datadog {kube_namespace:shop,
kube_deployment:web}. A pod that does not say its workload bears its name: web-7d9f8b6c5d-x2x4z is of the Deployment
web, db-0 of the StatefulSet db.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

LABELS = {
    "namespace": "namespace",
    "kube_namespace": "namespace",
    "deployment": "Deployment",
    "kube_deployment": "Deployment",
    "statefulset": "StatefulSet",
    "kube_stateful_set": "StatefulSet",
    "daemonset": "DaemonSet",
    "kube_daemon_set": "DaemonSet",
    "container": "container",
    "container_name": "container",
    "kube_container_name": "container",
    "pod": "pod",
    "pod_name": "pod",
    "podname": "pod",
}
KINDS = ("Deployment", "StatefulSet", "DaemonSet")
ASSUMED_KIND = "Deployment"  # of what does not say
KUBECTL = {"deploy": "Deployment", "sts": "StatefulSet", "ds": "DaemonSet"} | {
    f"{kind.lower()}{plural}": kind for kind in KINDS for plural in ("", "s")
}
ANY_CONTAINER = "app"
# What Kubernetes appends to names is drawn from letters and digits that make no words.
RANDOM = "[bcdfghjklmnpqrstvwxz2456789]"
POD_NAMES = (
    ("Deployment", re.compile(rf"(.+)-{RANDOM}{{8,10}}-{RANDOM}{{5}}")),
    ("StatefulSet", re.compile(r"(.+)-\d+")),
    ("DaemonSet", re.compile(rf"(.+)-{RANDOM}{{5}}")),
)
LABEL = re.compile(r"""([A-Za-z_]\w*)\s*[=:]\s*"?([^\s",{}]+)""")


def series_name(text: str, namespace: str) -> str:
    """The row that a legend speaks of, in this namespace unless it names one; what says nothing of a workload is it."""
    labels = {LABELS[key.lower()]: value for key, value in LABEL.findall(text) if key.lower() in LABELS}
    if POD_NAMES[0][1].fullmatch(text):
        labels = {"pod": text}
    return row_name(labels, namespace) or text


def kind_of(word: str) -> str | None:
    """As kubectl takes it: deploy, deployments, deployment.apps; None: no kind of workload."""
    return KUBECTL.get(word.partition(".")[0].lower())


def workload_row(text: str, namespace: str) -> str:
    """The row that people call so: web and rows of ours as they are, deploy/web, shop/web and shop/deployment/web."""
    first, *rest = text.split("/")
    if len(rest) == 1:
        kind = kind_of(first)
        return f"{namespace}/{kind}/{rest[0]}" if kind else f"{first}/{ASSUMED_KIND}/{rest[0]}"
    kind = kind_of(rest[0]) if len(rest) > 1 else None
    return "/".join((first, kind, *rest[1:])) if kind else text


def row_name(labels: Mapping[str, str], namespace: str) -> str:
    """From labels under our own names; empty where they name no workload."""
    pod, space = labels.get("pod", ""), labels.get("namespace") or namespace
    found = next(((kind, labels[kind]) for kind in KINDS if labels.get(kind)), None) or workload_of(pod)
    if found is None:
        return ""
    workload = f"{space}/{found[0]}/{found[1]}"
    return f"{workload}/{labels.get('container') or ANY_CONTAINER}/{pod}" if pod else workload


def workload_of(pod: str) -> tuple[str, str] | None:
    """Kind and name of what made this pod."""
    matches = ((kind, pattern.fullmatch(pod)) for kind, pattern in POD_NAMES)
    return next(((kind, match[1]) for kind, match in matches if match), None)
