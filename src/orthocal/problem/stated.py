"""What a problem states: data, simulator, priors and domain, and what follows without a call of the simulator."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..arrays import Array
from .data.field_data import FieldData
from .domain.domain import Domain, Rule
from .noise.estimate import found_noise
from .noise.kinds import AskedNoise, PartlyGiven
from .noise.noise import Noise
from .prior.parameters import Parameters
from .simulator.emulator import EmulatorLike
from .simulator.simulator import BoundSimulator


class Stated:
    """The part of ``oc.Problem`` that is known before the simulator is called."""

    data: FieldData
    parameters: Parameters
    simulator: BoundSimulator
    domain: Domain
    others_know: bool
    _noise_cov: Noise | AskedNoise | PartlyGiven | str
    _weight: Array | str
    _starts: Array
    _x_err: Array | None
    _emulator: EmulatorLike | None

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
    def _own_noise(self) -> Noise:
        """The noise of the field data alone."""
        if isinstance(self._noise_cov, Noise):
            return self._noise_cov
        return found_noise(self.data, self.span, self._noise_cov)

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
        if isinstance(self._weight, str):
            return np.linalg.inv(self._own_noise.cov) if self._weight == "noise-precision" else np.eye(self.data.q)
        return self._weight

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
