"""Credentials that change while we run: token files, exec plugins, certificates; and whom we trust."""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from aiohttp import web

from tests.bed.pki import Authority
from tests.virtual.clock import HandClock
from tests.wire.fake import Fake
from trimtab.errors import ClusterUnavailable, InvalidInput, Refused
from trimtab.wire.access import REREAD_S, Access, TokenFile, Trust, environment_proxy
from trimtab.wire.kube import Kube
from trimtab.wire.kubeconfig import EXEC_VERSIONS, ExecPlugin, ExecSpec

V1, V1BETA1 = EXEC_VERSIONS


def accepting(*tokens: str):  # type: ignore[no-untyped-def]
    async def handler(request: web.Request) -> web.Response:
        known = request.headers.get("Authorization") in [f"Bearer {token}" for token in tokens]
        return web.json_response({"ok": True}) if known else web.Response(status=401, text="Unauthorized")

    return handler


def plugin(tmp_path: Path, version: str, status: dict[str, object], **options: object) -> ExecPlugin:
    """A plugin that appends its call to a file and prints `status`."""
    script = tmp_path / "plugin.py"
    printed = {"apiVersion": version, "kind": "ExecCredential", "status": status}
    script.write_text(
        "import os, sys, json\n"
        f"open({str(tmp_path / 'calls')!r}, 'a').write(os.environ['KUBERNETES_EXEC_INFO'] + '\\n')\n"
        f"print({json.dumps(json.dumps(printed))})\n"
    )
    spec = ExecSpec(command=sys.executable, api_version=version, args=[str(script)], **options)  # type: ignore[arg-type]
    return ExecPlugin(spec, {"server": "https://x"}, "me")


def calls(tmp_path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (tmp_path / "calls").read_text().splitlines()]


