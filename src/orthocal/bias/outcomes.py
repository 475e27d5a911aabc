"""The bias of all outcomes: one sampler for each whitened outcome, and what couples them.

A row of the field data says about its whitened outcomes what its precision matrix L says. Where L is diagonal, the
outcomes are independent given the residual r. Elsewhere (correlated outcomes with missing cells, errors with
correlations of their own, sampled noise) outcome k given the others is a regression again, with

    response  r_k + sum_l L_kl (r_l - b_l) / L_kk  (l not k),   noise variance  1 / L_kk

in each row. One outcome after the other is drawn in this way; Gaussian processes are drawn all at once.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

import numpy as np
from scipy.spatial import cKDTree

from ..arrays import Array, BoolArray, IntArray
from ..errors import InputError
from ..problem.data.labels import NO_LABELS, LabelColumns
from ..problem.noise.noise import Noise, NoiseSource
from ..regression.linear_part import Others
from .base import BiasPrior, BiasSampler, InNoiseUnits, Setting, scales_noise, trace_of
from .gp import GP, GPSampler
from .gp_sampler import MOST_JOINT_POINTS, JointGP
from .one_hot import OneHotSampler, prepared
from .sampled_gp import SampledGPSampler
from .sized import Sized

if TYPE_CHECKING:
    from ..regression.bmars import BMARSSampler

#: rounds over coupled outcomes before the first draw
FIRST_ROUNDS = 20
#: neighbours that stand in for a missing cell when a prior's scale is chosen
NEIGHBOURS = 3


class SplitPoints(NamedTuple):
    """Points of one outcome as its sampler sees them: a row that says nothing about the outcome is a node.

    ``order`` (n + m,) brings the sampler's values into the order data, nodes.
    """

    x: Array
    nodes: Array
    noise_var: Array
    informed: BoolArray
    order: IntArray


def split_points(x: Array, nodes: Array, noise_var: Array) -> SplitPoints:
    """Split x (n, d) by whether ``noise_var`` (n,) is finite."""
    informed = np.isfinite(noise_var)
    n, m, seen = len(x), len(nodes), int(informed.sum())
    order = np.empty(n + m, dtype=np.intp)
    order[:n][informed] = np.arange(seen)
    order[:n][~informed] = seen + m + np.arange(n - seen)
    order[n:] = seen + np.arange(m)
    return SplitPoints(x[informed], np.vstack([nodes, x[~informed]]), noise_var[informed], informed, order)


class Residuals(NamedTuple):
    """What a bias is fitted to: x (n, d), its noise, the residual (n, q) and the gradient (n, q, p), whitened.

    ``labels`` says which inputs are categorical, and ``bounds`` (2, d) where the domain ends.
    """

    x: Array
    noise: Noise
    values: Array
    gradient: Array
    labels: LabelColumns = NO_LABELS
    bounds: Array | None = None

    def settings(self, points: list[SplitPoints], span: Array) -> list[Setting]:
        """What a prior may know of each outcome."""
        units = 1 / np.sqrt(np.diag(self.noise.cov))
        return [
            Setting(
                x=own.x,
                nodes=own.nodes,
                span=span,
                noise_var=own.noise_var,
                residual=self.values[own.informed, k],
                gradient=self.gradient[own.informed, k],
                unit=float(units[k]),
                outcome=k,
                noise_cov=self._noise_cov(own.informed, k),
                labels=self.labels,
                bounds=self.bounds,
            )
            for k, own in enumerate(points)
        ]

    def _noise_cov(self, informed: BoolArray, k: int) -> Array | None:
        """That of outcome k between the rows that inform of it, whitened, where it is correlated."""
        if self.noise.rows is None:
            return None
        sd = np.sqrt(self.noise.variances[informed, k])
        return np.asarray(self.noise.rows.matrix[np.ix_(informed, informed)] * np.outer(sd, sd))

    def split(self, nodes: Array) -> list[SplitPoints]:
        """The points as each outcome's sampler sees them."""
        return [split_points(self.x, nodes, noise_var) for noise_var in self.noise.variances.T]


