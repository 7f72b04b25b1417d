"""How each part of the bed is started: its command line, and the address that says it is ready."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.bed.pki import Authority, Identity

HERE = Path(__file__).parent
HPA_SYNC_PERIOD_S = 5
METRICS_RESOLUTION_S = 10
SCRAPE_INTERVAL_S = 1

# In the order in which they start, with the binaries they need.
BINARIES: dict[str, tuple[str, ...]] = {
    "etcd": ("etcd",),
    "apiserver": ("kube-apiserver", "kubectl"),
    "controller-manager": ("kube-controller-manager",),
    "scheduler": ("kube-scheduler",),
    "load": (),
    "kwok": ("kwok",),
    "metrics-server": ("metrics-server",),
    "prometheus": ("prometheus", "promtool"),
}
PARTS = tuple(BINARIES)
PORTS = (*PARTS, "etcd-peer", "load-tls")
USERS = {  # user -> group
    "admin": "system:masters",
    "kwok": "system:masters",
    "metrics-server": "system:masters",
    "load": "system:masters",
    "system:kube-controller-manager": None,
    "system:kube-scheduler": None,
}


@dataclass(frozen=True)
class Site:
    """Where one bed lives: its folder, its ports and the binaries it runs."""

    directory: Path
    ports: dict[str, int]
    binaries: dict[str, Path]

    @property
    def api_url(self) -> str:
        return f"https://127.0.0.1:{self.ports['apiserver']}"

    def kubeconfig(self, user: str) -> Path:
        return self.directory / f"{user.replace(':', '-')}.kubeconfig"

    def prepare(self) -> None:
        """Writes the certificates, kubeconfigs and configuration files that the commands below name."""
        authority = Authority(self.directory / "pki")
        authority.server()
        authority.service_account_key()
        authority.client("front-proxy")
        for user, group in USERS.items():
            write_kubeconfig(self.kubeconfig(user), self.api_url, authority.cert, authority.client(user, group))
        (self.directory / "prometheus.json").write_text(json.dumps(_prometheus_config(self)))

    def command(self, part: str) -> list[str]:
        return COMMANDS[part](self)

    def ready_url(self, part: str) -> str:
        return READY[part].format(**{name.replace("-", "_"): port for name, port in self.ports.items()})

    def pki(self, file: str) -> str:
        return str(self.directory / "pki" / file)


def write_kubeconfig(path: Path, url: str, ca: Path, user: Identity | str) -> None:
    """A kubeconfig (as JSON, which is YAML) for a client certificate or a bearer token."""
    if isinstance(user, str):
        credentials = {"token": user}
    else:
        credentials = {"client-certificate": str(user.cert), "client-key": str(user.key)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "bed",
        "clusters": [{"name": "bed", "cluster": {"server": url, "certificate-authority": str(ca)}}],
        "users": [{"name": "bed", "user": credentials}],
        "contexts": [{"name": "bed", "context": {"cluster": "bed", "user": "bed"}}],
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(config, indent=1))


def _etcd(site: Site) -> list[str]:
    client, peer = (f"http://127.0.0.1:{site.ports[port]}" for port in ("etcd", "etcd-peer"))
    return [
        str(site.binaries["etcd"]),
        f"--data-dir={site.directory / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",  # nothing here has to survive a power cut
        "--log-level=warn",
    ]


def _apiserver(site: Site) -> list[str]:
    return [
        str(site.binaries["kube-apiserver"]),
        f"--etcd-servers=http://127.0.0.1:{site.ports['etcd']}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",  # nobody inside needs to find a loopback address
        f"--secure-port={site.ports['apiserver']}",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--authorization-mode=RBAC",
        f"--cert-dir={site.directory / 'apiserver-certs'}",
        f"--tls-cert-file={site.pki('server.crt')}",
        f"--tls-private-key-file={site.pki('server.key')}",
        f"--client-ca-file={site.pki('ca.crt')}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={site.pki('service-account.key')}",
        f"--service-account-signing-key-file={site.pki('service-account.key')}",
        f"--requestheader-client-ca-file={site.pki('ca.crt')}",
        "--requestheader-allowed-names=front-proxy",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={site.pki('front-proxy.crt')}",
        f"--proxy-client-key-file={site.pki('front-proxy.key')}",
        f"--audit-policy-file={HERE / 'audit.yaml'}",
        f"--audit-log-path={site.directory / 'audit.log'}",
        "--audit-log-maxsize=2000",
    ]


def _controller_manager(site: Site) -> list[str]:
    return [
        str(site.binaries["kube-controller-manager"]),
        f"--kubeconfig={site.kubeconfig('system:kube-controller-manager')}",
        "--bind-address=127.0.0.1",
        f"--secure-port={site.ports['controller-manager']}",
        f"--cert-dir={site.directory / 'controller-manager-certs'}",
        "--use-service-account-credentials",
        f"--service-account-private-key-file={site.pki('service-account.key')}",
        f"--root-ca-file={site.pki('ca.crt')}",
        "--leader-elect=false",
        f"--horizontal-pod-autoscaler-sync-period={HPA_SYNC_PERIOD_S}s",
        "--kube-api-qps=200",  # its 20 a second make pods wait for seconds where several tests scale at once
        "--kube-api-burst=400",
        "--node-monitor-grace-period=10m",  # a busy machine must not look like a lost node
    ]


def _scheduler(site: Site) -> list[str]:
    return [
        str(site.binaries["kube-scheduler"]),
        f"--kubeconfig={site.kubeconfig('system:kube-scheduler')}",
        "--bind-address=127.0.0.1",
        f"--secure-port={site.ports['scheduler']}",
        f"--cert-dir={site.directory / 'scheduler-certs'}",
        "--leader-elect=false",
    ]


def _load(site: Site) -> list[str]:
    return [
        sys.executable,
        "-m",
        "tests.bed.load",
        f"--kubeconfig={site.kubeconfig('load')}",
        f"--port={site.ports['load']}",
        f"--tls-port={site.ports['load-tls']}",
        f"--tls-cert={site.pki('server.crt')}",
        f"--tls-key={site.pki('server.key')}",
        f"--prometheus=http://127.0.0.1:{site.ports['prometheus']}",
    ]


def _kwok(site: Site) -> list[str]:
    return [
        str(site.binaries["kwok"]),
        f"--kubeconfig={site.kubeconfig('kwok')}",
        *(f"--config={stage}" for stage in sorted((HERE / "stages").glob("*.yaml"))),
        "--manage-all-nodes",
        "--node-lease-duration-seconds=40",
        f"--server-address=127.0.0.1:{site.ports['kwok']}",
    ]


def _metrics_server(site: Site) -> list[str]:
    kubeconfig = site.kubeconfig("metrics-server")
    return [
        str(site.binaries["metrics-server"]),
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={site.ports['metrics-server']}",
        f"--cert-dir={site.directory / 'metrics-server-certs'}",
        "--kubelet-insecure-tls",
        "--kubelet-use-node-status-port",
        "--kubelet-preferred-address-types=InternalIP",
        f"--metric-resolution={METRICS_RESOLUTION_S}s",
        f"--kubelet-request-timeout={METRICS_RESOLUTION_S - 2}s",  # it refuses one above the resolution
    ]


def _prometheus(site: Site) -> list[str]:
    return [
        str(site.binaries["prometheus"]),
        f"--config.file={site.directory / 'prometheus.json'}",
        f"--storage.tsdb.path={site.directory / 'prometheus'}",
        f"--web.listen-address=127.0.0.1:{site.ports['prometheus']}",
        "--log.level=warn",
    ]


def _prometheus_config(site: Site) -> dict[str, object]:
    application = {
        "job_name": "application",
        "honor_labels": True,  # one server speaks for all applications
        "static_configs": [{"targets": [f"127.0.0.1:{site.ports['load']}"]}],
    }
    return {"global": {"scrape_interval": f"{SCRAPE_INTERVAL_S}s"}, "scrape_configs": [application]}


COMMANDS = {
    "etcd": _etcd,
    "apiserver": _apiserver,
    "controller-manager": _controller_manager,
    "scheduler": _scheduler,
    "load": _load,
    "kwok": _kwok,
    "metrics-server": _metrics_server,
    "prometheus": _prometheus,
}
READY = {
    "etcd": "http://127.0.0.1:{etcd}/health",
    "apiserver": "https://127.0.0.1:{apiserver}/readyz",
    "controller-manager": "https://127.0.0.1:{controller_manager}/healthz",
    "scheduler": "https://127.0.0.1:{scheduler}/readyz",
    "load": "http://127.0.0.1:{load}/healthz",
    "kwok": "http://127.0.0.1:{kwok}/healthz",
    "metrics-server": "https://127.0.0.1:{metrics_server}/livez",
    "prometheus": "http://127.0.0.1:{prometheus}/-/ready",
}
