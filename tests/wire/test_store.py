"""A store tells of its objects; one that somebody cannot make sense of costs nobody the others."""

from __future__ import annotations

import pytest

from trimtab.wire.objects import ObjectMeta, WirePod
from trimtab.wire.watch import Key, Store


def test_who_cannot_make_sense_of_one_object_hears_of_the_others(caplog: pytest.LogCaptureFixture) -> None:
    store: Store[WirePod] = Store()
    heard: list[str] = []

    def listener(key: Key, new: WirePod | None, old: WirePod | None) -> None:
        heard.append(f"{key[1]} {1 / len((new or WirePod()).metadata.uid):g}")

    store.on_change(listener)
    metas = [ObjectMeta(name="odd", namespace="shop"), ObjectMeta(name="web", namespace="shop", uid="1")]
    pods = [WirePod(metadata=meta) for meta in metas]  # type: ignore[arg-type]
    store.replace({(pod.metadata.namespace, pod.metadata.name): pod for pod in pods})
    assert heard == ["web 1"] and store.synced.is_set() and store.unreadable == 1
    assert "shop/odd could not be understood" in caplog.text
