"""Kubeconfig files as people have them, and the errors they get for the ones that cannot be meant."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from trimtab.errors import InvalidInput
from trimtab.wire.access import in_cluster, prometheus_access
from trimtab.wire.kubeconfig import Kubeconfig, connect


def write(
    path: Path, *, current: str = "", user: dict[str, Any] | None = None, name: str = "one", **cluster: Any
) -> Path:
    content: dict[str, Any] = {
        "clusters": [{"name": name, "cluster": {"server": f"http://{name}:8080", **cluster}}],
        "users": [{"name": name, "user": user or {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": f"ns-{name}"}}],
    }
    path.write_text(yaml.safe_dump(content | ({"current-context": current} if current else {})))
    return path


def authorization(user: dict[str, Any], tmp_path: Path) -> str:
    access = Kubeconfig([write(tmp_path / "config", user=user)]).access("one")
    return str(asyncio.run(access.options())["headers"].get("Authorization", ""))


def test_a_list_of_files_is_merged_and_the_first_that_says_something_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = write(tmp_path / "a", name="one", current="two")
    second = write(tmp_path / "b", name="two", current="one")
    shadowed = write(tmp_path / "c", name="one", server="http://shadowed:1")
    monkeypatch.setenv("KUBECONFIG", f"{first}:{tmp_path / 'absent'}:{second}:{shadowed}")
    assert connect().url == "http://two:8080"
    assert connect().namespace == "ns-two"
    assert connect("one").url == "http://one:8080"


def test_an_unknown_context_is_named_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"context: 'prod': choose one of one"):
        connect("prod", str(write(tmp_path / "config")))


def test_a_kubeconfig_that_is_not_there_is_not_replaced_by_another(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no such file"):
        connect(None, str(tmp_path / "absent"))


def test_a_context_is_never_replaced_by_the_cluster_we_run_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    with pytest.raises(InvalidInput, match="no kubeconfig that could hold it"):
        connect("prod")


def test_the_user_of_a_container_has_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(uid: int) -> None:
        raise KeyError(uid)

    for name in ("KUBECONFIG", "HOME", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", nobody)
    with pytest.raises(InvalidInput, match="KUBECONFIG"):
        connect()


@pytest.mark.parametrize("content", ["just text", "[1, 2]", "{a: ["])
def test_a_file_that_is_no_kubeconfig(tmp_path: Path, content: str) -> None:
    (tmp_path / "config").write_text(content)
    with pytest.raises(InvalidInput, match="kubeconfig"):
        connect(None, str(tmp_path / "config"))


@pytest.mark.parametrize(
    "user, expected",
    [
        ({"token": "abc"}, "Bearer abc"),
        ({"username": "u", "password": "p"}, "Basic " + base64.b64encode(b"u:p").decode()),
        ({}, ""),
    ],
)
def test_how_a_user_is_announced(tmp_path: Path, user: dict[str, Any], expected: str) -> None:
    assert authorization(user, tmp_path) == expected


def test_a_token_file_is_relative_to_its_kubeconfig_and_goes_before_a_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-file\n")
    assert authorization({"tokenFile": "token", "token": "fixed"}, tmp_path) == "Bearer from-file"


def test_impersonation_is_passed_on_and_groups_are_refused(tmp_path: Path) -> None:
    access = Kubeconfig([write(tmp_path / "config", user={"as": "jane"})]).access("one")
    assert asyncio.run(access.options())["headers"]["Impersonate-User"] == "jane"
    with pytest.raises(InvalidInput, match="as-groups"):
        Kubeconfig([write(tmp_path / "config", user={"as": "jane", "as-groups": ["dev"]})]).access("one")


def test_an_auth_provider_gets_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="exec plugin"):
        Kubeconfig([write(tmp_path / "config", user={"auth-provider": {"name": "gcp"}})]).access("one")


def _cluster(key: str, value: str) -> dict[str, Any]:
    return {key: value}


def test_broken_certificate_data_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="certificate-authority-data"):
        Kubeconfig([write(tmp_path / "config", **_cluster("certificate-authority-data", "%%%"))]).access("one")


def test_a_proxy_we_cannot_speak_to_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="socks5"):
        Kubeconfig([write(tmp_path / "config", **_cluster("proxy-url", "socks5://localhost:1080"))]).access("one")


def test_the_service_account_of_a_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("token", "t"), ("ca.crt", ""), ("namespace", "here\n")):
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
    access = in_cluster(str(tmp_path))
    assert (access.url, access.namespace) == ("https://[fd00::1]:6443", "here")
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST")
    with pytest.raises(InvalidInput, match="set KUBECONFIG"):
        in_cluster(str(tmp_path))


def test_an_address_without_a_scheme_is_refused() -> None:
    with pytest.raises(InvalidInput, match="http://prometheus:9090 or https://prometheus:9090"):
        prometheus_access("prometheus:9090")
