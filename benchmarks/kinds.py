"""How long 10,000 manifests take from text to policies; the last line is JSON."""

from __future__ import annotations

import json
import time

from trimtab.kinds import Scaler, read
from trimtab.kinds.yaml import documents

OBJECTS = 10_000
LIMIT_S = 4.0
NOW = 1_700_000_000.0

TEMPLATE = """\
apiVersion: trimtab.dev/v1alpha1
kind: Autoscaler
metadata:
  name: web-{index}
spec:
  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: web-{index}}}
  minReplicas: 2
  maxReplicas: 40
  metrics:
  - type: Resource
    resource:
      name: cpu
      target: {{type: Utilization, averageUtilization: 60}}
  behavior:
    scaleDown: {{stabilizationWindowSeconds: 120}}
  schedules:
  - {{name: office, timezone: Europe/Berlin, start: "0 {hour} * * 1-5", end: "0 18 * * 1-5", minReplicas: 10}}
"""


def measure(text: str) -> dict[str, float]:
    """Seconds of each step, once."""
    began = time.perf_counter()
    values = [document.value for document in documents(text)]
    parsed = time.perf_counter()
    objects = [read(value) for value in values]
    checked = time.perf_counter()
    policies = [obj.to_policy(NOW) for obj in objects if isinstance(obj, Scaler)]
    done = time.perf_counter()
    assert len(policies) == OBJECTS
    return {"yaml_s": parsed - began, "check_s": checked - parsed, "compile_s": done - checked, "total_s": done - began}


def main() -> None:
    text = "---\n".join(TEMPLATE.format(index=index, hour=index % 10) for index in range(OBJECTS))
    parts = min((measure(text) for _ in range(3)), key=lambda run: run["total_s"])
    for name, seconds in parts.items():
        print(f"{name:10} {seconds:6.2f}")
    print(f"{OBJECTS} Autoscalers from text to policies, the best of three runs; the limit is {LIMIT_S:g} s")
    result = {name: round(seconds, 3) for name, seconds in parts.items()}
    ok = parts["total_s"] <= LIMIT_S
    print(json.dumps({"benchmark": "kinds", "objects": OBJECTS, "limit_s": LIMIT_S, **result, "ok": ok}))


if __name__ == "__main__":
    main()
