"""Several experiments, each alone, all together, and all but one: where they disagree, and how each is predicted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.optimize import least_squares
from scipy.stats import norm

from ..arrays import Array
from ..calibration import calibrate
from ..errors import InputError, OrthocalError
from ..execution.checkpoints.checkpoint_file import Checkpoint
from ..experiments import Experiments
from ..files import whole_text
from ..methods import Method
from ..pages.tables import frame_table, shown_html, with_error
from ..problem.fingerprint import fingerprint
from ..problem.problem import Problem
from ..results.posterior import Posterior
from .fits import checkpointed_fits, deduplicate_warnings, noise_sds
from .outcomes import TOGETHER

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: probability that any of all experiments that agree is said to disagree
FALSE_ALARM = 0.01
#: draws of theta by which an experiment is predicted
DRAWS = 100


@dataclass(frozen=True)
class ExperimentComparison:
    """Posteriors from each experiment alone, from all but one, and from all together.

    Attributes
    ----------
    together
        The posterior of all experiments.
    alone, without
        Name of an experiment -> the posterior from it alone, and from all others.
    predictions
        One row an experiment: root mean square of what the simulator alone misses of its data, in noise sds, with theta
        from the others (``others``, with its central 95 % over the draws) and from the experiment itself (``own``; its
        best fit where it could not be calibrated alone).
        Private parameters are fitted to the experiment in both.
    failures
        What could not be calibrated, and why.
    shared
        The parameters that are one for several experiments.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> model1, rng = oc.examples.MODEL1, np.random.default_rng(1)
    >>> rigs = {name: model1.problem(*model1.simulate(rng, 20)) for name in ("rig A", "rig B")}
    >>> settings = {"draws": 50, "chains": 2, "seed": 1, "progress": False}
    >>> compared = oc.compare_experiments(oc.Experiments(rigs), **settings)
    >>> list(compared.alone), list(compared.without), compared.shared
    (['rig A', 'rig B'], ['rig A', 'rig B'], ('theta',))
    """

    together: Posterior
    alone: dict[str, Posterior]
    without: dict[str, Posterior]
    predictions: pd.DataFrame
    failures: dict[str, str]
    shared: tuple[str, ...]

    def disagreements(self) -> pd.DataFrame:
        """One row an experiment and shared parameter: what it says alone, what the others say, and how far apart.

        ``z`` is the difference in standard deviations of it, and ``p`` the probability of a larger one where the two
        agree. Both fits have the same prior, so that where data say little they seem to agree.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1, rng = oc.examples.MODEL1, np.random.default_rng(1)
        >>> rigs = {name: model1.problem(*model1.simulate(rng, 20)) for name in ("rig A", "rig B")}
        >>> settings = {"draws": 50, "chains": 2, "seed": 1, "progress": False}
        >>> compared = oc.compare_experiments(oc.Experiments(rigs), **settings)
        >>> bool((compared.disagreements()["p"] > 0.001).all())
        True
        """
        rows = []
        for name in self.alone:
            if name not in self.without:
                continue
            own, rest = _draws(self.alone[name]), _draws(self.without[name])
            for parameter in self.shared:
                if parameter in own and parameter in rest:
                    (mean, sd), (other, other_sd) = (
                        (one[parameter].mean(), one[parameter].std()) for one in (own, rest)
                    )
                    z = (mean - other) / np.hypot(sd, other_sd)
                    rows.append((name, parameter, mean, sd, other, other_sd, z, 2 * norm.sf(abs(z))))
        columns = ["experiment", "parameter", "alone", "alone_sd", "others", "others_sd", "z", "p"]
        return pd.DataFrame(rows, columns=columns).set_index(["experiment", "parameter"])

    def words(self) -> list[str]:
        """What the comparison says, in plain sentences.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1, rng = oc.examples.MODEL1, np.random.default_rng(1)
        >>> rigs = {name: model1.problem(*model1.simulate(rng, 20)) for name in ("rig A", "rig B")}
        >>> settings = {"draws": 50, "chains": 2, "seed": 1, "progress": False}
        >>> print(oc.compare_experiments(oc.Experiments(rigs), **settings).words()[0])
        The experiments agree about the parameters that they share: ...
        """
        return [*self._apart(), *self._predicted()]

    def _apart(self) -> Iterator[str]:
        table = self.disagreements()
        if not len(table):
            yield "No two fits have a parameter in common: there is nothing to disagree about."
            return
        # each pair is looked at: a rarer one must be expected among many
        far = table[table["p"] < FALSE_ALARM / len(table)].sort_values("p")
        for row in far.reset_index().to_dict("records"):
            yield (
                f"{_called(row['experiment'], 'Experiment')} disagrees with the others about {row['parameter']}: "
                f"{with_error(row['alone'], row['alone_sd'], 2)} alone, "
                f"{with_error(row['others'], row['others_sd'], 2)} from the others, "
                f"{abs(row['z']):.1f} standard deviations apart."
            )
        if not len(far):
            yield (
                "The experiments agree about the parameters that they share: no difference is larger than chance makes "
                f"one in {1 / FALSE_ALARM:.0f} such comparisons."
            )

    def _predicted(self) -> Iterator[str]:
        for name, row in self.predictions.iterrows():
            worse = row["others"] / max(row["own"], 1e-300)
            ending = "as well as its own fit does" if worse < 1.1 else f"{worse:.2g} times as far as its own fit"
            yield (
                f"With theta from the other experiments, the simulator misses {_called(name)} by {row['others']:.3g} "
                f"noise standard deviations (rms), {ending} ({row['own']:.3g})."
            )

    def figure(self) -> Figure:
        """The posteriors of shared parameters: all together, each alone, all but each.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1, rng = oc.examples.MODEL1, np.random.default_rng(1)
        >>> rigs = {name: model1.problem(*model1.simulate(rng, 20)) for name in ("rig A", "rig B")}
        >>> settings = {"draws": 50, "chains": 2, "seed": 1, "progress": False}
        >>> len(oc.compare_experiments(oc.Experiments(rigs), **settings).figure().axes)
        1
        """
        from .figures import fits_figure

        return fits_figure(self.shared_draws())

    def shared_draws(self) -> dict[str, dict[str, Array | None]]:
        """Draws of the shared parameters, name of a fit -> parameter -> its draws, where it has the parameter.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1, rng = oc.examples.MODEL1, np.random.default_rng(1)
        >>> rigs = {name: model1.problem(*model1.simulate(rng, 20)) for name in ("rig A", "rig B")}
        >>> settings = {"draws": 50, "chains": 2, "seed": 1, "progress": False}
        >>> draws = oc.compare_experiments(oc.Experiments(rigs), **settings).shared_draws()
        >>> list(draws)
        ['all together', 'rig A alone', 'without rig A', 'rig B alone', 'without rig B']
        """
        names = list(self.shared or self.together.parameter_names)
        fits = {TOGETHER: self.together}
        for name in dict.fromkeys([*self.alone, *self.without]):
            fits |= {f"{name} alone": self.alone[name]} if name in self.alone else {}
            fits |= {f"without {name}": self.without[name]} if name in self.without else {}
        return {name: {one: _draws(fit).get(one) for one in names} for name, fit in fits.items()}

    def report(self, path: str | Path, title: str = "Comparison of experiments") -> Path:
        """Write one self-contained HTML page, which opens offline and runs no script.

        Parameters
        ----------
        path
            The file.
        title
            Of the page.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1, rng = oc.examples.MODEL1, np.random.default_rng(1)
        >>> rigs = {name: model1.problem(*model1.simulate(rng, 20)) for name in ("rig A", "rig B")}
        >>> settings = {"draws": 50, "chains": 2, "seed": 1, "progress": False}
        >>> compared = oc.compare_experiments(oc.Experiments(rigs), **settings)
        >>> path = compared.report("rigs.html", title="Two rigs")
        >>> "Two rigs" in path.read_text(encoding="utf-8")
        True
        """
        from .page import experiments_page

        draws, tables = self.shared_draws(), (self.disagreements(), self.predictions)
        page = experiments_page(title, self.together, draws, tables, self.words(), self.failures)
        return whole_text(path, page)

    def _repr_html_(self) -> str:
        tables = [frame_table(one) for one in (self.disagreements(), self.predictions) if len(one)]
        failed = [f"{name}: {why}" for name, why in self.failures.items()]
        return shown_html("Comparison of experiments", None, tables, [*self.words(), *failed])

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        tables = [self.disagreements(), self.predictions]
        shown = [one.to_string(float_format=lambda value: f"{value:.4g}") for one in tables if len(one)]
        failed = [f"{name}: {why}" for name, why in self.failures.items()]
        return "\n\n".join([*shown, "\n".join([*self.words(), *failed])])


def _called(name: object, word: str = "experiment") -> str:
    """An experiment in a sentence: those of a table are often numbered."""
    return f"{word} {name}" if str(name).isdecimal() else str(name)


def _draws(posterior: Posterior) -> dict[str, Array]:
    """Parameter -> its draws; of a posterior of one experiment, too, which has plain names."""
    theta = posterior.theta.reshape(-1, posterior.theta.shape[-1])
    return dict(zip(posterior.parameter_names, theta.T, strict=True))


def compare_experiments(
    experiments: Experiments,
    method: str | Method = "gp",
    checkpoint: str | Path | Checkpoint | None = None,
    **options: Any,
) -> ExperimentComparison:
    """Calibrate each experiment alone, all together, and all but each of them.

    Parameters
    ----------
    experiments
        At least two.
    method, options
        As for ``oc.calibrate``.
    checkpoint
        A file that keeps all fits while they are under way, as for ``oc.calibrate``: the same call goes on.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> model1, rng = oc.examples.MODEL1, np.random.default_rng(1)
    >>> rigs = {name: model1.problem(*model1.simulate(rng, 20)) for name in ("rig A", "rig B")}
    >>> settings = {"draws": 50, "chains": 2, "seed": 1, "progress": False}
    >>> compared = oc.compare_experiments(oc.Experiments(rigs), "gp", **settings)
    >>> compared.together.parameter_names, compared.predictions.shape
    (('theta',), (2, 4))
    """
    if not isinstance(experiments, Experiments):
        raise InputError(f"experiments is {type(experiments).__name__}: give oc.Experiments")
    if len(experiments) < 2:
        raise InputError("there is one experiment: there is nothing to compare")
    alone: dict[str, Posterior] = {}
    without: dict[str, Posterior] = {}
    failures: dict[str, str] = {}
    # one seed for all fits, so that the comparison can be repeated
    with (
        deduplicate_warnings(),
        checkpointed_fits(checkpoint, partial(_work, experiments, method, options), options.get("seed")) as seed,
    ):
        options["seed"] = seed
        together = calibrate(experiments, method, **options)
        for name in experiments.names:
            for fits, part, words in ((alone, _alone, f"{name} alone"), (without, _without, f"without {name}")):
                try:
                    fits[name] = calibrate(part(experiments, name), method, **options)
                except OrthocalError as error:
                    failures[words] = str(error)
    rows = {name: _predicted(experiments[name], alone.get(name), one) for name, one in without.items()}
    table = pd.DataFrame.from_dict(
        rows, orient="index", columns=["others", "others_lower", "others_upper", "own"]
    ).rename_axis("experiment")
    return ExperimentComparison(together, alone, without, table, failures, experiments.shared)


def _without(experiments: Experiments, name: str) -> Experiments:
    return experiments.without([name])


def _alone(experiments: Experiments, name: str) -> Experiments:
    """One experiment; a parameter that has no effect in it keeps its prior, for it is the others that know it."""
    part = experiments.without([one for one in experiments.names if one != name])
    # searched for before it is copied, so that the best fit is found once
    _ = part[name].minima
    own = copy(part[name])
    own.others_know = True
    return Experiments({name: own}, part.private)


def _work(experiments: Experiments, method: str | Method, options: dict[str, Any]) -> dict[str, str]:
    """What a checkpoint must agree in."""
    described = method if isinstance(method, str) else json.dumps(method.describe())
    lengths = {name: str(options.get(name)) for name in ("draws", "chains", "warmup")}
    chosen = str((sorted(experiments.private), experiments.weights.tolist()))
    own = {
        f"{part} of {name}": value
        for name, one in experiments.problems.items()
        for part, value in fingerprint(one).items()
    }
    return {"version of orthocal": version("orthocal"), "method": described, "experiments": chosen, **lengths, **own}


def _predicted(problem: Problem, alone: Posterior | None, without: Posterior) -> list[float]:
    """What the simulator misses of an experiment with theta of the others, and of its own, in noise sds.

    Of one that could not be calibrated alone the best fit is its own.
    """
    best = {name: np.array([value]) for name, value in zip(problem.parameters.names, problem.theta_tilde, strict=True)}
    others, own = (_misses(problem, one) for one in (_draws(without), best if alone is None else _draws(alone)))
    lower, upper = np.quantile(others, [0.025, 0.975])
    return [float(others.mean()), float(lower), float(upper), float(own.mean())]


def _misses(problem: Problem, known: dict[str, Array]) -> Array:
    """Root mean square of y - f in noise sds for some draws of the parameters that are known, the others fitted."""
    names = problem.parameters.names
    count = len(next(iter(known.values())))
    rows = np.linspace(0, count - 1, min(DRAWS, count)).round().astype(int)
    free = np.array([name not in known for name in names])
    found = []
    theta = problem.theta_tilde.copy()
    for row in rows:
        theta[~free] = [known[name][row] for name in np.array(names)[~free]]
        if free.any():
            theta[free] = _fitted(problem, theta, free)
        model = problem.simulator.evaluate(problem.data.x, theta)
        found.append(np.sqrt(np.nanmean(((problem.data.y - model) / noise_sds(problem)) ** 2)))
    return np.array(found)


def _fitted(problem: Problem, theta: Array, free: Array) -> Array:
    """The free parameters where the simulator is nearest to the data, the others given."""
    lower, upper = problem.parameters.lower[free], problem.parameters.upper[free]
    start = problem.parameters.clipped(theta, 1e-6)[free]
    sds = noise_sds(problem)

    def left(values: Array) -> Array:
        whole = theta.copy()
        whole[free] = values
        away = (problem.data.y - problem.simulator.evaluate(problem.data.x, whole)) / sds
        return np.nan_to_num(away[problem.data.observed], nan=1e6)

    return np.asarray(least_squares(left, start, bounds=(lower, upper), x_scale=problem.parameters.spread[free]).x)
