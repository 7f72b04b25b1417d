"""Read kubeconfig files, merged as kubectl does (the first file that says something wins), as an Access.

An exec plugin is a command that prints an ExecCredential (client.authentication.k8s.io, v1 and v1beta1) with a token or
a client certificate, valid until its expirationTimestamp.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import os
import sys
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from trimtab.errors import InvalidInput
from trimtab.wire.access import Access, Credential, Fixed, Identity, TokenFile, Trust, basic, bearer, in_cluster
from trimtab.wire.clock import SYSTEM
from trimtab.wire.decode import decode

EXPIRY_MARGIN_S = 10.0
EXEC_TIMEOUT_S = 60.0
EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


class ExecSpec(msgspec.Struct, frozen=True, rename="camel"):
    """`users[].user.exec` of a kubeconfig."""

    command: str
    api_version: str
    args: list[str] | None = None
    env: list[dict[str, str]] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = "IfAvailable"


class ExecStatus(msgspec.Struct, frozen=True, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class ExecCredential(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    status: ExecStatus | None = None


class ExecPlugin:
    """A credential from a command, kept until it expires or a 401 says it is no longer wanted."""

    def __init__(self, spec: ExecSpec, cluster: dict[str, Any], user: str) -> None:
        self.path = f"users[{user}].user.exec"
        if spec.api_version not in EXEC_VERSIONS:
            raise InvalidInput(f"{self.path}.apiVersion", spec.api_version, f"write {' or '.join(EXEC_VERSIONS)}")
        self._spec, self._cluster = spec, cluster
        self._held: Credential | None = None
        self._expires_at = float("inf")
        self._running = asyncio.Lock()

    async def credential(self) -> Credential:
        async with self._running:  # one run for all who wait: plugins may open a browser
            if self._held is None or SYSTEM.now() >= self._expires_at - EXPIRY_MARGIN_S:
                self._hold(self._read(await self._run()))
            assert self._held is not None
            return self._held

    def forget(self) -> bool:
        self._held = None
        return True

    def _hold(self, status: ExecStatus) -> None:
        chain = status.client_certificate_data
        certificate = f"{chain}\n{status.client_key_data}" if chain else ""
        self._held = Credential(bearer(status.token) if status.token else "", certificate.encode())
        expiry = status.expiration_timestamp
        self._expires_at = expiry.timestamp() if expiry else float("inf")

    async def _run(self) -> bytes:
        interactive = self._spec.interactive_mode != "Never" and sys.stdin is not None and sys.stdin.isatty()
        if self._spec.interactive_mode == "Always" and not interactive:
            fix = "this plugin needs a terminal and there is none"
            raise InvalidInput(f"{self.path}.interactiveMode", "Always", fix)
        try:
            process = await asyncio.create_subprocess_exec(
                self._spec.command,
                *(self._spec.args or ()),
                env=self._environment(interactive),
                stdin=None if interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=None if interactive else asyncio.subprocess.PIPE,
            )
        except OSError as error:
            hint = self._spec.install_hint or "install it, or put it on the PATH"
            raise self._failure(f"{error.strerror}: {hint}") from error
        return await self._finish(process, None if interactive else EXEC_TIMEOUT_S)

    async def _finish(self, process: asyncio.subprocess.Process, timeout_s: float | None) -> bytes:
        try:
            printed, complaint = await asyncio.wait_for(process.communicate(), timeout_s)
        except TimeoutError as error:
            process.kill()
            raise self._failure(f"no answer within {EXEC_TIMEOUT_S:.0f} s") from error
        if process.returncode:
            said = (complaint or b"").decode(errors="replace").strip()[-300:]
            raise self._failure(f"exit code {process.returncode}: {said}")
        return printed

    def _failure(self, why: str) -> InvalidInput:
        return InvalidInput(f"{self.path}.command", self._spec.command, why)

    def _environment(self, interactive: bool) -> dict[str, str]:
        asked: dict[str, Any] = {"interactive": interactive}
        if self._spec.provide_cluster_info:
            asked["cluster"] = self._cluster
        info = {"apiVersion": self._spec.api_version, "kind": "ExecCredential", "spec": asked}
        own = {variable["name"]: variable["value"] for variable in self._spec.env or ()}
        return {**os.environ, **own, "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode()}

    def _read(self, printed: bytes) -> ExecStatus:
        try:
            answer: ExecCredential = decode(printed, ExecCredential)
        except msgspec.MsgspecError as error:
            raise self._failure(f"printed no ExecCredential: {error}") from error
        if answer.api_version != self._spec.api_version:
            fix = f"the plugin speaks {answer.api_version}"
            raise InvalidInput(f"{self.path}.apiVersion", self._spec.api_version, fix)
        status = answer.status or ExecStatus()
        if not (status.token or (status.client_certificate_data and status.client_key_data)):
            raise self._failure("it gave neither a token nor a certificate with its key")
        return status


Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Cluster(msgspec.Struct, frozen=True, rename="kebab"):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    proxy_url: str = ""
    folder: str = ""  # where relative paths start; ours, not kubectl's


class User(msgspec.Struct, frozen=True, rename="kebab"):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    exec: ExecSpec | None = None
    auth_provider: dict[str, Any] | None = None
    impersonate: str = msgspec.field(default="", name="as")
    as_groups: list[str] | None = None
    folder: str = ""


class Context(msgspec.Struct, frozen=True):
    cluster: str = ""
    user: str = ""
    namespace: str = "default"
    folder: str = ""


Entry = TypeVar("Entry", Cluster, User, Context)


class Kubeconfig:
    """The merged files; `access()` opens one context."""

    def __init__(self, paths: list[Path]) -> None:
        self.where = os.pathsep.join(map(str, paths))
        self.current = ""
        self._named: dict[str, dict[str, dict[str, Any]]] = {"clusters": {}, "users": {}, "contexts": {}}
        for path in paths:
            self._merge(path, _load(path))

    @property
    def contexts(self) -> list[str]:
        return sorted(self._named["contexts"])

    def access(self, context: str | None = None) -> Access:
        chosen = self._entry("contexts", context or self.current, Context)
        cluster, user = self._entry("clusters", chosen.cluster, Cluster), User()
        if chosen.user:
            user = self._entry("users", chosen.user, User)
        return Access(
            url=cluster.server.rstrip("/"),
            identity=_identity(user, cluster, chosen.user),
            trust=Trust(_ca(cluster), cluster.tls_server_name, cluster.insecure_skip_tls_verify),
            proxy=cluster.proxy_url,
            headers={"Impersonate-User": user.impersonate} if user.impersonate else {},
            namespace=chosen.namespace or "default",
        )

    def _merge(self, path: Path, content: dict[str, Any]) -> None:
        self.current = self.current or content.get("current-context") or ""
        for plural, known in self._named.items():
            for item in content.get(plural) or ():
                body = item.get(plural[:-1]) or {}
                known.setdefault(item.get("name", ""), {**body, "folder": str(path.parent)})

    def _entry(self, plural: str, name: str, kind: type[Entry]) -> Entry:
        known = self._named[plural]
        if name not in known:
            fix = f"choose one of {', '.join(sorted(known)) or '(none)'} in {self.where}"
            raise InvalidInput("context" if plural == "contexts" else f"kubeconfig {plural}", name, fix)
        try:
            return msgspec.convert(known[name], kind)
        except msgspec.ValidationError as error:
            raise InvalidInput(f"{self.where}: {plural}[{name}]", str(error), "correct the kubeconfig") from error


def connect(context: str | None = None, kubeconfig: str | None = None) -> Access:
    """As kubectl: the named file, else KUBECONFIG, else ~/.kube/config, else the pod's service account."""
    listed = kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"
    # Not Path.expanduser: it raises for the user of a container, who has no home.
    known = [Path(os.path.expanduser(part)) for part in listed.split(os.pathsep) if part]
    paths = [path for path in known if path.exists()]
    if paths:
        return Kubeconfig(paths).access(context)
    if kubeconfig or os.environ.get("KUBECONFIG"):
        raise InvalidInput("kubeconfig", listed, "there is no such file")
    if context:  # never fall back to a cluster that was not meant
        raise InvalidInput("context", context, "there is no kubeconfig that could hold it: set KUBECONFIG")
    return in_cluster()


