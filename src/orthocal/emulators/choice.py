"""The emulator that is chosen where none is asked for: each is learnt from some runs and predicts the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..arrays import Array
from ..errors import InputError
from ..files import whole_file
from ..pages.tables import Grid, frame_table, shown_html
from ..progress import progress_shown
from ..runs.table import RunTable
from .base import EMULATORS, Choice
from .emulator import Emulator
from .fitting import EmulatorChoice, LayoutChoice, fitted_emulator, regressor_by_name, usable_runs
from .race import HeldOut, raced, split

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..pages.panels import Drawing

# How well emulators predict held-out runs, as a figure.

#: points of the right panel, of all outcomes together
MOST_POINTS = 2000


def held_out_drawing(
    errors: pd.Series[float], ranking: list[str], predictions: dict[str, tuple[Array, Array]]
) -> Drawing:
    """Left the relative errors by outcome, right the best emulator's predictions against the held-out runs."""
    from ..pages.panels import Drawing, Panel
    from ..pages.style import CHAINS, GRID, GUIDE, MOST_PANELS, text

    outcomes = [str(one) for one in dict.fromkeys(errors.index.get_level_values("outcome"))][:MOST_PANELS]
    best = ranking[0]
    truth, prediction = predictions[best]

    def left(axis: Axes) -> None:
        for k, outcome in enumerate(outcomes):
            places = np.arange(len(ranking)) + (k - (len(outcomes) - 1) / 2) * 0.6 / len(outcomes)
            own = [float(errors.loc[(name, outcome)]) for name in ranking]
            label = text(outcome) if len(outcomes) > 1 else "_"
            axis.plot(own, places, "o", ms=5, color=CHAINS[k % len(CHAINS)], label=label, clip_on=False)
        axis.set_yticks(range(len(ranking)), [text(name) for name in ranking])
        axis.set_ylim(len(ranking) - 0.5, -0.5)
        axis.set_xlim(0, None)
        axis.set(xlabel="rms error of held-out runs / their spread", title="errors")
        axis.grid(axis="x", color=GRID)
        axis.set_axisbelow(True)

    def right(axis: Axes) -> None:
        most = max(1, MOST_POINTS // len(outcomes))
        rows = np.linspace(0, len(truth) - 1, min(len(truth), most)).astype(int)
        for k in range(len(outcomes)):
            colour = CHAINS[k % len(CHAINS)]
            axis.scatter(truth[rows, k], prediction[rows, k], s=4, alpha=0.5, linewidths=0, color=colour)
        ends = [np.nanmin(truth), np.nanmax(truth)]
        axis.plot(ends, ends, color=GUIDE, lw=0.8, zorder=0)
        axis.set(xlabel="run, less the mean run (spread = 1)", ylabel="prediction", title=f"the best: {text(best)}")

    means = errors.groupby(level=0, sort=False).mean()
    each = ", ".join(f"{name} {float(means.loc[name]):.2g}" for name in ranking)
    panels = (
        Panel(left, f"errors of held-out runs as a share of their spread, mean over the outcomes: {each}."),
        Panel(
            right,
            f"predictions of {best} against held-out runs: mean error {float(means.loc[best]):.2g} of the spread.",
        ),
    )
    return Drawing((panels,), 2, 4.5, max(3.2, 0.5 * len(ranking) + 1.2))


#: half the width of a 95 % interval in sds
NORMAL_95 = 1.959964


@dataclass(frozen=True)
class EmulatorComparison:
    """How well emulators predict runs that they have not seen.

    Attributes
    ----------
    table
        One row an emulator and outcome: ``relative_rmse``, the rms error of all held-out cells relative to their spread
        about the mean run, ``coverage`` of the 95 % intervals (NaN without a variance), ``fit_seconds`` and
        ``predict_ms``, the time of one theta at all points of a run.
    failures
        Emulator -> why it was left out.
    predictions
        Emulator -> (held-out output, prediction), each (N, q), relative to the mean run and in units of the spread.
    held_out
        Number of runs that were predicted.
    dropped
        Of a race: emulator -> after how many of them it was left behind; its row of ``table`` is about these.
    spread
        Of each outcome, (q,): what the errors are relative to.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> theta, x = np.linspace(1, 3, 20)[:, None], np.linspace(0, 1, 5)
    >>> runs = oc.RunTable(theta, np.exp(-theta * x), x, parameter_names=["rate"])
    >>> compared = oc.compare_emulators(runs, ["gp"], folds=1, progress=False)
    >>> list(compared.table.columns)
    ['relative_rmse', 'coverage', 'fit_seconds', 'predict_ms']
    >>> bool(compared.table["relative_rmse"].max() < 0.01)
    True
    """

    table: pd.DataFrame
    failures: dict[str, str]
    predictions: dict[str, tuple[Array, Array]] = field(repr=False)
    held_out: int
    emulators: dict[str, EmulatorChoice] = field(repr=False)
    dropped: dict[str, str] = field(default_factory=dict)
    spread: Array = field(default_factory=lambda: np.ones(1), repr=False)

    @property
    def best(self) -> EmulatorChoice:
        """The emulator with the smallest relative error (rms over the outcomes), to be given to ``oc.emulate``.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> theta, x = np.linspace(1, 3, 20)[:, None], np.linspace(0, 1, 5)
        >>> runs = oc.RunTable(theta, np.exp(-theta * x), x, parameter_names=["rate"])
        >>> compared = oc.compare_emulators(runs, ["gp", oc.emulators.GP(nu=1.5)], folds=1, progress=False)
        >>> oc.emulate(runs, compared.best, progress=False)
        Emulator('gp', 20 runs)
        """
        return self.emulators[self.ranking.index[0]]

    @property
    def ranking(self) -> pd.Series[float]:
        """The relative error of each emulator (rms over the outcomes), best first; those that were dropped are last.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> theta, x = np.linspace(1, 3, 20)[:, None], np.linspace(0, 1, 5)
        >>> runs = oc.RunTable(theta, np.exp(-theta * x), x, parameter_names=["rate"])
        >>> compared = oc.compare_emulators(runs, ["gp", oc.emulators.GP(nu=1.5)], folds=1, progress=False)
        >>> list(compared.ranking.index)
        ['gp 1', 'gp 2']
        """
        squared = self.table["relative_rmse"].pow(2).groupby(level="emulator").mean()
        errors = squared.pow(0.5).sort_values()
        left = [name for name in errors.index if name not in self.dropped]
        return errors.loc[[*left, *(name for name in errors.index if name in self.dropped)]]

    @property
    def choice(self) -> Choice:
        """The best one and its error, for those who only want it.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> theta, x = np.linspace(1, 3, 20)[:, None], np.linspace(0, 1, 5)
        >>> runs = oc.RunTable(theta, np.exp(-theta * x), x, parameter_names=["rate"])
        >>> print(oc.compare_emulators(runs, ["gp"], folds=1, progress=False).choice.sentence)
        gp, the best at 4 held-out runs: its rms error is ... of their spread
        """
        errors = {str(name): float(error) for name, error in self.ranking.items()}
        own = self.table["relative_rmse"].xs(next(iter(errors)), level="emulator")
        rmse = {
            str(name): float(error) * float(spread)
            for (name, error), spread in zip(own.items(), self.spread, strict=True)
        }
        return Choice(errors, rmse, self.held_out, tuple(self.dropped))

    def figure(self) -> Figure:
        """The errors of all emulators, and what the best one predicted against what the runs gave.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> theta, x = np.linspace(1, 3, 20)[:, None], np.linspace(0, 1, 5)
        >>> runs = oc.RunTable(theta, np.exp(-theta * x), x, parameter_names=["rate"])
        >>> figure = oc.compare_emulators(runs, ["gp"], folds=1, progress=False).figure()
        >>> len(figure.axes)
        2
        """

        return held_out_drawing(self.table["relative_rmse"], list(self.ranking.index), self.predictions).figure()

    def _repr_html_(self) -> str:
        said = [f"{name} was left out: {why}" for name, why in self.failures.items()]
        said += [f"{name} was dropped {why}" for name, why in self.dropped.items()]
        facts = {"held-out runs": str(self.held_out), "errors": "relative to the spread of the runs"}
        return shown_html("Comparison of emulators", facts, [frame_table(self.table)], said)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        lines = [f"{self.held_out} held-out runs; errors relative to the spread of the runs", self._text()]
        lines += [f"{name} was left out: {why}" for name, why in self.failures.items()]
        return "\n".join([*lines, *(f"{name} was dropped {why}" for name, why in self.dropped.items())])

    def _text(self) -> str:
        shown = self.table.copy()
        shown["coverage"] = [f"{value:.2f}" if np.isfinite(value) else "-" for value in shown["coverage"]]
        shown["relative_rmse"] = [
            f"{value:.3f}" if value >= 0.01 else f"{value:.1g}" for value in shown["relative_rmse"]
        ]
        for column, digits in (("fit_seconds", 1), ("predict_ms", 3)):
            shown[column] = [f"{value:.{digits}f}" for value in shown[column]]
        return str(shown.rename(columns=lambda name: name.replace("_", " ")).to_string())


def compare_emulators(
    runs: RunTable,
    emulators: Sequence[EmulatorChoice] | Mapping[str, EmulatorChoice] | None = None,
    folds: int | None = None,
    seed: int = 0,
    progress: bool = True,
    race: bool = False,
    jobs: int | None = None,
) -> EmulatorComparison:
    """Fit every emulator to some of the runs and compare its predictions of the others with what they gave.

    Parameters
    ----------
    runs
        The table of runs; those that failed are left out.
    emulators
        As for ``oc.emulate``, a list or label -> emulator; default: all that have names.
    folds
        1 holds out a fifth of the runs; a larger number holds out each run once, in as many parts. Default: 1 from
        200 runs on, 5 below. Replicates, runs at one theta, count as one and are held out together.
    seed
        Of the split.
    progress
        Show progress on a terminal.
    race
        Drop an emulator as soon as it is clearly worse than the best, and stop when one is left.
    jobs
        Fits at a time, in threads; default: the number of cores. It changes no result.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> theta, x = np.linspace(1, 3, 20)[:, None], np.linspace(0, 1, 5)
    >>> runs = oc.RunTable(theta, np.exp(-theta * x), x, parameter_names=["rate"])
    >>> both = {"smooth": "gp", "rough": oc.emulators.GP(nu=1.5)}
    >>> compared = oc.compare_emulators(runs, both, folds=2, progress=False)
    >>> compared.held_out, list(compared.ranking.index)
    (20, ['smooth', 'rough'])
    """
    used = usable_runs(runs)
    chosen = _labelled(tuple(EMULATORS) if emulators is None else emulators)
    with progress_shown(progress):
        found = raced(used, chosen, split(used, folds, seed), race, jobs)
    if not found.parts:
        said = "; ".join(f"{label}: {why}" for label, why in found.failures.items())
        raise InputError(f"no emulator could be fitted: {said}")
    collected, spread = found.parts, found.spread
    rows = [row for label, parts in collected.items() for row in _rows(label, parts, spread, used.outcome_names)]
    table = pd.DataFrame(rows).set_index(["emulator", "outcome"])
    predictions = {label: _joined(parts, spread) for label, parts in collected.items()}
    return EmulatorComparison(table, found.failures, predictions, found.held_out, chosen, found.dropped, spread)


def _labelled(emulators: Sequence[EmulatorChoice] | Mapping[str, EmulatorChoice]) -> dict[str, EmulatorChoice]:
    if isinstance(emulators, Mapping):
        return dict(emulators)
    given = [emulators] if isinstance(emulators, str) else list(emulators)
    labels = [regressor_by_name(one)[0] for one in given]
    return {
        label if labels.count(label) == 1 else f"{label} {labels[: i + 1].count(label)}": one
        for i, (label, one) in enumerate(zip(labels, given, strict=True))
    }


def _joined(parts: list[HeldOut], spread: Array) -> tuple[Array, Array]:
    truth = np.concatenate([one.truth for one in parts])
    return truth / spread, np.concatenate([one.prediction for one in parts]) / spread


def _rows(label: str, parts: list[HeldOut], spread: Array, outcomes: Sequence[str]) -> list[dict[str, object]]:
    truth, prediction = _joined(parts, spread)
    error = prediction - truth
    known = ~np.isnan(truth)
    sds = [one.sd for one in parts if one.sd is not None]
    sd = np.concatenate(sds) / spread if sds else None
    rows = []
    for k, outcome in enumerate(outcomes):
        own = error[known[:, k], k]
        # an emulator that is exact has intervals of no width: rounding must not count as a miss
        covered = np.nan if sd is None else np.mean(np.abs(own) <= NORMAL_95 * sd[known[:, k], k] + 1e-10)
        rows.append(
            {
                "emulator": label,
                "outcome": outcome,
                "relative_rmse": float(np.sqrt(np.mean(own**2))),
                "coverage": float(covered),
                "fit_seconds": float(np.mean([one.fit_seconds for one in parts])),
                "predict_ms": float(np.mean([one.predict_ms for one in parts])),
            }
        )
    return rows


def emulate(
    runs: RunTable,
    emulator: EmulatorChoice = "auto",
    layout: LayoutChoice = "auto",
    components: int | None = None,
    progress: bool = True,
    jobs: int | None = None,
) -> Emulator:
    """An emulator f_hat(x, theta) of the simulator that made ``runs``: it can be given to ``oc.Problem`` as simulator.

    Parameters
    ----------
    runs
        The table of runs; those that failed are left out.
    emulator
        ``"gp"``, ``"bart"``, ``"bmars"``, ``"forest"`` or ``"mlp"``; one of these with settings, for instance
        ``oc.emulators.BART(draws=500)``; any object with ``fit(inputs, targets)`` and ``predict(inputs)``; or
        ``"auto"`` (default), the best at held-out runs, by ``oc.compare_emulators(runs, race=True)``;
        ``emulator.choice`` says how it was chosen.
    layout
        ``"components"``: the output at common points is decomposed into principal components, whose scores are
        learnt from theta; ``"stacked"``: outcomes are learnt from rows (x, theta). Default: what suits the emulator
        and the table.
    components
        Number of components of each outcome; default: all that there are. Few are faster, and lose detail.
    progress
        Show progress on a terminal.
    jobs
        With ``"auto"``, fits at a time; default: the number of cores. It changes no result.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> from scipy import stats
    >>> def slow(x, theta):
    ...     return theta[0] * np.exp(-theta[1] * x)
    >>> design = oc.design({"a": stats.uniform(1, 2), "b": stats.uniform(0, 3)}, 32)
    >>> x = np.linspace(0, 1, 20)
    >>> runs = oc.RunTable(design, [slow(x, theta) for theta in design.to_numpy()], x)
    >>> emulator = oc.emulate(runs, "gp", progress=False)
    >>> bool(np.abs(emulator(x, [1.5, 1.0])[:, 0] - slow(x, [1.5, 1.0])).max() < 0.01)
    True
    """
    if not (isinstance(emulator, str) and emulator == "auto"):
        return fitted_emulator(runs, emulator, layout, components, progress)
    compared = compare_emulators(runs, progress=progress, race=True, jobs=jobs)
    best = fitted_emulator(runs, compared.best, layout, components, progress)
    best.choice = compared.choice
    return best


# The comparison as one self-contained page: the choice, its error, and those of the others.

_CAPTION = (
    "The rms error of all held-out cells, as a share of their spread about the mean run: smaller is better. Coverage "
    "is the share of 95 % intervals that hold the run, where the emulator has a variance: it should be 0.95. Then "
    "seconds of one fit, and milliseconds for one theta at all points of a run."
)


def write_emulator_page(comparison: EmulatorComparison, runs: RunTable, path: str | Path, title: str) -> Path:
    """Write the page, whole or not at all."""
    page = rendered_emulators(comparison, runs, title)
    with whole_file(path) as draft:
        draft.write_text(page, encoding="utf-8")
    return Path(path)


def rendered_emulators(comparison: EmulatorComparison, runs: RunTable, title: str) -> str:
    """The page as HTML."""
    from ..pages.page import picture, rendered

    choice = comparison.choice
    best, error = next(iter(choice.errors.items()))
    errors = comparison.table["relative_rmse"]
    drawn = held_out_drawing(errors, [str(name) for name in comparison.ranking.index], comparison.predictions)
    caption = "Left the errors of all, right what the best predicted against what the runs gave."
    each = ", ".join(f"{size:.3g} for {name}" for name, size in choice.rmse.items())
    return rendered(
        "emulators.html",
        __package__,
        title=title,
        best=best,
        error=f"{error:.2g}",
        held_out=comparison.held_out,
        rmse=f", {each} in its unit",
        left={**comparison.failures, **{name: f"dropped {why}" for name, why in comparison.dropped.items()}},
        grid=_grid(comparison),
        picture=picture("Held-out runs", caption, drawn),
        settings=list(_settings(comparison, runs)),
        version=version("orthocal"),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _grid(comparison: EmulatorComparison) -> Grid:
    rows = []
    for name in comparison.ranking.index:
        for outcome, row in comparison.table.xs(name, level="emulator").iterrows():
            covered = row["coverage"]
            cells = [f"{row['relative_rmse']:.3g}", f"{covered:.2f}" if np.isfinite(covered) else "–"]
            rows.append([str(name), str(outcome), *cells, f"{row['fit_seconds']:.2g}", f"{row['predict_ms']:.2g}"])
    header = ["emulator", "outcome", "relative error", "coverage", "fit, s", "prediction, ms"]
    return Grid("Errors", _CAPTION, header, rows, 2)


def _settings(comparison: EmulatorComparison, runs: RunTable) -> Iterator[tuple[str, str]]:
    yield "runs", f"{runs.s}, of which {int(runs.failed.sum())} failed; {comparison.held_out} were predicted"
    yield "parameters", ", ".join(runs.parameter_names)
    yield "inputs", ", ".join(runs.input_names) or "none"
    yield "outcomes", ", ".join(runs.outcome_names)
    for note in runs.notes:
        yield "note", note