class Unmerged(NamedTuple):
    """Residuals with a row for every observation, and which of the merged points each is, (n,)."""

    residuals: Residuals
    place: IntArray

    def added_to(self, settings: list[Setting], points: list[SplitPoints], nodes: Array) -> list[Setting]:
        """The outcomes' settings for merged points, with what they were before."""
        own = self.residuals.split(nodes)
        each = self.residuals.settings(own, settings[0].span)
        counted = [np.bincount(self.place[part.informed], minlength=len(points[0].informed)) for part in own]
        return [
            setting._replace(counts=count[part.informed].astype(float), unmerged=before)
            for setting, before, count, part in zip(settings, each, counted, points, strict=True)
        ]


class DrawnNoise(NamedTuple):
    """Noise that is drawn in a chain: what each row says of the whitened outcomes, (c, n, q, q), or (c, 1, q, q) where
    all say the same, and the sd of a typical row's, (c, q)."""

    precision: Array
    sd: Array


class OutcomesState(NamedTuple):
    """The samplers' states, and the bias at the data points, (c, n, q)."""

    own: list[Any]
    bias: Array


class OutcomesBias:
    """Draws of the bias of all outcomes, whitened; with ``unmerged`` where the residuals were merged.

    Where ``size_drawn``, so is the size of priors that allow it. Of an unknown noise a prior that does not know how to
    scale it is one of the bias in units of the noise.
    """

    def __init__(
        self,
        prior: BiasPrior,
        residuals: Residuals,
        nodes: Array,
        span: Array,
        unmerged: Unmerged | None = None,
        size_drawn: bool = False,
    ) -> None:
        if residuals.noise.rows is not None and not isinstance(prior, GP):
            # the part of it that is correlated between rows is drawn beside the bias
            residuals = residuals._replace(noise=residuals.noise.rest)
        noise = residuals.noise
        self._precision, self._n = noise.precision if noise.rows is None else noise.joint_precision, len(residuals.x)
        self._coupled = noise.coupled and noise.source is not NoiseSource.UNKNOWN
        self._points = residuals.split(nodes)
        settings = residuals.settings(self._points, span)
        if unmerged is not None:
            settings = unmerged.added_to(settings, self._points, nodes)
        self.size_drawn = size_drawn
        self.samplers: list[BiasSampler] = [prepared(prior, setting, size_drawn) for setting in settings]
        self.in_noise_units = noise.source is NoiseSource.UNKNOWN and not scales_noise(self.samplers[0])
        if self.in_noise_units:
            self.samplers = [InNoiseUnits(sampler) for sampler in self.samplers]
        if noise.rows is not None and not JointGP.possible(self.processes):
            raise InputError(
                "noise that is correlated between rows makes one matrix of all data and nodes, of more than "
                f"{MOST_JOINT_POINTS} points here: average or thin the data, or take bart"
            )
        self._between_rows = noise.rows is not None

    @cached_property
    def _joint(self) -> JointGP | None:
        """The Gaussian processes of all outcomes where the noise couples them, or rows."""
        coupled = self._coupled and self.gaussian and JointGP.possible(self.processes)
        return self.joint() if coupled or self._between_rows else None

    @property
    def traces(self) -> list[list[Any] | None]:
        """What the samplers have noted of their draws, those that do."""
        return [trace_of(sampler) for sampler in self.samplers]

    @traces.setter
    def traces(self, traces: list[list[Any] | None]) -> None:
        for own, trace in zip(self.traces, traces, strict=True):
            if own is not None and trace is not None:
                own[:] = trace

    @property
    def processes(self) -> list[GPSampler]:
        """The samplers that are Gaussian processes."""
        return [sampler for sampler in self.samplers if isinstance(sampler, GPSampler)]

    @property
    def sized(self) -> list[Sized]:
        """The samplers that draw the size of the bias: all, or none."""
        return [one for one in map(the_sized, self.samplers) if isinstance(one, Sized)]

    def sizes(self, state: OutcomesState) -> Array:
        """The prior sd of the bias, (c, q), of samplers that draw it."""
        each = zip(self.sized, state.own, strict=True)
        return np.stack([sampler.own.function_sd * np.abs(own.size) for sampler, own in each], axis=1)

    def scales(self, state: OutcomesState) -> Array:
        """What has a half-Cauchy prior in units of the noise, (c, k, q): sizes and constants, or sds that are given."""
        if self.sized:
            return np.stack([np.stack(own[:2], axis=1) for own in state.own], axis=2)
        # what is given of another prior is in units of the noise's estimate
        sd = [process.sd for process in self.processes] if self.gaussian else np.ones(len(self.samplers))
        return np.tile(sd, (len(state.bias), 1, 1))

    def in_units_of(self, state: OutcomesState, sd: Array) -> OutcomesState:
        """The state of priors in units of the noise, with another sd of it, (c, q)."""
        before = np.stack([own.sd for own in state.own], axis=1)
        own = [one._replace(sd=sd[:, k]) for k, one in enumerate(state.own)]
        return OutcomesState(own, state.bias * (sd / before)[:, None])

    @property
    def gaussian(self) -> bool:
        """Whether the bias of every outcome is a Gaussian process."""
        return len(self.processes) == len(self.samplers)

    def prior_root(self) -> Array:
        """L with L L' the prior covariance of all outcomes, (n + m, q, u), data first; Gaussian processes only."""
        roots = [root[rows] for root, rows in (process.prior_root for process in self.processes)]
        return self.in_order(_beside(roots))

    def processes_at(self, white: Array) -> OutcomesState:
        """The state of b = L w for draws w (c, u); Gaussian processes only."""
        roots = [process.prior_root[0] for process in self.processes]
        parts = np.split(white, np.cumsum([root.shape[1] for root in roots])[:-1], axis=1)
        own = [part @ root.T for part, root in zip(parts, roots, strict=True)]
        return self.gathered(
            [(one, one[:, process.prior_root[1]]) for one, process in zip(own, self.processes, strict=True)]
        )[0]

    def with_hyperparameters(self, k: int) -> SampledGPSampler:
        """Predictions of outcome k where every draw has hyperparameters of its own; Gaussian processes only."""
        points, process = self._points[k], self.processes[k]
        return SampledGPSampler(
            process.nu, points.x, points.nodes, points.noise_var, process.unit, tuple(process.labelled)
        )

    def joint(self) -> JointGP:
        """The Gaussian processes of all outcomes at once."""
        at_data = [points.order[: self._n] for points in self._points]
        return JointGP(self.processes, at_data, self._precision)

    def draw(
        self,
        rngs: list[np.random.Generator],
        state: OutcomesState | None,
        residual: Array,
        noise: DrawnNoise | None = None,
    ) -> tuple[OutcomesState, Array]:
        """The next state, and b at data and nodes (c, n + m, q), given the residual (c, n, q) and a drawn noise."""
        if self._joint is not None:
            return self.gathered(self._joint.draw(rngs, residual))
        if not self._coupled and noise is None:
            own = [None] * len(self.samplers) if state is None else state.own
            return self.gathered(
                [
                    sampler.draw(rngs, own[k], residual[:, self._points[k].informed, k])
                    for k, sampler in enumerate(self.samplers)
                ]
            )
        rounds = 1 if state is not None or len(self.samplers) == 1 else FIRST_ROUNDS
        for _ in range(rounds):
            state, values = self._round(rngs, state, residual, noise)
        assert state is not None
        return state, values

    def _round(
        self,
        rngs: list[np.random.Generator],
        state: OutcomesState | None,
        residual: Array,
        noise: DrawnNoise | None,
    ) -> tuple[OutcomesState, Array]:
        """One outcome after the other, each given the others."""
        own = [None] * len(self.samplers) if state is None else list(state.own)
        bias = np.zeros_like(residual) if state is None else state.bias.copy()
        # (c, n, q, q) by broadcasting
        precision = self._precision[None] if noise is None else noise.precision
        columns = []
        for k, sampler in enumerate(self.samplers):
            rows = self._points[k].informed
            others = np.where(np.arange(bias.shape[2]) == k, 0.0, residual - bias)
            pull = np.einsum("cnq,cnq->cn", np.broadcast_to(precision[:, :, k], residual.shape), others)[:, rows]
            diagonal = precision[:, rows if precision.shape[1] > 1 else slice(None), k, k]
            response = residual[:, rows, k] + pull / diagonal
            scale = {} if noise is None else self._scales(k, diagonal, noise.sd[:, k])
            own[k], values = sampler.draw(rngs, own[k], response, **scale)
            columns.append(values[:, self._points[k].order])
            bias[:, :, k] = columns[k][:, : self._n]
        return OutcomesState(own, bias), np.stack(columns, axis=-1)

    def _scales(self, k: int, precision: Array, sd: Array) -> dict[str, Array]:
        """What the sampler of outcome k needs to know of a drawn noise: ``precision`` (c, n) or (c, 1), ``sd`` (c,)."""
        if self.in_noise_units:
            return {"noise_sd": sd}
        scale = 1 / (precision * self._points[k].noise_var)
        alike = np.allclose(scale, scale[:, :1], rtol=1e-9, atol=0.0)
        given = {"noise_scale": scale[:, 0] if alike else scale}
        return given | ({"noise_sd": sd} if self.sized else {})

    @cached_property
    def linear_samplers(self) -> list[BMARSSampler] | None:
        """The samplers where each draws functions that are linear in Gaussian coefficients, by itself."""
        # what a categorical input has become does not matter to the coefficients
        own = [one.own if isinstance(one, OneHotSampler) else one for one in self.samplers]
        found = [one for one in own if _linear(one)]
        return found if len(found) == len(own) and not self._coupled else None

    def information(
        self, state: OutcomesState, G: Array, z: Array, noise_scale: Array | None = None
    ) -> tuple[Array, Array]:
        """What z = G beta + b + e says about beta with the coefficients of b integrated out: B and pull of each chain.

        G is (n, q, p) and z (c, n, q); ``linear_samplers`` only, for one outcome where there is a ``noise_scale``.
        """
        each = [self._told(k, state, G, z, noise_scale) for k in range(len(self.samplers))]
        return np.sum([B for B, _ in each], axis=0), np.sum([pull for _, pull in each], axis=0)

    def _told(self, k: int, state: OutcomesState, G: Array, z: Array, noise_scale: Array | None) -> tuple[Array, Array]:
        """That of outcome k."""
        assert self.linear_samplers is not None
        rows = self._points[k].informed
        parts = self.linear_samplers[k].linear_parts(state.own[k], noise_scale)
        each = [part.information(G[rows, k], own[rows, k]) for part, own in zip(parts, z, strict=True)]
        return np.stack([B for B, _ in each]), np.stack([pull for _, pull in each])

    def move_functions(
        self,
        rngs: list[np.random.Generator],
        state: OutcomesState,
        others: Others,
        z: Array,
        noise_scale: Array | None = None,
    ) -> None:
        """Moves of the functions in place, with beta integrated out; ``others`` has G, and what else beta is known by.

        The coefficients in the state are of no use then: they are to be drawn.
        """
        assert self.linear_samplers is not None
        each = [self._told(k, state, others.G, z, noise_scale) for k in range(len(self.samplers))]
        for k, sampler in enumerate(self.linear_samplers):
            rows = self._points[k].informed
            rest = [one for j, one in enumerate(each) if j != k]
            precision, pull = (sum((one[i] for one in rest), others[1 + i]) for i in (0, 1))
            sampler.move_functions(
                rngs, state.own[k], z[:, rows, k], Others(others.G[rows, k], precision, pull), noise_scale
            )
            each[k] = self._told(k, state, others.G, z, noise_scale)

    def draw_coefficients(
        self,
        rngs: list[np.random.Generator],
        state: OutcomesState,
        residual: Array,
        noise_scale: Array | None = None,
    ) -> tuple[OutcomesState, Array]:
        """As ``draw``, with the functions of the state."""
        assert self.linear_samplers is not None
        return self.gathered(
            [
                (own, sampler.draw_coefficients(rngs, own, residual[:, points.informed, k], noise_scale))
                for k, (sampler, own, points) in enumerate(
                    zip(self.linear_samplers, state.own, self._points, strict=True)
                )
            ]
        )

    def gathered(self, drawn: list[tuple[Any, Array]]) -> tuple[OutcomesState, Array]:
        """The samplers' states together, and their values as (c, n + m, q), data points first."""
        columns = [values[:, points.order] for (_, values), points in zip(drawn, self._points, strict=True)]
        values = np.stack(columns, axis=-1)
        return OutcomesState([own for own, _ in drawn], values[:, : self._n]), values

    def records(self, state: OutcomesState) -> dict[str, Array]:
        """What predictions need of a state; the outcome's number ends the name."""
        return {
            f"{name}_{k}": value
            for k, (sampler, own) in enumerate(zip(self.samplers, state.own, strict=True))
            for name, value in sampler.record(own).items()
        }

    def covariance_factor(self) -> Array | None:
        """F (n q, r) with F F' = Cov(b | y) at the data points, row by row; None where it is not known exactly."""
        if self._joint is not None:
            factors = self._joint.factors_at_points()
        else:
            if self._coupled or not self.gaussian:
                return None
            factors = _beside([process.covariance_factor() for process in self.processes])
        return self.in_order(factors)[: self._n].reshape(self._n * len(factors), -1)

    def in_order(self, columns: list[Array]) -> Array:
        """One array a whitened outcome, rows as its sampler has them -> (n + m, q, ...), data points first."""
        return np.stack([rows[points.order] for rows, points in zip(columns, self._points, strict=True)], axis=1)


