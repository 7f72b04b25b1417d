"""What is said of a load that has a price: how much it is, what is usual at this hour, and what is done about it."""

from __future__ import annotations

from trimtab.core.model import Decision, Observation, Proposal

PODS_START = ("pod starts", "pods start")


def priced_load(seen: Observation, decision: Decision) -> str:
    """ "now 12.3 pods of load; +8 % is usual at this hour; 2 pods start"; empty where no load has a price."""
    now = [proposal for proposal in decision.proposals if proposal.load_pods is not None and not proposal.forecast]
    if not now:
        return ""
    top = max(now, key=Proposal.number)
    load, later = top.load_pods or 0.0, _expected(top, decision)
    said = [f"now {load:.1f} pods of load"]
    if later is not None and load > 0.0:
        said.append(f"{100.0 * (later / load - 1.0):+.0f} % is usual at this hour")
    return "; ".join(said + _moves(seen, decision.plan.replicas))


def _expected(now: Proposal, decision: Decision) -> float | None:
    """The median of what the same source expects, in pods."""
    source = f"{now.source} forecast"
    return next((later.load_pods for later in decision.proposals if later.forecast and later.source == source), None)


def _moves(seen: Observation, planned: int) -> list[str]:
    ready = sum(1 for pod in seen.pods if pod.ready and not pod.deleting)
    starting, leaving = planned - ready, seen.spec_replicas - planned
    if seen.pods and starting > 0:
        return [f"{starting} {PODS_START[starting > 1]}"]
    return [f"{leaving} {'pod goes' if leaving == 1 else 'pods go'}"] if leaving > 0 else []
