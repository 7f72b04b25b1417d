"""What every end-to-end test shares: the bed, and a namespace of its own."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.bed import Bed, build


def pytest_collection_finish(session: pytest.Session) -> None:
    """Builds what is not cached before the first test, whose time limit is not meant for that."""
    if any(item.get_closest_marker("e2e") for item in session.items):
        build.binaries()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those that may take longest begin first, so that nobody waits for them alone in the end."""
    items.sort(key=_limit_s, reverse=True)


def _limit_s(item: pytest.Item) -> float:
    limit = item.get_closest_marker("timeout")
    return float(limit.args[0]) if limit else 0.0


@pytest.fixture(scope="session")
def bed() -> Iterator[Bed]:
    """The control plane of `make cluster` if it runs, else one for this session."""
    running = Bed.attach()
    if running is not None:
        yield running
        return
    if "PYTEST_XDIST_WORKER" in os.environ:
        pytest.fail("tests that run side by side share one control plane: use `make e2e` or `make cluster`")
    with Bed.start() as started:
        yield started


@contextmanager
def namespaces(bed: Bed, *prefixes: str) -> Iterator[list[str]]:
    """One for each prefix, that nobody else has; they go when the test is over."""
    names = [f"{prefix}-{uuid.uuid4().hex[:8]}" for prefix in prefixes]
    for name in names:
        bed.kubectl("create", "namespace", name)
    yield names
    for name in names:
        bed.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def namespace(bed: Bed) -> Iterator[str]:
    with namespaces(bed, "test") as (name,):
        yield name
