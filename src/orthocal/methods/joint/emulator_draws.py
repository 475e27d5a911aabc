"""The emulator's uncertainty: each draw of y_R is projected on a draw of the emulator, f_k = f_hat + e_k.

    theta_s = argmin_t ∫ |y_R,s + (G_k - G) u_s - f_k(., t)|²_W,   u_s = A (y_R,s - m),   m the mean of y_R's draws,

A = (G'WG)^-1 G'W, G and G_k the gradients of f_hat and f_k at theta_tilde. y_R is what the field data say and knows of
the emulator only where it is expanded; which draw of the emulator goes with which of y_R does not matter, so they are
taken in turn. To first order theta moves by -A e and, beside a bias b, by (G'WG)^-1 ∫ (G_k - G)'W b: the errors of the
emulator's gradient count as well, and so do those of its curvature, beside a bias and over the posterior's width.

Why not y_R,s itself: what is uncertain about it lies along G, on which y was regressed, by u_s. On f_k that would be
projected with another gradient, and as in every regression on regressors with errors theta would vary too little, by
A_k G = (G_k'WG_k)^-1 G_k'WG in the place of 1. Had f_k been the simulator, it would lie along G_k, and there it is put.
Only where f_hat is a staircase, as trees are, whose gradient is a difference, it is left where it is.

A prior N(m, V) of theta = l - A e is one of both, of l (what the field data say) and of e. With S the covariance of e,

    l ~ its regression with the prior N(m, V + A S A'),   e | l = e_k + S A' c,   c = (V + A S A')^-1 (l - t_s - A e_k),

t_s a draw of the prior: exact where all is Gaussian. The functions S A' are the tilts, found from the emulator's draws
at theta_tilde; other priors, and curvature, are left to the importance weights, as everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import partial
from typing import Any, NamedTuple, overload

import numpy as np

from ...arrays import Array, IntArray
from ...errors import InputError
from ...execution.checkpoints.keeping import kept_by
from ...problem.problem import Problem
from ...problem.simulator.emulator import DrawLike, EmulatorWithDraws, RunsEmulator, emulator_with_draws
from ...problem.simulator.simulator import BoundSimulator
from ...progress import progress_bar
from ..base import Plan
from .closest import Closest
from .objective import Held, domain_squares
from .regress import Linear, Regressed

# By how much the draws of an emulator are stretched: what it misses of its own runs, beside what it expects to miss.
#
#     f_k = f_hat + e_k + (c - 1) e_k(., theta_tilde),   c^2 = max_j mean_i (A_i e_i)_j^2 / (A_i V_i A_i')_jj,   c >= 1,
#
# e_i is what the emulator misses of run i when it is learnt from the others, V_i the covariance that it expects of
# that, and A_i = (G'WG)^-1 G'W takes errors to theta, with the gradient G at that run. The mean is over the runs
# nearest to theta_tilde.
#
# A process is fitted so that its errors have the size that it says on the whole, each component by itself. What moves
# theta is a sum over many components and outcomes whose errors go together, in one part of the box: of 400 runs of the
# mock galaxy single components are missed by 1.0 to 1.3 of their sds, parameters near the best fit by 2.0 to 2.4.

#: runs that tell it, which makes it uncertain by a tenth, and the largest that is believed
NEAREST, MOST = 60, 5.0
#: of effects of parameters, each of length 1, combinations that are shorter are none
SHORT = 0.01


def stretch(problem: Problem) -> float:
    """c; 1 where the emulator does not know what it misses of its runs."""
    emulator, nodes = problem.simulator.emulator, problem.rule.nodes
    found = emulator.left_out(nodes, problem.theta_tilde, NEAREST) if isinstance(emulator, RunsEmulator) else None
    if emulator is None or found is None:
        return 1.0
    transforms, root = problem.data.transforms, np.sqrt(problem.rule.weights)[:, None]

    def whitened(values: Array, slope: Array) -> Array:
        """Values (k, m, q) as rows whose squares add up to the loss."""
        return np.asarray((problem.whiten(values * slope) * root).reshape(len(values), -1))

    ratios = []
    for theta, errors, variances in zip(found.theta, found.errors, found.variances, strict=True):
        slope = transforms.slope(emulator(nodes, theta)) if transforms else np.ones(errors.shape)
        A = _to_theta(whitened(np.moveaxis(emulator.gradient(nodes, theta), 2, 0), slope).T)
        expected = (A @ whitened(found.functions, slope).T) ** 2 @ variances
        moved = (A @ whitened(errors[None], slope).T)[:, 0]
        ratios.append(np.divide(moved**2, expected, out=np.zeros_like(moved), where=expected > 0))
    return float(np.clip(np.sqrt(np.mean(ratios, axis=0).max()), 1.0, MOST))


def _to_theta(G: Array) -> Array:
    """(G'G)^-1 G', (p, m), for G (m, p) whose columns may be alike, or zero."""
    length = np.linalg.norm(G, axis=0)
    length[length == 0] = 1.0
    return np.asarray(np.linalg.pinv(G / length, rcond=SHORT) / length[:, None])


class StretchedDraws(Sequence[DrawLike]):
    """Draws of an emulator with c times their errors at theta_tilde, and their own beside it.

    What is missed of runs tells about values. Slopes it does not tell about, and they stay as they are.
    """

    def __init__(self, mean: DrawLike, draws: Sequence[DrawLike], factor: float, theta: Array) -> None:
        self._mean, self._draws, self._factor, self._theta = mean, draws, factor, theta

    def __len__(self) -> int:
        return len(self._draws)

    @overload
    def __getitem__(self, number: int) -> DrawLike: ...
    @overload
    def __getitem__(self, number: slice) -> StretchedDraws: ...
    def __getitem__(self, number: int | slice) -> DrawLike | StretchedDraws:
        if isinstance(number, slice):
            return StretchedDraws(self._mean, self._draws[number], self._factor, self._theta)
        return _Stretched(self._mean, self._draws[number], self._factor, self._theta)


class _Stretched:
    """f_k(x, theta) + (c - 1) (f_k - f_hat)(x, theta_tilde)."""

    def __init__(self, mean: DrawLike, draw: DrawLike, factor: float, theta: Array) -> None:
        self._mean, self._draw, self._factor, self._theta = mean, draw, factor, theta
        self._added: dict[bytes, Array] = {}

    def __call__(self, x: Array, theta: Array) -> Array:
        return np.asarray(self._draw(x, theta) + self._more(x))

    def gradient(self, x: Array, theta: Array) -> Array:
        return self._draw.gradient(x, theta)

    def _more(self, x: Array) -> Array:
        """The same for every theta."""
        key = np.ascontiguousarray(x).tobytes()
        if key not in self._added:
            error = self._draw(x, self._theta) - self._mean(x, self._theta)
            self._added = {key: np.asarray((self._factor - 1) * error)}
        return self._added[key]


def stretched_draws(
    emulator: EmulatorWithDraws, draws: Sequence[DrawLike], factor: float, theta: Array
) -> Sequence[DrawLike]:
    """The emulator's draws, at theta (p,) so much farther from its mean."""
    return draws if factor == 1 else StretchedDraws(emulator, draws, factor, theta)


def emulator_numbers(plan: Plan) -> IntArray:
    """The draw of the emulator that goes with each draw of y_R, chain after chain, (s,)."""
    count = plan.emulator_draws
    # the chains begin at different draws, so that few draws a chain meet all of them
    first = [(c * count) // len(plan.rngs) for c in range(len(plan.rngs))]
    return np.concatenate([(start + np.arange(plan.draws)) % count for start in first])


def bound_as(problem: Problem) -> Callable[[DrawLike], BoundSimulator]:
    """What makes of a function a simulator of this problem."""
    data, support, flat_x = problem.data, problem.parameters.support, problem.simulator.flat_x
    return partial(BoundSimulator, support=support, q=data.q, flat_x=flat_x, transforms=data.transforms)


class EmulatorDraws(NamedTuple):
    """The emulator's draws as simulators of a problem.

    Attributes
    ----------
    numbers
        Which of them is taken for each draw of y_R, (s,).
    bound
        What makes a simulator of one.
    stretch
        How much farther from the emulator they are than its own draws; see ``emulator_stretch.py``.
    smooth
        Whether the emulator has a gradient, on which y was regressed, as its draws have.
    seed
        From which they were made.
    """

    draws: Sequence[DrawLike]
    numbers: IntArray
    bound: Callable[[DrawLike], BoundSimulator]
    stretch: float = 1.0
    smooth: bool = True
    seed: int = 0

    @classmethod
    def of(
        cls, problem: Problem, plan: Plan, made: dict[int, Sequence[DrawLike]] | None = None
    ) -> EmulatorDraws | None:
        """As a plan asks for them; ``made`` are those of emulators that other problems have."""
        if not plan.emulator_draws:
            return None
        emulator = emulator_with_draws(problem.simulator.emulator)
        if emulator is None:
            raise InputError("the simulator is no emulator that has draws: leave emulator_draws out")
        factor = stretch(problem)
        seed, smooth = plan.emulator_seed, getattr(emulator, "smooth", True)
        known = {} if made is None else made
        if id(emulator) not in known:
            known[id(emulator)] = emulator.draws(plan.emulator_draws, seed)
        draws = stretched_draws(emulator, known[id(emulator)], factor, problem.theta_tilde)
        return cls(draws, emulator_numbers(plan), bound_as(problem), factor, smooth, seed)

    def simulator(self, number: int) -> BoundSimulator:
        """A draw of the emulator, bound as the simulator was."""
        return self.bound(self.draws[number])

    def groups(self, rows: IntArray, label: str | None = None) -> Iterator[tuple[BoundSimulator, IntArray]]:
        """Each draw of the emulator that draws of y_R numbered ``rows`` have, and the places of these in ``rows``."""
        used = np.unique(self.numbers[rows])
        for number in used if label is None else progress_bar(used, label):
            # a checkpoint knows calls by x and theta alone
            with kept_by(None):
                yield self.simulator(int(number)), np.flatnonzero(self.numbers[rows] == number)

    def models(self, x: Array, theta: Array, rows: IntArray, label: str | None = None) -> Array:
        """f_k(x, theta) for theta (s, p) of the draws of y_R numbered ``rows`` (s,), (s, m, q)."""
        parts, order = [], []
        for simulator, places in self.groups(rows, label):
            parts.append(simulator.batch(x, theta[places]))
            order.append(places)
        return np.asarray(np.concatenate(parts)[np.argsort(np.concatenate(order))])

    def errors(self, x: Array, theta: Array, mean: Array) -> Array:
        """e_k = f_k - f_hat at one theta (p,), where f_hat is ``mean`` (m, q): (draws, m, q)."""
        with kept_by(None):
            each = [self.simulator(number).required(x, theta) for number in range(len(self.draws))]
        return np.stack(each) - mean


class Shifts(NamedTuple):
    """A e_k, (k, p), and the covariance A S A', (p, p)."""

    each: Array
    cov: Array

    @classmethod
    def of(cls, errors: Array, coefficients: Array) -> Shifts:
        """From errors at the nodes (k, m, q), whitened, and what takes them to theta, (p, m q)."""
        moved = errors.reshape(len(errors), -1) @ coefficients.T
        return cls(moved, moved.T @ moved / len(moved))

    def tilts(self, errors: Array) -> Array:
        """S A' anywhere, (m, q, p), from the errors there, (k, m, q)."""
        return np.asarray(np.einsum("kxq,kp->xqp", errors, self.each) / len(self.each))

    def widened(self, linear: Linear) -> Linear:
        """With the prior N(m, V + A S A'): by precisions, of which some may be zero."""
        less = np.linalg.inv(np.eye(len(self.cov)) + linear.precision @ self.cov)
        precision = less @ linear.precision
        return linear._replace(pull=less @ linear.pull, precision=(precision + precision.T) / 2)

    def coefficients(self, linear: Linear, moved: Array, numbers: IntArray, rngs: list[np.random.Generator]) -> Array:
        """c of every draw, (s, p): ``moved`` is l, and ``linear`` has the prior of theta itself."""
        less = np.linalg.inv(np.eye(len(self.cov)) + linear.precision @ self.cov)
        each = len(moved) // len(rngs)
        normal = np.concatenate([rng.standard_normal((each, len(self.cov))) for rng in rngs])
        away = (moved - self.each[numbers]) @ linear.precision.T - linear.pull - normal @ linear.prior_root()
        return np.asarray(away @ less.T)


class Emulated(NamedTuple):
    """The draws of the emulator for the draws of a problem's y_R, and what theta's prior makes of them.

    Attributes
    ----------
    errors
        e_k at theta_tilde at the nodes, (k, m, q), whitened.
    tilt
        c of every draw of y_R, (s, p), where there is a prior to be combined with.
    """

    draws: EmulatorDraws
    errors: Array
    shifts: Shifts
    tilt: Array | None = None

    @classmethod
    def of(cls, problem: Problem, plan: Plan, linear: Linear) -> Emulated | None:
        """As a plan asks for them."""
        draws = EmulatorDraws.of(problem, plan)
        return None if draws is None else cls.with_draws(problem, draws, linear)

    @classmethod
    def with_draws(cls, problem: Problem, draws: EmulatorDraws, linear: Linear) -> Emulated:
        """With these draws."""
        errors = problem.whiten(draws.errors(problem.rule.nodes, problem.theta_tilde, problem.fit_at_nodes))
        return cls(draws, errors, Shifts.of(errors, linear.coefficients))

    def widened(self, linear: Linear) -> Linear:
        """The prior of what the field data say about theta: they do not know the emulator's error."""
        return self.shifts.widened(linear)

    def tilted(
        self, linear: Linear | None, regressed: Regressed, rngs: list[np.random.Generator]
    ) -> tuple[Emulated, Regressed]:
        """The emulator's draws given what the regression says, by the prior of ``linear``."""
        # a prior that is left to the weights altogether is none here
        if linear is None or not regressed.log_prior.any():
            return self, regressed
        moved, numbers = regressed.moved, self.draws.numbers
        tilt = self.shifts.coefficients(linear, moved, numbers, rngs)
        theta = moved - self.shifts.each[numbers] - tilt @ self.shifts.cov
        return self._replace(tilt=tilt), regressed._replace(log_prior=linear.log_prior(theta))

    def spread(self, moved: Array) -> Array:
        """That of theta, roughly, (p,), where ``moved`` is l."""
        if len(self.shifts.cov) != moved.shape[1]:
            return np.asarray(moved.std(axis=0))
        return np.asarray(np.sqrt(moved.var(axis=0) + np.diag(self.shifts.cov)))

    def untilted(self, real: Array) -> Array:
        """y_R at the nodes (s, m, q) less what is added to the draws of the emulator."""
        return real if self.tilt is None else real - self._added(self.errors)

    def _added(self, errors: Array, rows: IntArray | slice = slice(None)) -> Array:
        """What is added to the emulator's draws for the draws of y_R numbered ``rows``, given errors (k, m, q)."""
        assert self.tilt is not None
        return np.asarray(np.einsum("xqp,sp->sxq", self.shifts.tilts(errors), self.tilt[rows]))

    def completed(self, problem: Problem, found: Closest, real: Array, at_data: bool) -> Closest:
        """What was found for ``untilted`` as what it is of y_R itself, ``real`` (s, m, q)."""
        x, nodes = problem.data.x if at_data else problem.data.x[:0], problem.rule.nodes
        # one call for both; where the nodes are the data points, they are one
        points = x if np.array_equal(nodes, x) else np.vstack([nodes, x])
        models = self._models(problem, points, found.theta, np.arange(len(real)))
        own = problem.unwhiten(real)
        bias_square, process_square = domain_squares(own - models[:, : len(nodes)], own, problem.rule.weights)
        at_x = problem.whiten(models[:, len(points) - len(x) :])
        return found._replace(model=at_x, bias_square=bias_square, process_square=process_square)

    def models(self, problem: Problem, theta: Array, rows: IntArray) -> Array:
        """The simulator of the draws of y_R numbered ``rows`` at the data, (s, n, q)."""
        return self._models(problem, problem.data.x, theta, rows)

    def _models(self, problem: Problem, x: Array, theta: Array, rows: IntArray) -> Array:
        models = self.draws.models(x, theta, rows)
        if self.tilt is None:
            return models
        tilde = problem.theta_tilde
        errors = problem.whiten(self.draws.errors(x, tilde, problem.simulator.required(x, tilde)))
        return models + problem.unwhiten(self._added(errors, rows))

    def recorded(self, rows: IntArray, chains: int) -> dict[str, Any]:
        """What ``Draws`` has of it, for the draws numbered ``rows``, chain by chain."""
        tilt = None if self.tilt is None else self.tilt[rows].reshape(chains, -1, self.tilt.shape[1])
        return {
            "emulator_number": self.draws.numbers[rows].reshape(chains, -1),
            "emulator_tilt": tilt,
            "emulator_shift": self.shifts.each,
        }


def with_simulator(problem: Problem, simulator: BoundSimulator) -> Problem:
    """The same problem, its expansion included, with a draw of the emulator where the simulator is called."""
    part = copy(problem)
    part.simulator = simulator
    return part


def counted(simulator: BoundSimulator, other: BoundSimulator) -> None:
    """The calls of one simulator as those of another."""
    simulator.calls += other.calls
    simulator.seconds += other.seconds
    simulator.failures += other.failures
    simulator.failure = simulator.failure or other.failure


# The projection of draws of the real process where draws of an emulator say what is not known about the simulator.


def projected_on_draws(
    projected: Callable[[Problem, Array, Array, bool, Held | None], Closest],
    problem: Problem,
    target: Array,
    spread: Array,
    held: Held | None,
    draws: EmulatorDraws,
    linear: Linear,
) -> Closest:
    """Where the simulator is closest to draws of y_R, ``target`` (s, m, q), whitened: see ``emulator_draws.py``.

    ``projected`` is that of ``Joint``, ``spread`` that of theta, roughly, (p,), ``held`` what of it is known before,
    and ``linear`` what y was regressed on.
    """
    along = _along(target, linear) if draws.smooth else None
    parts, order = [], []
    for simulator, rows in draws.groups(np.arange(len(target)), "projection"):
        part, own = with_simulator(problem, simulator), target[rows]
        if along is not None:
            gradient = part.whitened_gradient(problem.rule.nodes)
            gradient = gradient if linear.basis is None else gradient @ linear.basis
            own = own + np.einsum("xkp,sp->sxk", gradient - linear.at_nodes, along[rows])
        parts.append(projected(part, own, spread, False, None if held is None else held.part(rows)))
        order.append(rows)
        counted(problem.simulator, simulator)
    place = np.argsort(np.concatenate(order))
    return Closest(*(np.concatenate(own)[place] for own in zip(*parts, strict=True)))


def _along(target: Array, linear: Linear) -> Array:
    """How far each draw is from their mean along the gradient that y was regressed on, (s, p)."""
    away = target - target.mean(axis=0)
    return np.asarray(away.reshape(len(away), -1) @ linear.coefficients.T)
