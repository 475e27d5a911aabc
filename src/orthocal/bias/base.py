"""What a bias prior is: one small Protocol for the prior, one for the sampler it becomes.

A prior is given the field data once (``prepare``) and then draws functions b from Pi(b | residual), each at the
data points and at the nodes together, for all chains at a time. Outcomes are whitened, so their components are
independent a priori and each has a sampler of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np

from ..arrays import Array
from ..findings import Finding
from ..problem.data.labels import NO_LABELS, LabelColumns
from ..regression.compiled import ChainwiseSampler as ChainwiseSampler


class Setting(NamedTuple):
    """What a prior may know of one (whitened) outcome before it draws.

    Attributes
    ----------
    x, nodes
        Data points (n, d) and nodes (m, d); m may be 0.
    span
        Width of the domain in each input, (d,).
    noise_var
        Noise variance of each observation, (n,): ones where the noise is the same everywhere.
    residual
        y - f(x, theta_tilde), (n,), whitened.
    gradient
        df/dtheta at the data and theta_tilde, (n, p), whitened.
    unit
        Whitened units in one unit of the outcome.
    outcome
        Its number among the outcomes.
    counts
        Observations behind each data point, (n,), where those with the same x were merged into one.
    labels
        Which inputs are categorical. A prior that does not know of them is given x with a column of ones and zeros for
        each label instead, see ``bias/one_hot.py``.
    shares
        How often each column is to be split by, (d,), where not all alike: the columns of a categorical input's labels
        count as one input.
    bounds
        Lower and upper ends of the domain, (2, d).
    unmerged
        The same with a row for every observation. Priors of orthocal are given merged points, and choose their scales
        by all observations; a user's own is given every observation as a point.
    noise_cov
        Covariance of all observations' noise, (n, n), where it is correlated between them. ``noise_var`` is then what
        is left when the correlated part is known: that is drawn beside the bias, and taken off its residual.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> x = np.linspace(0, 1, 20)[:, None]
    >>> setting = oc.bias.Setting(
    ...     x=x,
    ...     nodes=np.array([[0.25], [0.75]]),
    ...     span=np.ones(1),
    ...     noise_var=np.ones(20),
    ...     residual=5 * np.sin(6 * x[:, 0]),
    ...     gradient=x,
    ...     unit=10.0,
    ... )
    >>> sampler = oc.bias.GP(sd=0.5, lengthscale=0.3).prepare(setting)
    >>> sampler.findings()["sd"]
    0.5
    """

    x: Array
    nodes: Array
    span: Array
    noise_var: Array
    residual: Array
    gradient: Array
    unit: float
    outcome: int = 0
    counts: Array | None = None
    unmerged: Setting | None = None
    noise_cov: Array | None = None
    labels: LabelColumns = NO_LABELS
    shares: Array | None = None
    bounds: Array | None = None

    @property
    def every(self) -> Setting:
        """With a row for every observation.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> one, none = np.ones(1), np.empty((0, 1))
        >>> two = np.zeros((2, 1))
        >>> pair = oc.bias.Setting(two, none, one, np.ones(2), np.array([1.0, 3.0]), two, 1.0)
        >>> merged = oc.bias.Setting(two[:1], none, one, one / 2, 2 * one, two[:1], 1.0, unmerged=pair)
        >>> len(merged.x), len(merged.every.x), len(pair.every.x)
        (1, 2, 2)
        """
        return self if self.unmerged is None else self.unmerged


class BiasSampler(Protocol):
    """Draws of the bias given a residual: what ``prepare`` of a prior returns.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> x = np.linspace(0, 1, 20)[:, None]
    >>> setting = oc.bias.Setting(x, x[:0], np.ones(1), np.ones(20), 10 * x[:, 0] ** 2, x, 1.0)
    >>> sampler = oc.bias.GP(sd=5.0, lengthscale=0.5).prepare(setting)
    >>> rngs = [np.random.default_rng(c) for c in range(3)]
    >>> state, values = sampler.draw(rngs, None, np.tile(setting.residual, (3, 1)))
    >>> records = sampler.record(state)
    >>> again = sampler.predict(rngs[0], records, x)
    >>> values.shape, again.shape
    ((3, 20), (3, 20))
    """

    def draw(
        self,
        rngs: list[np.random.Generator],
        state: Any,
        residual: Array,
        noise_scale: Array | None = None,
    ) -> tuple[Any, Array]:
        """One draw for each chain: residual (c, n) -> the next state, and b at data and nodes (c, n + m).

        ``state`` is None at first. ``noise_scale`` (c,) multiplies the noise variances where the noise is sampled;
        it is given only to samplers whose attribute ``takes_noise_scale`` is true.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> x = np.linspace(0, 1, 20)[:, None]
        >>> setting = oc.bias.Setting(x, x[:5], np.ones(1), np.ones(20), 10 * x[:, 0] ** 2, x, 1.0)
        >>> sampler = oc.bias.GP(sd=5.0, lengthscale=0.5).prepare(setting)
        >>> rngs = [np.random.default_rng(c) for c in range(3)]
        >>> state, values = sampler.draw(rngs, None, np.tile(setting.residual, (3, 1)))
        >>> values.shape, np.allclose(values[:, :5], values[:, 20:], atol=1e-3)
        ((3, 25), True)
        """

    def record(self, state: Any) -> dict[str, Array]:
        """What ``predict`` needs of a state, as arrays with the chain first.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> x = np.linspace(0, 1, 20)[:, None]
        >>> setting = oc.bias.Setting(x, x[:0], np.ones(1), np.ones(20), 10 * x[:, 0] ** 2, x, 1.0)
        >>> sampler = oc.bias.BNN(hidden=5).prepare(setting)
        >>> state, _ = sampler.draw([np.random.default_rng(1)], None, setting.residual[None])
        >>> {name: values.shape[0] for name, values in sampler.record(state).items()}
        {'weights': 1}
        """

    def predict(self, rng: np.random.Generator, records: dict[str, Array], x_new: Array) -> Array:
        """b at x_new (m, d) for s recorded draws, (s, m): the same functions that were drawn.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> x = np.linspace(0, 1, 20)[:, None]
        >>> setting = oc.bias.Setting(x, x[:0], np.ones(1), np.ones(20), 10 * x[:, 0] ** 2, x, 1.0)
        >>> sampler = oc.bias.BNN(hidden=5).prepare(setting)
        >>> rng = np.random.default_rng(1)
        >>> state, values = sampler.draw([rng], None, setting.residual[None])
        >>> np.allclose(sampler.predict(rng, sampler.record(state), x), values)
        True
        """

    def findings(self) -> dict[str, Any]:
        """What a user should know of the fitted prior: numbers and lists that can be stored as JSON.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> x = np.linspace(0, 1, 20)[:, None]
        >>> setting = oc.bias.Setting(x, x[:0], np.ones(1), np.ones(20), 10 * x[:, 0] ** 2, x, unit=10.0)
        >>> findings = oc.bias.GP(sd=0.5, lengthscale=0.3).prepare(setting).findings()
        >>> findings["sd"], findings["lengthscale"]
        (0.5, [0.3])
        """

    def settings(self) -> dict[str, Any]:
        """All that is needed to rebuild the sampler of a stored posterior, as what JSON can store.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> x = np.linspace(0, 1, 20)[:, None]
        >>> setting = oc.bias.Setting(x, x[:0], np.ones(1), np.ones(20), 10 * x[:, 0] ** 2, x, 1.0)
        >>> oc.bias.GP(sd=0.5, lengthscale=0.3).prepare(setting).settings()["kind"]
        'gp'
        """


@runtime_checkable
class BiasPrior(Protocol):
    """A nonparametric prior on the bias: all that ``oc.methods`` ask of one.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> class Offset:
    ...     def prepare(self, setting):
    ...         return OffsetSampler(len(setting.x) + len(setting.nodes))
    ...
    ...     def describe(self):
    ...         return {"kind": "offset"}
    >>> class OffsetSampler(oc.bias.ChainwiseSampler):
    ...     def __init__(self, points):
    ...         self.points = points
    ...
    ...     def one_draw(self, rng, state, residual):
    ...         precision = 1 + len(residual)
    ...         level = rng.normal(residual.sum() / precision, precision**-0.5)
    ...         return level, np.full(self.points, level)
    >>> isinstance(Offset(), oc.bias.BiasPrior)
    True
    >>> model1 = oc.examples.MODEL1
    >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
    >>> own = oc.methods.Projected(bias=Offset())
    >>> oc.calibrate(problem, own, draws=50, chains=2, seed=1, progress=False).theta.shape
    (2, 50, 1)
    """

    def prepare(self, setting: Setting) -> BiasSampler:
        """Fix hyperparameters, factorise, compile: all that is done once.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> x = np.linspace(0, 1, 20)[:, None]
        >>> setting = oc.bias.Setting(x, x[:0], np.ones(1), np.ones(20), 10 * x[:, 0] ** 2, x, 1.0)
        >>> sampler = oc.bias.GP().prepare(setting)
        >>> sampler.findings()["sd"] > 0
        True
        """

    def describe(self) -> dict[str, Any]:
        """The user's choices, as what JSON can store.

        Examples
        --------
        >>> import orthocal as oc
        >>> oc.bias.BMARS(order=1).describe()
        {'kind': 'bmars', 'moves': 10, 'order': 1, 'degree': 1, 'most': 50, 'least': 5}
        """


def scales_noise(sampler: BiasSampler) -> bool:
    """Whether a sampler can multiply its noise variances by a number."""
    return bool(getattr(sampler, "takes_noise_scale", False))


def trace_of(sampler: BiasSampler) -> list[Any] | None:
    """What a sampler notes for its findings of how each draw went, which a chain that goes on needs; None without."""
    trace: list[Any] | None = getattr(sampler, "trace", None)
    return trace


class UnitsState(NamedTuple):
    """s of each chain, (c,), and the state of the sampler in units of it."""

    sd: Array
    own: Any


class InNoiseUnits:
    """b = s b_own, s the noise sd, for a sampler whose noise variances are fixed."""

    takes_noise_scale = False

    def __init__(self, own: BiasSampler) -> None:
        self.own = own

    def draw(
        self,
        rngs: list[np.random.Generator],
        state: UnitsState | None,
        residual: Array,
        noise_scale: Array | None = None,
        noise_sd: Array | None = None,
    ) -> tuple[UnitsState, Array]:
        sd = np.ones(len(rngs)) if noise_sd is None else noise_sd
        own, values = self.own.draw(rngs, None if state is None else state.own, residual / sd[:, None])
        return UnitsState(sd, own), values * sd[:, None]

    def record(self, state: UnitsState) -> dict[str, Array]:
        return {**self.own.record(state.own), "noise_sd": state.sd[:, None]}

    def predict(self, rng: np.random.Generator, records: dict[str, Array], x_new: Array) -> Array:
        own = {name: values for name, values in records.items() if name != "noise_sd"}
        return np.asarray(records["noise_sd"] * self.own.predict(rng, own, x_new))

    def findings(self) -> dict[str, Any]:
        return self.own.findings()

    def settings(self) -> dict[str, Any]:
        return self.own.settings()


class ListedPrior:
    """A prior that methods and files know by its name; what it states, it states in its own file.

    Attributes
    ----------
    name
        In methods and files.
    words
        What it assumes, the beginning of a sentence.
    """

    name: ClassVar[str]
    words: ClassVar[str]

    def prepare(self, setting: Setting) -> BiasSampler:
        raise NotImplementedError

    def describe(self) -> dict[str, Any]:
        raise NotImplementedError

    @staticmethod
    def restore(settings: dict[str, Any], x: Array, nodes: Array, noise_var: Array) -> BiasSampler:
        """The sampler of a stored posterior, from its ``settings()`` and its points.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> x = np.linspace(0, 1, 20)[:, None]
        >>> setting = oc.bias.Setting(x, x[:0], np.ones(1), np.ones(20), 10 * x[:, 0] ** 2, x, 1.0)
        >>> sampler = oc.bias.GP().prepare(setting)
        >>> again = oc.bias.GP.restore(sampler.settings(), x, x[:0], np.ones(20))
        >>> again.settings() == sampler.settings()
        True
        """
        raise NotImplementedError

    @staticmethod
    def remarks(findings: dict[str, Any]) -> Iterator[Finding]:
        """What is to be said about the ``findings()`` of a sampler.

        Examples
        --------
        >>> import orthocal as oc
        >>> for finding in oc.bias.GP.remarks({"jitter": 1e-6}):
        ...     print(finding.message)
        a jitter of 1e-06 of its variance was needed
        """
        return iter(())


#: from a sampler's settings, the data points, the nodes and the noise variances
Restore = Callable[[dict[str, Any], Array, Array, Array], BiasSampler]


class StoredSampler(NamedTuple):
    """What a file's sampler needs: how it is made again, and what its findings mean."""

    restore: Restore
    remarks: Callable[[dict[str, Any]], Iterator[Finding]]


#: name -> prior, in the order of ``bias/__init__.py``
PRIORS: dict[str, type[ListedPrior]] = {}
#: kind of a sampler's settings -> what its file needs
SAMPLERS: dict[str, StoredSampler] = {}

Prior = TypeVar("Prior", bound=type[ListedPrior])


def listed(prior: Prior) -> Prior:
    """Of a class: a prior that can be named."""
    PRIORS[prior.name] = prior
    SAMPLERS[prior.name] = StoredSampler(prior.restore, prior.remarks)
    return prior
