"""What a calibration method is: a Problem in, draws out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np

from ..arrays import Array, IntArray
from ..bias import BiasSampler
from ..bias.base import PRIORS
from ..bias.one_hot import stored_sampler
from ..bias.outcomes import split_points
from ..errors import InputError
from ..problem.preflight.cost import COSTS, CallsEach, RunCost
from ..problem.problem import Problem
from ..projection import ProjectionKind

#: of a theta step that needs no gradient: it takes as many proposals as the curvature asks for, and only the run itself
#: knows how many
CHAIN_COST = RunCost(CallsEach((1.1, 1.6)), CallsEach((2.5, 14.0)))
#: what theta is, in most methods' words
CLOSEST = "theta is where the simulator comes closest to the real process over the domain"


#: what model and bias at the data may take, in bytes, before they are kept of some draws only
MOST_KEPT = 256_000_000


class Plan(NamedTuple):
    """How long to run: draws and warm-up iterations a chain, and a generator a chain.

    ``keep`` is what model and bias at the data may take, in bytes: where all draws would take more, some are kept.
    ``emulator_draws`` is how many draws of the emulator stand for what is uncertain about the simulator, from
    ``emulator_seed``; 0 where its mean is taken for the simulator.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> model1 = oc.examples.MODEL1
    >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
    >>> rngs = [np.random.default_rng(one) for one in np.random.SeedSequence(1).spawn(2)]
    >>> plan = oc.methods.Plan(draws=50, warmup=100, rngs=rngs)
    >>> oc.methods.Joint().run(problem, plan).theta.shape
    (2, 50, 1)
    """

    draws: int
    warmup: int
    rngs: list[np.random.Generator]
    keep: int = MOST_KEPT
    emulator_draws: int = 0
    emulator_seed: int = 0

    def kept(self, cells: int) -> IntArray | None:
        """Numbers of each chain's draws whose model and bias are kept at so many cells of y; None for all.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> plan = oc.methods.Plan(draws=1000, warmup=200, rngs=[np.random.default_rng(1)], keep=80_000)
        >>> plan.kept(cells=5) is None
        True
        >>> plan.kept(cells=1000)
        array([  0, 250, 500, 749, 999])
        """
        most = self.keep // (2 * 8 * cells * len(self.rngs))
        if most >= self.draws:
            return None
        return np.linspace(0, self.draws - 1, max(1, most)).round().astype(np.intp)


class Drawn(StrEnum):
    """What the samplers draw: the bias; y_R, from which the simulator is taken away; or y_R less the best fit."""

    BIAS = "bias"
    PROCESS = "process"
    RESIDUAL = "residual"


@dataclass(frozen=True)
class RunNotes:
    """Facts about a run that ``check`` reads; None is what a method does not have, or what is not known.

    Attributes
    ----------
    inner_steps, refinements
        Proposals of a theta step, and Gauss-Newton steps for each of them.
    remembers
        Whether the memory of the theta step was looked for, and then ``theta_memory``, what was found.
    bias
        Findings of the bias samplers, one an outcome, as what JSON can store.
    maxima
        Share of the draws that were left out because the loss was stationary there, but not least.
    bias_nodes, bias_nodes_moved
        Nodes at which the bias was integrated, where these are not the domain's, 0 where that was exact; and what half
        of them would move theta by, in posterior sds.
    pareto_k, weighted_draws
        Of importance weights for the prior of theta: their Pareto shape, and how many draws they are worth.
    impossible
        Share of the draws that were left out because the simulator is closest where theta is not allowed, or where it
        fails.
    plugged_in_var
        Variance of each parameter if noise, size and length-scales of the bias, which are integrated over, were known
        to be what they are on average, for a linear simulator; None where they are not integrated over.
    emulator_draws, emulator_seed, emulator_stretch
        How many draws of the emulator stood for the simulator, their seed, and how much farther from its mean they were
        than its own.
    """

    inner_steps: int | None = None
    refinements: int | None = None
    remembers: bool = False
    theta_memory: float | None = None
    bias: tuple[dict[str, Any], ...] = ()
    maxima: float | None = None
    bias_nodes: int | None = None
    bias_nodes_moved: float | None = None
    pareto_k: float | None = None
    weighted_draws: float | None = None
    impossible: float = 0.0
    plugged_in_var: tuple[float, ...] | None = None
    emulator_draws: int = 0
    emulator_seed: int = 0
    emulator_stretch: float = 1.0


@dataclass(frozen=True)
class Draws:
    """What a method returns; arrays have (chain, draw) first and are in the outcomes' units.

    Attributes
    ----------
    theta
        (c, s, p).
    model, bias
        f(x_i, theta) and the bias at the data points, (c, s, n, q), or (c, k, n, q) for the draws that were kept.
    kept
        The numbers of these, (k,), the same for each chain; None where all were.
    at_data
        Where not all were: what more draws say of ``model``, ``bias`` and their sum, ``mean``, at the data points,
        each (statistic, n, q) as in ``methods/stored_draws.py``.
    stats
        Name -> (c, s): at least ``lp`` and ``acceptance_rate``.
    coefficient
        Coefficients of what the projection took away, (c, s, p).
    directions
        Of the finite projection: what a coefficient of one takes away at the data points, whitened, (n, q, p).
    prior_shift, unshifted
        Where theta's prior was put in after the regression: what it added to theta, and theta - theta_tilde before
        that, both for a linear simulator, (c, s, p).
    bias_square, process_square
        ∫ b_k^2 dP_x and the variance of y_R over the domain, (c, s, q), where the method knows them.
    emulator_number, emulator_tilt
        Which of the emulator's draws was the simulator of each, (c, s), and what theta's prior added to it, as the
        coefficients of the tilts of ``methods/joint/emulator_draws.py``, (c, s, p); None where there are none.
    emulator_shift
        How far each of the emulator's draws moves theta to first order, (k, p).
    noise_cov
        Sigma_F, (c, s, q, q), where it is sampled.
    bias_state
        What the bias samplers need to predict, name -> (c, s, ...); the outcome's number ends the name.
    reference_state
        The same for draws that stand for the covariance of the bias, name -> (r, ...), and their ``constraint`` (r, p).
    samplers
        The bias samplers, one an outcome; none for a method without bias.
    nodes_drawn
        Whether their draws include the nodes.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> model1 = oc.examples.MODEL1
    >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
    >>> plan = oc.methods.Plan(50, 100, [np.random.default_rng(c) for c in range(2)])
    >>> draws = oc.methods.Joint().run(problem, plan)
    >>> draws.theta.shape, draws.model.shape, draws.bias.shape
    ((2, 50, 1), (2, 50, 30, 1), (2, 50, 30, 1))
    >>> np.allclose(draws.model[..., 0], draws.theta * problem.data.x[:, 0])
    True
    """

    theta: Array
    model: Array
    bias: Array
    stats: dict[str, Array]
    kept: IntArray | None = None
    at_data: dict[str, Array] = field(default_factory=dict)
    projection: ProjectionKind = ProjectionKind.NONE
    coefficient: Array | None = None
    directions: Array | None = None
    prior_shift: Array | None = None
    unshifted: Array | None = None
    bias_square: Array | None = None
    process_square: Array | None = None
    emulator_number: IntArray | None = None
    emulator_tilt: Array | None = None
    emulator_shift: Array | None = None
    noise_cov: Array | None = None
    noise_by_group: Array | None = None
    bias_state: dict[str, Array] = field(default_factory=dict)
    reference_state: dict[str, Array] = field(default_factory=dict)
    samplers: list[BiasSampler] = field(default_factory=list)
    nodes_drawn: bool = False
    drawn: Drawn = Drawn.BIAS
    notes: RunNotes = RunNotes()

    def taken(self, rows: IntArray) -> Draws:
        """The draws numbered ``rows`` (c, s) of each chain.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
        >>> plan = oc.methods.Plan(50, 100, [np.random.default_rng(c) for c in range(2)])
        >>> draws = oc.methods.Joint().run(problem, plan)
        >>> some = draws.taken(np.array([[0, 10], [5, 7]]))
        >>> bool(some.theta[1, 0, 0] == draws.theta[1, 5, 0]), some.bias.shape
        (True, (2, 2, 30, 1))
        """
        chains = np.arange(len(rows))[:, None]
        own = ("theta", "model", "bias", "coefficient", "noise_cov", "noise_by_group", "emulator_number")
        there = {name: value for name in own if (value := getattr(self, name)) is not None}
        changed: dict[str, Any] = {name: value[chains, rows] for name, value in there.items()}
        for name in ("stats", "bias_state"):
            changed[name] = {key: value[chains, rows] for key, value in getattr(self, name).items()}
        return replace(self, **changed)


@runtime_checkable
class Method(Protocol):
    """A way to calibrate: a problem and a plan in, draws out.

    Examples
    --------
    >>> import orthocal as oc
    >>> isinstance(oc.methods.KO(), oc.methods.Method), isinstance("ko", oc.methods.Method)
    (True, False)
    """

    def run(self, problem: Problem, plan: Plan) -> Draws:
        """Draw from the method's posterior.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
        >>> plan = oc.methods.Plan(50, 100, [np.random.default_rng(c) for c in range(2)])
        >>> oc.methods.NoBias().run(problem, plan).theta.shape
        (2, 50, 1)
        """

    def describe(self) -> dict[str, Any]:
        """The user's choices, as what JSON can store.

        Examples
        --------
        >>> import orthocal as oc
        >>> oc.methods.Joint(bias=oc.bias.BMARS(), loss="absolute").describe()["loss"]
        'absolute'
        """


class ListedMethod:
    """A method that files and the command line know by name; what it states, it states in its own file.

    Attributes
    ----------
    kind
        The family's name in ``describe()``, and the method's own where it has one name.
    tells_apart
        Whether something keeps the bias from doing theta's work.
    free_bias
        Whether nothing at all constrains the bias.
    joint_density
        Whether its draws come from one joint distribution of theta and the bias, as leave-one-out assumes.
    merges
        Whether rows of the data with the same x may be given to it as one.
    takes_prior
        Whether it takes more than the support from theta's prior.
    draws_emulators
        Whether it can take draws of an emulator for the simulator.
    plugs_in
        Whether it takes an estimate for a noise that is unknown.
    cost
        How often it calls the simulator, for ``problem.check``; None where that is not known.
    """

    kind: ClassVar[str]
    tells_apart: ClassVar[bool] = True
    free_bias: ClassVar[bool] = False
    joint_density: ClassVar[bool] = True
    takes_prior: ClassVar[bool] = True
    draws_emulators: ClassVar[bool] = False
    plugs_in: ClassVar[bool] = False
    cost: ClassVar[RunCost | None] = None

    @property
    def merges(self) -> bool:
        """Whether rows of the data with the same x may be given to it as one.

        Examples
        --------
        >>> import orthocal as oc
        >>> oc.methods.Joint().merges
        True
        """
        return True

    def words(self) -> str:
        """What the method assumes, in one sentence.

        Examples
        --------
        >>> import orthocal as oc
        >>> print(oc.methods.NoBias().words())
        The simulator is taken as right and all that it misses as noise: ...
        """
        raise NotImplementedError


#: kind -> family of methods
KINDS: dict[str, type[ListedMethod]] = {}
#: name -> what makes the method with its usual settings, in the order of ``methods/__init__.py``
METHODS: dict[str, Callable[[], Method]] = {}

Listed = TypeVar("Listed", bound=type[ListedMethod])


def listed(method: Listed) -> Listed:
    """Of a class: a method that can be named by its kind."""
    KINDS[method.kind] = method
    _name(method.kind, method, method)  # type: ignore[arg-type]
    return method


def listed_with_priors(prefix: str) -> Callable[[Listed], Listed]:
    """Of a class: a method that takes any prior on the bias; its names are the priors' with a prefix."""

    def add(method: Listed) -> Listed:
        KINDS[method.kind] = method
        for name, prior in PRIORS.items():
            _name(prefix + name, method, partial(_with_prior, method, prior))
        return method

    return add


