"""gate: may it happen now? One module a gate; the first that blocks a move is the reason."""

from __future__ import annotations

from trimtab.core.model import Memory, Observation, Plan, Step
from trimtab.policy import Gate


def gate(gates: tuple[Gate, ...], seen: Observation, memory: Memory, plan: Plan, steps: list[Step]) -> Plan:
    """The plan with every blocked move taken back to what is now."""
    return plan
