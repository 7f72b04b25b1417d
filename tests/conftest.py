"""Generated tests draw the same examples on every machine; `make test-random` explores, and prints how to repeat."""

from __future__ import annotations

import gc
import os

from hypothesis import HealthCheck, settings

# How fast a machine is decides nothing.
CALM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", CALM, derandomize=True)
settings.register_profile("random", CALM, print_blob=True)
settings.load_profile("same")

# Servers of tests are on this machine, whatever proxy leads out of it.
for name in ("no_proxy", "NO_PROXY"):
    os.environ[name] = ",".join(filter(None, (os.environ.get(name), "127.0.0.1", "localhost")))

# Half a gigabyte of modules and cases lives until the end: nobody looks through it for what a test left behind.
gc.disable()


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.enable()
