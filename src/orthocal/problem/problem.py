"""A calibration problem: all that is known before the bias is modelled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Array, BoolArray, IntArray
from ..errors import IdentifiabilityError, InputError
from ..findings import Findings
from ..machine.threads import one_blas_thread
from ..projection import Sensitivity, gram_matrix, sensitivity
from .arguments import check_emulator, checked_noise, checked_starts, checked_weight, transformed_errors
from .before_run import before_run
from .best_fit import Criterion, row_weights
from .data import Groups, field_data
from .domain import Domain, Rule
from .emulator import check_columns
from .expected import Planned
from .given_simulator import Function
from .gradient_check import gradient_error
from .input_errors import InputErrors, added_noise, checked_x_err, input_errors
from .label_domain import Labels, domain_of
from .labels import Categorical, LabelColumns
from .merging import Merged, merged_rows, without_rows
from .minima import Minimum, find_minima, least_squares_minima
from .noise import Noise
from .noise_estimate import found_noise
from .noise_kinds import AskedNoise
from .outputs import NO_INPUT, OutputFunction, outputs_alone
from .parameters import Parameters, Priors
from .parts import outcome_of, subset_of
from .rule_error import rule_error
from .simulator import BoundSimulator
from .transforms import Chosen

#: starts of the search for theta_tilde
STARTS = 32


class Problem:
    """Field data, a simulator with its parameters, and where it is judged.

        y_i = f(x_i, theta) + b(x_i) + e_i,  e_i ~ N(0, Sigma_F)
        theta* = argmin_t ∫ (y_R - f(., t))' W (y_R - f(., t)) dP_x

    Parameters
    ----------
    x, y
        Field data, (n, d) and (n,) or (n, q); arrays or pandas objects. Columns of x that hold text, or are of pandas'
        type ``category``, are categorical. NaN in y is a missing cell: the rest of its
        row is used, and nothing is put in its place. ``x`` None is for outputs without inputs: y is (q,), or (r, q)
        where rows are replicated, each output has a bias of its own, and the integral is a sum over the outputs.
    simulator
        ``f(x, theta)`` that returns (m,) or (m, q), or an ``oc.Simulator`` with a chosen gradient. It is called
        with vectors if x is a vector. Without x it is ``f(theta)``, and returns (q,).
    parameters
        Name -> frozen ``scipy.stats`` distribution, the priors of theta in native units. Several parameters with a
        joint prior have the tuple of their names as the key, and an object with ``logpdf`` and ``rvs``, for instance
        ``("a", "b"): stats.multivariate_normal(mean, cov)``.
    domain
        ``oc.Box`` or ``oc.Points``: the measure P_x. Default: the smallest box around x. With categorical inputs a box
        is that of the numeric ones, and every label weighs the same; ``oc.Labels`` gives other weights.
    noise_cov
        Covariance of the noise: a number, (q,), (q, q) or one matrix a point, (n, q, q); ``"estimate"`` (default)
        for what Gaussian-process regressions of y on x leave; ``oc.LowRankNoise(rank)`` for the same with few factors,
        for many outcomes; ``oc.GroupNoise(groups)``, or ``"by-group"`` for the problem's groups, for a variance of each
        group of rows; ``oc.VaryingNoise()`` for one that changes with x; ``"sample"`` to draw it together with theta
        and the bias, starting from the estimate. Of errors that are correlated between rows: an (n, n) matrix for one
        outcome, its blocks or a ``scipy.sparse`` one, or ``oc.CorrelatedNoise``, along time for instance.
    y_err
        Standard deviation of every cell, a number, (n,) or (n, q), instead of ``noise_cov``: independent errors.
    loss_weight
        W: ``"noise-precision"`` (default), ``"identity"`` or a (q, q) matrix. For one outcome they mean the same.
    outcome_names, input_names
        Names of the columns of y and x; taken from pandas objects where not given.
    starts
        Number of starts of the search for theta_tilde, or the starts themselves, (s, p).
    emulator_error
        Add the variance of the emulator's error at theta_tilde to the noise of every point; ``simulator`` must be an
        emulator that has one.
    groups
        Which rows belong together: one label a row, (n,), numbers or text, for instance the curve or the specimen that
        it was measured on. A pandas series gives them its name.
    transform
        ``"log"``, ``"sqrt"`` or ``"logit"`` of the outcomes: one for all, one or None for each, or name -> transform.
        Data and simulator are transformed, and noise, bias and loss live on that scale, T(y_i) = T(f(x_i, theta)) +
        b(x_i) + e_i; predictions come back on the outcome's own. ``y_err`` is on the scale of y as always and carried
        over to first order, T'(y_i) y_err; ``noise_cov`` is the covariance of T(y).
    x_err
        Standard deviations of independent errors of x, a number, (d,) or (n, d); it needs ``noise_cov`` or ``y_err``,
        because estimated noise contains them already. To first order they add sum_j g_j g_j' s_j^2 with
        g_j = df/dx_j at theta_tilde to the noise of every point. They change neither W nor theta_tilde: W says what
        theta* means, which must not depend on how well x is known, nor on a fit that itself depends on W.
    constraint
        Which theta are allowed: a function of the array theta (p,), in the order of ``parameters`` as for the
        simulator, that returns True or False; or an expression of the parameters' names, ``"a + b < 1"``. The prior
        is restricted to it, for the best fit, the draws of every method and designs, and the simulator is never called
        elsewhere.
    categorical
        Names of the inputs that hold labels (a machine, an operator, a site), where x does not say so by itself, or
        name -> labels in their order, which may have some that the data do not. The simulator, ``data.x`` and arrays
        have a label as the number that it reads as, where all labels of its input do, and else as its place, 0, 1, ...,
        in the order given, that of pandas' categories, or sorted; ``problem.categories`` has them in order.
    """

    def __init__(
        self,
        x: ArrayLike | None,
        y: ArrayLike,
        simulator: Function | OutputFunction,
        parameters: Priors,
        domain: Domain | Labels | None = None,
        noise_cov: ArrayLike | Noise | AskedNoise = "estimate",
        loss_weight: ArrayLike = "noise-precision",
        outcome_names: Sequence[str] | str | None = None,
        input_names: Sequence[str] | str | None = None,
        starts: ArrayLike = STARTS,
        y_err: ArrayLike | None = None,
        emulator_error: bool = False,
        groups: ArrayLike | Groups | None = None,
        transform: Chosen = None,
        x_err: ArrayLike | None = None,
        constraint: str | Callable[[Array], Any] | None = None,
        categorical: Categorical | LabelColumns = None,
    ) -> None:
        without_inputs = x is None
        if x is None:
            needless: dict[str, object] = {"domain": domain, "input_names": input_names, "groups": groups}
            needless |= {"transform": transform, "x_err": x_err, "categorical": categorical}
            x, y, simulator, noise_cov, loss_weight, outcome_names, domain = outputs_alone(
                y, simulator, noise_cov, y_err, loss_weight, outcome_names, needless
            )
            y_err, input_names = None, NO_INPUT
        data = field_data(x, y, input_names, outcome_names, groups, without_inputs, categorical)
        self.data = data.transformed(transform)
        self.parameters = Parameters(parameters, constraint)
        self.simulator = BoundSimulator(
            cast(Function, simulator), self.parameters.support, self.data.q, self.data.flat_x, self.data.transforms
        )
        check_emulator(self.simulator.emulator, self.parameters.names, emulator_error, noise_cov)
        check_columns(self.simulator.emulator, self.data.input_names, self.data.outcome_names)
        self.emulator_error = emulator_error
        self._emulator = self.simulator.emulator if emulator_error else None
        cells = int(self.data.observed.sum())
        if cells < self.parameters.p:
            raise IdentifiabilityError(
                f"{cells} observations cannot determine {self.parameters.p} parameters: "
                "give more data or fix some parameters"
            )
        if domain is not None and not isinstance(domain, Domain | Labels):
            raise InputError(f"domain={domain!r}: give oc.Box(lower, upper) or oc.Points(nodes, weights)")
        self.domain_given = domain is not None
        self.domain = domain_of(domain, self.data)
        self.domain.check(self.data.x)
        self._noise_cov = checked_noise(noise_cov, transformed_errors(y_err, self.data), self.data)
        self._x_err = checked_x_err(x_err, self.data, self._noise_cov)
        self.loss_weight = loss_weight if isinstance(loss_weight, str) else "matrix"
        self._weight = checked_weight(loss_weight, self.data.q)
        self._starts = checked_starts(starts, self.parameters)
        self.rows: Merged | None = None  # of a problem with merged rows, see ``merged``
        self._unmerged: Problem | None = None
        self.others_know = False  # of one of several experiments: a parameter may have no effect in it

    @cached_property
    def noise(self) -> Noise:
        """The noise, estimated on first use where it is not given, with the errors of the emulator and of x.

        These change neither W nor theta_tilde: the emulator's says nothing about the field data, and for x see above.
        """
        own, added = self._own_noise, self._added_noise
        return own if added is None else own.with_added(added)

    @cached_property
    def _added_noise(self) -> Array | None:
        """What the errors of the emulator and of x add to the covariance of each point, (n, q, q)."""
        if self._emulator is None and self.input_errors is None:
            return None
        return added_noise(self.simulator, self._emulator, self.input_errors, self.data.x, self.theta_tilde)

    @cached_property
    def input_errors(self) -> InputErrors | None:
        """What the errors of x do to the noise, where there are any."""
        if self._x_err is None:
            return None
        return input_errors(self.simulator, self.data.x, self._x_err, self.domain.bounds(self.data.d), self.theta_tilde)

    @cached_property
    def _own_noise(self) -> Noise:
        """The noise of the field data alone."""
        if isinstance(self._noise_cov, Noise):
            return self._noise_cov
        return found_noise(self.data, self.span, self._noise_cov)

    @cached_property
    def weight(self) -> Array:
        """W, (q, q)."""
        if isinstance(self._weight, str):
            return np.linalg.inv(self._own_noise.cov) if self._weight == "noise-precision" else np.eye(self.data.q)
        return self._weight

    @cached_property
    def span(self) -> Array:
        """Width of the domain in each input, (d,); 1 where labels have none."""
        lower, upper = self.domain.bounds(self.data.d)
        span = np.where(upper > lower, upper - lower, 1.0)
        span[list(self.data.labels.columns)] = 1.0
        return span

    @property
    def categories(self) -> dict[str, dict[str, float]]:
        """Name of each categorical input -> label -> the number that it has in ``data.x``, in the labels' order."""
        return {one.name: dict(zip(one.labels, one.values, strict=True)) for one in self.data.labels.each}

    @cached_property
    def minima(self) -> tuple[Minimum, ...]:
        """The local minima of n loss / noise - 2 log pi that were found, (theta, loss), best first."""
        # one BLAS thread: the result must not depend on their number
        with one_blas_thread(), self.simulator.searching():
            return find_minima(self._criterion, self._starts)

    @cached_property
    def loss_minima(self) -> tuple[Minimum, ...]:
        """The minima of the loss alone that the best of ``minima`` lead to: least squares, without the prior."""
        with one_blas_thread():
            return least_squares_minima(self._criterion, self.minima)

    @property
    def rivals(self) -> tuple[float, ...]:
        """By how much theta_tilde is better than the other minima, at most eight, in standard errors."""
        return tuple(self._criterion.advantage(self.theta_tilde, one.theta) for one in self.minima[1:9])

    @property
    def misfit(self) -> float:
        """The loss of the best fit, in units of what the noise alone would make of it."""
        added = 0.0 if self._added_noise is None else float(np.trace(self.weight @ self._added_noise.mean(axis=0)))
        return self.minima[0].loss / (self.data.q * self._loss_noise + added)

    @property
    def _loss_noise(self) -> float:
        """What the noise adds to the loss, for each outcome."""
        return float(np.trace(self.weight @ self._own_noise.cov)) / self.data.q

    @property
    def _criterion(self) -> Criterion:
        weights = row_weights(self.weight, self.data.observed, self.volumes)
        return Criterion.of(self.simulator, self.parameters, self.data.x, self.data.y, weights, self._loss_noise)

    @property
    def searched(self) -> bool:
        """Whether ``minima`` are known already."""
        return "minima" in vars(self)

    @property
    def theta_tilde(self) -> Array:
        """The best fit, (p,)."""
        return self.minima[0].theta

    @cached_property
    def fit(self) -> Array:
        """f(x_i, theta_tilde), (n, q)."""
        return self.simulator.required(self.data.x, self.theta_tilde)

    @cached_property
    def fit_at_nodes(self) -> Array:
        """f(x_r, theta_tilde) at the nodes, (m, q)."""
        return self.simulator.required(self.rule.nodes, self.theta_tilde)

    @cached_property
    def complete_y(self) -> Array:
        """y with the best fit's values in the missing cells, (n, q); nothing that follows depends on these."""
        return np.where(self.data.observed, self.data.y, self.fit)

    @cached_property
    def rule(self) -> Rule:
        """Nodes and weights of P_x."""
        return self.domain.rules(self.data.d)[0]

    @cached_property
    def volumes(self) -> Array:
        """Share of P_x nearest to each data point, (n,)."""
        return self.domain.volumes(self.data.x)

    @cached_property
    def metric(self) -> Array:
        """W in whitened coordinates, T^-T W T^-1, (q, q)."""
        return np.asarray(self.noise.unwhitener.T @ self.weight @ self.noise.unwhitener)

    @property
    def merged(self) -> Problem:
        """The same problem with one row for each distinct x, or itself where none repeats or the noise is sampled."""
        rows = merged_rows(self.data, self.noise)
        if rows is None:
            return self
        # all else is shared; not kept, because each would know the other, and the simulator's processes outlive both
        _, part = self.minima, without_rows(self)
        part.data, part.noise, part.rows, part._unmerged = rows.data, rows.noise, rows, self
        return part

    @property
    def unmerged(self) -> Problem:
        """The problem whose rows were merged, or itself."""
        return self if self._unmerged is None else self._unmerged

    def whiten(self, values: Array) -> Array:
        """T v for values (..., q)."""
        return np.asarray(values @ self.noise.whitener.T)

    def unwhiten(self, values: Array) -> Array:
        """T^-1 v for values (..., q)."""
        return np.asarray(values @ self.noise.unwhitener.T)

    def whitened_gradient(self, x: Array, theta: Array | None = None) -> Array:
        """T df/dtheta at theta (p,), or at theta_tilde, (m, q, p)."""
        gradient = self.simulator.gradient(x, self.theta_tilde if theta is None else theta)
        return np.asarray(np.einsum("kl,nlp->nkp", self.noise.whitener, gradient))

    def whitened_gradients(self, x: Array, theta: Array) -> Array:
        """T df/dtheta at each of theta (c, p), (c, m, q, p), by calls that are made together; NaN where there is none.

        It is what ``whitened_gradient`` gives, digit by digit.
        """
        gradients = self.simulator.gradients(x, theta)
        return np.stack([np.einsum("kl,nlp->nkp", self.noise.whitener, one) for one in gradients])

    @cached_property
    def gradient_at_data(self) -> Array:
        return self.whitened_gradient(self.data.x)

    @cached_property
    def gradient_at_nodes(self) -> Array:
        return self.whitened_gradient(self.rule.nodes)

    @cached_property
    def directions(self) -> Sensitivity:
        """Q over the domain, where parameters may be collinear; an error where one has no effect."""
        return self._sensitivity(self.gradient_at_nodes, self.rule.weights)

    @property
    def sensitivity(self) -> Sensitivity:
        """Q of the functional projection; an error where parameters cannot be told apart."""
        self.directions.require_told_apart(self.parameters.names)
        return self.directions

    @cached_property
    def sensitivity_at_data(self) -> Sensitivity:
        """The same for the finite projection, on the data points."""
        found = self._sensitivity(self.gradient_at_data, self.volumes)
        found.require_told_apart(self.parameters.names)
        return found

    @cached_property
    def quadrature_error(self) -> float | None:
        """Error of Q; None where the user gave the nodes."""
        return rule_error(self.domain, self.data.d, self.directions.gram, self._gram)

    def _gram(self, rule: Rule) -> Array:
        return gram_matrix(self.whitened_gradient(rule.nodes), rule.weights, self.metric)

    @cached_property
    def gradient_error(self) -> float:
        """How far the gradient at the data and theta_tilde is from differences, NaN where none can be had."""
        # outputs without inputs have units of their own: one with small numbers must not be lost beside large ones
        units = self.noise.whitener if self.data.without_inputs else np.eye(self.data.q)
        return gradient_error(self.simulator, self.data.x, self.theta_tilde, units)

    def check(self, method: str = "gp", draws: int = 1000, chains: int = 4, warmup: int = 200) -> Findings:
        """What is to be known before a run: what it will cost, and what speaks against it already.

        It costs about 60 + 5 p calls of the simulator, or the search for the best fit where that takes seconds; then
        the run need not search again. What was not looked at is said. The arguments are those of ``oc.calibrate``.
        """
        with one_blas_thread():
            return before_run(self, Planned(method, draws, chains, warmup))

    def outcome(self, k: int) -> Problem:
        """The same problem with outcome k alone; its noise is that of this problem."""
        return outcome_of(self, Problem, k)

    def subset(self, rows: IntArray | BoolArray, hidden: BoolArray | None = None) -> Problem:
        """The same problem with some rows of the data (numbers or a mask): same domain, noise, priors and simulator.

        The cells of outcomes that are ``hidden`` (q,) are missing in all rows.
        """
        return subset_of(self, Problem, rows, hidden)

    def _sensitivity(self, gradient: Array, weights: Array) -> Sensitivity:
        size = float(np.linalg.norm(self.whiten(self.complete_y))) / np.sqrt(self.data.n)
        # central differences leave about 1e-10 of a zero gradient
        floor = 1e-8 * size / self.parameters.spread
        return sensitivity(gradient, weights, self.metric, self.parameters.names, floor, not self.others_know)
