"""The image, built for real from Debian's packages, and its root file system started as the chart would start it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.bed import Bed, eventually
from tests.bed.manifests import deployment
from tests.bed.ports import free_port
from tests.live.running import ROOT, autoscaler, install_crds, replicas

TOOLS = ("buildah", "mmdebstrap", "unshare", "setpriv")
MISSING = [tool for tool in TOOLS if not shutil.which(tool)] + (["root"] if os.geteuid() else [])
pytestmark = [
    pytest.mark.package,
    pytest.mark.timeout(3000),
    pytest.mark.skipif(bool(MISSING), reason=f"building an image needs {', '.join(MISSING)}"),
]
BASE_PACKAGES = "python3,python3-venv,python-is-python3,ca-certificates"
CERTIFICATES = "/etc/ssl/certs"  # of this machine: whatever stands before the registries is trusted in the build, too
# What a container runtime does: everything is read-only but the volumes, no right is left and none can be had.
START = """
root=$1 account=$2; shift 2
mount --bind "$root" "$root"
mkdir -p "$root/run/secrets/kubernetes.io/serviceaccount" "$root/var/lib/trimtab"
mount -o remount,ro,bind "$root"
mount --rbind /proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o size=64m,mode=1777 tmpfs "$root/tmp"
mount -t tmpfs -o size=64m,uid=65532,gid=65532 tmpfs "$root/var/lib/trimtab"
mount --bind "$account" "$root/run/secrets/kubernetes.io/serviceaccount"
exec chroot "$root" setpriv --reuid=$USER_ID --regid=$GROUP_ID --clear-groups --no-new-privs --bounding-set=-all \
    --inh-caps=-all env -i "$@"
