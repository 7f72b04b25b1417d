"""bounded_queries: ask every question of a tick with a deadline, so that a slow source delays nobody else.

A late answer counts as Missing. From then on the question is asked in the background, a few at a time, and its answer
is used in the next tick, until it is fast enough again. Namespaces take turns in both.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, NamedTuple, TypeVar

from trimtab.core.model import Missing, Reason
from trimtab.wire.budget import SHARE, Turns

IN_BACKGROUND = 8  # requests under way beside the ticks
LEAST_PATIENCE_S = 2.0
Question = TypeVar("Question")
Answer = TypeVar("Answer")


def patience(period_s: float) -> float:
    """How long a tick waits for what somebody else must answer."""
    return max(LEAST_PATIENCE_S, period_s / 3)


class Answered(NamedTuple, Generic[Answer]):
    answer: Answer
    took_s: float


class BoundedQueries(Generic[Question, Answer]):
    """`ask` is given a question and the time of the tick, and never raises."""

    def __init__(self, ask: Callable[[Question, float], Awaitable[Answer]], patience_s: float) -> None:
        self.ask, self.patience_s = ask, patience_s
        self.asked: Counter[str] = Counter()  # by namespace
        self.late: Counter[str] = Counter()
        self._background = Turns(IN_BACKGROUND, SHARE // 2)
        self._slow: dict[Question, asyncio.Task[Answered[Answer]]] = {}

    async def answers(self, questions: Mapping[Question, str], at: float) -> dict[Question, Answer | Missing]:
        """`questions` and the namespaces that ask them; within `patience_s`."""
        self._forget(questions)
        found: dict[Question, Answer | Missing] = {
            question: self._from_background(question, questions[question], at) for question in list(self._slow)
        }
        prompt = [question for question in questions if question not in found]
        return found | await self._within_patience({question: questions[question] for question in prompt}, at)

    async def _within_patience(self, questions: Mapping[Question, str], at: float) -> dict[Question, Answer | Missing]:
        turns = Turns()
        tasks = {question: self._begin(question, asker, turns, at) for question, asker in questions.items()}
        if tasks:
            await asyncio.wait(tasks.values(), timeout=self.patience_s)
        return {question: self._outcome(question, questions[question], task, at) for question, task in tasks.items()}

    def _outcome(
        self, question: Question, asker: str, task: asyncio.Task[Answered[Answer]], at: float
    ) -> Answer | Missing:
        if task.done():
            return task.result().answer
        task.cancel()
        self._slow[question] = self._begin(question, asker, self._background, at)
        return self._is_late(asker, at)

    def _from_background(self, question: Question, asker: str, at: float) -> Answer | Missing:
        task = self._slow[question]
        if not task.done():
            return self._is_late(asker, at)
        answered = task.result()
        if answered.took_s < self.patience_s:
            del self._slow[question]
        else:
            self._slow[question] = self._begin(question, asker, self._background, at)
        return answered.answer

    def _begin(self, question: Question, asker: str, turns: Turns, at: float) -> asyncio.Task[Answered[Answer]]:
        return asyncio.create_task(self._answered(question, asker, turns, at))

    async def _answered(self, question: Question, asker: str, turns: Turns, at: float) -> Answered[Answer]:
        loop = asyncio.get_running_loop()
        async with turns.turn(asker):
            self.asked[asker] += 1
            asked_at = loop.time()
            return Answered(await self.ask(question, at), loop.time() - asked_at)

    def _is_late(self, asker: str, at: float) -> Missing:
        self.late[asker] += 1
        detail = f"no answer within {self.patience_s:g} s: it is asked between the ticks until it is faster"
        return Missing(reason=Reason.UNREACHABLE, since=at, detail=detail)

    def _forget(self, questions: Mapping[Question, str]) -> None:
        """What nobody asks any more."""
        for question in self._slow.keys() - questions.keys():
            self._slow.pop(question).cancel()
        askers = set(questions.values())
        for counts in (self.asked, self.late):
            for gone in counts.keys() - askers:
                del counts[gone]

    def close(self) -> None:
        for task in self._slow.values():
            task.cancel()
        self._slow.clear()