def test_a_rotated_token_is_read_again_after_401(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("old")

    async def run() -> list[str | None]:
        async with (
            Fake(accepting("old")) as fake,
            Kube(Access(fake.url, TokenFile(str(tmp_path / "token")))) as kube,
        ):
            await kube.raw("/version")
            fake.handler = accepting("new")
            (tmp_path / "token").write_text("new")
            await kube.raw("/version")
            return [request.headers.get("Authorization") for request in fake.requests]

    assert asyncio.run(run()) == ["Bearer old", "Bearer old", "Bearer new"]


def test_a_token_file_is_read_every_minute(tmp_path: Path) -> None:
    clock = HandClock()
    (tmp_path / "token").write_text("old")
    identity = TokenFile(str(tmp_path / "token"), clock=clock)
    assert asyncio.run(identity.credential()).authorization == "Bearer old"
    (tmp_path / "token").write_text("new")
    assert asyncio.run(identity.credential()).authorization == "Bearer old"
    clock.boot += REREAD_S
    assert asyncio.run(identity.credential()).authorization == "Bearer new"


def test_a_fixed_token_that_is_not_wanted_is_refused_at_once() -> None:
    async def run() -> None:
        async with Fake(accepting()) as fake, fake.kube() as kube:
            with pytest.raises(Refused, match="401") as caught:
                await kube.raw("/version")
            assert (caught.value.status, len(fake.requests)) == (401, 1)

    asyncio.run(run())


@pytest.mark.parametrize("version", [V1, V1BETA1])
def test_an_exec_plugin_runs_once_and_learns_about_the_cluster(tmp_path: Path, version: str) -> None:
    identity = plugin(tmp_path, version, {"token": "abc"}, provide_cluster_info=True)

    async def run() -> None:
        both = await asyncio.gather(identity.credential(), identity.credential())
        assert [one.authorization for one in both] == ["Bearer abc", "Bearer abc"]

    asyncio.run(run())
    (told,) = calls(tmp_path)
    assert told["apiVersion"] == version
    assert told["spec"] == {"interactive": False, "cluster": {"server": "https://x"}}


@pytest.mark.parametrize("in_s, runs", [(3600, 1), (5, 2), (-60, 2)], ids=["valid", "about to expire", "expired"])
def test_an_exec_credential_is_kept_until_it_expires(tmp_path: Path, in_s: float, runs: int) -> None:
    until = datetime.fromtimestamp(time.time() + in_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    identity = plugin(tmp_path, V1, {"token": "abc", "expirationTimestamp": until})

    async def run() -> None:
        await identity.credential()
        await identity.credential()

    asyncio.run(run())
    assert len(calls(tmp_path)) == runs


def test_an_exec_plugin_is_asked_again_after_401(tmp_path: Path) -> None:
    identity = plugin(tmp_path, V1, {"token": "abc"})

    async def run() -> None:
        async with Fake(accepting()) as fake, Kube(Access(fake.url, identity)) as kube:
            with pytest.raises(Refused):
                await kube.raw("/version")

    asyncio.run(run())
    assert len(calls(tmp_path)) == 2


@pytest.mark.parametrize(
    "spec, said",
    [
        (ExecSpec("no-such-plugin", V1, install_hint="brew install it"), "brew install it"),
        (ExecSpec("false", V1), "exit code 1"),
        (ExecSpec("true", V1), "no ExecCredential"),
        (ExecSpec("echo", V1, args=['{"apiVersion": "client.authentication.k8s.io/v1beta1"}']), "speaks"),
        (ExecSpec("echo", V1, args=[f'{{"apiVersion": "{V1}", "status": {{}}}}']), "neither a token"),
        (ExecSpec("true", V1, interactive_mode="Always"), "terminal"),
    ],
)
def test_a_plugin_that_fails_says_how(spec: ExecSpec, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        asyncio.run(ExecPlugin(spec, {}, "me").credential())


def test_an_unknown_exec_version_is_refused() -> None:
    with pytest.raises(InvalidInput, match="v1beta1"):
        ExecPlugin(ExecSpec("x", "client.authentication.k8s.io/v1alpha1"), {}, "me")


def test_certificates_of_an_exec_plugin_open_a_server_that_demands_them(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "pki")
    server, client = authority.server(), authority.client("me")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.cert))
    tls.load_cert_chain(server.cert, server.key)
    tls.verify_mode = ssl.CERT_REQUIRED
    pair: dict[str, object] = {
        "clientCertificateData": client.cert.read_text(),
        "clientKeyData": client.key.read_text(),
    }
    identity, trust = plugin(tmp_path, V1, pair), Trust(ca_pem=authority.cert.read_text())

    async def ok(_: web.Request) -> web.Response:
        return web.json_response({})

    async def run() -> None:
        async with Fake(ok, tls) as fake:
            async with Kube(Access(fake.url, identity, trust)) as kube:
                await kube.raw("/version")
            async with Kube(Access(fake.url, trust=trust)) as kube:
                with pytest.raises(ClusterUnavailable):
                    await kube.raw("/version")

    asyncio.run(run())


@pytest.mark.parametrize(
    "url_host, trust, reached",
    [
        ("127.0.0.1", {"ca": True}, True),
        ("127.0.0.1", {"ca": True, "server_name": "kubernetes.default"}, True),
        ("127.0.0.1", {"ca": True, "server_name": "elsewhere"}, False),
        ("127.0.0.1", {}, False),
        ("127.0.0.1", {"insecure": True}, True),
    ],
    ids=["CA", "tls-server-name", "wrong tls-server-name", "unknown CA", "insecure-skip-tls-verify"],
)
def test_whom_we_trust(tmp_path: Path, url_host: str, trust: dict[str, object], reached: bool) -> None:
    authority = Authority(tmp_path / "pki")
    server = authority.server()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(server.cert, server.key)
    ca_pem = authority.cert.read_text() if trust.pop("ca", False) else ""

    async def ok(_: web.Request) -> web.Response:
        return web.json_response({})

    async def run() -> None:
        async with Fake(ok, tls) as fake, Kube(Access(fake.url, trust=Trust(ca_pem, **trust))) as kube:  # type: ignore[arg-type]
            if reached:
                await kube.raw("/version")
                return
            with pytest.raises(ClusterUnavailable, match=r"(?i)certificate"):
                await kube.raw("/version")

    asyncio.run(run())


@pytest.mark.parametrize(
    ("url", "proxy"),
    [
        ("http://prometheus:9090", "http://proxy:3128"),
        ("http://127.0.0.1:9090", None),
        ("http://[::1]:9090", None),
        ("http://localhost:9090", None),
    ],
)
def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(
    monkeypatch: pytest.MonkeyPatch, url: str, proxy: str | None
) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    monkeypatch.setenv("no_proxy", "")
    environment_proxy.cache_clear()
    assert asyncio.run(Access(url).options())["proxy"] == proxy
    environment_proxy.cache_clear()


@pytest.mark.parametrize(
    ("url", "no_proxy", "is_asked"),
    [
        ("https://10.96.0.1:443", ".svc,10.96.0.0/12", False),
        ("https://10.96.0.1", ".svc, 10.96.0.1/12 ", False),  # the bits after the prefix do not count
        ("https://10.96.0.1", "10.96.0.1", False),
        ("https://10.96.0.1", "10.96.0.1:443", False),
        ("https://10.96.0.1:6443", "10.96.0.1:443", True),
        ("https://10.112.0.1", "10.96.0.0/12", True),
        ("https://[fd00::1]:6443", "fd00::/8", False),
        ("https://[fd00::1]:6443", "[fd00::1]:6443", False),
        ("https://[fd00::1]:6443", "[fd00:0::1]", False),
        ("https://[fd00::1]:6443", "[fd00::1]:443,10.0.0.0/8", True),
        ("https://10.96.0.1", "10.96.0.0/99,10.96/12,:443,[,/,", True),  # nobody understands any of these
        ("https://api.corp:6443", "10.0.0.0/8,api.corp:6443", False),
        ("https://api.corp:6443", "api.corp:443", True),
        ("https://api.corp:6443", "corp", False),
        ("https://api.corp:6443", "10.0.0.0/8", True),
        ("https://10.96.0.1", "*", False),
    ],
)
def test_no_proxy_names_networks_and_ports(
    monkeypatch: pytest.MonkeyPatch, url: str, no_proxy: str, is_asked: bool
) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", no_proxy)
    environment_proxy.cache_clear()
    assert asyncio.run(Access(url).options())["proxy"] == ("http://proxy:3128" if is_asked else None)
    environment_proxy.cache_clear()


def test_a_proxy_url_is_where_the_request_goes() -> None:
    async def ok(_: web.Request) -> web.Response:
        return web.json_response({"by": "proxy"})

    async def run() -> None:
        async with Fake(ok) as proxy, Kube(Access("http://cluster.invalid:8080", proxy=proxy.url)) as kube:
            assert json.loads(await kube.raw("/version")) == {"by": "proxy"}
            assert str(proxy.requests[0].url) == "http://cluster.invalid:8080/version"

    asyncio.run(run())
