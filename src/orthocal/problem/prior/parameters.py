"""The calibration parameters theta: their names, their priors, and a constraint between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
from scipy.stats import qmc

from ...arrays import Array, BoolArray
from ...errors import InputError
from ...pages.tables import Table
from .constraints import Constraint
from .joint import Block, JointDistribution, joint_prior
from .priors import Distribution, SinglePrior
from .user_priors import several_prior, single_prior

#: name -> prior, or names -> their joint prior
Priors: TypeAlias = Mapping[str, Distribution] | Mapping[tuple[str, ...], JointDistribution] | Mapping[Any, Any]

#: what is stored beside the parameters, with its dimensions. Nothing else can be (results/data_tree.py takes the
#: dimensions from here), so these names, and only these, cannot be a parameter's: in a table or a group beside them
#: nobody could tell them apart
STORED_BESIDE = {
    "model": ("chain", "draw", "point", "outcome"),
    "bias": ("chain", "draw", "point", "outcome"),
    "projection_coefficient": ("chain", "draw", "parameter"),
    "prior_shift": ("chain", "draw", "parameter"),
    "unshifted": ("chain", "draw", "parameter"),
    "bias_square": ("chain", "draw", "outcome"),
    "process_square": ("chain", "draw", "outcome"),
    "emulator_number": ("chain", "draw"),
    "emulator_tilt": ("chain", "draw", "parameter"),
    "noise_cov": ("chain", "draw", "outcome", "other_outcome"),
    "noise_cov_by_group": ("chain", "draw", "noise_group", "outcome", "other_outcome"),
}
#: quantile of the priors' centre, as a start of the search
CENTRE = 0.51
#: draws of the prior that are tried at a time, and at most, to find those that are allowed
TRIED, MOST_TRIED = 4096, 131_072
#: allowed draws that show the prior
ALLOWED = 2000
#: the dimension of draws whose model and bias at the data were kept, where these are not all
KEPT = "kept_draw"
#: quantiles of the priors that are shown
LEVELS = (0.025, 0.5, 0.975)
RESERVED_NAMES = frozenset(STORED_BESIDE) | {KEPT} | {dim for dims in STORED_BESIDE.values() for dim in dims}


class Support(NamedTuple):
    """What the simulator's side needs to know of theta.

    Attributes
    ----------
    lower, upper
        The bounds, (p,); infinite where the prior is unbounded.
    spread
        Half the width of the prior's central 68 %, (p,): the parameter's natural scale.
    possible
        Whether theta (..., p) is allowed where bounds alone do not say it, or None.
    """

    names: tuple[str, ...]
    lower: Array
    upper: Array
    spread: Array
    possible: Callable[[Array], BoolArray] | None = None

    def allows(self, theta: Array) -> bool:
        """Whether theta (p,) may be given to the simulator, bounds aside."""
        return self.possible is None or bool(self.possible(theta))

    def describe(self, theta: Array, digits: int = 6) -> str:
        """theta with its names, for messages."""
        return ", ".join(f"{name} = {value:.{digits}g}" for name, value in zip(self.names, theta, strict=True))


class Parameters:
    """Names, priors and supports of theta; ``median`` (p,) is the prior's, the rest as in ``Support``.

        pi(theta) = prod_blocks pi_block(theta_block) 1[constraint] / constant

    A block is a parameter with a prior of its own, or several with a joint one, whose key is the tuple of their names.
    """

    def __init__(self, priors: Priors, constraint: str | Callable[[Array], Any] | None = None) -> None:
        if not isinstance(priors, Mapping) or not priors:
            raise InputError('parameters must be a dictionary of name and prior: {"g": scipy.stats.norm(0, 10)}')
        keys = [_checked_key(key) for key in priors]
        self.given: dict[Any, Any] = {
            given: several_prior(key, prior) if isinstance(given, tuple) else single_prior(key[0], prior)
            for key, (given, prior) in zip(keys, priors.items(), strict=True)
        }
        self.names = tuple(name for key in keys for name in key)
        self.variables = tuple(variable_name(name) for name in self.names)
        if len(set(self.variables)) != len(self.variables):
            raise InputError(f"two parameters would be stored under one name: {', '.join(self.names)}")
        self._columns = [slice(start, end) for start, end in pairwise(accumulate(map(len, keys), initial=0))]
        self.blocks: list[Block] = [
            joint_prior(key, prior) if isinstance(given, tuple) else SinglePrior(key[0], cast(Distribution, prior))
            for key, (given, prior) in zip(keys, self.given.items(), strict=True)
        ]
        self.lower, self.upper, self.median, self.spread = (
            np.concatenate([getattr(block, part) for block in self.blocks])
            for part in ("lower", "upper", "median", "spread")
        )
        self.constraint = None if constraint is None else Constraint(constraint, self.names)
        self._bounded = self.constraint is None and all(block.within_bounds for block in self.blocks)
        self.allowed_share = 1.0 if self._bounded else self._allowed(1)[1]

    @property
    def p(self) -> int:
        return len(self.names)

    def inside(self, theta: Array) -> BoolArray:
        """Whether theta (..., p) lies in the interior of the support."""
        within = np.asarray(((theta > self.lower) & (theta < self.upper)).all(axis=-1))
        if self._bounded or not within.any():
            return within
        inside = within.copy()
        inside[within] = self.possible(theta[within])
        return inside

    def possible(self, theta: Array) -> BoolArray:
        """Whether constraint and joint priors allow theta (..., p): what bounds alone cannot say."""
        found = np.ones(theta.shape[:-1], dtype=bool)
        for block, columns in self._each_block():
            if not block.within_bounds:
                found &= np.isfinite(block.log_density(theta[..., columns]))
        return found if self.constraint is None else found & self.constraint(theta)

    def log_prior(self, theta: Array) -> Array:
        """log pi(theta) = sum_blocks log pi_block(theta_block), for theta (..., p); -inf where it is not allowed."""
        total: Any = 0.0
        for number, (block, columns) in enumerate(self._each_block()):
            own = block.log_density(theta[..., columns])
            total = own if number == 0 else total + own
        if self.constraint is not None:
            total = np.where(self.constraint(theta), total, -np.inf)
        return np.asarray(total)

    @property
    def block_names(self) -> tuple[str, ...]:
        """A block's name is that of its variable, or all of them."""
        return tuple(", ".join(self.variables[columns]) for columns in self._columns)

    def log_prior_by_block(self, theta: Array) -> dict[str, Array]:
        """log pi of each block, (...) for theta (..., p)."""
        densities = (np.asarray(block.log_density(theta[..., columns])) for block, columns in self._each_block())
        return dict(zip(self.block_names, densities, strict=True))

    def prior_draws(self, count: int, rng: np.random.Generator) -> Array:
        """Draws of the prior, (count, p); fewer where a constraint leaves hardly anything."""
        if self.constraint is None:
            return np.concatenate([block.draws(count, rng) for block in self.blocks], axis=1)
        return self._allowed(count, rng)[0]

    def on_bound(self, theta: Array) -> tuple[str, ...]:
        """Names of the parameters that lie on a bound of the support at theta (p,)."""
        room = np.minimum(theta - self.lower, self.upper - theta)
        return tuple(name for name, close in zip(self.names, room < 1e-6 * self.spread, strict=True) if close)

    def log_prior_gradient(self, theta: Array) -> Array:
        """d log pi / d theta, (..., p), of the blocks' densities; on a bound, that just inside of it."""
        theta = self.clipped(theta, 1e-4)
        return np.concatenate([block.gradient(theta[..., columns]) for block, columns in self._each_block()], axis=-1)

    def log_prior_curvature(self, theta: Array) -> Array:
        """-d2 log pi / d theta2, (..., p, p), without negative eigenvalues: a prior's share of a Laplace precision."""
        theta = self.clipped(theta, 1e-4)
        found = np.zeros((*theta.shape, self.p))
        for block, columns in self._each_block():
            found[..., columns, columns] = block.curvature(theta[..., columns])
        return found

    def gaussian_part(self, theta: Array) -> tuple[Array, Array]:
        """Gradient (p,) and curvature (p, p) at theta (p,), without the gradient along which nothing is curved."""
        pull, curvature = self.log_prior_gradient(theta), self.log_prior_curvature(theta)
        for _, columns in self._each_block():
            values, vectors = np.linalg.eigh(curvature[columns, columns])
            curved = vectors[:, values > 0]
            pull[columns] = curved @ (curved.T @ pull[columns])
        return pull, curvature

    @property
    def flat(self) -> bool:
        """Whether every prior is uniform."""
        return all(block.flat for block in self.blocks)

    def prior_root(self, theta: Array) -> Array:
        """r (p,) with r'r = 2 (log pi at its highest - log pi), r of the sign of theta - there.

        For a Gaussian prior (theta - mean) / sd, or the same whitened. Where a density goes to infinity, r is zero
        beside it.
        """
        return np.concatenate([block.root(theta[columns]) for block, columns in self._each_block()])

    def prior_root_slope(self, theta: Array) -> Array:
        """dr/dtheta, (p, p), by central differences."""
        theta = self.clipped(theta, 1e-4)
        slope = np.zeros((self.p, self.p))
        for block, columns in self._each_block():
            slope[columns, columns] = block.root_slope(theta[columns])
        return slope

    def clipped(self, theta: Array, margin: float) -> Array:
        """theta, moved inside the bounds by ``margin`` (relative to the spread) where it is not."""
        room = margin * self.spread
        return np.asarray(np.clip(theta, self.lower + room, self.upper - room))

    def quantile(self, u: Array) -> Array:
        """Points that fill the priors as u (..., p) fills the unit cube: the quantiles of independent priors."""
        return np.concatenate([block.filled(u[..., columns]) for block, columns in self._each_block()], axis=-1)

    def marginal_quantile(self, u: Array) -> Array:
        """Quantiles of each parameter by itself at u (s, p); of what the constraint leaves of the prior."""
        if self.constraint is None:
            return np.concatenate([block.marginal(u[..., columns]) for block, columns in self._each_block()], axis=-1)
        draws = self._allowed(ALLOWED)[0]
        return np.stack([np.quantile(draws[:, j], u[..., j]) for j in range(self.p)], axis=-1)

    def starts(self, count: int) -> Array:
        """``count`` points, (count, p): the centre, then some that fill the priors (scrambled Sobol), and their bulk.

        Where p is large, hardly any point that fills the priors is near to the middle of all of them. Those that are
        not allowed are replaced by draws of the prior that are.
        """
        sobol = qmc.Sobol(self.p, rng=np.random.default_rng(0))
        unit = sobol.random_base2(int(np.ceil(np.log2(max(count, 2)))))[:count]
        # the bulk of a uniform prior is the whole of it
        peaked = np.concatenate([np.full(len(block.median), not block.flat) for block in self.blocks])
        half = -(-count // 2)
        unit[half:] = np.where(peaked, 0.25 + 0.5 * unit[half:], unit[half:])
        # the very centre is often a place of symmetry, where nothing leads away
        unit[0] = CENTRE
        starts = self.quantile(np.clip(unit, 1e-3, 1 - 1e-3))
        outside = np.flatnonzero(~self.inside(starts))
        if not self._bounded and outside.size:
            starts[outside] = np.resize(self._allowed(outside.size)[0], (outside.size, self.p))
        return starts

    @property
    def support(self) -> Support:
        return Support(self.names, self.lower, self.upper, self.spread, None if self._bounded else self.possible)

    @property
    def given_constraint(self) -> str | Callable[[Array], Any] | None:
        """The constraint as it was given."""
        return None if self.constraint is None else self.constraint.given

    def on_edge(self, theta: Array) -> bool:
        """Whether theta (p,) lies on the edge of what constraint and joint priors allow."""
        around = 1e-5 * np.diag(self.spread)
        return not bool(self.possible(theta + np.vstack([around, -around])).all())

    def _each_block(self) -> Iterator[tuple[Block, slice]]:
        return zip(self.blocks, self._columns, strict=True)

    def _allowed(self, count: int, rng: np.random.Generator | None = None) -> tuple[Array, float]:
        """At most ``count`` draws of the prior that are allowed, (., p), and the share of all draws that are."""
        rng = np.random.default_rng(0) if rng is None else rng
        found: list[Array] = []
        tried = 0
        while tried < MOST_TRIED and sum(map(len, found)) < count:
            draws = np.concatenate([block.draws(TRIED, rng) for block in self.blocks], axis=1)
            found.append(draws[self.inside(draws)])
            tried += TRIED
        allowed = np.concatenate(found)
        if not len(allowed):
            words = "" if self.constraint is None else f" (constraint: {self.constraint.text})"
            raise InputError(
                f"none of {tried} draws of the priors is allowed{words}: check the constraint, it gets theta in the "
                f"order {', '.join(self.names)}, or bring the priors nearer to where it holds"
            )
        return allowed[:count], len(allowed) / tried


def prior_table(parameters: Parameters) -> Table:
    """One row a parameter: quantiles of its prior."""
    quantiles = parameters.marginal_quantile(np.tile(np.array(LEVELS)[:, None], parameters.p))
    rows = [[name, *(f"{value:.4g}" for value in quantiles[:, j])] for j, name in enumerate(parameters.names)]
    return Table(["parameter", *(f"prior {100 * level:g} %" for level in LEVELS)], rows)


def variable_name(name: str) -> str:
    """The name of a parameter's variable in the results: netCDF cannot hold a slash."""
    return name.replace("/", "\N{DIVISION SLASH}")


def _checked_key(key: object) -> tuple[str, ...]:
    """The names that a prior is given to."""
    if not isinstance(key, tuple):
        return (_checked_name(key),)
    if len(key) < 2:
        raise InputError(f"parameter name {key!r}: a joint prior has a tuple of two or more names, else give one text")
    return tuple(_checked_name(name) for name in key)


def _checked_name(name: object) -> str:
    if not isinstance(name, str) or not name.strip() or name != name.strip() or not name.isprintable():
        raise InputError(f"parameter name {name!r}: give a non-empty printable text without spaces around it")
    if name in RESERVED_NAMES or not name.strip("."):
        raise InputError(f"parameter name {name!r} is used by the results: choose another")
    return name
