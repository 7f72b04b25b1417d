"""One address and how to be let in there: a service account, a kubeconfig's user or Prometheus, each an Access.

An `Identity` gives the credential: a fixed one, a token file that is read again as it rotates, or an exec plugin
(`kubeconfig`). HTTPS_PROXY, HTTP_PROXY and NO_PROXY are read as kubectl reads them: urllib compares NO_PROXY with names
alone, but clusters write networks into it (10.96.0.0/12), and a request to the proxy would carry the token there.
"""

from __future__ import annotations

import base64
import os
import ssl
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import msgspec

from trimtab.errors import InvalidInput
from trimtab.wire.clock import SYSTEM, Clock

DEFAULT_PORT = {"http": 80, "https": 443}


@cache
def environment_proxy(url: str) -> str | None:
    """None for this machine itself, as for kubectl: a forwarded port is nowhere else."""
    parts = urlsplit(url)
    host, proxies = parts.hostname or "", getproxies()
    port = parts.port or DEFAULT_PORT.get(parts.scheme, 0)
    if host == "localhost" or proxy_bypass(host) or proxy_bypass(f"{host}:{port}"):
        return None
    address = _address(host)
    if address and (address.is_loopback or _is_listed(address, port, proxies.get("no", ""))):
        return None
    return proxies.get(parts.scheme)


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


def _is_listed(address: IPv4Address | IPv6Address, port: int, no_proxy: str) -> bool:
    return any(_covers(entry.strip(), address, port) for entry in no_proxy.split(","))


def _covers(entry: str, address: IPv4Address | IPv6Address, port: int) -> bool:
    """10.96.0.0/12, 10.96.0.1, 10.96.0.1:443, fd00::/8, [fd00::1], [fd00::1]:443; anything else covers nothing."""
    try:
        return address in ip_network(entry, strict=False)
    except ValueError:
        host, _, of_port = entry.rpartition(":") if not entry.endswith("]") else (entry, "", str(port))
        return of_port == str(port) and _address(host.removeprefix("[").removesuffix("]")) == address


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
            self._held = Credential(bearer(_read(self.path, "token file")), self._certificate)
            self._read_at = self._clock.since_boot()
        return self._held

    def forget(self) -> bool:
        self._read_at = -REREAD_S
        return True


if TYPE_CHECKING:  # commands that ask no server need not load what would carry the question
    from trimtab.wire.http import Transport

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


@dataclass(frozen=True)
class Trust:
    """Whom we believe to be the server: a CA (PEM), another name than the URL's, or anybody."""

    ca_pem: str = ""
    server_name: str = ""
    insecure: bool = False

    def context(self, certificate: bytes) -> ssl.SSLContext:
        try:
            context = ssl.create_default_context(cadata=self.ca_pem or None)
            # Python 3.13 refuses CAs without a key-usage extension; many clusters have one.
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT
            if self.insecure:
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            if certificate:
                _load_certificate(context, certificate)
        except ssl.SSLError as error:
            fix = "give PEM files that belong together"
            raise InvalidInput("TLS certificate or CA", error.reason or str(error), fix) from error
        return context


def _load_certificate(context: ssl.SSLContext, pem: bytes) -> None:
    # The ssl module reads client certificates from files only; this one lives for a moment, for us alone.
    with tempfile.NamedTemporaryFile() as file:
        file.write(pem)
        file.flush()
        context.load_cert_chain(file.name)


@dataclass(frozen=True)
class Access:
    """A base URL with identity and trust; `options()` is what one request needs of them."""

    url: str
    identity: Identity = field(default_factory=Fixed)
    trust: Trust = field(default_factory=Trust)
    proxy: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    namespace: str = "default"
    transport: Callable[[], Transport] | None = None  # what carries requests there; None: aiohttp
    _contexts: dict[bytes, ssl.SSLContext] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        if urlsplit(self.url).scheme not in ("http", "https") or not urlsplit(self.url).hostname:
            raise InvalidInput("server", self.url, "write an address such as https://host:6443")
        if self.proxy and urlsplit(self.proxy).scheme not in ("http", "https"):
            raise InvalidInput("proxy-url", self.proxy, "only http:// and https:// proxies are supported")

    async def options(self) -> dict[str, Any]:
        credential = await self.identity.credential()
        options: dict[str, Any] = {"headers": dict(self.headers), "proxy": self.proxy or environment_proxy(self.url)}
        if credential.authorization:
            options["headers"]["Authorization"] = credential.authorization
        if self.url.startswith("https:"):
            options["ssl"] = self._context(credential)
            options["server_hostname"] = self.trust.server_name or None
        return options

    def forget(self) -> bool:
        """Drop the credential after a 401; True when asking again makes sense."""
        return self.identity.forget()

    def at(self, path: str) -> Access:
        """The same door, further in: a service behind the API server's proxy."""
        return replace(self, url=self.url.rstrip("/") + path)

    def _context(self, credential: Credential) -> ssl.SSLContext:
        if credential.certificate not in self._contexts:
            self._contexts.clear()  # a rotated certificate replaces the old one
            self._contexts[credential.certificate] = self.trust.context(credential.certificate)
        return self._contexts[credential.certificate]


def in_cluster(folder: str = SERVICE_ACCOUNT) -> Access:
    """The service account every pod is given."""
    host = os.environ.get("KUBERNETES_SERVICE_HOST", "")
    port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host or not Path(folder, "token").exists():
        fix = "no kubeconfig was found and this is no pod: set KUBECONFIG or give --context"
        raise InvalidInput("cluster", "none", fix)
    address = f"[{host}]" if ":" in host else host
    namespace = Path(folder, "namespace")
    return Access(
        url=f"https://{address}:{port}",
        identity=TokenFile(str(Path(folder, "token"))),
        trust=Trust(ca_pem=Path(folder, "ca.crt").read_text()),
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
    )


def prometheus_access(
    url: str,
    *,
    username: str = "",
    password: str = "",
    token: str = "",
    token_file: str = "",
    ca_file: str = "",
    insecure: bool = False,
    headers: Mapping[str, str] | None = None,
) -> Access:
    """An address of anything that speaks Prometheus' HTTP API, with the ways to be let in that are in use."""
    url, written = _without_userinfo(url)
    identity: Identity = written
    if token_file:
        identity = TokenFile(token_file)
    elif token:
        identity = Fixed(Credential(bearer(token)))
    elif username:
        identity = Fixed(Credential(basic(username, password)))
    if "://" not in url:
        raise InvalidInput("prometheus", url, f"write its whole address: http://{url} or https://{url}")
    trust = Trust(ca_pem=_read(ca_file, "prometheus CA file") if ca_file else "", insecure=insecure)
    return Access(url.rstrip("/"), identity, trust, headers=headers or {})


def _without_userinfo(url: str) -> tuple[str, Fixed]:
    """http://user:password@host as http://host and who that is, so that no message and no log line tells of it."""
    parts = urlsplit(url)
    if parts.username is None:
        return url, Fixed()
    credential = Credential(basic(unquote(parts.username), unquote(parts.password or "")))
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl(), Fixed(credential)


def _read(path: str, what: str) -> str:
    try:
        return Path(path).read_text(errors="replace")  # what is no text is nobody's token: 401
    except OSError as error:
        raise InvalidInput(what, path, f"cannot be read ({error.strerror}): mount it or name another") from error
