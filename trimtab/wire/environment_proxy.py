"""The proxy that HTTPS_PROXY, HTTP_PROXY and NO_PROXY name for an address, as kubectl reads them.

urllib compares NO_PROXY with names alone; clusters write networks into it (10.96.0.0/12), and a request that went to
the proxy all the same would carry the token there.
"""

from __future__ import annotations

from functools import cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

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
