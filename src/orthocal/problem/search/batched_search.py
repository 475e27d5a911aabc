"""Several searches at a time: what each of them asks the simulator for next is asked for together.

A search is written as if it were alone, and has a thread of its own that mostly waits. When all of them wait, their
questions are one batch, which the thread that began them puts to the simulator. So each search gets the answers that it
would have got alone, whatever the others do, and what it finds does not depend on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue
from threading import Thread
from typing import Any, Generic, NamedTuple, TypeVar, cast

import numpy as np

from ...arrays import Array
from ...errors import NonFiniteError
from ...machine.threads import one_blas_thread
from ..simulator.simulator import BoundSimulator

Found = TypeVar("Found")


class _Question(NamedTuple):
    gradient: bool
    x: Array
    theta: Array


class _Ended(NamedTuple, Generic[Found]):
    """What a search has found, or its error."""

    found: Found | None
    error: BaseException | None


class _Stopped(BaseException):
    """Raised in searches that nobody waits for any longer."""


class SearchThread(Generic[Found]):
    """A search in its thread, which asks this instead of its simulator."""

    def __init__(
        self, work: Callable[[SearchThread[Any]], Found], number: int, heard: SimpleQueue[tuple[int, object]]
    ) -> None:
        self._work, self._number, self._heard = work, number, heard
        self._answers: SimpleQueue[Array | None] = SimpleQueue()
        Thread(target=self._run, name="orthocal search", daemon=True).start()

    def answer(self, answer: Array | None) -> None:
        """The answer to its question; None stops it."""
        self._answers.put(answer)

    def evaluate(self, x: Array, theta: Array) -> Array:
        return self._asked(_Question(False, x, theta.copy()))

    def gradient(self, x: Array, theta: Array) -> Array:
        gradient = self._asked(_Question(True, x, theta.copy()))
        if np.isnan(gradient).any():
            raise NonFiniteError("no gradient")
        return gradient

    def _asked(self, question: _Question) -> Array:
        self._heard.put((self._number, question))
        answer = self._answers.get()
        if answer is None:
            raise _Stopped
        return answer

    def _run(self) -> None:
        try:
            # where the number of BLAS threads belongs to each thread
            with one_blas_thread():
                end = _Ended(self._work(self), None)
        except BaseException as error:  # it is raised where the searches were begun
            end = _Ended(None, error)
        self._heard.put((self._number, end))


class BatchedSearch(Generic[Found]):
    """(number, what was found) of each search, as they end; it has a length for progress bars."""

    def __init__(self, simulator: BoundSimulator, works: Sequence[Callable[[SearchThread[Any]], Found]]) -> None:
        self._simulator, self._works = simulator, works

    def __len__(self) -> int:
        return len(self._works)

    def __iter__(self) -> Iterator[tuple[int, Found]]:
        heard: SimpleQueue[tuple[int, object]] = SimpleQueue()
        searches = {number: SearchThread(work, number, heard) for number, work in enumerate(self._works)}
        questions: dict[int, _Question] = {}
        try:
            while searches:
                while len(questions) < len(searches):
                    number, said = heard.get()
                    if isinstance(said, _Question):
                        questions[number] = said
                        continue
                    del searches[number]
                    found, error = cast(_Ended[Found], said)
                    if error is not None:
                        raise error
                    yield number, cast(Found, found)
                for number, answer in self._answers(questions):
                    searches[number].answer(answer)
                questions.clear()
        finally:
            for search in searches.values():
                search.answer(None)

    def _answers(self, questions: dict[int, _Question]) -> Iterator[tuple[int, Array]]:
        """The answers to all questions: those about the same x and of one kind in a batch."""
        kinds: dict[tuple[bool, int], list[int]] = {}
        # in the order of the searches, not of their threads
        for number in sorted(questions):
            kinds.setdefault((questions[number].gradient, id(questions[number].x)), []).append(number)
        for (gradient, _), numbers in kinds.items():
            x, theta = questions[numbers[0]].x, np.stack([questions[number].theta for number in numbers])
            every = self._simulator.gradients(x, theta) if gradient else self._simulator.batch(x, theta)
            yield from zip(numbers, every, strict=True)
