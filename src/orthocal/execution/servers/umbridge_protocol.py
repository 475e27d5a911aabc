"""The UM-Bridge protocol, JSON over HTTP: what a model of a server is asked, and what it answers.

A model takes a list of vectors, its input blocks, and a ``config``, and returns a list of vectors, its output blocks
(https://um-bridge-benchmarks.readthedocs.io).
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from ...arrays import Array
from ...errors import InputError, NonFiniteError, SimulatorError
from .servers import AnswerError, Servers, end_questions

#: a server's words for a question that is wrong whatever theta is
OF_THE_QUESTION = ("InvalidInput", "InvalidOutput", "UnsupportedFeature", "ModelNotFound")

Config = dict[str, Any]


class ModelInput(NamedTuple):
    """What the model is called with; ``places`` are the block and the place in it of each parameter."""

    blocks: list[list[float]]
    config: Config
    places: list[tuple[int, int]]


class Question(NamedTuple):
    """A call with what is asked about it: the value, or a derivative."""

    path: str
    call: ModelInput
    more: dict[str, Any]


class RemoteModel:
    """One model of servers that answer alike; ``x_key`` and ``seed_key`` are those of the config that change."""

    def __init__(
        self, servers: Servers, name: str, timeout: float | None, x_key: str | None, seed_key: str | None = None
    ) -> None:
        self.servers, self.name, self.timeout, self._x_key, self._seed_key = servers, name, timeout, x_key, seed_key
        self._sizes: dict[str, list[int]] = {}

    def support(self) -> dict[str, bool]:
        """What the model offers; an error where there is no such model."""
        models = [str(one) for one in self._asked("Info", None, "models")]
        if self.name not in models:
            raise InputError(f"{self.servers.words} has no model {self.name!r}: it has {', '.join(models) or 'none'}")
        offered = self._asked("ModelInfo", {"name": self.name}, "support")
        if not offered.get("Evaluate"):
            raise InputError(f"the model {self.name!r} cannot be evaluated: its server offers no Evaluate")
        return {str(name): bool(there) for name, there in offered.items()}

    def input_sizes(self, config: Config) -> list[int]:
        """Asked for once: they do not depend on the points x in the config."""
        key = self._key(config, self._x_key)
        if key not in self._sizes:
            self.support()
            self._sizes[key] = self._sizes_of("Input", config)
        return self._sizes[key]

    def output_sizes(self, config: Config) -> list[int]:
        """They may depend on everything in the config."""
        if self._x_key in config:
            return self._sizes_of("Output", config)
        key = f"output {self._key(config)}"
        if key not in self._sizes:
            self._sizes[key] = self._sizes_of("Output", config)
        return self._sizes[key]

    def _key(self, config: Config, *without: str | None) -> str:
        kept = {name: value for name, value in config.items() if name not in (self._seed_key, *without)}
        return json.dumps(kept, sort_keys=True)

    def _sizes_of(self, which: str, config: Config) -> list[int]:
        question = {"name": self.name, "config": config}
        return [int(one) for one in self._asked(f"{which}Sizes", question, f"{which.lower()}Sizes")]

    def answers(self, questions: list[Question], timeout: float | None, work: str) -> list[list[Array]]:
        """The vectors of each answer, asked for at the same time as far as servers are free."""
        width = min(self.servers.width, len(questions))
        if width == 1:
            return [self._answer(one, timeout, work) for one in questions]
        pool = ThreadPoolExecutor(width, "orthocal-server")
        try:
            return list(pool.map(lambda one: self._answer(one, timeout, work), questions))
        except BaseException:
            # what is under way belongs to nobody any more
            end_questions(work)
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def _answer(self, question: Question, timeout: float | None, work: str) -> list[Array]:
        path, call, more = question
        body = {"name": self.name, "input": call.blocks, "config": call.config, **more}
        output = self._asked(path, body, "output", timeout, work)
        blocks = [output] if path != "Evaluate" else output if isinstance(output, list) else [None]
        return [_numbers(block) for block in blocks]

    def _asked(
        self, path: str, body: dict[str, Any] | None, wanted: str, timeout: float | None = None, work: str = ""
    ) -> Any:
        try:
            answer = self.servers.ask(path, body, timeout or self.timeout, work)
        except AnswerError as error:
            if error.kind in OF_THE_QUESTION:
                raise SimulatorError(f"the model {self.name!r}: {error}") from None
            # at this theta
            raise NonFiniteError(f"the model {self.name!r}: {error}") from None
        if wanted not in answer:
            raise SimulatorError(f"{self.servers.words} is no UM-Bridge server: its answer to {path} has no {wanted!r}")
        return answer[wanted]


def columns_asked(call: ModelInput, sizes: list[tuple[int, int]]) -> list[Question]:
    """df_b/dtheta_j for every output block b, (number, size), and parameter."""
    return [
        Question("ApplyJacobian", call, {"outWrt": b, "inWrt": block, "vec": _unit(len(call.blocks[block]), place)})
        for b, _ in sizes
        for block, place in call.places
    ]


def rows_asked(call: ModelInput, sizes: list[tuple[int, int]]) -> list[Question]:
    """The derivatives of every single output by each block of theta."""
    return [
        Question("Gradient", call, {"outWrt": b, "inWrt": block, "sens": _unit(size, row)})
        for b, size in sizes
        for row in range(size)
        for block in dict.fromkeys(block for block, _ in call.places)
    ]


def _unit(size: int, place: int) -> list[float]:
    return [float(i == place) for i in range(size)]


def _numbers(block: object) -> Array:
    """A vector of an answer; null is what some servers write for a value that is not finite."""
    try:
        values = np.array([np.nan if one is None else one for one in block], dtype=np.float64)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        values = np.empty((0, 0))
    if values.ndim != 1:
        raise SimulatorError("a server returned an output that is no list of vectors of numbers")
    return values
