"""Where to run the simulator: points that fill the priors' supports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.stats import qmc

from ..arrays import Array, as_floats
from ..errors import InputError
from ..problem.prior.parameters import Parameters, Priors
from ..problem.prior.priors import SinglePrior
from ..problem.problem import Problem

#: share of an unbounded prior that a design covers, in the middle
CENTRAL = 0.998
#: how far inside an open end the outermost points of a design lie, relative to the width
HAIR = 1e-6
#: runs beyond this are a mistake in `n`, not a plan
MOST_POINTS = 10_000_000
#: points that are tried for each one that a constraint must allow
MOST_TRIED = 2**14

Kind = Literal["sobol", "lhs", "grid"]
Bounds = Mapping[str, tuple[float, float] | Sequence[float]]


def design(
    parameters: Priors | Parameters | Problem,
    n: int | Sequence[int],
    kind: Kind = "sobol",
    seed: int | None = 0,
    bounds: Bounds | None = None,
    constraint: str | Callable[[Array], Any] | None = None,
) -> pd.DataFrame:
    """Points theta_1, ..., theta_n spread evenly over a box: one row a run, one column a parameter.

    The box is the support of a bounded prior, and the central 99.8 % of a prior that is unbounded on either side.
    Where a constraint allows some of the box only, the points are spread over that part of it.

    Parameters
    ----------
    parameters
        Priors as for ``oc.Problem``, or the problem itself, with its constraint.
    n
        Number of points. For a grid the number along each parameter, or one number a parameter:
        7 makes 7 x 7 points for two parameters, (7, 3) makes 7 x 3, less those that a constraint excludes.
    kind
        ``"sobol"`` (default), scrambled: with the same seed the first points of a longer design are those of a
        shorter one, so that a campaign can be extended; ``"lhs"``, a Latin hypercube; ``"grid"``, with its end points.
    seed
        Of the scrambling or of the hypercube; None takes a new one each time.
    bounds
        Name -> (low, high), instead of the box above for these parameters.
    constraint
        Which theta are allowed, as for ``oc.Problem``.

    Examples
    --------
    >>> import orthocal as oc
    >>> from scipy import stats
    >>> priors = {"a": stats.uniform(0, 1), "b": stats.norm(0, 1)}
    >>> design = oc.design(priors, 8)
    >>> design.shape, list(design.columns)
    ((8, 2), ['a', 'b'])
    >>> print(oc.design(priors, (2, 3), kind="grid", bounds={"b": (-1, 1)}))
         a    b
    0  0.0 -1.0
    1  0.0  0.0
    2  0.0  1.0
    3  1.0 -1.0
    4  1.0  0.0
    5  1.0  1.0
    >>> bool(oc.design(priors, 8, constraint="b < a").eval("b < a").all())
    True
    """
    known = _parameters(parameters, constraint)
    low, high = _box(known, bounds or {})
    if kind not in ("sobol", "lhs", "grid"):
        raise InputError(f'kind={kind!r}: give "sobol", "lhs" or "grid"')

    def scaled(unit: Array) -> Array:
        # low + 1 * (high - low) may be rounded to beyond high
        return np.clip(low + unit * (high - low), low, high)

    return pd.DataFrame(_possible(known, scaled, n, kind, seed), columns=list(known.names))


def _possible(
    known: Parameters, scaled: Callable[[Array], Array], n: int | Sequence[int], kind: Kind, seed: int | None
) -> Array:
    """The points that the constraint allows."""
    theta = scaled(_grid(n, known.p) if kind == "grid" else _scattered(n, known.p, kind, seed))
    allowed = known.possible(theta)
    if not allowed.all() and kind != "grid":
        return _allowed_points(known, lambda count: scaled(_scattered(count, known.p, kind, seed)), len(theta))
    if not allowed.any():
        raise InputError("the constraint excludes every point of the grid: take a finer one, or bounds around it")
    return theta[allowed]


def _parameters(given: Priors | Parameters | Problem, constraint: str | Callable[[Array], Any] | None) -> Parameters:
    if isinstance(given, Problem | Parameters):
        if constraint is not None:
            raise InputError("the problem has its constraint itself: give one with priors only")
        return given.parameters if isinstance(given, Problem) else given
    return Parameters(given, constraint)


def _allowed_points(parameters: Parameters, points: Callable[[int], Array], n: int) -> Array:
    """The first n allowed points of the shortest design, of n 2^k points, that has as many."""
    count = n
    while count < min(MOST_POINTS, MOST_TRIED * n) / 2:
        count *= 2
        theta = points(count)
        allowed = theta[parameters.possible(theta)]
        if len(allowed) >= n:
            return allowed[:n]
    raise InputError(
        f"the constraint allows {len(allowed)} of {count} points of the box: give bounds closer to where it holds"
    )


def _box(parameters: Parameters, bounds: Bounds) -> tuple[Array, Array]:
    unknown = sorted(set(bounds) - set(parameters.names))
    if unknown:
        raise InputError(f"bounds has no parameter {', '.join(unknown)}: there are {', '.join(parameters.names)}")
    low, high = _ranges(parameters)
    for j, name in enumerate(parameters.names):
        if name in bounds:
            low[j], high[j] = _given_range(name, bounds[name], (float(parameters.lower[j]), float(parameters.upper[j])))
    return low, high


def _ranges(parameters: Parameters) -> tuple[Array, Array]:
    """The box of the priors, (p,) each."""
    low, high = [], []
    for block in parameters.blocks:
        tail = np.full(len(block.lower), (1 - CENTRAL) / 2)
        whole = np.isfinite(block.lower) & np.isfinite(block.upper)
        hair = HAIR * np.where(whole, block.upper - block.lower, 0.0)
        # where the density is zero or infinite the simulator need not work: such an end is open
        closed = block.closed() if isinstance(block, SinglePrior) and whole.all() else (False, False)
        low.append(np.where(whole, block.lower + (0 if closed[0] else hair), block.marginal(tail)))
        high.append(np.where(whole, block.upper - (0 if closed[1] else hair), block.marginal(1 - tail)))
    return np.concatenate(low), np.concatenate(high)


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
