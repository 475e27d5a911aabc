"""The fit of a galaxy, stage by stage: runs, emulator, each outcome alone and all together, held-out bins.

Every stage leaves a file in the folder of the fit; the same call goes on from what is there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

import orthocal as oc
from orthocal.applications import Array, whole_file
from orthocal.errors import OrthocalError

from ..galaxy_config import Sampling
from ..mock import theta_star
from ..stacked_emulator import OnEmulator, StackedEmulator
from ..stages import Stages, fingerprint
from .data import TOGETHER, GalaxyData
from .runs import make_runs, noted

Say = Callable[[str], None]

#: one matrix of all cells for every proposal is too slow for all outcomes together
ALONE_ONLY = ("ogp",)
#: at most this share of the bins is held out
MOST_HELD_OUT = 0.2
#: draws a chain of the predictions at held-out bins
PREDICTED = 250

#: the best theta of all outcomes as the emulator has it: its distance from that of the model is the emulator's error
BY_EMULATOR = "all together, by the emulator"

FitKey = tuple[str, str]


@dataclass
class GalaxyFit:
    """What a fit has found.

    Attributes
    ----------
    posteriors
        (outcome or ``"all together"``, method) -> posterior.
    failures
        The same -> why there is none.
    held_out
        One row an outcome and method: relative squared errors at held-out bins.
    emulators
        How well emulators predict runs that they have not seen, one row an emulator and outcome.
    stars
        Of a mock galaxy: outcome or ``"all together"`` -> the best theta, (p,).
    seconds
        Stage -> time that it took in this call.
    emulator
        Name of the emulator that stands for the model.
    """

    data: GalaxyData
    settings: Sampling
    posteriors: dict[FitKey, oc.Posterior] = field(default_factory=dict)
    failures: dict[FitKey, str] = field(default_factory=dict)
    held_out: pd.DataFrame = field(default_factory=pd.DataFrame)
    emulators: pd.DataFrame = field(default_factory=pd.DataFrame)
    stars: dict[str, Array] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    runs: oc.RunTable | None = None
    emulator: str = ""
    _summaries: dict[FitKey, pd.DataFrame] = field(default_factory=dict, repr=False)

    def summary(self, key: FitKey) -> pd.DataFrame:
        """``Posterior.summary`` of a fit, computed once."""
        if key not in self._summaries:
            self._summaries[key] = self.posteriors[key].summary()
        return self._summaries[key]

    def star_on_bound(self, target: str) -> bool:
        """Whether the best theta lies on a bound of the priors: then it is no minimum, and nothing to compare with."""
        low, high = np.array(list(self.data.box.values())).T
        return bool((np.minimum(self.stars[target] - low, high - self.stars[target]) < 1e-3 * (high - low)).any())


def fit_galaxy(data: GalaxyData, settings: Sampling, stages: Stages, say: Say = lambda _: None) -> GalaxyFit:
    """Make the stages that are not there yet, and collect all."""
    fit = GalaxyFit(data, settings)
    work = _Work(fit, stages, say)
    if not stages.there("kinematics.csv", {"data": data.digest}):
        with whole_file(stages.folder / "kinematics.csv") as draft:
            data.frame().to_csv(draft, index=False)
    work.run_all()
    fit.emulator = work.emulator_name
    return fit


class _Work:
    """The stages of one call."""

    def __init__(self, fit: GalaxyFit, stages: Stages, say: Say) -> None:
        self.fit, self.data, self.settings = fit, fit.data, fit.settings
        self.stages, self.say = stages, say

    def run_all(self) -> None:
        self.make_runs()
        self.compare_emulators()
        for k, outcome in enumerate(self.data.kinematics.names):
            for method in self.settings.methods:
                self.calibrate(outcome, k, method)
        for method in self.joint_methods:
            self.calibrate(TOGETHER, None, method)
        self.hold_out()
        self.find_stars()

    @property
    def joint_methods(self) -> list[str]:
        return [method for method in self.settings.methods if method not in ALONE_ONLY]

    @cached_property
    def runs(self) -> oc.RunTable:
        assert self.fit.runs is not None
        return self.fit.runs

    @cached_property
    def base(self) -> dict[str, Any]:
        """What every fit depends on."""
        runs = fingerprint(self.runs.theta, np.asarray(self.runs.output))
        return {
            "data": self.data.digest,
            "runs": runs,
            "number of runs": self.runs.s,
            "emulator": self.emulator_name,
            "emulator error": self.settings.emulator_error,
        }

    @cached_property
    def emulator_name(self) -> str:
        if self.settings.emulator != "auto":
            return self.settings.emulator
        squared = self.fit.emulators["relative_rmse"].pow(2).groupby(self.fit.emulators["emulator"]).mean()
        return str(squared.idxmin())

    @cached_property
    def emulator(self) -> StackedEmulator:
        started = perf_counter()
        self.say(f"emulator: {self.emulator_name}, {self.runs.s} runs")
        names = self.runs.outcome_names
        parts = [
            oc.RunTable(
                self.runs.theta,
                np.asarray(self.runs.output)[:, :, k],
                np.asarray(self.runs.x),
                self.runs.parameter_names,
                self.runs.input_names,
                [name],
            )
            for k, name in enumerate(names)
        ]
        fitted = StackedEmulator([oc.emulate(part, self.emulator_name) for part in parts], self.runs)
        self._took("emulator", started)
        return fitted

    def problem(self, k: int | None) -> oc.Problem:
        if k not in self._problems:
            # the same search for theta_tilde serves all methods
            simulator = self.emulator if k is None else self.emulator.parts[k]
            self._problems[k] = self.data.problem(simulator, k, self.settings.emulator_error)
        return self._problems[k]

    @cached_property
    def _problems(self) -> dict[int | None, oc.Problem]:
        return {}

    def make_runs(self) -> None:
        started = perf_counter()
        self.fit.runs = self.data.runs
        if self.fit.runs is None:
            self.fit.runs = make_runs(self.data, self.settings, self.stages, self.say)
            self._took("runs", started)

    def compare_emulators(self) -> None:
        name, settings = "emulators.csv", self.settings
        names = settings.compared
        if not names:
            return
        runs = fingerprint(self.runs.theta, np.asarray(self.runs.output))
        if not self.stages.there(name, {"runs": runs, "emulators": names, "seed": settings.seed}):
            started = perf_counter()
            self.say(f"emulators: {', '.join(names)} at held-out runs")
            compared = oc.compare_emulators(self.runs, names, folds=1, seed=settings.seed)
            for one, why in compared.failures.items():
                self.say(f"  {one} is left out: {why}")
            with whole_file(self.stages.folder / name) as draft:
                compared.table.reset_index().to_csv(draft, index=False)
            self._took("comparison of emulators", started)
        self.fit.emulators = pd.read_csv(self.stages.folder / name)

    def calibrate(self, target: str, k: int | None, method: str) -> None:
        sampling = self.settings.chains_and_draws
        name = f"fits/{target.replace(' ', '-')}-{method}.nc"
        if self.stages.there(name, {**self.base, "method": method, **sampling}):
            self.fit.posteriors[target, method] = oc.load(self.stages.folder / name)
            return
        try:
            problem = self.problem(k)
            started = perf_counter()
            posterior = noted(lambda: oc.calibrate(problem, method, **sampling), f"{target}, {method}", self.say)
        except OrthocalError as error:
            self.fit.failures[target, method] = str(error)
            self.say(f"  {target}, {method} failed: {error}")
            return
        posterior.record.data.attrs["title"] = f"{self.data.title}: {target}, {method}"
        posterior.save(self.stages.folder / name)
        self.fit.posteriors[target, method] = posterior
        self._took(f"fit of {target} by {method}", started)

    def hold_out(self) -> None:
        n = len(self.data.x)
        count = min(self.settings.held_out, int(MOST_HELD_OUT * n))
        rows = []
        for method in self.joint_methods if count else ():
            name = f"held-out/{method}.json"
            sampling = self.settings.chains_and_draws
            if not self.stages.there(name, {**self.base, "method": method, "bins": count, **sampling}):
                try:
                    started = perf_counter()
                    scores = noted(partial(self._scores, method, count, sampling), f"held-out bins, {method}", self.say)
                    self.stages.write_json(name, scores)
                    self._took(f"held-out bins by {method}", started)
                except OrthocalError as error:
                    self.fit.failures["held-out bins", method] = str(error)
                    continue
            rows += [{"method": method, **row} for row in self.stages.read_json(name)]
        self.fit.held_out = pd.DataFrame(rows)

    def _scores(self, method: str, count: int, sampling: dict[str, Any]) -> list[dict[str, Any]]:
        n, names = len(self.data.x), self.data.kinematics.names
        held = np.zeros(n, dtype=np.bool_)
        held[np.random.default_rng([self.settings.seed, 3]).permutation(n)[:count]] = True
        posterior = oc.calibrate(self.problem(None).subset(~held), method, **sampling)
        predicted = posterior.predict(self.data.x[held], draws=PREDICTED)
        model, total = (predicted[key].mean(("chain", "draw")).values for key in ("model", "mean"))
        y = self.data.kinematics.values
        return [
            {
                "outcome": name,
                "bins": int(np.isfinite(y[held, k]).sum()),
                "with_bias": relative_squared_error(y[held, k], total[:, k], y[~held, k]),
                "without_bias": relative_squared_error(y[held, k], model[:, k], y[~held, k]),
                "paper": float(np.nanmean((1 - total[:, k] / y[held, k]) ** 2)),
            }
            for k, name in enumerate(names)
        ]

    def find_stars(self) -> None:
        """The best theta of a mock galaxy: by the model for all outcomes together, by the emulator for each alone."""
        data, truth = self.data, self.data.truth
        if truth is None or data.model is None:
            return
        name = "theta_star.json"
        if not self.stages.there(name, {**self.base, "model": data.model.identity()[1][:12]}):
            started = perf_counter()
            self.say("theta_star: where the model comes closest to the truth")
            errors = np.sqrt((data.kinematics.errors**2).mean(axis=0))
            options: dict[str, Any] = {"box": data.box, "seed": self.settings.seed}
            cheap = OnEmulator(self.emulator, data.x)
            stars = {BY_EMULATOR: theta_star(cheap, truth.maps, errors, starts=8, **options).theta.tolist()}
            # the model is rough: from a start far away the search may end where it should not
            found = theta_star(data.model, truth.maps, errors, starts=[stars[BY_EMULATOR]], **options)
            stars[TOGETHER] = found.theta.tolist()
            for k, outcome in enumerate(data.kinematics.names):
                # an outcome of infinite error counts for nothing
                alone = np.where(np.arange(len(errors)) == k, errors, np.inf)
                stars[outcome] = theta_star(cheap, truth.maps, alone, starts=8, **options).theta.tolist()
            self.stages.write_json(name, stars)
            self._took("theta_star", started)
        self.fit.stars = {key: np.array(value) for key, value in self.stages.read_json(name).items()}

    def _took(self, stage: str, started: float) -> None:
        self.fit.seconds[stage] = perf_counter() - started
        self.say(f"  {stage}: {self.fit.seconds[stage]:.1f} s")


def relative_squared_error(y: Array, predicted: Array, train: Array) -> float:
    """sum (y - predicted)^2 / sum (y - mean of train)^2 over the cells that are there."""
    return float(np.nansum((y - predicted) ** 2) / np.nansum((y - np.nanmean(train)) ** 2))
