"""A credential from a command: client.authentication.k8s.io, v1 and v1beta1.

The plugin prints an ExecCredential with a token or a client certificate, valid until its expirationTimestamp.
"""

from __future__ import annotations

import asyncio
import os
import sys
from datetime import datetime
from typing import Any

import msgspec

from trimtab.errors import InvalidInput
from trimtab.wire.clock import SYSTEM
from trimtab.wire.credentials import Credential, bearer
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
        certificate = (
            f"{status.client_certificate_data}\n{status.client_key_data}" if status.client_certificate_data else ""
        )
        self._held = Credential(bearer(status.token) if status.token else "", certificate.encode())
        expiry = status.expiration_timestamp
        self._expires_at = expiry.timestamp() if expiry else float("inf")

    async def _run(self) -> bytes:
        interactive = self._spec.interactive_mode != "Never" and sys.stdin is not None and sys.stdin.isatty()
        if self._spec.interactive_mode == "Always" and not interactive:
            raise InvalidInput(
                f"{self.path}.interactiveMode", "Always", "this plugin needs a terminal and there is none"
            )
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
            raise InvalidInput(f"{self.path}.command", self._spec.command, f"{error.strerror}: {hint}") from error
        return await self._finish(process, None if interactive else EXEC_TIMEOUT_S)

    async def _finish(self, process: asyncio.subprocess.Process, timeout_s: float | None) -> bytes:
        try:
            printed, complaint = await asyncio.wait_for(process.communicate(), timeout_s)
        except TimeoutError as error:
            process.kill()
            raise InvalidInput(
                f"{self.path}.command", self._spec.command, f"no answer within {EXEC_TIMEOUT_S:.0f} s"
            ) from error
        if process.returncode:
            said = (complaint or b"").decode(errors="replace").strip()[-300:]
            raise InvalidInput(f"{self.path}.command", self._spec.command, f"exit code {process.returncode}: {said}")
        return printed

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
            raise InvalidInput(
                f"{self.path}.command", self._spec.command, f"printed no ExecCredential: {error}"
            ) from error
        if answer.api_version != self._spec.api_version:
            raise InvalidInput(
                f"{self.path}.apiVersion", self._spec.api_version, f"the plugin speaks {answer.api_version}"
            )
        status = answer.status or ExecStatus()
        if not (status.token or (status.client_certificate_data and status.client_key_data)):
            raise InvalidInput(
                f"{self.path}.command",
                self._spec.command,
                "it gave neither a token nor a certificate with its key",
            )
        return status