def _name(name: str, method: type[ListedMethod], made: Callable[[], Method]) -> None:
    METHODS[name] = made
    if method.cost is not None:
        COSTS[name] = method.cost


def _with_prior(method: Callable[[Any], Any], prior: Callable[[], Any]) -> Method:
    made: Method = method(prior())
    return made


def method_by_name(method: object) -> Method:
    """A method from its name; an object that is a method is itself.

    Examples
    --------
    >>> import orthocal as oc
    >>> oc.methods.method_by_name("pbart").describe()["projection"]
    'functional'
    >>> oc.methods.method_by_name("magic")
    Traceback (most recent call last):
        ...
    orthocal.errors.InputError: there is no method 'magic': choose one of gp, bart, ...
    """
    if isinstance(method, str):
        if method not in METHODS:
            raise InputError(f"there is no method {method!r}: choose one of {', '.join(METHODS)}")
        return METHODS[method]()
    if not isinstance(method, Method) or isinstance(method, type):
        raise InputError(f"method={method!r}: give a name ({', '.join(METHODS)}) or an object of oc.methods")
    return method


# Replicates cost nothing: a method is given one row for each distinct x, and its draws go back to all rows.


def run_merged(method: Method, problem: Problem, plan: Plan) -> Draws:
    """The draws of a method; one of the user's own, or a prior of theirs, is given all rows."""
    if not (isinstance(method, ListedMethod) and method.merges):
        return method.run(problem, plan)
    merged = problem.merged
    return spread_rows(method.run(merged, plan), merged)


