"""Who we are: a fixed identity, a token file that is read again as it rotates, or an exec plugin (`exec_plugin`)."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Protocol

import msgspec

from trimtab.errors import InvalidInput
from trimtab.wire.clock import SYSTEM, Clock

REREAD_S = 60.0  # kubelets rotate projected tokens long before they expire


class Credential(msgspec.Struct, frozen=True):
    """What a request carries: an Authorization header, a client certificate (PEM: chain and key), or both."""

    authorization: str = ""
    certificate: bytes = b""


class Identity(Protocol):
    """Where a credential comes from."""

    async def credential(self) -> Credential: ...

    def forget(self) -> bool:
        """Called after a 401; True when the next credential may be another one."""
        ...


def bearer(token: str) -> str:
    return f"Bearer {token.strip()}"


def basic(username: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()


class Fixed:
    """An identity that never changes."""

    def __init__(self, credential: Credential | None = None) -> None:
        self._credential = credential or Credential()

    async def credential(self) -> Credential:
        return self._credential

    def forget(self) -> bool:
        return False


class TokenFile:
    """A token that somebody else rotates on disk: read every minute and after every 401."""

    def __init__(self, path: str, certificate: bytes = b"", clock: Clock = SYSTEM) -> None:
        self.path, self._certificate, self._clock = path, certificate, clock
        self._held = Credential()
        self._read_at = -REREAD_S

    async def credential(self) -> Credential:
        if self._clock.since_boot() - self._read_at >= REREAD_S:
            self._held = Credential(bearer(_read_token(self.path)), self._certificate)
            self._read_at = self._clock.since_boot()
        return self._held

    def forget(self) -> bool:
        self._read_at = -REREAD_S
        return True


def _read_token(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace").strip()  # what is no text is nobody's token: 401
    except OSError as error:
        raise InvalidInput(
            "token file", path, f"cannot be read ({error.strerror}): mount it or name another"
        ) from error
