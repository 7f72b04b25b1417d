"""families: every metric of the operator, what kind of number it is and what it says. A test holds this complete."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Family(NamedTuple):
    kind: Literal["counter", "gauge"]
    help: str


def _counter(text: str) -> Family:
    return Family("counter", text)


def _gauge(text: str) -> Family:
    return Family("gauge", text)


FAMILIES = {
    "trimtab_ticks_total": _counter("Looks at everything."),
    "trimtab_tick_duration_seconds": _gauge("How long the last tick took."),
    "trimtab_tick_seconds_total": _counter("How long all ticks took together."),
    "trimtab_late_ticks_total": _counter("Ticks that took longer than their period."),
    "trimtab_objects": _gauge("Objects that the last tick decided on."),
    "trimtab_acts_total": _counter("Changes that were decided on, by axis and what became of them."),
    "trimtab_object_failures_total": _counter("Objects that failed in a tick, by the kind of error."),
    "trimtab_current_replicas": _gauge("Replicas that the target has in its spec."),
    "trimtab_desired_replicas": _gauge("Replicas that the last tick decided on."),
    "trimtab_ready_replicas": _gauge("Pods that are ready."),
    "trimtab_load": _gauge("The total load that the pods carry, in the unit of the first signal."),
    "trimtab_capacity": _gauge("The load that ready pods carry within the service level, in the same unit."),
    "trimtab_bridge_factor": _gauge("How many times their written cpu ready pods have; 1 without a bridge."),
    "trimtab_bridge_pods": _gauge("Pods that have more than their written cpu."),
    "trimtab_bridge_resizes_total": _counter("Resizes of pods by bridges."),
    "trimtab_proposal_replicas": _gauge("Replicas that one signal or its forecast asks for."),
    "trimtab_restricted": _gauge("1 for every rule that changed the wish in the last tick."),
    "trimtab_veto": _gauge("1 for everything outside the object that held a change back in the last tick."),
    "trimtab_sample_missing": _gauge("1 for every signal that the last tick had no value of, with the reason."),
    "trimtab_startup_seconds": _gauge("From creation to the first Ready, at a percentile of a workload's pods."),
    "trimtab_forecast": _gauge("The load expected a horizon ahead, at the quantile that the object asks for."),
    "trimtab_forecast_error": _gauge("The forecast of a horizon ago over the load now, less 1."),
    "trimtab_leader": _gauge("1 while this process writes."),
    "trimtab_shard": _gauge("Which part of the namespaces this process serves, counted from 0."),
    "trimtab_shards": _gauge("Among how many operators the namespaces are divided."),
    "trimtab_feed_up": _gauge("1 while a collection of the API server is followed, or known not to be there."),
    "trimtab_standing_by": _gauge("1 while another installation of the whole cluster serves instead."),
    "trimtab_other_installations": _gauge("Other living installations of the whole cluster."),
    "trimtab_frozen": _gauge("1 while somebody holds the brake: nothing is written."),
    "trimtab_breaker_open": _gauge("1 while the fleet breaker lets nobody shrink."),
    "trimtab_breaker_trips_total": _counter("How often too many wanted to shrink at once."),
    "trimtab_api_budget_waited_seconds_total": _counter("How long requests waited for their turn at the API server."),
    "trimtab_api_requests_total": _counter("Requests to the API server; code 0: no answer."),
    "trimtab_queries_total": _counter("Requests to Prometheus; code 0: no answer."),
    "trimtab_questions_total": _counter("Metrics asked for, by the namespace whose objects need them."),
    "trimtab_late_answers_total": _counter("Metrics that were not answered in time, by namespace."),
    "trimtab_journal_up": _gauge("1 while decisions are recorded."),
    "trimtab_journal_lost_total": _counter("Decisions that are in no journal."),
}
