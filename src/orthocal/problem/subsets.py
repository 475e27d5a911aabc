"""Parts of a problem: one of its outcomes, or some of its rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from ..arrays import Array, BoolArray, IntArray
from .data.field_data import FieldData
from .domain.domain import Domain
from .noise.noise import Noise
from .outputs import Prepared
from .prior.parameters import Parameters
from .search.minima import Minimum
from .simulator.simulator import BoundSimulator


class Whole(Protocol):
    """What a part needs to know of the problem."""

    data: FieldData
    parameters: Parameters
    simulator: BoundSimulator
    domain: Domain
    units: dict[str, str]
    _weight: Array | str
    _starts: Array

    @property
    def noise(self) -> Noise: ...

    @property
    def minima(self) -> tuple[Minimum, ...]: ...


P = TypeVar("P", bound=Whole)


class _Outcome(NamedTuple):
    """One outcome of a simulator."""

    simulator: BoundSimulator
    k: int

    def one(self, x: Array, theta: Array) -> Array:
        """For theta (p,)."""
        return self.simulator.evaluate(x, theta)[:, self.k]

    def batch(self, x: Array, theta: Array) -> Array:
        """For theta (c, p)."""
        return self.simulator.batch(x, theta)[:, :, self.k]

    def gradient(self, x: Array, theta: Array) -> Array:
        return self.simulator.gradient(x, theta)[:, self.k]


def outcome_of(problem: P, made: Callable[..., P], k: int) -> P:
    """The same problem with outcome k alone; its noise is that of the problem."""
    simulator = problem.simulator
    own, many = _Outcome(simulator, k), simulator.many_at_a_time
    part = made(
        y=problem.data.y[:, [k]],
        simulator=Prepared(own.batch if many else own.one, own.gradient, batched=many),
        parameters=problem.parameters.given,
        noise_cov=problem.noise.outcome(k),
        loss_weight="identity" if isinstance(problem._weight, np.ndarray) else problem._weight,
        outcome_names=problem.data.outcome_names[k],
        constraint=problem.parameters.given_constraint,
        # the joint fit's minima are good places to start from
        starts=_known_places(problem),
        groups=problem.data.groups,
        **_inputs(problem),
    )
    part.simulator.outside = simulator.outside
    # y and the simulator are on the transformed scale already
    transforms, native = problem.data.transforms.outcome(k), problem.data.native_y[:, k : k + 1]
    part.data = replace(part.data, transforms=transforms, native_y=native)
    part.units = problem.units
    return part


def subset_of(problem: P, made: Callable[..., P], rows: IntArray | BoolArray, hidden: BoolArray | None) -> P:
    """The same problem with some rows (numbers or a mask), without the cells of ``hidden`` outcomes (q,)."""
    kept = np.arange(problem.data.n)[rows]
    y = problem.data.y[kept] if hidden is None else np.where(hidden, np.nan, problem.data.y[kept])
    part = made(
        y=y,
        simulator=Prepared(problem.simulator.evaluate),
        parameters=problem.parameters.given,
        noise_cov=problem.noise.of_rows(kept, ~np.isnan(y)),
        loss_weight=problem._weight,
        outcome_names=problem.data.outcome_names,
        constraint=problem.parameters.given_constraint,
        # the minima of all data are good places to start from
        starts=_known_places(problem),
        groups=None if problem.data.groups is None else problem.data.groups.subset(kept),
        **_inputs(problem, kept),
    )
    # shared: it knows its gradient and the form of x already, and counts all calls
    part.simulator = problem.simulator
    native = problem.data.native_y[kept]
    native = native if hidden is None else np.where(hidden, np.nan, native)
    part.data = replace(part.data, transforms=problem.data.transforms, native_y=native)
    part.units = problem.units
    return part


def _known_places(problem: Whole) -> Array:
    """The starts and the minima, inside of the support."""
    known = np.vstack([problem._starts, *(problem.parameters.clipped(one.theta, 1e-6) for one in problem.minima)])
    return known[problem.parameters.inside(known)]


def _inputs(problem: Whole, rows: IntArray | slice = slice(None)) -> dict[str, Any]:
    """What a part is given about its inputs."""
    if problem.data.without_inputs:
        return {"x": None}
    data = problem.data
    return {
        "x": data.x[rows],
        "domain": problem.domain,
        "input_names": data.input_names,
        "categorical": data.labels,
    }
