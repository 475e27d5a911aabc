"""The best fit of a problem: theta_tilde, the other minima of the loss, and the noise with what depends on them."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..arrays import Array
from ..machine.threads import one_blas_thread
from .input_errors import InputErrors, added_noise, input_errors
from .noise.noise import Noise
from .search.best_fit import Criterion, row_weights
from .search.minima import Minimum, find_minima, least_squares_minima
from .stated import Stated


class Fitted(Stated):
    """The part of ``oc.Problem`` that the search for theta_tilde finds, on first use."""

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
        with one_blas_thread(), self.simulator.searching():
            return find_minima(self._criterion, self._starts)

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
        return tuple(self._criterion.advantage(self.theta_tilde, one.theta) for one in self.minima[1:9])

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

    @cached_property
    def noise(self) -> Noise:
        """The noise, estimated on first use where it is not given, with the errors of the emulator and of x.

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
        return own if added is None else own.with_added(added)

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
