"""Who wrote the replicas that are there now, by the words of the API server."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from trimtab.wire.managed_fields import ManagedWorkload, is_ours, sets_replicas

REPLICAS = {"f:spec": {"f:replicas": {}}}


def entry(manager: str, fields: dict[str, Any] = REPLICAS, **more: str) -> dict[str, Any]:
    return {"manager": manager, "operation": "Update", "fieldsV1": fields, **more}


@pytest.mark.parametrize(
    ("entries", "ours"),
    [
        pytest.param([entry("trimtab", subresource="scale")], True, id="our scale, which has no date"),
        pytest.param([entry("kubectl", subresource="scale"), entry("trimtab", {})], False, id="somebody took it over"),
        pytest.param([entry("kubectl-client-side-apply", time="2026-01-01T00:00:00Z")], False, id="never ours"),
        pytest.param([], False, id="nobody's"),
    ],
)
def test_whoever_owns_the_field_wrote_it(entries: list[dict[str, Any]], ours: bool) -> None:
    found = msgspec.convert({"metadata": {"managedFields": entries}}, ManagedWorkload)
    assert is_ours(found.metadata, sets_replicas) is ours
