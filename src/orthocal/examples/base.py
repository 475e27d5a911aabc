"""What an example is: a calibration problem that is ready to run, with its truth or with its published answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from ..arrays import Array
from ..errors import InputError
from ..problem.domain.domain import Box
from ..problem.prior.priors import Distribution
from ..problem.problem import Problem
from ..problem.simulator.simulator_function import Simulator
from ..runs.table import RunTable
from .exact import ExactPosterior, linear_posterior

#: what can be difficult about an example
Tag = Literal["curved", "two minima", "weak data", "real", "emulator", "several outcomes"]
#: of the data set where no seed is given
SEED = 1
#: of the design of the runs, so that a data set's emulator is always the same
RUNS_SEED = 1


@dataclass(frozen=True)
class Published:
    """What others found.

    Attributes
    ----------
    source
        Who, and how.
    values
        Parameter -> estimate and standard deviation, None where none is given.

    Examples
    --------
    >>> import orthocal as oc
    >>> (said,) = oc.examples.get("ball-drop").published
    >>> said.source, said.values["g"]
    ('surmise, without a bias', (8.16, 0.2))
    """

    source: str
    values: Mapping[str, tuple[float, float | None]]


@dataclass(frozen=True)
class Example:
    """A calibration problem with a known truth, with measured field data, or with both.

        y_i = y_R(x_i) + e_i,   theta* = argmin_t ∫ (y_R - f(., t))' W (y_R - f(., t)) dP_x

    Attributes
    ----------
    name, title, words
        Its name in ``get``, its title, and what it is in a sentence.
    truth, simulator
        y_R(x) and f(x, theta), for x (m, d): (m,), or (m, q) for q outcomes. ``truth`` is None for measured data alone.
    theta_star
        The minimiser over the domain, with the problem's weight; empty where there is no truth.
    noise_sd, noise_correlation
        Of every outcome, and between every two. ``noise_sd`` None: not known, the problem estimates it.
    q
        Number of outcomes.
    gradient
        df/dtheta, (m, p) or (m, q, p).
    n
        Number of simulated field data.
    design
        Where these are: from a generator and n to (n, d); None for uniform over the domain.
    box
        Lower and upper corner of the domain; None for the smallest box around the data.
    nodes
        Of the domain's quadrature rule; None for the default.
    linear
        f is linear in theta, one outcome, Gaussian priors: ``exact`` has the posterior in closed form.
    runs, emulator
        Number of runs from which the problem knows the simulator, and what learns from them; None: it is called.
    file
        Name of the measured field data among the package's, d columns of x and q of y.
    settings
        More arguments of ``oc.Problem``.
    published
        What others found.
    source, licence
        Where it comes from, and under which terms its data are here.
    tags
        What is difficult about it.

    Examples
    --------
    >>> import orthocal as oc
    >>> example = oc.examples.get("bayarri")
    >>> problem = example.problem(seed=3)
    >>> problem.data.y.shape, example.theta_star
    ((30, 1), (0.64059425,))
    >>> x, y = example.data
    >>> x.shape, y.shape
    ((30, 1), (30,))
    """

    name: str
    title: str
    d: int
    simulator: Callable[[Array, Array], Array]
    parameters: Mapping[str, Distribution]
    words: str = ""
    truth: Callable[[Array], Array] | None = None
    theta_star: tuple[float, ...] = ()
    noise_sd: float | None = 0.2
    noise_correlation: float = 0.0
    q: int = 1
    gradient: Callable[[Array, Array], Array] | None = None
    n: int = 100
    design: Callable[[np.random.Generator, int], Array] | None = None
    box: tuple[ArrayLike, ArrayLike] | None = (0.0, 1.0)
    nodes: int | None = None
    linear: bool = False
    runs: int | None = None
    emulator: str = "gp"
    file: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    published: tuple[Published, ...] = ()
    source: str = ""
    licence: str = "formulas: free of copyright"
    tags: tuple[Tag, ...] = ()

    @property
    def noise_cov(self) -> Array | str:
        """Sigma_F, (q, q); ``"unknown"`` where it is not known.

        Examples
        --------
        >>> import orthocal as oc
        >>> oc.examples.TWO_OUTCOMES.noise_cov.round(3)
        array([[0.04 , 0.012],
               [0.012, 0.04 ]])
        """
        return "unknown" if self.noise_sd is None else self._covariance(self.noise_sd)

    def _covariance(self, sd: float) -> Array:
        return np.asarray(sd**2 * np.where(np.eye(self.q) > 0, 1.0, self.noise_correlation))

    @cached_property
    def data(self) -> tuple[Array, Array]:
        """The measured field data: x (n, d) and y, (n,) or (n, q).

        Examples
        --------
        >>> import orthocal as oc
        >>> x, y = oc.examples.BALL_DROP.data
        >>> x.shape, y.shape
        ((63, 1), (63,))
        """
        if self.file is None:
            raise InputError(f"{self.name} has no measured field data: take simulate(rng)")
        with (files(__package__) / "data" / self.file).open(encoding="utf-8") as table:
            values = np.loadtxt(table, delimiter=",", skiprows=1)
        return values[:, : self.d], values[:, self.d] if self.q == 1 else values[:, self.d :]

    def simulate(self, rng: np.random.Generator, n: int | None = None) -> tuple[Array, Array]:
        """Field data from the truth: points x (n, d) and noisy outcomes y, (n,) or (n, q).

        Parameters
        ----------
        rng
            Of points and noise.
        n
            Number of points; default: the example's.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> x, y = oc.examples.MODEL3.simulate(np.random.default_rng(1), 30)
        >>> x.shape, y.shape
        ((30, 5), (30,))
        """
        if self.truth is None or self.noise_sd is None or self.box is None:
            raise InputError(f"{self.name} has no known truth: take its measured field data, x, y = example.data")
        n = self.n if n is None else n
        lower, upper = Box(*self.box).bounds(self.d)
        x = lower + (upper - lower) * rng.random((n, self.d)) if self.design is None else self.design(rng, n)
        truth = self.truth(x)
        noise = rng.standard_normal((n, self.q)) @ np.linalg.cholesky(self._covariance(self.noise_sd)).T
        return x, truth + noise.reshape(truth.shape)

    def field_data(self, seed: int | None = None) -> tuple[Array, Array]:
        """Simulated field data of a seed; without one the measured ones, or those of seed 1 where there are none.

        Parameters
        ----------
        seed
            Of points and noise.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> first, again = (oc.examples.MODEL1.field_data(seed=3)[1] for _ in range(2))
        >>> np.array_equal(first, again)
        True
        """
        if seed is None and self.file is not None:
            return self.data
        return self.simulate(np.random.default_rng(SEED if seed is None else seed))

    def problem(
        self, x: ArrayLike | None = None, y: ArrayLike | None = None, *, seed: int | None = None, **changes: Any
    ) -> Problem:
        """The calibration problem of field data x, y; without them, that of ``field_data(seed)``.

        ``changes`` are arguments of ``oc.Problem``. Where the simulator is known from runs only, an emulator is learnt
        from ``run_table(x)``; ``simulator=example.simulator`` has the simulator itself.

        Examples
        --------
        >>> import orthocal as oc
        >>> oc.examples.get("chaboche").problem().parameters.names
        ('R', 'C', 'gamma')
        """
        if (x is None) != (y is None) or (x is not None and seed is not None):
            raise InputError("give the field data x and y, or a seed, or nothing")
        if x is None or y is None:
            x, y = self.field_data(seed)
        settings: dict[str, Any] = {
            "parameters": self.parameters,
            "domain": None if self.box is None else Box(*self.box, nodes=self.nodes),
            "noise_cov": self.noise_cov,
            **self.settings,
            **changes,
        }
        if "simulator" not in settings:
            settings["simulator"] = self._known_simulator(x)
        return Problem(x, y, **settings)

    def _known_simulator(self, x: ArrayLike) -> Any:
        if self.runs is not None:
            # emulators take a while to load
            from ..emulators import emulate

            return emulate(self.run_table(x), self.emulator, progress=False)
        return self.simulator if self.gradient is None else Simulator(self.simulator, self.gradient)

    def run_table(self, x: ArrayLike, runs: int | None = None, seed: int = RUNS_SEED) -> RunTable:
        """Runs of the simulator at the points x, at theta spread over the priors.

        Examples
        --------
        >>> import orthocal as oc
        >>> example = oc.examples.get("borehole")
        >>> x, y = example.field_data()
        >>> len(example.run_table(x).theta)
        40
        """
        from ..runs import design

        theta = design(self.parameters, runs or self.runs or 10 * len(self.parameters), seed=seed)
        points = np.asarray(x, dtype=float)
        return RunTable(theta, np.stack([self.simulator(points, one) for one in theta.to_numpy()]), points)

    def exact(
        self,
        x: ArrayLike,
        y: ArrayLike,
        nu: float = 1.5,
        sd: float = 1.0,
        lengthscale: float = 0.5,
        flat: bool = False,
    ) -> ExactPosterior:
        """The law of theta under the joint projection with a Gaussian-process bias of given hyperparameters.

        For simulators that are linear in theta; ``flat`` leaves the prior of theta out. The integrals are sums over
        the nodes of the example's domain, as in ``problem``.

        Examples
        --------
        >>> import orthocal as oc
        >>> example = oc.examples.get("model-1")
        >>> exact = example.exact(*example.field_data(5))
        >>> exact.mean.round(4), exact.sd.round(4)
        (array([3.5655]), array([0.0348]))
        """
        if not self.linear or self.box is None or self.noise_sd is None:
            raise InputError(f"{self.name} has no closed form: its simulator is not linear in theta")
        rule, _ = Box(*self.box, nodes=self.nodes).rules(self.d)
        origin = np.zeros(len(self.parameters))

        def parts(points: Array) -> tuple[Array, Array]:
            base = self.simulator(points, origin)
            steps = np.eye(len(origin))
            return base, np.column_stack([self.simulator(points, step) - base for step in steps])

        points = np.asarray(x, dtype=float)
        return linear_posterior(
            points,
            np.asarray(y, dtype=float),
            parts,
            (rule.nodes, rule.weights),
            (nu, sd, lengthscale),
            self.noise_sd**2,
            None if flat else [_gaussian(prior) for prior in self.parameters.values()],
        )


def _gaussian(prior: Distribution) -> tuple[float, float]:
    """Mean and variance of a Gaussian, from its quantiles."""
    centre, one_sd = prior.ppf(np.array([0.5, ndtr(1.0)]))
    return float(centre), float((one_sd - centre) ** 2)


# The examples by name.

_LISTED: dict[str, Example] = {}


def listed(example: Example) -> Example:
    """Put an example on the list, at its end; it is returned.

    Examples
    --------
    >>> import orthocal as oc
    >>> oc.examples.listed(oc.examples.MODEL1)
    Traceback (most recent call last):
        ...
    orthocal.errors.InputError: there are two examples 'model-1': give one of them another name
    """
    if example.name in _LISTED:
        raise InputError(f"there are two examples {example.name!r}: give one of them another name")
    _LISTED[example.name] = example
    return example


def names() -> tuple[str, ...]:
    """The names of all examples.

    Examples
    --------
    >>> import orthocal as oc
    >>> oc.examples.names()[:3]
    ('model-1', 'model-2', 'model-3')
    """
    return tuple(_LISTED)


def get(name: str) -> Example:
    """The example of a name.

    Examples
    --------
    >>> import orthocal as oc
    >>> oc.examples.get("tuo-wu").theta_star
    (-0.17892537,)
    """
    if name not in _LISTED:
        raise InputError(f"there is no example {name!r}: choose one of {', '.join(_LISTED)}")
    return _LISTED[name]


def all() -> tuple[Example, ...]:
    """All examples.

    Examples
    --------
    >>> import orthocal as oc
    >>> [example.name for example in oc.examples.all() if "real" in example.tags]
    ['ball-drop', 'chaboche', 'us-population', 'common-cold']
    """
    return tuple(_LISTED.values())
