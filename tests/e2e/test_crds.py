"""The generated definitions on a real API server: it takes them, judges objects as the kinds do, and shows columns."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests.bed import Bed, eventually
from tests.kinds import generate
from tests.kinds.beyond_cel import beyond_cel
from trimtab.errors import InvalidInput, InvalidObject
from trimtab.kinds import read
from trimtab.kinds.crd import CRDS, definitions

pytestmark = [pytest.mark.e2e, pytest.mark.smoke]

PLURALS = {crd.kind: crd.plural for crd in CRDS} | {"HorizontalPodAutoscaler": "horizontalpodautoscalers"}
GENERATED = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)

Send = Callable[[dict[str, Any]], str]


@pytest.fixture(scope="module")
def server() -> Iterator[Bed]:
    """The API server with our definitions; the rest of the control plane is not needed."""
    shared = Bed.attach()
    with nullcontext(shared) if shared else Bed.start(parts=()) as bed:
        for definition in definitions():
            bed.apply(definition)
        names = [f"crd/{crd.name}" for crd in CRDS]
        bed.kubectl("wait", "--for=condition=Established", *names, "--timeout=300s")
        yield bed


@pytest.fixture(scope="module")
def send(server: Bed) -> Send:
    """Asks the API server for its verdict on one object: its complaint, or nothing."""
    config = json.loads(server.kubeconfig.read_text())
    user, cluster = config["users"][0]["user"], config["clusters"][0]["cluster"]
    context = ssl.create_default_context(cafile=cluster["certificate-authority"])
    context.load_cert_chain(user["client-certificate"], user["client-key"])

    def ask(manifest: dict[str, Any]) -> str:
        """Again while the server is too busy to say: with dryRun nothing is changed by asking."""
        return eventually(lambda: (once(manifest),), 60)[0]

    def once(manifest: dict[str, Any]) -> str:
        group, plural = manifest["apiVersion"], PLURALS[manifest["kind"]]
        url = f"{server.api_url}/apis/{group}/namespaces/default/{plural}?dryRun=All&fieldValidation=Strict"
        body = json.dumps(manifest).encode()
        request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, context=context, timeout=30):
                return ""
        except urllib.error.HTTPError as error:
            if error.code not in (400, 422):
                raise
            return str(json.load(error)["message"])

    def served() -> bool:
        sample = {"apiVersion": "trimtab.dev/v1alpha1", "kind": "Autoscaler", "metadata": {"name": "x"}}
        return "spec" in ask(sample)

    eventually(served, 30, "the API server serves autoscalers")
    return ask


def verdict(manifest: dict[str, Any]) -> list[InvalidInput]:
    try:
        read(manifest)
    except InvalidObject as error:
        return list(error.problems)
    return []


@GENERATED
@given(manifest=generate.CUSTOM)
def test_both_accept_what_is_right(send: Send, manifest: dict[str, Any]) -> None:
    assert [str(problem) for problem in verdict(manifest)] == []
    assert send(manifest) == ""


@settings(GENERATED, max_examples=600)
@given(manifest=generate.changed(generate.CUSTOM))
def test_both_refuse_the_same(send: Send, manifest: dict[str, Any]) -> None:
    """Refusals that CEL cannot express stand in BEYOND_CEL; all others are the API server's too, and the reverse."""
    ours = verdict(manifest)
    complaint = send(manifest)
    shared = [str(problem) for problem in ours if not beyond_cel(problem.path)]
    if shared:
        assert complaint, shared
    if complaint:
        assert ours, complaint


@GENERATED
@given(manifest=generate.HPAS)
def test_an_hpa_is_taken_by_both_and_so_is_its_twin(send: Send, manifest: dict[str, Any]) -> None:
    twin = manifest | {"apiVersion": "trimtab.dev/v1alpha1", "kind": "Autoscaler"}
    assert send(manifest) == ""
    assert send(twin) == ""
    assert verdict(manifest) == verdict(twin) == []


def test_explain_describes_the_spec(server: Bed) -> None:
    text = server.kubectl("explain", "autoscaler.spec")
    for word in ("scaleTargetRef", "maxReplicas", "vertical", "blend", "schedules", "onMetricFailure"):
        assert word in text
    assert "enum" in server.kubectl("explain", "autoscaler.spec.mode").lower()


def test_get_shows_the_columns_their_users_know(server: Bed) -> None:
    header = {  # our own columns follow those that a document prints
        "ehpa": "NAME STRATEGY MINPODS MAXPODS SPECIFICPODS REPLICAS AGE READY MODE",
        "hvpa": "NAME TARGET REPLICAS HPAWEIGHT VPAWEIGHT AGE READY SIZED MODE",
        "analytics": "NAME AGE READY",
        "recommend": "NAME TYPE TARGETKIND TARGETNAMESPACE TARGETNAME STRATEGY PERIODSECONDS ADOPTIONTYPE AGE READY",
        "autoscaler": "NAME REFERENCE TARGETS MINPODS MAXPODS REPLICAS READY SIZED MODE TUNING AGE",
    }
    for manifest in SAMPLES:
        server.apply(manifest)
    for name, columns in header.items():
        assert server.kubectl("get", name).splitlines()[0].split() == columns.split()
    everything = server.kubectl("get", ",".join(header))
    assert all(f"/{manifest['metadata']['name']} " in everything for manifest in SAMPLES)


def test_defaults_are_filled_in_by_the_api_server(server: Bed) -> None:
    for manifest in SAMPLES:
        server.apply(manifest)
    ehpa = server.get("ehpa", "sample-ehpa")["spec"]
    assert (ehpa["minReplicas"], ehpa["scaleStrategy"]) == (1, "Auto")
    assert server.get("recommend", "sample-recommend")["spec"]["adoptionType"] == "StatusAndAnnotation"
    strategy = server.get("analytics", "sample-analytics")["spec"]["completionStrategy"]
    assert strategy == {"completionStrategyType": "Once"}


def test_hvpa_has_a_scale_subresource(server: Bed) -> None:
    hvpa = SAMPLES[1]
    server.apply(hvpa | {"spec": hvpa["spec"] | {"replicas": 2}})
    path = "/apis/autoscaling.k8s.io/v1alpha1/namespaces/default/hvpas/sample-hvpa/scale"
    assert json.loads(server.kubectl("get", "--raw", path))["spec"] == {"replicas": 2}


def _sample(version: str, kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


_WEB = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
SAMPLES = (
    _sample(
        "autoscaling.crane.io/v1alpha1",
        "EffectiveHorizontalPodAutoscaler",
        "sample-ehpa",
        {"scaleTargetRef": _WEB, "maxReplicas": 3},
    ),
    _sample(
        "autoscaling.k8s.io/v1alpha1",
        "Hvpa",
        "sample-hvpa",
        {"targetRef": _WEB, "hpaTemplate": {"maxReplicas": 3}, "weightBasedScalingIntervals": [{"vpaWeight": 0.5}]},
    ),
    _sample(
        "analysis.crane.io/v1alpha1",
        "Analytics",
        "sample-analytics",
        {"type": "HPA", "resourceSelectors": [{"kind": "Deployment", "apiVersion": "apps/v1"}]},
    ),
    _sample("analysis.crane.io/v1alpha1", "Recommendation", "sample-recommend", {"targetRef": _WEB, "type": "HPA"}),
    _sample("trimtab.dev/v1alpha1", "Autoscaler", "sample-autoscaler", {"scaleTargetRef": _WEB, "maxReplicas": 3}),
)