def _load(path: Path) -> dict[str, Any]:
    try:
        content = yaml.load(path.read_bytes(), Loader)  # noqa: S506 (a SafeLoader, in C where there is one)
    except (OSError, yaml.YAMLError) as error:
        raise InvalidInput("kubeconfig", str(path), f"cannot be read: {error}") from error
    if not isinstance(content, dict):
        fix = "this is no kubeconfig: it should hold clusters, users and contexts"
        raise InvalidInput("kubeconfig", str(path), fix)
    return content


def _ca(cluster: Cluster) -> str:
    data, path = cluster.certificate_authority_data, cluster.certificate_authority
    return _either(data, path, cluster.folder, "certificate-authority").decode()


def _certificate(user: User) -> bytes:
    chain = _either(user.client_certificate_data, user.client_certificate, user.folder, "client-certificate")
    key = _either(user.client_key_data, user.client_key, user.folder, "client-key")
    return chain + b"\n" + key if chain else b""


def _either(data: str, path: str, folder: str, name: str) -> bytes:
    try:
        if data:
            return base64.b64decode("".join(data.split()), validate=True)
        return Path(folder, path).read_bytes() if path else b""
    except binascii.Error as error:
        raise InvalidInput(f"kubeconfig {name}-data", data[:20], "this is not base64") from error
    except OSError as error:
        raise InvalidInput(f"kubeconfig {name}", path, f"cannot be read: {error.strerror}") from error


def _identity(user: User, cluster: Cluster, name: str) -> Identity:
    certificate = _certificate(user)
    if user.as_groups:
        fix = "impersonating groups is not supported; remove it"
        raise InvalidInput(f"users[{name}].user.as-groups", user.as_groups, fix)
    if user.auth_provider:
        fix = "it left Kubernetes in 1.26; use its exec plugin (kubelogin, gke-gcloud-auth-plugin, ...)"
        raise InvalidInput(f"users[{name}].user.auth-provider", user.auth_provider.get("name", ""), fix)
    if user.exec:
        return ExecPlugin(_beside(user.exec, user.folder), _cluster_info(cluster), name)
    if user.token_file:
        return TokenFile(str(Path(user.folder, user.token_file)), certificate)
    authorization = ""
    if user.token:
        authorization = bearer(user.token)
    elif user.username:
        authorization = basic(user.username, user.password)
    return Fixed(Credential(authorization, certificate))


def _beside(spec: ExecSpec, folder: str) -> ExecSpec:
    """A command with a slash is relative to its kubeconfig, one without is looked for on the PATH."""
    command = str(Path(folder, spec.command)) if "/" in spec.command else spec.command
    return msgspec.structs.replace(spec, command=command)


def _cluster_info(cluster: Cluster) -> dict[str, Any]:
    info = {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": base64.b64encode(_ca(cluster).encode()).decode(),
        "proxy-url": cluster.proxy_url,
    }
    return {key: value for key, value in info.items() if value}