def spread_rows(draws: Draws, merged: Problem) -> Draws:
    """The draws at merged rows as those of all rows."""
    rows = merged.rows
    if rows is None:
        return draws
    place, stats = rows.repeats.place, draws.stats
    # the likelihood of y has the replicates' scatter in it; the distance to a draw of the real process has not
    if draws.drawn is not Drawn.PROCESS:
        stats = {**stats, "lp": stats["lp"] - 0.5 * rows.scatter}
    return replace(
        draws,
        model=draws.model[:, :, place],
        bias=draws.bias[:, :, place],
        at_data={name: values[:, place] for name, values in draws.at_data.items()},
        directions=None if draws.directions is None else draws.directions[place],
        stats=stats,
        samplers=_restored(draws, merged.unmerged),
    )


def _restored(draws: Draws, problem: Problem) -> list[BiasSampler]:
    """The bias samplers as those of a stored posterior, which has all rows."""
    nodes = problem.rule.nodes if draws.nodes_drawn else problem.rule.nodes[:0]
    samplers = []
    for k, sampler in enumerate(draws.samplers):
        points, settings = split_points(problem.data.x, nodes, problem.noise.variances[:, k]), sampler.settings()
        samplers.append(stored_sampler(settings).restore(settings, points.x, points.nodes, points.noise_var))
    return samplers
