"""What a violated service level and a started pod cost, beside a billed pod."""

from __future__ import annotations

OBJECTIVES = {"savings": 8.0, "balanced": 32.0, "reliability": 128.0}  # pod-steps per step of a pod's violating load
START_PRICE = 8.0  # pod-steps: two pod-minutes of 15 s
RESIZE_PRICE = 0.25  # pod-steps for each pod that is resized in place
