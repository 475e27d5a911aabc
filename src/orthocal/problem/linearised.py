"""What a problem is near its best fit: gradients in units of the noise, and what they say about theta."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..arrays import Array
from ..projection import Sensitivity, gram_matrix, sensitivity
from .domain.domain import Rule, rule_error
from .fitted import Fitted
from .simulator.simulator import gradient_error


class Linearised(Fitted):
    """The part of ``oc.Problem`` that projections use: outcomes are whitened, T y, so that their noise is N(0, I)."""

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

    def _sensitivity(self, gradient: Array, weights: Array) -> Sensitivity:
        size = float(np.linalg.norm(self.whiten(self.complete_y))) / np.sqrt(self.data.n)
        # central differences leave about 1e-10 of a zero gradient
        floor = 1e-8 * size / self.parameters.spread
        return sensitivity(gradient, weights, self.metric, self.parameters.names, floor, not self.others_know)
