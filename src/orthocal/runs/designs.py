"""Where to run the simulator: points that fill the priors' supports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import pandas as pd
from scipy.stats import qmc

from ..arrays import Array, as_floats
from ..errors import InputError
from ..problem.parameters import Distribution, Parameters
from ..problem.problem import Problem

#: share of an unbounded prior that a design covers, in the middle
CENTRAL = 0.998
#: how far inside an open end the outermost points of a design lie, relative to the width
HAIR = 1e-6
#: runs beyond this are a mistake in `n`, not a plan
MOST_POINTS = 10_000_000

Kind = Literal["sobol", "lhs", "grid"]
Bounds = Mapping[str, tuple[float, float] | Sequence[float]]


def design(
    parameters: Mapping[str, Distribution] | Parameters | Problem,
    n: int | Sequence[int],
    kind: Kind = "sobol",
    seed: int | None = 0,
    bounds: Bounds | None = None,
) -> pd.DataFrame:
    """Points theta_1, ..., theta_n spread evenly over a box: one row a run, one column a parameter.

    The box is the support of a bounded prior, and the central 99.8 % of a prior that is unbounded on either side.

    Parameters
    ----------
    parameters
        Name -> frozen ``scipy.stats`` distribution as for ``oc.Problem``, or the problem itself.
    n
        Number of points. For a grid the number along each parameter, or one number a parameter:
        7 makes 7 x 7 points for two parameters, (7, 3) makes 7 x 3.
    kind
        ``"sobol"`` (default), scrambled: with the same seed the first points of a longer design are those of a
        shorter one, so that a campaign can be extended; ``"lhs"``, a Latin hypercube; ``"grid"``, with its end points.
    seed
        Of the scrambling or of the hypercube; None takes a new one each time.
    bounds
        Name -> (low, high), instead of the box above for these parameters.
    """
    known = _parameters(parameters)
    low, high = _box(known, bounds or {})
    if kind == "grid":
        unit = _grid(n, known.p)
    elif kind in ("sobol", "lhs"):
        unit = _scattered(n, known.p, kind, seed)
    else:
        raise InputError(f'kind={kind!r}: give "sobol", "lhs" or "grid"')
    # low + 1 * (high - low) may be rounded to beyond high
    theta = np.clip(low + unit * (high - low), low, high)
    return pd.DataFrame(theta, columns=list(known.names))


def _parameters(given: Mapping[str, Distribution] | Parameters | Problem) -> Parameters:
    if isinstance(given, Problem):
        return given.parameters
    return given if isinstance(given, Parameters) else Parameters(given)


def _box(parameters: Parameters, bounds: Bounds) -> tuple[Array, Array]:
    unknown = sorted(set(bounds) - set(parameters.names))
    if unknown:
        raise InputError(f"bounds has no parameter {', '.join(unknown)}: there are {', '.join(parameters.names)}")
    ranges = []
    for j, (name, prior) in enumerate(zip(parameters.names, parameters.priors, strict=True)):
        support = float(parameters.lower[j]), float(parameters.upper[j])
        ranges.append(_given_range(name, bounds[name], support) if name in bounds else _range(prior, support))
    low, high = np.array(ranges).T
    return low, high


def _range(prior: Distribution, support: tuple[float, float]) -> tuple[float, float]:
    if not np.isfinite(support).all():
        tail = (1 - CENTRAL) / 2
        return float(prior.ppf(tail)), float(prior.ppf(1 - tail))
    hair = HAIR * (support[1] - support[0])
    # where the density is zero or infinite the simulator need not work: such an end is open
    with np.errstate(all="ignore"):
        closed = [bool(np.isfinite(prior.logpdf(end))) for end in support]
    return support[0] + (0 if closed[0] else hair), support[1] - (0 if closed[1] else hair)


def _given_range(name: str, given: Sequence[float], support: tuple[float, float]) -> tuple[float, float]:
    pair = as_floats(given, f"bounds of {name!r}")
    if pair.shape != (2,) or not np.isfinite(pair).all() or pair[0] >= pair[1]:
        raise InputError(f"bounds of {name!r} are {given!r}: give (low, high) with low < high")
    if pair[0] < support[0] or pair[1] > support[1]:
        raise InputError(
            f"bounds of {name!r} are ({pair[0]:.6g}, {pair[1]:.6g}), outside of the prior's support "
            f"({support[0]:.6g}, {support[1]:.6g}): runs there would be of no use"
        )
    return float(pair[0]), float(pair[1])


def _scattered(n: int | Sequence[int], p: int, kind: str, seed: int | None) -> Array:
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or not 1 <= n <= MOST_POINTS:
        raise InputError(f"n={n!r}: give the number of points of the design, from 1 to {MOST_POINTS}")
    try:
        rng = np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise InputError(f"seed={seed!r}: give a whole number that is not negative, or None") from None
    if kind == "lhs":
        return np.asarray(qmc.LatinHypercube(p, rng=rng).random(int(n)))
    # a whole power of two and then the first n: other numbers make scipy warn, and the points are the same
    return np.asarray(qmc.Sobol(p, rng=rng).random_base2((int(n) - 1).bit_length())[:n])


def _grid(n: int | Sequence[int], p: int) -> Array:
    counts = [n] * p if isinstance(n, int | np.integer) else list(n) if np.iterable(n) else []
    whole = all(isinstance(count, int | np.integer) and not isinstance(count, bool) and count >= 1 for count in counts)
    if len(counts) != p or not whole:
        raise InputError(f"n={n!r}: give the number of points along each parameter, or one number each ({p})")
    if np.prod([float(count) for count in counts]) > MOST_POINTS:
        raise InputError(f"a grid of {' x '.join(map(str, counts))} points is too large: take fewer, or kind='sobol'")
    # a single point is in the middle
    axes = [np.linspace(0, 1, count) if count > 1 else np.array([0.5]) for count in counts]
    return np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=-1)
