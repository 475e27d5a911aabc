"""Which of several simulators is closest to the real process, given the same field data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..advice import JOINT
from ..arrays import Array
from ..calibration import check_lengths
from ..errors import InputError
from ..machine.threads import one_blas_thread
from ..methods import Method, Plan
from ..methods.bias_samplers import method_for
from ..methods.joint.closest import Closest
from ..methods.joint.joint import Joint
from ..methods.joint.regress import Linear
from ..pages.tables import frame_table, shown_html
from ..problem.noise.noise import NoiseSource
from ..problem.problem import Problem
from ..progress import progress_bar, progress_shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: probabilities from which on one is called closer, and clearly closer
LIKELY, CLEAR = 0.8, 0.975


@dataclass(frozen=True)
class SimulatorComparison:
    """How close each simulator can come to the real process.

    Attributes
    ----------
    losses
        Name -> draws of the least loss that the simulator can have, (s,): ∫ rho(|y_R - f|) dP_x. Draw number s is for
        the same y_R for every simulator.
    theta
        Name -> where it has it, (s, p).
    unit
        The loss of the noise alone, so that sqrt(loss / unit) is a distance in noise sds.
    squared
        Whether the loss is the squared one: only this has such a distance.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> from scipy import stats
    >>> x = np.linspace(0, 1, 30)
    >>> y, slope = x + 0.1 * x**2, {"a": stats.norm(0, 10)}
    >>> shapes = {"line": lambda x, theta: theta[0] * x, "square": lambda x, theta: theta[0] * x**2}
    >>> problems = {name: oc.Problem(x, y, f, slope, noise_cov=0.01) for name, f in shapes.items()}
    >>> compared = oc.compare_simulators(problems, draws=50, chains=2, seed=1, progress=False)
    >>> {name: loss.shape for name, loss in compared.losses.items()}
    {'line': (200,), 'square': (200,)}
    """

    losses: dict[str, Array]
    theta: dict[str, Array]
    unit: float
    squared: bool

    @property
    def distances(self) -> dict[str, Array]:
        """Root mean square distance in noise sds, (s,); for other losses the loss itself.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> from scipy import stats
        >>> x = np.linspace(0, 1, 30)
        >>> y, slope = x + 0.1 * x**2, {"a": stats.norm(0, 10)}
        >>> shapes = {"line": lambda x, theta: theta[0] * x, "square": lambda x, theta: theta[0] * x**2}
        >>> problems = {name: oc.Problem(x, y, f, slope, noise_cov=0.01) for name, f in shapes.items()}
        >>> compared = oc.compare_simulators(problems, draws=50, chains=2, seed=1, progress=False)
        >>> bool(compared.distances["line"].mean() < compared.distances["square"].mean())
        True
        """
        return {name: np.sqrt(loss / self.unit) if self.squared else loss for name, loss in self.losses.items()}

    def probability(self, one: str, other: str) -> float:
        """P(``one`` is closer to the real process than ``other`` | y).

        Parameters
        ----------
        one, other
            Names of simulators.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> from scipy import stats
        >>> x = np.linspace(0, 1, 30)
        >>> y, slope = x + 0.1 * x**2, {"a": stats.norm(0, 10)}
        >>> shapes = {"line": lambda x, theta: theta[0] * x, "square": lambda x, theta: theta[0] * x**2}
        >>> problems = {name: oc.Problem(x, y, f, slope, noise_cov=0.01) for name, f in shapes.items()}
        >>> compared = oc.compare_simulators(problems, draws=50, chains=2, seed=1, progress=False)
        >>> compared.probability("line", "square") > 0.9
        True
        """
        for name in (one, other):
            if name not in self.losses:
                raise InputError(f"there is no simulator {name!r}: they are {', '.join(self.losses)}")
        if one == other:
            raise InputError(f"{one!r} cannot be closer than itself: give two simulators")
        return float(np.mean(self.losses[one] < self.losses[other]))

    def summary(self, interval: float = 0.95) -> pd.DataFrame:
        """One row a simulator: its distance with an equal-tailed interval, and P(it is the closest of all).

        Parameters
        ----------
        interval
            Probability of the intervals.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> from scipy import stats
        >>> x = np.linspace(0, 1, 30)
        >>> y, slope = x + 0.1 * x**2, {"a": stats.norm(0, 10)}
        >>> shapes = {"line": lambda x, theta: theta[0] * x, "square": lambda x, theta: theta[0] * x**2}
        >>> problems = {name: oc.Problem(x, y, f, slope, noise_cov=0.01) for name, f in shapes.items()}
        >>> compared = oc.compare_simulators(problems, draws=50, chains=2, seed=1, progress=False)
        >>> compared.summary()["closest"].idxmax()
        'line'
        """
        if not 0 < interval < 1:
            raise InputError(f"interval={interval}: give its probability, between 0 and 1")
        every = np.stack(list(self.losses.values()))
        best = np.bincount(every.argmin(axis=0), minlength=len(every)) / every.shape[1]
        rows = {}
        for share, (name, distance) in zip(best, self.distances.items(), strict=True):
            lower, upper = np.quantile(distance, [(1 - interval) / 2, (1 + interval) / 2])
            rows[name] = {"distance": distance.mean(), "lower": lower, "upper": upper, "closest": share}
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("simulator")

    def closer(self) -> pd.DataFrame:
        """P(row closer than column | y).

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> from scipy import stats
        >>> x = np.linspace(0, 1, 30)
        >>> y, slope = x + 0.1 * x**2, {"a": stats.norm(0, 10)}
        >>> shapes = {"line": lambda x, theta: theta[0] * x, "square": lambda x, theta: theta[0] * x**2}
        >>> problems = {name: oc.Problem(x, y, f, slope, noise_cov=0.01) for name, f in shapes.items()}
        >>> compared = oc.compare_simulators(problems, draws=50, chains=2, seed=1, progress=False)
        >>> bool(compared.closer().loc["line", "square"] > 0.9)
        True
        """
        names = list(self.losses)
        table = pd.DataFrame(np.nan, index=pd.Index(names, name="closer"), columns=pd.Index(names, name="than"))
        for one in names:
            for other in names:
                if one != other:
                    table.loc[one, other] = self.probability(one, other)
        return table

    def words(self) -> str:
        """What the comparison says, in plain sentences.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> from scipy import stats
        >>> x = np.linspace(0, 1, 30)
        >>> y, slope = x + 0.1 * x**2, {"a": stats.norm(0, 10)}
        >>> shapes = {"line": lambda x, theta: theta[0] * x, "square": lambda x, theta: theta[0] * x**2}
        >>> problems = {name: oc.Problem(x, y, f, slope, noise_cov=0.01) for name, f in shapes.items()}
        >>> print(oc.compare_simulators(problems, draws=50, chains=2, seed=1, progress=False).words())
        line is closer to the real process than square (P > 0.999). At its best line misses it by ...
        """
        names = sorted(self.losses, key=lambda name: float(self.losses[name].mean()))
        best, rest = names[0], names[1:]
        sentences = []
        for other in rest:
            probability = self.probability(best, other)
            if probability >= CLEAR:
                verdict = f"{best} is closer to the real process than {other}"
            elif probability >= LIKELY:
                verdict = f"{best} is probably closer to the real process than {other}"
            else:
                verdict = f"The data do not tell whether {best} or {other} is closer to the real process"
            sentences.append(f"{verdict} ({_probability(probability)}).")
        if self.squared:
            size = float(self.distances[best].mean())
            sentences.append(f"At its best {best} misses it by {size:.2g} noise standard deviations (rms).")
        return " ".join(sentences)

    def figure(self) -> Figure:
        """The distances side by side, and their differences from the closest one's.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> from scipy import stats
        >>> x = np.linspace(0, 1, 30)
        >>> y, slope = x + 0.1 * x**2, {"a": stats.norm(0, 10)}
        >>> shapes = {"line": lambda x, theta: theta[0] * x, "square": lambda x, theta: theta[0] * x**2}
        >>> problems = {name: oc.Problem(x, y, f, slope, noise_cov=0.01) for name, f in shapes.items()}
        >>> len(oc.compare_simulators(problems, draws=50, chains=2, seed=1, progress=False).figure().axes)
        2
        """
        from .figures import distances_figure

        return distances_figure(self.distances, self.squared)

    def _repr_html_(self) -> str:
        return shown_html("Comparison of simulators", None, [frame_table(self.summary())], [str(self.words())])

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return f"{self.summary().to_string(float_format=lambda value: f'{value:.4g}')}\n{self.words()}"


def compare_simulators(
    problems: Mapping[str, Problem],
    method: str | Method = "gp",
    draws: int = 1000,
    chains: int = 4,
    seed: int | None = None,
    warmup: int = 200,
    progress: bool = True,
) -> SimulatorComparison:
    """Which simulator can come closest to the real process that these field data show.

    The real process is drawn given the data by the regressions of all simulators in equal parts, each with flat priors
    of theta, so that none is at an advantage; every draw is projected on every simulator, within the support of its
    priors. Simulators may have different parameters.

    Parameters
    ----------
    problems
        Name -> problem. They must have the same field data, domain, noise and loss weight.
    method
        A joint projection: ``"gp"``, ``"bart"`` or an ``oc.methods.Joint``.
    draws, chains, warmup, seed, progress
        As for ``oc.calibrate``; the draws of y_R are ``draws`` times ``chains`` for each simulator.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> from scipy import stats
    >>> x = np.linspace(0, 1, 30)
    >>> y, slope = x + 0.1 * x**2, {"a": stats.norm(0, 10)}
    >>> shapes = {"line": lambda x, theta: theta[0] * x, "square": lambda x, theta: theta[0] * x**2}
    >>> problems = {name: oc.Problem(x, y, f, slope, noise_cov=0.01) for name, f in shapes.items()}
    >>> compared = oc.compare_simulators(problems, draws=50, chains=2, seed=1, progress=False)
    >>> compared.probability("line", "square") > 0.9
    True
    """
    problems = _with_one_noise(problems)
    _check(problems)
    chosen = method_for(next(iter(problems.values())), method)
    if not isinstance(chosen, Joint):
        raise InputError(f"method={method!r}: simulators are compared by " + JOINT)
    check_lengths(draws, chains, warmup, seed)
    with one_blas_thread(), progress_shown(progress):
        found = _projected(problems, chosen, (int(draws), chains, int(warmup)), np.random.SeedSequence(seed))
    first = next(iter(problems.values()))
    return SimulatorComparison(
        {name: one.loss for name, one in found.items()},
        {name: one.theta for name, one in found.items()},
        float(np.trace(first.metric)),
        chosen.describe()["loss"] == "squared",
    )


def _projected(
    problems: Mapping[str, Problem],
    chosen: Joint,
    lengths: tuple[int, int, int],
    sequence: np.random.SeedSequence,
) -> dict[str, Closest]:
    """Draws of the real process from all regressions, projected on each simulator."""
    draws, chains, warmup = lengths
    reals, spreads = [], {}
    for (name, problem), own in zip(problems.items(), sequence.spawn(len(problems)), strict=True):
        plan = Plan(draws, warmup, [np.random.default_rng(one) for one in own.spawn(chains)])
        problem = problem.merged if chosen.merges else problem
        linear = Linear.of(problem)
        flat = linear._replace(pull=0 * linear.pull, precision=0 * linear.precision)
        regressed = chosen.regressed(problem, plan, flat)
        reals.append(problem.whiten(problem.fit_at_nodes) + regressed.at_nodes)
        spreads[name] = regressed.moved.std(axis=0)
    real = np.concatenate(reals)
    return {
        name: chosen.projected(problem, real, spreads[name])
        for name, problem in progress_bar(list(problems.items()), "projection")
    }


def _with_one_noise(problems: Mapping[str, Problem]) -> Mapping[str, Problem]:
    """Where the noise is unknown, all in units of the least that a simulator leaves: distances need one scale."""
    each = problems.values() if isinstance(problems, Mapping) else ()
    if len(each) < 2 or not all(isinstance(one, Problem) for one in each):
        return problems
    noises = [one.noise for one in problems.values()]
    shapes = {(one.source, one.cov.shape) for one in noises}
    if shapes != {(NoiseSource.UNKNOWN, noises[0].cov.shape)}:
        return problems
    least = min(noises, key=lambda one: float(np.trace(one.cov)))
    return {name: one.with_noise(least) for name, one in problems.items()}


def _check(problems: Mapping[str, Problem]) -> None:
    if not isinstance(problems, Mapping) or len(problems) < 2:
        raise InputError('problems must be a dictionary of at least two: {"A": problem_a, "B": problem_b}')
    for name, problem in problems.items():
        if not isinstance(problem, Problem):
            raise InputError(f"{name!r} is {type(problem).__name__}: give an oc.Problem")
    (first_name, first), *others = problems.items()
    for name, other in others:
        if first.data.transforms != other.data.transforms:
            raise InputError(f"{first_name!r} and {name!r} differ in their transform: distances are on its scale")
        pairs = {
            "x": (first.data.x, other.data.x),
            "y": (first.data.y, other.data.y),
            "domain": (first.rule.nodes, other.rule.nodes),
            "domain's weights": (first.rule.weights, other.rule.weights),
            "noise": (first.noise.cov, other.noise.cov),
            "loss_weight": (first.weight, other.weight),
        }
        for what, (one, own) in pairs.items():
            if one.shape != own.shape or not np.allclose(one, own, rtol=1e-10, atol=0, equal_nan=True):
                raise InputError(
                    f"{first_name!r} and {name!r} differ in their {what}: simulators are compared on the same field "
                    "data, domain, noise and loss weight"
                )


def _probability(value: float) -> str:
    """To the digits that draws can show."""
    return "P > 0.999" if value > 0.999 else f"P = {value:.{3 if value > 0.99 else 2}f}"
