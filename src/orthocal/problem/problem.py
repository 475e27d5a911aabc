"""A calibration problem: all that is known before the bias is modelled."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from inspect import getmembers_static
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Array, BoolArray, IntArray
from ..errors import IdentifiabilityError, InputError
from ..findings import Findings
from ..machine.threads import one_blas_thread
from ..pages.tables import listed, shown_html
from ..projection import Sensitivity, gram_matrix, sensitivity
from .arguments import (
    check_emulator,
    checked_noise,
    checked_starts,
    checked_units,
    checked_weight,
    known_beside,
    transformed_errors,
)
from .data.field_data import Groups, field_data
from .data.labels import Categorical, LabelColumns
from .data.transforms import Chosen
from .domain.domain import Domain, Rule, rule_error
from .domain.labels import Labels, domain_of
from .input_errors import InputErrors, added_noise, checked_x_err, input_errors
from .merging import Merged, merged_rows
from .noise.estimate import estimated_noise, guessed_noise, require_scatter, unknown_noise
from .noise.kinds import AskedNoise, is_unknown
from .noise.noise import Noise, NoiseSource
from .noise.regression import BestFit
from .outputs import NO_INPUT, OutputFunction, Prepared, outputs_alone
from .preflight.cost import Planned
from .preflight.preflight import preflight
from .preflight.probe import Setup
from .prior.parameters import Parameters, Priors, prior_table
from .search.best_fit import Criterion, row_weights
from .search.minima import Minimum, advantages, find_minima, least_squares_minima
from .simulator.emulator import check_columns
from .simulator.simulator import NO_EFFECT, BoundSimulator, OneOutcome, gradient_error
from .simulator.simulator_function import Function

#: starts of the search for theta_tilde
STARTS = 32
#: what stays where rows are merged; all else is computed anew
OF_ANY_ROWS = (
    "span",
    "rule",
    "weight",
    "minima",
    "loss_minima",
    "fit_at_nodes",
    "metric",
    "gradient_at_nodes",
    "directions",
    "quadrature_error",
)


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
        Name -> continuous ``scipy.stats`` distribution, frozen or new (``stats.Normal(mu=0, sigma=1)``), or a
        ``stats.gaussian_kde``: the priors of theta in native units. Several parameters with a joint prior have the
        tuple of their names as the key, and an object with ``logpdf`` and ``rvs``, for instance
        ``("a", "b"): stats.multivariate_normal(mean, cov)``; ``oc.JointPrior`` makes such an entry.
    domain
        ``oc.Box`` or ``oc.Points``: the measure P_x. Default: the smallest box around x. With categorical inputs a box
        is that of the numeric ones, and every label weighs the same; ``oc.Labels`` gives other weights.
    noise_cov
        Covariance of the noise: a number, (q,), (q, q) or one matrix a point, (n, q, q). ``"unknown"`` (default): it is
        integrated over, beside simulator and bias, so that every draw has its own. ``oc.GroupNoise(groups)``, or
        ``"by-group"`` for the problem's groups, for a variance of each group of rows; ``oc.VaryingNoise()`` for one
        that changes with x. ``"estimate"`` plugs in what Gaussian-process regressions of y on x leave, as the paper
        does; ``oc.LowRankNoise(rank)`` the same with few factors, for many outcomes. Of errors that are correlated
        between rows: an (n, n) matrix for one outcome, its blocks or a ``scipy.sparse`` one, or
        ``oc.CorrelatedNoise``, along time for instance.
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
    units
        Name of an input, outcome or parameter -> its unit, for axes, tables and pages: ``{"x": "m", "y": "K"}``.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> from scipy import stats
    >>> rng = np.random.default_rng(1)
    >>> x = rng.random((100, 1))
    >>> y = 4 * x[:, 0] + x[:, 0] * np.sin(5 * x[:, 0]) + 0.2 * rng.standard_normal(100)
    >>> def line(x, theta):
    ...     return theta[0] * x[:, 0]
    >>> problem = oc.Problem(x, y, line, {"slope": stats.norm(0, 10)}, oc.Box(0, 1))
    >>> problem.theta_tilde.round(1)
    array([3.5])
    >>> np.sqrt(problem.noise.cov).round(1)
    array([[0.2]])

    Two outcomes with one missing cell, errors that are known, and a constraint:

    >>> y = np.column_stack([np.exp(-x[:, 0]), x[:, 0]])
    >>> y[3, 1] = np.nan
    >>> def decay(x, theta):
    ...     return np.column_stack([np.exp(-theta[0] * x[:, 0]), theta[1] * x[:, 0]])
    >>> priors = {"rate": stats.uniform(0, 5), "gain": stats.norm(1, 1)}
    >>> problem = oc.Problem(x, y, decay, priors, noise_cov=[1e-4, 4e-4], constraint="gain < 2")
    >>> problem.theta_tilde.round(2)
    array([1., 1.])
    """

    def __init__(
        self,
        x: ArrayLike | None,
        y: ArrayLike,
        simulator: Function | OutputFunction,
        parameters: Priors,
        domain: Domain | Labels | None = None,
        noise_cov: ArrayLike | Noise | AskedNoise = "unknown",
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
        units: Mapping[str, str] | None = None,
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
        self.units = checked_units(units, self.data, self.parameters)
        self.simulator = BoundSimulator(
            cast(Function, simulator), self.parameters.support, self.data.q, self.data.flat_x, self.data.transforms
        )
        noise_cov = known_beside(emulator_error, noise_cov)
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

    def _repr_html_(self) -> str:
        data, noise = self.data, self._noise_cov
        missing = int((~data.observed).sum())
        facts = {
            "data": f"{data.n} rows" + (f", {missing} of {data.observed.size} cells missing" if missing else ""),
            "inputs": "none" if data.without_inputs else listed(data.input_names),
            "outcomes": listed(data.outcome_names),
            "domain": repr(self.domain),
            "noise": noise if isinstance(noise, str) else "given" if isinstance(noise, Noise) else type(noise).__name__,
        }
        if self.parameters.constraint is not None:
            facts["constraint"] = self.parameters.constraint.text
        return shown_html("Problem", facts, [prior_table(self.parameters)])

    # Data and domain: what is known without a call of the simulator.

    @cached_property
    def span(self) -> Array:
        """Width of the domain in each input, (d,); 1 where labels have none.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> from scipy import stats
        >>> x = np.random.default_rng(1).random((10, 2))
        >>> def plane(x, theta):
        ...     return theta[0] * x[:, 0]
        >>> problem = oc.Problem(x, x[:, 0], plane, {"a": stats.norm(0, 1)}, oc.Box([0, 0], [1, 5]), 0.01)
        >>> problem.span
        array([1., 5.])
        """
        lower, upper = self.domain.bounds(self.data.d)
        span = np.where(upper > lower, upper - lower, 1.0)
        span[list(self.data.labels.columns)] = 1.0
        return span

    @property
    def categories(self) -> dict[str, dict[str, float]]:
        """Name of each categorical input -> label -> the number that it has in ``data.x``, in the labels' order.

        Examples
        --------
        >>> import pandas as pd, orthocal as oc
        >>> from scipy import stats
        >>> x = pd.DataFrame({"length": [0.1, 0.4, 0.6, 0.9], "machine": ["old", "new", "old", "new"]})
        >>> def simulator(x, theta):
        ...     return theta[0] * x[:, 0]
        >>> problem = oc.Problem(x, [0.1, 0.4, 0.6, 1.0], simulator, {"a": stats.norm(0, 1)}, noise_cov=0.01)
        >>> problem.categories
        {'machine': {'new': 0.0, 'old': 1.0}}
        """
        return {one.name: dict(zip(one.labels, one.values, strict=True)) for one in self.data.labels.each}

    @cached_property
    def rule(self) -> Rule:
        """Nodes (m, d) and weights (m,) of P_x: ∫ h dP_x ≈ sum_r w_r h(x_r).

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
        >>> nodes, weights = problem.rule
        >>> print(round(weights @ nodes[:, 0] ** 2, 3))
        0.333
        """
        return self.domain.rules(self.data.d)[0]

    @cached_property
    def volumes(self) -> Array:
        """Share of P_x nearest to each data point, (n,).

        Examples
        --------
        >>> import orthocal as oc
        >>> from scipy import stats
        >>> def line(x, theta):
        ...     return theta[0] * x
        >>> x = [0.1, 0.2, 0.9]
        >>> problem = oc.Problem(x, x, line, {"a": stats.norm(0, 1)}, oc.Box(0, 1), 0.01)
        >>> problem.volumes.round(2)
        array([0.15, 0.4 , 0.45])
        """
        return self.domain.volumes(self.data.x)

    # Noise: that of the field data, found on first use, and what the errors of the emulator and of x add to it.

    @cached_property
    def noise(self) -> Noise:
        """The noise, found on first use where it is not given, with the errors of the emulator and of x.

        An unknown noise is integrated over: what stands here is the size in whose units that is done.

        These change neither W nor theta_tilde: the emulator's says nothing about the field data, and for x see above.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 100), noise_cov="estimate")
        >>> np.sqrt(problem.noise.cov).round(1)
        array([[0.2]])
        """
        own, added = self._own_noise, self._added_noise
        if is_unknown(self._noise_cov) and not self.others_know:
            require_scatter(self.data, self.fit, self.parameters.p)
        return own if added is None else own.with_added(added)

    @cached_property
    def _own_noise(self) -> Noise:
        """The noise of the field data alone; of an unknown one its size beside simulator and bias."""
        if not is_unknown(self._noise_cov):
            return self._first_noise
        if self.data.observed.sum() <= self.parameters.p:
            # the best fit goes through them all
            return self._first_noise
        theta = self._first_minima[0].theta
        fit = BestFit(
            self.data.y - self.simulator.required(self.data.x, theta), self.simulator.gradient(self.data.x, theta)
        )
        return unknown_noise(self.data, self.span, cast(AskedNoise, self._noise_cov), fit)

    @cached_property
    def _first_noise(self) -> Noise:
        """The noise as far as it is known before the best fit."""
        if isinstance(self._noise_cov, Noise):
            return self._noise_cov
        if is_unknown(self._noise_cov):
            return guessed_noise(self.data)
        return estimated_noise(self.data, self.span, self._noise_cov)

    @cached_property
    def _added_noise(self) -> Array | None:
        """What the errors of the emulator and of x add to the covariance of each point, (n, q, q)."""
        if self._emulator is None and self.input_errors is None:
            return None
        return added_noise(self.simulator, self._emulator, self.input_errors, self.data.x, self.theta_tilde)

    @cached_property
    def input_errors(self) -> InputErrors | None:
        """What the errors of x (``x_err``) do to the noise; None where there are none.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> x, y = model1.simulate(np.random.default_rng(1), 30)
        >>> model1.problem(x, y).input_errors is None
        True
        >>> problem = model1.problem(x, y, x_err=0.1)
        >>> added = problem.noise.by_point[:, 0, 0] - 0.2**2
        >>> np.allclose(added, (problem.theta_tilde * 0.1) ** 2)
        True
        """
        if self._x_err is None:
            return None
        return input_errors(self.simulator, self.data.x, self._x_err, self.domain.bounds(self.data.d), self.theta_tilde)

    @cached_property
    def weight(self) -> Array:
        """W, (q, q).

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> example = oc.examples.TWO_OUTCOMES
        >>> problem = example.problem(*example.simulate(np.random.default_rng(1), 30))
        >>> np.allclose(problem.weight, np.linalg.inv(example.noise_cov))
        True
        >>> example.problem(problem.data.x, problem.data.y, loss_weight="identity").weight
        array([[1., 0.],
               [0., 1.]])
        """
        return self._weight_for(self._own_noise)

    def _weight_for(self, noise: Noise) -> Array:
        if isinstance(self._weight, str):
            return np.linalg.inv(noise.cov) if self._weight == "noise-precision" else np.eye(self.data.q)
        return self._weight

    # Best fit: theta_tilde and the other minima, searched for on first use.

    @cached_property
    def minima(self) -> tuple[Minimum, ...]:
        """The local minima of n loss / noise - 2 log pi that were found, (theta, loss), best first.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model2 = oc.examples.MODEL2
        >>> problem = model2.problem(*model2.simulate(np.random.default_rng(1), 30))
        >>> len(problem.minima)
        8
        >>> np.allclose([one.loss for one in problem.minima], problem.minima[0].loss)
        True
        """
        # one BLAS thread: the result must not depend on their number
        if not is_unknown(self._noise_cov):
            return self._first_minima
        # the same minima, or where the prior moves them to with the noise that was found at the best of them
        starts = np.stack([self.parameters.clipped(one.theta, 1e-9) for one in self._first_minima])
        with one_blas_thread(), self.simulator.searching():
            return find_minima(self._criterion, starts)

    @cached_property
    def _first_minima(self) -> tuple[Minimum, ...]:
        with one_blas_thread(), self.simulator.searching():
            return find_minima(self._criterion_for(self._first_noise), self._starts)

    @property
    def searched(self) -> bool:
        """Whether ``minima`` are known already.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
        >>> problem.searched
        False
        >>> best = problem.theta_tilde
        >>> problem.searched
        True
        """
        return "minima" in vars(self)

    @cached_property
    def loss_minima(self) -> tuple[Minimum, ...]:
        """The minima of the loss alone that the best of ``minima`` lead to: least squares, without the prior.

        Examples
        --------
        >>> import orthocal as oc
        >>> from scipy import stats
        >>> x = [0.0, 0.5, 1.0]
        >>> problem = oc.Problem(x, x, lambda x, theta: theta[0] * x, {"a": stats.norm(0, 1)}, oc.Box(0, 1), 1.0)
        >>> problem.minima[0].theta < problem.loss_minima[0].theta
        array([ True])
        >>> problem.loss_minima[0].theta.round(3)
        array([1.])
        """
        with one_blas_thread():
            return least_squares_minima(self._criterion, self.minima)

    @property
    def rivals(self) -> tuple[float, ...]:
        """By how much theta_tilde is better than the other minima, at most eight, in standard errors.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model2 = oc.examples.MODEL2
        >>> problem = model2.problem(*model2.simulate(np.random.default_rng(1), 30))
        >>> len(problem.rivals), bool(max(problem.rivals) < 0.01)
        (7, True)
        """
        return advantages(self._criterion, self.minima)

    @property
    def misfit(self) -> float:
        """The loss of the best fit, in units of what the noise alone would make of it.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 100))
        >>> print(round(problem.misfit))
        5
        """
        added = 0.0 if self._added_noise is None else float(np.trace(self.weight @ self._added_noise.mean(axis=0)))
        return self.minima[0].loss / (self.data.q * self._loss_noise(self._own_noise) + added)

    @property
    def _criterion(self) -> Criterion:
        return self._criterion_for(self._own_noise)

    def _loss_noise(self, noise: Noise) -> float:
        """What the noise adds to the loss, for each outcome."""
        return float(np.trace(self._weight_for(noise) @ noise.cov)) / self.data.q

    def _criterion_for(self, noise: Noise) -> Criterion:
        weights = row_weights(self._weight_for(noise), self.data.observed, self.volumes)
        added = self._loss_noise(noise)
        return Criterion.of(self.simulator, self.parameters, self.data.x, self.data.y, weights, added)

    @property
    def theta_tilde(self) -> Array:
        """The best fit, (p,).

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 100))
        >>> problem.theta_tilde.round(1), np.round(model1.theta_star, 1)
        (array([3.5]), array([3.6]))
        """
        return self.minima[0].theta

    @cached_property
    def fit(self) -> Array:
        """f(x_i, theta_tilde), (n, q).

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
        >>> np.allclose(problem.fit, problem.theta_tilde * problem.data.x)
        True
        """
        return self.simulator.required(self.data.x, self.theta_tilde)

    @cached_property
    def fit_at_nodes(self) -> Array:
        """f(x_r, theta_tilde) at the nodes, (m, q).

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
        >>> np.allclose(problem.fit_at_nodes, problem.theta_tilde * problem.rule.nodes)
        True
        """
        return self.simulator.required(self.rule.nodes, self.theta_tilde)

    @cached_property
    def complete_y(self) -> Array:
        """y with the best fit's values in the missing cells, (n, q); nothing that follows depends on these.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> example = oc.examples.TWO_OUTCOMES
        >>> x, y = example.simulate(np.random.default_rng(1), 30)
        >>> y[4, 1] = np.nan
        >>> problem = example.problem(x, y)
        >>> bool(problem.complete_y[4, 1] == problem.fit[4, 1])
        True
        """
        return np.where(self.data.observed, self.data.y, self.fit)

    # Linearisation: gradients in whitened outcomes T y, whose noise is N(0, I), and what they say about theta.

    @cached_property
    def metric(self) -> Array:
        """W in whitened coordinates, T^-T W T^-1, (q, q).

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> example = oc.examples.TWO_OUTCOMES
        >>> problem = example.problem(*example.simulate(np.random.default_rng(1), 30))
        >>> np.allclose(problem.metric, np.eye(2))
        True
        """
        return np.asarray(self.noise.unwhitener.T @ self.weight @ self.noise.unwhitener)

    def whiten(self, values: Array) -> Array:
        """T v for values (..., q): in units of the noise, and uncorrelated.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
        >>> model1.noise_sd, problem.whiten(np.array([1.0])).round(3)
        (0.2, array([5.]))
        """
        return np.asarray(values @ self.noise.whitener.T)

    def unwhiten(self, values: Array) -> Array:
        """T^-1 v for values (..., q): back in the outcomes' units.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> example = oc.examples.TWO_OUTCOMES
        >>> problem = example.problem(*example.simulate(np.random.default_rng(1), 30))
        >>> np.allclose(problem.unwhiten(problem.whiten(problem.data.y)), problem.data.y)
        True
        """
        return np.asarray(values @ self.noise.unwhitener.T)

    def whitened_gradient(self, x: Array, theta: Array | None = None) -> Array:
        """T df/dtheta at theta (p,), or at theta_tilde, (m, q, p).

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
        >>> problem.whitened_gradient(np.array([[0.5], [1.0]])).round(3)
        array([[[2.5]],
        <BLANKLINE>
               [[5. ]]])
        """
        gradient = self.simulator.gradient(x, self.theta_tilde if theta is None else theta)
        return np.asarray(np.einsum("kl,nlp->nkp", self.noise.whitener, gradient))

    def whitened_gradients(self, x: Array, theta: Array) -> Array:
        """T df/dtheta at each of theta (c, p), (c, m, q, p), by calls that are made together; NaN where there is none.

        It is what ``whitened_gradient`` gives, digit by digit.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
        >>> problem.whitened_gradients(problem.data.x, np.array([[3.0], [4.0]])).shape
        (2, 30, 1, 1)
        """
        gradients = self.simulator.gradients(x, theta)
        return np.stack([np.einsum("kl,nlp->nkp", self.noise.whitener, one) for one in gradients])

    @cached_property
    def gradient_at_data(self) -> Array:
        """T df/dtheta at the data points and theta_tilde, (n, q, p).

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
        >>> np.allclose(problem.gradient_at_data[:, 0], problem.data.x / 0.2)
        True
        """
        return self.whitened_gradient(self.data.x)

    @cached_property
    def gradient_at_nodes(self) -> Array:
        """T df/dtheta at the nodes and theta_tilde, (m, q, p).

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
        >>> np.allclose(problem.gradient_at_nodes[:, 0], problem.rule.nodes / 0.2)
        True
        """
        return self.whitened_gradient(self.rule.nodes)

    @cached_property
    def directions(self) -> Sensitivity:
        """Q = ∫ G'WG dP_x over the domain, where parameters may be collinear; an error where one has no effect.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> from scipy import stats
        >>> x = np.linspace(0, 1, 20)
        >>> two = {"a": stats.norm(0, 10), "b": stats.norm(0, 10)}
        >>> problem = oc.Problem(x, 2 * x, lambda x, theta: (theta[0] + theta[1]) * x, two, noise_cov=0.01)
        >>> print(np.linalg.matrix_rank(problem.directions.gram, tol=1e-3))
        1
        """
        return self._sensitivity(self.gradient_at_nodes, self.rule.weights)

    @property
    def sensitivity(self) -> Sensitivity:
        """Q of the functional projection; an error where parameters cannot be told apart.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
        >>> problem.sensitivity.gram.round(2), round(1 / 3 / 0.2**2, 2)
        (array([[8.33]]), 8.33)
        """
        self.directions.require_told_apart(self.parameters.names)
        return self.directions

    @cached_property
    def sensitivity_at_data(self) -> Sensitivity:
        """The same for the finite projection: a sum over the data points, each with its share of P_x.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
        >>> by_hand = problem.volumes @ (problem.data.x[:, 0] / 0.2) ** 2
        >>> np.allclose(problem.sensitivity_at_data.gram, by_hand)
        True
        """
        found = self._sensitivity(self.gradient_at_data, self.volumes)
        found.require_told_apart(self.parameters.names)
        return found

    def _sensitivity(self, gradient: Array, weights: Array) -> Sensitivity:
        size = float(np.linalg.norm(self.whiten(self.complete_y))) / np.sqrt(self.data.n)
        floor = NO_EFFECT * size / self.parameters.spread
        return sensitivity(gradient, weights, self.metric, self.parameters.names, floor, not self.others_know)

    @cached_property
    def quadrature_error(self) -> float | None:
        """Error of Q that the quadrature rule makes, relative; None where the user gave the nodes.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
        >>> bool(problem.quadrature_error < 1e-10)
        True
        """
        return rule_error(self.domain, self.data.d, self.directions.gram, self._gram)

    def _gram(self, rule: Rule) -> Array:
        return gram_matrix(self.whitened_gradient(rule.nodes), rule.weights, self.metric)

    @cached_property
    def gradient_error(self) -> float:
        """How far the gradient at the data and theta_tilde is from differences, NaN where none can be had.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> from scipy import stats
        >>> x = np.linspace(0, 1, 20)
        >>> wrong = oc.Simulator(lambda x, theta: theta[0] * x, gradient=lambda x, theta: 2 * x[:, None])
        >>> problem = oc.Problem(x, 2 * x, wrong, {"a": stats.norm(0, 10)}, noise_cov=0.01)
        >>> bool(problem.gradient_error > 0.5)
        True
        """
        # outputs without inputs have units of their own: one with small numbers must not be lost beside large ones
        units = self.noise.whitener if self.data.without_inputs else np.eye(self.data.q)
        return gradient_error(self.simulator, self.data.x, self.theta_tilde, units)

    # A look before a run, and the problems that are made of this one.

    def check(self, method: str = "gp", draws: int = 1000, chains: int = 4, warmup: int = 200) -> Findings:
        """What is to be known before a run: what it will cost, and what speaks against it already.

        It costs about 60 + 5 p calls of the simulator, or the search for the best fit where that takes seconds; then
        the run need not search again. What was not looked at is said.

        Parameters
        ----------
        method, draws, chains, warmup
            Those of ``oc.calibrate``: the run that is planned. The method is given by its name.

        Returns
        -------
        Findings
            It prints as words, and is true if there is no problem among them.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> from scipy import stats
        >>> x = np.linspace(0, 1, 20)
        >>> two = {"a": stats.norm(0, 10), "b": stats.norm(0, 10)}
        >>> problem = oc.Problem(x, 2 * x, lambda x, theta: (theta[0] + theta[1]) * x, two, noise_cov=0.01)
        >>> found = problem.check()
        >>> bool(found), found[0].topic
        (False, 'parameters')
        >>> print(found[0].message)
        their effects on the simulator are collinear: it answers to a combination of them only ...
        """
        with one_blas_thread():
            return preflight(self._setup, Planned(method, draws, chains, warmup))

    @property
    def _setup(self) -> Setup:
        noise = self._own_noise if self.searched else self._first_noise
        return Setup(
            self.data,
            self.parameters,
            self.simulator,
            self.domain,
            self.rule,
            noise,
            self._weight_for(noise),
            self._criterion_for(noise),
            self._starts,
            self.searched,
            lambda: self.minima,
        )

    @property
    def merged(self) -> Problem:
        """The same problem with one row for each distinct x, or itself where none repeats or the noise is sampled.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> from scipy import stats
        >>> x = np.repeat([0.0, 0.5, 1.0], 4)
        >>> line = {"a": stats.norm(0, 10)}
        >>> problem = oc.Problem(x, 2 * x, lambda x, theta: theta[0] * x, line, noise_cov=0.1)
        >>> problem.data.n, problem.merged.data.n
        (12, 3)
        >>> problem.merged.noise.by_point[:, 0, 0].round(3)
        array([0.025, 0.025, 0.025])
        """
        rows = merged_rows(self.data, self.noise)
        if rows is None:
            return self
        # searched for once; its noise has the errors of the emulator and of x already
        _, parts = self.minima, {"data": rows.data, "_noise_cov": rows.noise, "_emulator": None, "_x_err": None}
        # not kept, because each would know the other, and the simulator's processes outlive both
        return self._of_parts(OF_ANY_ROWS, rows=rows, _unmerged=self, **parts)

    def _of_parts(self, known: Container[str], **parts: Any) -> Problem:
        """A problem with these parts in place of its own; of what was computed only ``known`` goes with it."""
        computed = {name for name, kind in getmembers_static(Problem) if isinstance(kind, cached_property)}
        other = Problem.__new__(Problem)
        vars(other).update({name: one for name, one in vars(self).items() if name not in computed or name in known})
        vars(other).update(parts)
        return other

    @property
    def plugged_in(self) -> Problem:
        """The same problem with an estimate for an unknown noise, from y alone, or itself where it is known.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 100), noise_cov="unknown")
        >>> str(problem.noise.source), str(problem.plugged_in.noise.source)
        ('unknown', 'estimated')
        """
        asked = self._noise_cov
        if isinstance(asked, Noise):
            # a part of a problem has the size that was found for the whole
            known = asked.source is not NoiseSource.UNKNOWN
            return (
                self
                if known
                else self._of_parts(OF_ANY_ROWS, _noise_cov=replace(asked, source=NoiseSource.ESTIMATED, relative=None))
            )
        if not is_unknown(asked):
            return self
        return self.with_noise(estimated_noise(self.data, self.span, "estimate" if isinstance(asked, str) else asked))

    def with_noise(self, noise: Noise) -> Problem:
        """The same problem with this noise; where its best fits are known, they are looked for from there.

        Parameters
        ----------
        noise
            That of the same rows.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
        >>> other = problem.with_noise(problem.plugged_in.noise)
        >>> other.theta_tilde.round(4) == problem.theta_tilde.round(4)
        array([ True])
        """
        if not self.searched:
            return self._of_parts(("span", "rule"), _noise_cov=noise)
        starts = np.stack([self.parameters.clipped(one.theta, 1e-9) for one in self.minima])
        return self._of_parts(("span", "rule"), _noise_cov=noise, _starts=starts)

    @property
    def unmerged(self) -> Problem:
        """The problem whose rows were merged, or itself.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> from scipy import stats
        >>> x = np.repeat([0.0, 0.5, 1.0], 4)
        >>> line = {"a": stats.norm(0, 10)}
        >>> problem = oc.Problem(x, 2 * x, lambda x, theta: theta[0] * x, line, noise_cov=0.1)
        >>> problem.merged.unmerged is problem
        True
        """
        return self if self._unmerged is None else self._unmerged

    def outcome(self, k: int) -> Problem:
        """The same problem with outcome k alone; its noise is that of this problem.

        Parameters
        ----------
        k
            Number of the outcome, from 0.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> example = oc.examples.TWO_OUTCOMES
        >>> problem = example.problem(*example.simulate(np.random.default_rng(1), 30))
        >>> problem.data.q, problem.outcome(1).data.outcome_names
        (2, ('y2',))
        """
        own, many = OneOutcome(self.simulator, k), self.simulator.many_at_a_time
        part = Problem(
            y=self.data.y[:, [k]],
            simulator=Prepared(own.batch if many else own.one, own.gradient, batched=many),
            noise_cov=self.noise.outcome(k),
            loss_weight="identity" if isinstance(self._weight, np.ndarray) else self._weight,
            outcome_names=self.data.outcome_names[k],
            groups=self.data.groups,
            **self._arguments(),
        )
        part.simulator.outside = self.simulator.outside
        # y and the simulator are on the transformed scale already
        transforms, native = self.data.transforms.outcome(k), self.data.native_y[:, k : k + 1]
        part.data, part.units = replace(part.data, transforms=transforms, native_y=native), self.units
        return part

    def subset(self, rows: IntArray | BoolArray, hidden: BoolArray | None = None) -> Problem:
        """The same problem with some rows of the data: same domain, noise, priors and simulator.

        Parameters
        ----------
        rows
            Their numbers, or a mask (n,).
        hidden
            Outcomes (q,) whose cells are missing in all rows.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
        >>> problem.subset(problem.data.x[:, 0] < 0.5).data.n
        16
        """
        data, chosen = self.data, np.arange(self.data.n)[rows]
        y, native = data.y[chosen], data.native_y[chosen]
        if hidden is not None:
            y, native = (np.where(hidden, np.nan, one) for one in (y, native))
        part = Problem(
            y=y,
            simulator=Prepared(self.simulator.evaluate),
            noise_cov=self.noise.of_rows(chosen, ~np.isnan(y)),
            loss_weight=self._weight,
            outcome_names=data.outcome_names,
            groups=None if data.groups is None else data.groups.subset(chosen),
            **self._arguments(chosen),
        )
        # shared: it knows its gradient and the form of x already, and counts all calls
        part.simulator = self.simulator
        part.data, part.units = replace(part.data, transforms=data.transforms, native_y=native), self.units
        return part

    def _arguments(self, rows: IntArray | slice = slice(None)) -> dict[str, Any]:
        """What a part of the problem is given as the whole was; the whole's minima are good places to start from."""
        starts = [self._starts, *(self.parameters.clipped(one.theta, 1e-6) for one in self.minima)]
        places = np.vstack(starts)
        given: dict[str, Any] = {"parameters": self.parameters.given, "constraint": self.parameters.given_constraint}
        given |= {"starts": places[self.parameters.inside(places)], "x": None}
        if not self.data.without_inputs:
            given |= {"x": self.data.x[rows], "domain": self.domain}
            given |= {"input_names": self.data.input_names, "categorical": self.data.labels}
        return given
