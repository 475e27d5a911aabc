"""Errors of the inputs, carried to the outcomes to first order.

Where x_i is off by u ~ N(0, diag(s^2)), f(x_i + u) - f(x_i) is about sum_j g_j u_j with g_j = df/dx_j: noise with the
covariance sum_j g_j g_j' s_j^2. The differences reach one sd to each side, so that g_j s_j is what an error of that
size does, and an emulator that is a step function has a slope as well.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..advice import NOISE_COV, Y_ERR
from ..arrays import Array, as_floats
from ..errors import InputError, SimulatorError
from .data.field_data import FieldData
from .noise.noise import Noise, NoiseSource
from .simulator.emulator import EmulatorLike
from .simulator.simulator import BoundSimulator

#: differences reach no further than this share of the domain, so that two of them fit on one side of any point
LONGEST = 0.25


class InputErrors(NamedTuple):
    """What errors of x do to the outcomes.

    Attributes
    ----------
    x_err
        Standard deviations, (n, d).
    cov
        Covariance that they add, (n, q, q).
    curvature
        What the first order leaves out: sum_j f''_jj s_j^2 / 2, the mean of f(x + u) less f(x), (n, q).
    dilution
        What it leaves out where x itself was measured: then E(u_j | x) is about s_j^2 (x_j - mean_j) / var_j, and the
        outcomes are off by - sum_j g_j E(u_j | x), (n, q).
    """

    x_err: Array
    cov: Array
    curvature: Array
    dilution: Array

    def moved_theta(self, gradient: Array, precision: Array, whitener: Array) -> Array:
        """How far ``curvature`` and ``dilution`` move the least-squares theta, (2, p)."""
        weighted = np.einsum("nkp,nkl->npl", gradient, precision)
        gram = np.einsum("npl,nlr->pr", weighted, gradient)
        shifts = np.stack([self.curvature, self.dilution]) @ whitener.T
        return np.asarray(np.einsum("enl,npl,pr->er", shifts, weighted, np.linalg.pinv(gram, hermitian=True)))


def checked_x_err(x_err: ArrayLike | None, data: FieldData, noise: object) -> Array | None:
    """The standard deviations as (n, d), or None where there are none."""
    if x_err is None:
        return None
    given = as_floats(x_err, "x_err")
    n, d = data.x.shape
    if given.ndim == 0 and data.labels:
        # a label has no error of this kind: one number is that of the numeric inputs
        given = np.where(np.isin(np.arange(d), data.labels.columns), 0.0, given)
    if given.ndim == 1 and d == 1 and len(given) == n:
        given = given[:, None]
    if given.shape not in ((), (d,), (n, d)):
        raise InputError(
            f"x_err has shape {given.shape} but x has {n} rows and {d} columns: give one standard deviation, one an "
            f"input ({d},), or one for every cell of x ({n}, {d})"
        )
    if not (np.isfinite(given).all() and (given >= 0).all()):
        raise InputError(
            "x_err has values that are negative or not finite: give standard deviations, 0 for inputs that are exact"
        )
    if not given.any():
        return None
    for one in data.labels.each:
        if given[..., one.column].any():
            raise InputError(f"x_err has a standard deviation of {one.name}, which holds labels: give 0 there")
    if not isinstance(noise, Noise) or noise.source is not NoiseSource.KNOWN:
        raise InputError(
            "x_err needs noise that is given: noise that is unknown or estimated comes from the scatter of y, which "
            "has the errors of x in it already; leave x_err out, or give the noise of y alone by "
            + NOISE_COV
            + " or "
            + Y_ERR
        )
    return np.broadcast_to(given, (n, d)).copy()


def input_errors(
    simulator: BoundSimulator, x: Array, x_err: Array, bounds: tuple[Array, Array], theta: Array
) -> InputErrors:
    """Slopes and curvatures of f in x at theta, by a parabola through three points within the bounds."""
    # nodes of a measure need not reach as far as the data
    lower, upper = np.minimum(bounds[0], x.min(axis=0)), np.maximum(bounds[1], x.max(axis=0))
    here = simulator.required(x, theta)
    n, q = here.shape
    cov, curvature, dilution = np.zeros((n, q, q)), np.zeros((n, q)), np.zeros((n, q))
    for j in map(int, np.flatnonzero(x_err.any(axis=0))):
        sd = x_err[:, j]
        # an input that does not vary has no domain to stay in
        step = np.minimum(sd, LONGEST * (upper[j] - lower[j]) if upper[j] > lower[j] else np.inf)
        one = np.where(x[:, j] + step > upper[j], -2 * step, step)
        other = np.where(x[:, j] - step < lower[j], 2 * step, -step)
        changes = [_moved(simulator, x, j, by, theta) - here for by in (one, other)]
        # where x is exact both steps are 0, and so is what they say
        a, b = (np.where(sd > 0, by, fill)[:, None] for by, fill in ((one, 1.0), (other, -1.0)))
        slope = (b**2 * changes[0] - a**2 * changes[1]) / (a * b * (b - a))
        bend = 2 * (a * changes[1] - b * changes[0]) / (a * b * (b - a))
        moved = slope * sd[:, None]
        cov += moved[:, :, None] * moved[:, None, :]
        curvature += 0.5 * bend * sd[:, None] ** 2
        spread = x[:, j].var()
        if spread > 0:
            dilution -= moved * (sd * (x[:, j] - x[:, j].mean()) / spread)[:, None]
    return InputErrors(x_err, cov, curvature, dilution)


def added_noise(
    simulator: BoundSimulator, emulator: EmulatorLike | None, errors: InputErrors | None, x: Array, theta: Array
) -> Array | None:
    """What the errors of the emulator, where they count, and of x add to the covariance of each point, (n, q, q)."""
    added = None if errors is None else errors.cov
    if emulator is not None:
        var = simulator.slope(x, theta) ** 2 * emulator.variance(x, theta)
        own = var[:, :, None] * np.eye(var.shape[1])
        added = own if added is None else added + own
    return added


def _moved(simulator: BoundSimulator, x: Array, j: int, by: Array, theta: Array) -> Array:
    """f with input j of every point moved."""
    elsewhere = x.copy()
    elsewhere[:, j] += by
    try:
        return simulator.required(elsewhere, theta)
    except SimulatorError as error:
        raise InputError(
            f"x_err needs the simulator beside the data points, within the domain, and it failed there: {error}; fix "
            "it, or leave x_err out and put what errors of x do to y into " + Y_ERR
        ) from error
