"""How fast the whole operator runs under the virtual clock: simulated hours per minute, of wall clock and of one core.

One Autoscaler on CPU, the tick of 15 s, watches, journal and lease; the lease as in production, and one that is renewed
every ten seconds, for tests that are not about it.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.virtual.cluster import Cluster, autoscaler
from tests.virtual.machines import QUIET_LEASE_S

HOURS = 6
LEASES = {"the lease of production": (15.0, 10.0, 2.0), "a quiet lease": QUIET_LEASE_S}


def measured(lease_s: tuple[float, float, float]) -> dict[str, float]:
    with Cluster(seed=1, lease_s=lease_s) as cluster:
        cluster.deploy("shop/web", replicas=2, load=lambda seconds: 1.0 if seconds % 7200 < 3600 else 6.0)
        cluster.apply(autoscaler("shop/web"))
        cluster.run(hours=1)  # imports, compiling
        wall_s, cpu_s = time.perf_counter(), time.process_time()
        cluster.run(hours=HOURS)
        wall_s, cpu_s = time.perf_counter() - wall_s, time.process_time() - cpu_s
    return {"hours_per_minute": round(60 * HOURS / wall_s), "hours_per_minute_of_one_core": round(60 * HOURS / cpu_s)}


if __name__ == "__main__":
    found = {name: measured(lease_s) for name, lease_s in LEASES.items()}
    for name, speed in found.items():
        print(f"{name}: {speed['hours_per_minute']} simulated hours per minute")
    print(json.dumps({"virtual": found}))