def _beside(roots: list[Array]) -> list[Array]:
    """Matrices as blocks of a diagonal: each with zeros where the others have their columns."""
    ends = np.cumsum([root.shape[1] for root in roots])
    return [
        np.pad(root, ((0, 0), (end - root.shape[1], ends[-1] - end))) for root, end in zip(roots, ends, strict=True)
    ]


def stand_ins(x: Array, span: Array, values: Array, observed: BoolArray, labels: LabelColumns = NO_LABELS) -> Array:
    """Values (n, q) with the mean of the nearest observed ones in the missing cells.

    Only the scales and length-scales of the priors are chosen with them; no draw depends on them otherwise.
    """
    filled = values.copy()
    for k in range(values.shape[1]):
        seen = observed[:, k]
        if not seen.all() and seen.any():
            tree = cKDTree(labels.apart(x[seen], span))
            _, nearest = tree.query(
                labels.apart(x[~seen], span), k=list(range(1, min(NEIGHBOURS, int(seen.sum())) + 1))
            )
            filled[~seen, k] = values[seen, k][nearest].mean(axis=1)
    return filled


def the_sized(sampler: BiasSampler) -> Any:
    """The sampler that may draw the size of the bias: what a categorical input has become does not matter to it."""
    return sampler.own if isinstance(sampler, OneHotSampler) else sampler


def _linear(sampler: BiasSampler) -> TypeGuard[BMARSSampler]:
    """Whether its functions are linear in Gaussian coefficients; asked without loading the compiled sampler."""
    return bool(getattr(sampler, "linear", False))
