"""A simulator behind UM-Bridge servers: its values, its derivatives, and the runs of a campaign."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Any, Literal
from uuid import uuid4

import numpy as np
from numpy.typing import ArrayLike

from ...arrays import Array, as_columns, as_floats
from ...errors import InputError, SimulatorError
from ..work.simulation import Chance, External
from .servers import Servers, end_questions
from .umbridge_protocol import ModelInput, Question, RemoteModel, columns_asked, rows_asked

Derivative = Literal["auto", "jacobian", "gradient", "difference"]


class UMBridge(External):
    """f(x, theta) of a model behind UM-Bridge servers, with its derivatives where they are offered.

    Parameters
    ----------
    url
        The address of a server, ``"http://localhost:4242"``, or several: the work is spread over them.
    model
        The model's name.
    points
        The model takes no x: its output are the values at these points, (N, d). It can then be asked for x among them
        only: give the problem ``domain=oc.Points(points)``.
    x_block
        Number of the input block that is x: one point, and the model is called for each, or all of them, row by row.
    x_config
        Key of ``config`` under which all points are sent, a list of rows.
    config
        Further settings that the model is given in every call.
    seed_config
        Key of ``config`` under which a model with random numbers is given the seed of each run of a campaign.
    fixed
        Number -> values of input blocks that are neither theta nor x. Theta fills all others, in their order.
    outputs
        Numbers of the output blocks that are used; default: all.
    by
        How a block with several outcomes is ordered: ``"point"``, all outcomes of the first point first (default), or
        ``"outcome"``.
    derivative
        ``"jacobian"`` (ApplyJacobian), ``"gradient"`` (Gradient), ``"difference"``; ``"auto"`` (default) takes what the
        server offers, if that takes no more calls than differences.
    timeout
        Seconds that one answer may take; None for any time.
    wait
        Seconds to wait for a server that is gone, if no other is there.
    retries
        How often a call is repeated whose server has gone while it computed.
    each
        Calls that one server takes at a time: 1 for a model, more for a load balancer.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> x = np.array([0.0, 0.5, 1.0, 2.0])
    >>> model = oc.UMBridge("http://localhost:4242", "decay", points=x)
    >>> model(x, np.array([2.0, 1.3]))[:, 0].round(2)  # doctest: +SKIP
    array([2.  , 1.04, 0.55, 0.15])
    """

    def __init__(
        self,
        url: str | Sequence[str],
        model: str = "forward",
        *,
        points: ArrayLike | None = None,
        x_block: int | None = None,
        x_config: str | None = None,
        config: Mapping[str, Any] | None = None,
        fixed: Mapping[int, Sequence[float]] | None = None,
        outputs: int | Sequence[int] | None = None,
        by: Literal["point", "outcome"] = "point",
        derivative: Derivative = "auto",
        timeout: float | None = None,
        wait: float = 600.0,
        retries: int = 2,
        each: int = 1,
        seed_config: str | None = None,
    ) -> None:
        urls = [url] if isinstance(url, str) else list(url)
        if not urls:
            raise InputError("url is empty: give the address of at least one server")
        if sum(one is not None for one in (points, x_block, x_config)) > 1:
            raise InputError("points, x_block and x_config each say where x is: give one of them")
        if derivative not in ("auto", "jacobian", "gradient", "difference"):
            raise InputError(f'derivative={derivative!r}: give "auto", "jacobian", "gradient" or "difference"')
        if by not in ("point", "outcome"):
            raise InputError(f'by={by!r}: give "point" or "outcome"')
        _check_numbers(timeout, wait, retries, each)
        self.model, self.by, self.derivative, self.timeout = model, by, derivative, timeout
        self.x_block, self.x_config, self.seed_config = x_block, x_config, seed_config
        self.points = None if points is None else as_columns(points, "points")
        self.config = json.loads(json.dumps(dict(config or {})))
        self.fixed = {int(number): as_floats(values, f"fixed[{number}]") for number, values in (fixed or {}).items()}
        self.outputs = None if outputs is None else [outputs] if isinstance(outputs, int) else list(outputs)
        self._work = uuid4().hex
        self._remote = RemoteModel(Servers(urls, each, retries, wait), model, timeout, x_config, seed_config)

    def __call__(self, *given: Array) -> Array:
        """f(x, theta), (m, q); f(theta), (q,), of outputs without inputs."""
        x, theta = self._split(given)
        return self._evaluated(x, theta, self.timeout, self._part())

    @property
    def gradient(self) -> Callable[..., Array] | str:
        """df/dtheta by the server, or the word for differences.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> x = np.array([0.0, 0.5, 1.0, 2.0])
        >>> model = oc.UMBridge("http://localhost:4242", "decay", points=x)
        >>> model.gradient(x, np.array([2.0, 1.3])).shape  # doctest: +SKIP
        (4, 1, 2)
        """
        return "difference" if self._derivative == "difference" else self._differentiated

    @property
    def width(self) -> int:
        """How many calls its servers take at a time.

        Examples
        --------
        >>> import orthocal as oc
        >>> oc.UMBridge(["http://node1:4242", "http://node2:4242"], each=3).width
        6
        """
        return self._remote.servers.width

    @property
    def at_a_time(self) -> int:
        """How many calls it takes at a time, from as many threads.

        Examples
        --------
        >>> import orthocal as oc
        >>> oc.UMBridge(["http://node1:4242", "http://node2:4242"]).at_a_time
        2
        """
        return self.width

    def end_calls(self) -> None:
        """End the calls that are under way; later ones are made.

        Examples
        --------
        >>> import orthocal as oc
        >>> oc.UMBridge("http://localhost:4242").end_calls()
        """
        work, self._work = self._work, uuid4().hex
        end_questions(work)

    def _part(self) -> str:
        return f"{self._work}/{uuid4().hex}"

    def seeded(self, chance: Chance) -> UMBridge:
        """The same for one run, with its seed in the config where ``seed_config`` says its key.

        Examples
        --------
        >>> import orthocal as oc
        >>> from orthocal.execution.work.simulation import Chance
        >>> model = oc.UMBridge("http://localhost:4242", seed_config="seed")
        >>> model.seeded(Chance(replicate=0, seed=12)).config
        {'seed': 12}
        """
        if self.seed_config is None:
            return self
        one = copy(self)
        one.config = {**self.config, self.seed_config: chance.seed}
        return one

    def check(self, names: Sequence[str], here: bool) -> None:
        """Whether the model can be asked with so many parameters; an error says what is wrong.

        Parameters
        ----------
        names
            Of the parameters.
        here
            Whether the servers can be reached from this machine.

        Examples
        --------
        >>> import orthocal as oc
        >>> model = oc.UMBridge("http://localhost:4242", "decay")
        >>> model.check(["a", "b", "c"], here=True)  # doctest: +SKIP
        Traceback (most recent call last):
            ...
        orthocal.errors.InputError: ...
        """
        if here:
            self._call(None, np.zeros(len(names)))

    def identity(self) -> tuple[str, str]:
        """The model's name, and a digest of how it is asked; wherever its servers are.

        Examples
        --------
        >>> import orthocal as oc
        >>> here, there = oc.UMBridge("http://node1:4242"), oc.UMBridge("http://node2:4242")
        >>> here.identity()[0], here.identity() == there.identity()
        ('UM-Bridge model forward', True)
        """
        fixed = {str(number): values.tolist() for number, values in sorted(self.fixed.items())}
        points = None if self.points is None else self.points.tolist()
        how = [self.model, self.config, fixed, self.outputs, self.by, self.x_block, self.x_config, points]
        how += [] if self.seed_config is None else [self.seed_config]
        return f"UM-Bridge model {self.model}", hashlib.sha256(json.dumps(how, sort_keys=True).encode()).hexdigest()

    def run(
        self,
        x: Array,
        theta: dict[str, float],
        input_names: Sequence[str],
        timeout: float | None = None,
        label: str = "run",
        campaign: str = "",
    ) -> Array:
        """One run at the points of a campaign, which are the model's own where it takes none.

        Parameters
        ----------
        x
            Points (m, d).
        theta
            Name -> value of each parameter, in the order of the model's input.
        input_names
            Of the columns of x.
        timeout
            Seconds that an answer may take.
        label
            Of no use here.
        campaign
            What the run belongs to, for ``end_runs``.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> x = np.array([[0.0], [0.5], [1.0], [2.0]])
        >>> model = oc.UMBridge("http://localhost:4242", "decay", points=x)
        >>> model.run(x, {"a": 2.0, "b": 1.3}, ["x"])[:, 0].round(2)  # doctest: +SKIP
        array([2.  , 1.04, 0.55, 0.15])
        """
        values = np.array(list(theta.values()))
        return self._evaluated(x, values, timeout or self.timeout, f"{campaign}/{uuid4().hex}", every=True)

    def end_runs(self, campaign: str) -> None:
        """End every call that this process has under way for a campaign.

        Parameters
        ----------
        campaign
            As given to ``run``.

        Examples
        --------
        >>> import orthocal as oc
        >>> oc.UMBridge("http://localhost:4242").end_runs("evening")
        """
        end_questions(campaign)

    def _split(self, given: tuple[Array, ...]) -> tuple[Array | None, Array]:
        if len(given) not in (1, 2):
            raise TypeError(f"f(x, theta) or f(theta), not {len(given)} arguments")
        x = as_columns(given[0], "x") if len(given) == 2 else None
        return x, np.asarray(given[-1], dtype=np.float64)

    def _evaluated(self, x: Array | None, theta: Array, timeout: float | None, work: str, every: bool = False) -> Array:
        """``every``: x are all the points that the model has."""
        rows = self._rows(x) if not every or self.points is not None else None
        calls = self._calls(x, theta)
        answers = self._remote.answers([Question("Evaluate", call, {}) for call in calls], timeout, work)
        if x is None:
            return np.concatenate(self._chosen(answers[0]))
        m = 1 if len(calls) > 1 else len(x) if rows is None else len(self._own_points)
        values = np.concatenate([np.hstack([self._shaped(one, m) for one in self._chosen(each)]) for each in answers])
        return values if rows is None else values[rows]

    @cached_property
    def _derivative(self) -> Derivative:
        if self.derivative == "difference":
            return "difference"
        offered = self._remote.support()
        names: dict[Derivative, str] = {"jacobian": "ApplyJacobian", "gradient": "Gradient"}
        if self.derivative != "auto":
            if not offered.get(names[self.derivative]):
                raise InputError(
                    f"derivative={self.derivative!r}: the model {self.model!r} offers no {names[self.derivative]}: "
                    'take "auto"'
                )
            return self.derivative
        if self.x_config is not None:
            # what has as many outputs as points has cheap columns and dear rows
            return "jacobian" if offered.get("ApplyJacobian") else "difference"
        inputs, outputs = self._remote.input_sizes(self.config), self._remote.output_sizes(self.config)
        taken = [size for number, size in enumerate(inputs) if number not in self.fixed and number != self.x_block]
        given = outputs if self.outputs is None else [outputs[number] for number in self.outputs]
        calls: dict[Derivative, int] = {"jacobian": sum(taken) * len(given), "gradient": sum(given) * len(taken)}
        able = [one for one in calls if offered.get(names[one]) and calls[one] <= 2 * sum(taken)]
        return min(able, key=lambda one: calls[one], default="difference")

    def _differentiated(self, *given: Array) -> Array:
        """df/dtheta, (m, q, p)."""
        x, theta = self._split(given)
        rows, calls, p = self._rows(x), self._calls(x, theta), len(theta)
        m = 0 if x is None else 1 if len(calls) > 1 else len(x) if rows is None else len(self._own_points)
        sizes = [self._chosen_sizes(call) for call in calls]
        asked = columns_asked if self._derivative == "jacobian" else rows_asked
        questions = [one for call, size in zip(calls, sizes, strict=True) for one in asked(call, size)]
        answers = iter(self._remote.answers(questions, self.timeout, self._part()))
        values = []
        for call, size in zip(calls, sizes, strict=True):
            blocks = self._assembled(call, size, answers, p)
            if x is None:
                return np.concatenate(blocks)
            shaped = [np.stack([self._shaped(column, m) for column in block.T], axis=-1) for block in blocks]
            values.append(np.concatenate(shaped, axis=1))
        found = np.concatenate(values)
        return found if rows is None else found[rows]

    def _assembled(
        self, call: ModelInput, sizes: list[tuple[int, int]], answers: Iterator[list[Array]], p: int
    ) -> list[Array]:
        """The Jacobian of each output block, (size, p)."""
        if self._derivative == "jacobian":
            return [np.stack([next(answers)[0] for _ in range(p)], axis=-1) for _ in sizes]
        taken = len({block for block, _ in call.places})
        return [
            np.stack([np.concatenate([next(answers)[0] for _ in range(taken)]) for _ in range(size)])
            for _, size in sizes
        ]

    # Where theta and x stand among the input blocks of the model, and the outcomes in its output.

    @property
    def _own_points(self) -> Array:
        assert self.points is not None
        return self.points

    def _rows(self, x: Array | None) -> list[int] | None:
        """Which of the model's own points those of x are; None where it takes x."""
        if x is None or self.x_block is not None or self.x_config is not None:
            return None
        if self.points is None:
            raise InputError(
                f"how the model {self.model!r} takes x is not known: give points=, if its output are the values at "
                "points of its own, or x_block= or x_config="
            )
        known = self._places
        rows = [known.get(row.tobytes(), -1) for row in x + 0.0]
        if -1 in rows:
            other = ", ".join(f"{one:g}" for one in x[rows.index(-1)])
            raise InputError(
                f"the model {self.model!r} gives its values at {len(self.points)} points of its own, x = {other} is "
                "not one of them: give the problem domain=oc.Points(points), or in a problem file [domain] file = ..."
            )
        return rows

    @cached_property
    def _places(self) -> dict[bytes, int]:
        # -0.0 is 0.0; of points that are given twice the first counts
        return {row.tobytes(): i for i, row in reversed(list(enumerate(self._own_points + 0.0)))}

    def _shaped(self, block: Array, m: int) -> Array:
        """A block of outputs at m points, (m, k)."""
        if not block.size or block.size % m:
            raise SimulatorError(
                f"the model {self.model!r} returned {block.size} values in an output block, for {m} points: give its "
                "own points, or choose its output blocks by outputs="
            )
        return block.reshape(m, -1) if self.by == "point" else block.reshape(-1, m).T

    def _chosen(self, blocks: list[Array]) -> list[Array]:
        wanted = range(len(blocks)) if self.outputs is None else self.outputs
        if any(not 0 <= number < len(blocks) for number in wanted):
            raise InputError(
                f"outputs={list(wanted)}: the model {self.model!r} has {len(blocks)} output blocks, numbered from 0"
            )
        return [blocks[number] for number in wanted]

    def _calls(self, x: Array | None, theta: Array) -> list[ModelInput]:
        """What the model is asked: once, or for each point where it takes one at a time."""
        if x is None or self.x_block is None:
            return [self._call(x, theta)]
        own = self._size_of_x()
        if own == x.size:
            return [self._call(x, theta)]
        if own != x.shape[1]:
            raise InputError(
                f"input block {self.x_block} of the model {self.model!r} takes {own} numbers: it can be one point x, "
                f"with {x.shape[1]}, or all {len(x)} of them, with {x.size}"
            )
        return [self._call(row[None], theta) for row in x]

    def _size_of_x(self) -> int:
        sizes, block = self._remote.input_sizes(self.config), self.x_block
        assert block is not None
        if not 0 <= block < len(sizes):
            raise InputError(f"x_block={block}: the model {self.model!r} has {len(sizes)} input blocks, from number 0")
        return sizes[block]

    def _call(self, x: Array | None, theta: Array) -> ModelInput:
        config = dict(self.config)
        if x is not None and self.x_config is not None:
            config[self.x_config] = x.tolist()
        sizes = self._remote.input_sizes(config)
        places = [
            (number, place)
            for number, size in enumerate(sizes)
            if number not in self.fixed and number != self.x_block
            for place in range(size)
        ]
        if len(places) != len(theta):
            raise InputError(
                f"the model {self.model!r} has input blocks of {' + '.join(map(str, sizes)) or '0'} numbers, of which "
                f"theta fills {len(places)}, but there are {len(theta)} parameters: give blocks that are neither theta "
                "nor x by fixed="
            )
        values = iter(theta.tolist())
        blocks = [self._block(number, size, x, values) for number, size in enumerate(sizes)]
        return ModelInput(blocks, config, places)

    def _block(self, number: int, size: int, x: Array | None, values: Iterator[float]) -> list[float]:
        if number in self.fixed:
            return self.fixed[number].ravel().tolist()
        if number == self.x_block:
            # where only sizes are asked for any will do
            return [0.0] * size if x is None else x.ravel().tolist()
        return [next(values) for _ in range(size)]

    def _chosen_sizes(self, call: ModelInput) -> list[tuple[int, int]]:
        """Number and size of every output block that is used."""
        sizes = self._remote.output_sizes(call.config)
        return [(b, sizes[b]) for b in (range(len(sizes)) if self.outputs is None else self.outputs)]


def _check_numbers(timeout: float | None, wait: float, retries: int, each: int) -> None:
    if timeout is not None and not timeout > 0:
        raise InputError(f"timeout={timeout!r}: give seconds, or None")
    if not wait >= 0:
        raise InputError(f"wait={wait!r}: give seconds, 0 or more")
    if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
        raise InputError(f"retries={retries!r}: give how often a call is repeated, 0 or more")
    if isinstance(each, bool) or not isinstance(each, int) or each < 1:
        raise InputError(f"each={each!r}: give the calls that one server takes at a time, 1 or more")