"""


class Image(NamedTuple):
    root: Path
    config: dict[str, Any]


class Buildah:
    """Without a daemon and without a registry; everything in one folder."""

    def __init__(self, folder: Path) -> None:
        self.place = ("--root", f"{folder}/store", "--runroot", f"{folder}/run", "--storage-driver", "vfs")

    def __call__(self, *words: str | Path) -> str:
        done = subprocess.run(
            ["buildah", *self.place, *map(str, words)], cwd=ROOT, capture_output=True, text=True, timeout=1500
        )
        assert done.returncode == 0, f"buildah {words}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
        return done.stdout.strip()


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    folder = tmp_path_factory.mktemp("image")
    buildah = Buildah(folder)
    base = folder / "base.tar"
    words = ("--variant=minbase", f"--include={BASE_PACKAGES}", "bookworm", str(base))
    subprocess.run(["mmdebstrap", "--quiet", *words], check=True, timeout=900)
    empty = buildah("from", "scratch")
    buildah("add", empty, base, "/")
    buildah("commit", "--rm", empty, "localhost/base")
    base.unlink()
    chroot = ("--isolation", "chroot", "--volume", f"{CERTIFICATES}:{CERTIFICATES}:ro")
    buildah("build", *chroot, "--build-arg", "BASE=localhost/base", "-f", "deploy/Dockerfile", "-t", "trimtab", ".")
    made = buildah("from", "localhost/trimtab")
    config = json.loads(buildah("inspect", made))["OCIv1"]["config"]
    yield Image(Path(buildah("mount", made)), config)
    buildah("umount", made)
    shutil.rmtree(folder, ignore_errors=True)


def test_it_is_what_the_chart_expects(image: Image) -> None:
    assert image.config["User"] == "65532:65532" and image.config["Entrypoint"] == ["trimtab"]
    (path,) = (one for one in image.config["Env"] if one.startswith("PATH="))
    assert path.startswith("PATH=/opt/trimtab/bin:")
    for program in ("trimtab", "kubectl-trimtab", "python"):
        assert os.path.lexists(image.root / "opt/trimtab/bin" / program)
    assert not (image.root / "opt/build").exists() and not (image.root / "src").exists()


def plain(text: str) -> str:
    """Packages are one however their names are written."""
    return re.sub(r"[-_.]+", "-", text.lower())


def test_its_bill_of_materials_names_everything_that_is_installed(image: Image) -> None:
    found = json.loads((image.root / "opt/trimtab/sbom.cdx.json").read_text())
    assert (found["bomFormat"], found["specVersion"]) == ("CycloneDX", "1.5")
    listed = {part["purl"] for part in found["components"]}
    folders = (image.root / "opt/trimtab/lib").glob("python3.*/site-packages/*.dist-info")
    installed = dict(folder.name.removesuffix(".dist-info").split("-") for folder in folders)
    python = {plain(purl.removeprefix("pkg:pypi/")) for purl in listed if purl.startswith("pkg:pypi/")}
    assert python == {plain(f"{name}@{version}") for name, version in installed.items()}
    locked = re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / "requirements/run.txt").read_text(), re.MULTILINE)
    assert python - {plain(f"{name}@{version}") for name, version in locked} == {
        plain(f"trimtab@{installed['trimtab']}")
    }
    assert any(one.startswith("pkg:npm/uplot@") for one in listed)
    assert any(one.startswith("pkg:deb/debian/python3") for one in listed)


def chart_pod(bed: Bed, namespace: str, port: int) -> dict[str, Any]:
    """The pod that the chart makes, with its account and its rights installed."""
    given = [f"crds.{group}=false" for group in ("trimtab", "craneAutoscaling", "craneAnalysis", "hvpa")]
    given += [f"namespace={namespace}", "tick=1s", f"extraArgs[0]=--listen=127.0.0.1:{port}"]
    words = [part for one in given for part in ("--set", one)]
    bed.helm("install", "trimtab", str(ROOT / "deploy/trimtab"), "-n", namespace, *words)
    spec: dict[str, Any] = bed.get("deployment", "trimtab", "-n", namespace)["spec"]["template"]["spec"]
    return spec


def account_files(bed: Bed, namespace: str, folder: Path) -> Path:
    """What the kubelet puts into a pod for its service account."""
    files = {
        "token": bed.kubectl("create", "token", "trimtab", "-n", namespace, "--duration=1h").strip(),
        "ca.crt": (bed.directory / "pki" / "ca.crt").read_text(),
        "namespace": namespace,
    }
    place = folder / "account"
    place.mkdir(mode=0o755)
    for name, text in files.items():
        (place / name).write_text(text)
    return place


@contextmanager
def started(bed: Bed, image: Image, pod: dict[str, Any], account: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    (container,) = pod["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"] and pod["securityContext"]["runAsNonRoot"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    port = bed.api_url.rsplit(":", 1)[1]
    env = [*image.config["Env"], "KUBERNETES_SERVICE_HOST=127.0.0.1", f"KUBERNETES_SERVICE_PORT={port}"]
    env += [f"{one['name']}={one['value']}" for one in container["env"]]
    context = pod["securityContext"]
    who = {"USER_ID": str(context["runAsUser"]), "GROUP_ID": str(context["runAsGroup"])}
    enter = ("unshare", "--mount", "--propagation", "private", "sh", "-ec", START, "sh", str(image.root), str(account))
    command = [*enter, *env, *container["command"], *container["args"]]
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out, env=os.environ | who) as process:
        try:
            yield process
        finally:
            process.terminate()
            process.wait(60)


def test_its_operator_scales_on_a_real_control_plane(bed: Bed, namespace: str, image: Image, tmp_path: Path) -> None:
    install_crds(bed)
    port, log = free_port(), tmp_path / "operator.log"
    pod, account = chart_pod(bed, namespace, port), account_files(bed, namespace, tmp_path)
    tmp_path.chmod(0o755)
    queue = {"metric": {"name": "queue_length", "selector": {"matchLabels": {"app": "web"}}}}
    external = {"type": "External", "external": queue | {"target": {"type": "AverageValue", "averageValue": "10"}}}
    bed.load(namespace, "web", queue=40)
    bed.apply(deployment(namespace, "web"), autoscaler(namespace, metrics=[external]))

    def ready() -> str:
        assert process.poll() is None, log.read_text()[-3000:]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
            return str(answer.read().decode())

    with started(bed, image, pod, account, log) as process:
        eventually(lambda: ready().startswith("ok, leading"), 120, log.read_text())
        eventually(lambda: replicas(bed, namespace) == 4, 120, "40 queued, 10 for each")
        status = yaml.safe_load(re.sub(r"\t+", " ", Path(f"/proc/{process.pid}/status").read_text()))
        assert str(status["Uid"]).split() == ["65532"] * 4 and status["NoNewPrivs"] == 1
        assert int(str(status["CapEff"]), 16) == int(str(status["CapBnd"]), 16) == 0
    assert process.returncode == 0, log.read_text()[-3000:]
    bed.helm("uninstall", "trimtab", "-n", namespace, "--no-hooks")
