"""theta_tilde: where the simulator fits the field data best, with every other local minimum of the loss.

loss(t) = sum_i v_i (y_i - f(x_i, t))' W (y_i - f(x_i, t)), with v_i the share of the domain that is nearest to point i,
minimised by nonlinear least squares from many starts. Where cells of a row are missing, its W is ((W^-1)_oo)^-1 at the
observed ones: the loss is least over what is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import least_squares

from ..arrays import Array, matrix_root
from ..errors import NonFiniteError, SimulatorError
from ..progress import progress_bar
from .parameters import Parameters
from .simulator import BoundSimulator

#: two minima closer than this share of the prior's spread are one
SAME_MINIMUM = 1e-4
#: those closer than this are one if no barrier of this share of the loss parts them
NEIGHBOUR, BARRIER = 0.05, 1e-3
#: losses that differ by less than this share of the best are equal
SAME_LOSS = 1e-6


class Minimum(NamedTuple):
    """A local minimum of the loss."""

    theta: Array
    loss: float


def find_minima(
    simulator: BoundSimulator,
    parameters: Parameters,
    x: Array,
    y: Array,
    weight: Array,
    starts: Array,
) -> tuple[Minimum, ...]:
    """Every distinct local minimum reached from ``starts`` (s, p), best first.

    ``weight`` is n v_i W, (n, q, q), with zeros at the missing (NaN) cells of y.
    Equal losses are ordered by the prior's density, then by non-negative and small values first, so that the
    choice among symmetric minima does not depend on rounding.
    """
    root = matrix_root(weight) / np.sqrt(len(y))
    y = np.where(np.isnan(y), 0.0, y)

    def residual(theta: Array) -> Array:
        return np.asarray(np.einsum("...kl,...l->...k", root, y - simulator.evaluate(x, theta)).ravel())

    def jacobian(theta: Array) -> Array:
        gradient = simulator.gradient(x, theta)
        return np.asarray(-np.einsum("...kl,...lp->...kp", root, gradient).reshape(y.size, -1))

    found: list[Minimum] = []
    unfinished: list[Minimum] = []
    failure: NonFiniteError | None = None
    for start in progress_bar(starts, "best fit"):
        try:
            if not np.isfinite(residual(start)).all():
                simulator.required(x, start)
            fit = least_squares(
                residual,
                start,
                jac=jacobian,
                bounds=(parameters.lower, parameters.upper),
                x_scale=parameters.spread,
                ftol=1e-12,
                xtol=1e-12,
                gtol=1e-14,
                max_nfev=200,
            )
        except NonFiniteError as error:
            failure = error
            continue
        candidate = Minimum(fit.x, float(2 * fit.cost))
        if np.isfinite(candidate.loss):
            _keep_better(found if fit.success else unfinished, candidate, parameters)
    found = found or unfinished
    if not found:
        raise failure or SimulatorError("no start of the search for theta_tilde converged: check the simulator")
    size = float(np.sum(np.einsum("...kl,...l->...k", root, y) ** 2))
    return _merged(_ordered(found, parameters, size), lambda theta: float(np.sum(residual(theta) ** 2)), parameters)


def _merged(minima: tuple[Minimum, ...], loss: Callable[[Array], float], parameters: Parameters) -> tuple[Minimum, ...]:
    """Without those that no barrier parts from a better neighbour: rounding of the simulator ended the search there."""
    kept: list[Minimum] = []
    for one in minima:
        near = (other for other in kept if np.all(np.abs(one.theta - other.theta) < NEIGHBOUR * parameters.spread))
        if not any(_in_one_valley(one, other, loss) for other in near):
            kept.append(one)
    return tuple(kept)


def _in_one_valley(one: Minimum, other: Minimum, loss: Callable[[Array], float]) -> bool:
    between = (other.theta + share * (one.theta - other.theta) for share in (0.25, 0.5, 0.75))
    # a failure (NaN) is a barrier
    return all(loss(theta) <= one.loss * (1 + BARRIER) for theta in between)


def _keep_better(minima: list[Minimum], candidate: Minimum, parameters: Parameters) -> None:
    """Add a candidate; of several at one place the best stays."""
    twins = [one for one in minima if _same(candidate, one, parameters)]
    if all(candidate.loss < one.loss for one in twins):
        minima[:] = [one for one in minima if not _same(candidate, one, parameters)] + [candidate]


def _same(a: Minimum, b: Minimum, parameters: Parameters) -> bool:
    return bool(np.all(np.abs(a.theta - b.theta) < SAME_MINIMUM * parameters.spread))


def _ordered(found: list[Minimum], parameters: Parameters, size: float) -> tuple[Minimum, ...]:
    """Best first; ``size`` is the loss of a simulator that gives zero, the scale on which a loss is zero."""
    best = min(one.loss for one in found)
    tolerance = SAME_LOSS * max(best, 1e-10 * size)

    def key(one: Minimum) -> tuple[float, ...]:
        rank = 0.0 if one.loss - best <= tolerance else one.loss - best
        density = round(float(parameters.log_prior(one.theta)), 5)
        rounded = np.round(one.theta / parameters.spread, 3)
        return (rank, -density, float(np.sum(rounded < 0)), *rounded)

    return tuple(sorted(found, key=key))
