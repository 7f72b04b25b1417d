"""`convert --beside-keda` on a running KEDA: paused, it still serves its metrics, and the Autoscaler scales by them.

On a control plane of its own: KEDA's adapter takes the place of everybody's external metrics.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.bed import PATIENCE_S, Bed, build, eventually
from tests.bed.manifests import deployment
from tests.bed.ports import free_port
from tests.live.running import TRIMTAB, Running, install_crds, replicas

pytestmark = [pytest.mark.keda, pytest.mark.timeout(7200)]  # it may be built first
SHOP, PAUSED = "shop", "autoscaling.keda.sh/paused=true"


class Jobs:
    """An application that says how many of its jobs wait; only KEDA knows how to ask it."""

    def __init__(self) -> None:
        jobs, self.waiting, self.asked = self, 40, 0

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                jobs.asked += 1
                body = json.dumps({"waiting": jobs.waiting}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *words: object) -> None:
                """In silence."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"

    def __enter__(self) -> Jobs:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


@contextmanager
def keda(bed: Bed, folder: Path) -> Iterator[None]:
    """Its operator and its metrics adapter, as processes; the adapter answers for external metrics."""
    for crd in sorted(build.module_dir(build.KEDA, "github.com/kedacore/keda/v2").glob("config/crd/bases/*.yaml")):
        bed.kubectl("apply", "--server-side", "-f", str(crd))
    service, adapter, probes = free_port(), free_port(), free_port()
    commands = {
        "keda-operator": [
            f"--kubeconfig={bed.kubeconfig}",
            f"--metrics-bind-address=127.0.0.1:{free_port()}",
            f"--health-probe-bind-address=127.0.0.1:{probes}",
            f"--metrics-service-bind-address=127.0.0.1:{service}",
            f"--cert-dir={identity(bed, folder, 'server')}",
            f"--ca-dir={bed.directory / 'pki'}",
            "--enable-cert-rotation=false",
        ],
        "keda-adapter": [
            f"--secure-port={adapter}",
            "--bind-address=127.0.0.1",
            f"--port={free_port()}",
            f"--metrics-service-address=localhost:{service}",
            *(f"--{kind}kubeconfig={bed.kubeconfig}" for kind in ("", "lister-", "authentication-", "authorization-")),
            f"--client-ca-file={bed.directory / 'pki/ca.crt'}",
            f"--tls-cert-file={bed.directory / 'pki/server.crt'}",
            f"--tls-private-key-file={bed.directory / 'pki/server.key'}",
            f"--cert-dir={identity(bed, folder, 'admin')}",
        ],
    }
    with ExitStack() as running:
        for name, words in commands.items():
            running.enter_context(process(name, words, folder / f"{name}.log"))
            if name == "keda-operator":
                eventually(lambda: urllib.request.urlopen(f"http://127.0.0.1:{probes}/readyz", timeout=5), 120)
        port = json.dumps({"spec": {"service": {"port": adapter}}})
        bed.kubectl("patch", "apiservice", "v1beta1.external.metrics.k8s.io", "--type=merge", "-p", port)
        yield


def identity(bed: Bed, folder: Path, name: str) -> Path:
    """A certificate of the bed's authority under the names that KEDA reads."""
    place = folder / name
    place.mkdir()
    for file, source in {"ca.crt": "ca.crt", "tls.crt": f"{name}.crt", "tls.key": f"{name}.key"}.items():
        (place / file).symlink_to(bed.directory / "pki" / source)
    return place


@contextmanager
def process(name: str, words: list[str], log: Path) -> Iterator[None]:
    binary = build.binaries((name,))[name]
    env = os.environ | {"WATCH_NAMESPACE": "", "POD_NAMESPACE": "kube-system"}
    env |= {"KEDA_CLUSTER_OBJECT_NAMESPACE": "kube-system"}
    with log.open("wb") as out:
        running = subprocess.Popen([str(binary), *words], env=env, stdout=out, stderr=out)
    try:
        yield
    except BaseException:
        print(name, log.read_text()[-4000:])
        raise
    finally:
        running.terminate()
        running.wait(60)


def scaled_object(url: str) -> dict[str, Any]:
    trigger = {"type": "metrics-api", "metadata": {"targetValue": "10", "url": url, "valueLocation": "waiting"}}
    spec = {"scaleTargetRef": {"name": "web"}, "pollingInterval": 5, "minReplicaCount": 1, "maxReplicaCount": 10}
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "web", "namespace": SHOP},
        "spec": spec | {"triggers": [trigger]},
    }


def converted(bed: Bed) -> dict[str, Any]:
    """As docs/migration.md says: the object comes from the cluster."""
    words = [*TRIMTAB, "convert", "-", "--to", "autoscaler", "--beside-keda"]
    text = bed.kubectl("get", "scaledobject", "web", "-n", SHOP, "-o", "yaml")
    done = subprocess.run(words, input=text, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    made: dict[str, Any] = yaml.safe_load(done.stdout)
    return made


def served(bed: Bed, metric: str) -> str:
    path = f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{SHOP}/{metric}"
    answer = json.loads(bed.kubectl("get", "--raw", f"{path}?labelSelector=scaledobject.keda.sh%2Fname%3Dweb"))
    return str(answer["items"][0]["value"])


def test_a_paused_scaled_object_serves_and_the_autoscaler_follows(tmp_path: Path) -> None:
    build.binaries(("keda-operator", "keda-adapter"))
    with Bed.start() as bed, Jobs() as jobs, keda(bed, tmp_path):
        install_crds(bed)
        bed.kubectl("create", "namespace", SHOP)
        bed.apply(deployment(SHOP, "web"), scaled_object(jobs.url))
        eventually(lambda: replicas(bed, SHOP) == 4, 180, "KEDA scales: 40 jobs, 10 for each")
        ours = converted(bed)
        (metric,) = ours["spec"]["metrics"]
        bed.kubectl("annotate", "scaledobject", "web", "-n", SHOP, PAUSED)
        eventually(lambda: bed.get("hpa", "-n", SHOP)["items"] == [], 120, "KEDA no longer scales")
        jobs.waiting = 60
        name = metric["external"]["metric"]["name"]
        eventually(lambda: served(bed, name) == "60", 120, "and still serves")
        bed.apply(ours)
        with Running(bed, SHOP, tmp_path):
            eventually(lambda: replicas(bed, SHOP) == 6, 120, "60 jobs, 10 for each")
            jobs.waiting = 90
            eventually(lambda: replicas(bed, SHOP) == 9, 120, "90 jobs")
