"""The costliest objects a tenant can write stay within their limits of time and memory."""

from benchmarks import price


def test_no_object_costs_a_tick_more_than_its_limit() -> None:
    """50 ms per object is five to five hundred times what each costs, so a slow machine does not fail this."""
    dear = [each for each in price.prices() if each.ms > price.LIMIT_MS or each.mb > price.LIMIT_MB]
    assert not dear
