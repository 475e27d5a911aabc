"""A calibration problem: all that is known before the bias is modelled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from numpy.typing import ArrayLike

from ..arrays import Array, BoolArray, IntArray
from ..errors import IdentifiabilityError, InputError
from ..findings import Findings
from ..machine.threads import one_blas_thread
from .arguments import check_emulator, checked_noise, checked_starts, checked_units, checked_weight, transformed_errors
from .data.field_data import Groups, field_data
from .data.labels import Categorical, LabelColumns
from .data.transforms import Chosen
from .domain.domain import Domain
from .domain.labels import Labels, domain_of
from .html import problem_html
from .input_errors import checked_x_err
from .linearised import Linearised
from .merging import Merged, merged_rows, without_rows
from .noise.kinds import AskedNoise
from .noise.noise import Noise
from .outputs import NO_INPUT, OutputFunction, outputs_alone
from .preflight.cost import Planned
from .preflight.preflight import before_run
from .prior.parameters import Parameters, Priors
from .simulator.emulator import check_columns
from .simulator.simulator import BoundSimulator
from .simulator.simulator_function import Function
from .subsets import outcome_of, subset_of

#: starts of the search for theta_tilde
STARTS = 32


class Problem(Linearised):
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
        return problem_html(self, self._noise_cov)

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
        # all else is shared; not kept, because each would know the other, and the simulator's processes outlive both
        _, part = self.minima, without_rows(self)
        part.data, part.noise, part.rows, part._unmerged = rows.data, rows.noise, rows, self
        return part

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
            return before_run(self, Planned(method, draws, chains, warmup))

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
        return outcome_of(self, Problem, k)

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
        return subset_of(self, Problem, rows, hidden)
