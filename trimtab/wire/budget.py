"""How many requests a server may get from us: a token bucket, and the pauses between attempts that failed."""

from __future__ import annotations

import asyncio
import random
import time


class Budget:
    """A token bucket: `per_s` requests per second in the long run, `burst` of them at once."""

    def __init__(self, per_s: float = 50.0, burst: float = 100.0) -> None:
        self.per_s, self.burst = per_s, burst
        self.spent = 0
        self.waited_s = 0.0
        self._tokens = burst
        self._filled_at = time.monotonic()

    async def take(self) -> None:
        """Pay for one request, waiting for its turn when the bucket is empty."""
        now = time.monotonic()
        self._tokens = min(self.burst, self._tokens + (now - self._filled_at) * self.per_s) - 1
        self._filled_at = now
        self.spent += 1
        if self._tokens < 0:  # the debt orders those who wait: each sleeps longer than the one before
            wait_s = -self._tokens / self.per_s
            self.waited_s += wait_s
            await asyncio.sleep(wait_s)


class Backoff:
    """Doubling pauses with jitter, so that the clients of a restarted server do not come back all at once."""

    def __init__(self, first_s: float = 0.2, most_s: float = 10.0) -> None:
        self.first_s, self.most_s = first_s, most_s
        self.failures = 0

    def reset(self) -> None:
        self.failures = 0

    async def pause(self) -> None:
        longest_s = min(self.most_s, self.first_s * 2.0 ** min(self.failures, 30))
        self.failures += 1
        await asyncio.sleep(longest_s * random.uniform(0.5, 1.0))
