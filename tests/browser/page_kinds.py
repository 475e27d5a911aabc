"""One page of every kind, made by the package as users make them; small, but with what makes pages hard to show."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

import orthocal as oc
from orthocal.emulators.choice import write_emulator_page
from orthocal_galaxy.fit.data import table_data
from orthocal_galaxy.fit.fit import fit_galaxy
from orthocal_galaxy.fit.page import write_all
from orthocal_galaxy.galaxy_config import Sampling
from orthocal_galaxy.stages import Stages
from orthocal_studies.base import Study
from orthocal_studies.example_pages import write_example_pages
from orthocal_studies.example_studies import example_study
from orthocal_studies.pages import write_pages
from orthocal_studies.registry import study_by_name
from orthocal_studies.replicate import ParameterRow, Row, Task
from orthocal_studies.results import Results, Settings

QUICK = {"draws": 250, "chains": 4, "seed": 1, "progress": False}
#: a name that breaks what does not escape it, and is longer than any screen is wide
HOSTILE = "<img src=x onerror=alert(1)>\"'&$\\frac" + "x" * 60


def one_input(folder: Path) -> Path:
    """Curves, with a hole in the data and units."""
    rng = np.random.default_rng(1)
    x = np.sort(np.concatenate([0.6 * rng.random(80), 0.9 + 0.1 * rng.random(20)]))
    y = 4 * x + x * np.sin(5 * x) + 0.2 * rng.standard_normal(100)
    problem = oc.Problem(
        x,
        y,
        lambda x, theta: theta[0] * x,
        {"slope": stats.norm(0, 10)},
        oc.Box(0, 1.2),
        input_names="time",
        outcome_names="height",
        units={"time": "s", "height": "m", "slope": "m/s"},
    )
    return oc.calibrate(problem, **QUICK).report(folder / "one-input.html")


def algorithm_1(folder: Path) -> Path:
    """The paper's algorithm, whose bias is shown before and after its projection; many data; names that are hostile."""
    rng = np.random.default_rng(2)
    x = rng.random(400)
    y = 3 * x + 0.4 * np.sin(9 * x) + 1 + 0.2 * rng.standard_normal(400)
    priors = {HOSTILE: stats.norm(3, 0.5), "b": stats.uniform(0, 2)}
    problem = oc.Problem(
        x,
        y,
        lambda x, t: t[0] * x + t[1],
        priors,
        noise_cov=0.04,
        input_names=HOSTILE + "x",
        outcome_names=HOSTILE + "y",
        units={"b": HOSTILE},
    )
    posterior = oc.calibrate(problem, oc.methods.Projected(oc.bias.GP(1.5, 1.0, 0.5)), **QUICK)
    posterior.data.attrs["title"] = HOSTILE
    return posterior.report(folder / "algorithm-1.html")


def five_inputs(folder: Path) -> Path:
    """Five inputs, six parameters: many panels."""
    rng = np.random.default_rng(3)
    x = rng.random((300, 5))
    y = x @ [1.0, 2.0, 3.0, 1.0, 0.5] + 0.5 * np.sin(6 * x[:, 0]) + 0.1 * rng.standard_normal(300)
    priors = {f"theta{j + 1}": stats.norm(0, 5) for j in range(6)}
    problem = oc.Problem(x, y, lambda x, t: x @ t[:5] + t[5], priors, oc.Box(0, 1), noise_cov=0.01)
    method = oc.methods.Joint(oc.bias.GP(1.5, 0.5, 0.5))
    return oc.calibrate(problem, method, **QUICK).report(folder / "five-inputs.html")


def two_outcomes(folder: Path) -> Path:
    """Two outcomes, one of them on a logarithmic scale, with missing cells."""
    rng = np.random.default_rng(4)
    x = np.linspace(0, 1, 60)
    truth = np.column_stack([np.exp(6 * x), 2 * x + 0.3 * np.cos(5 * x)])
    y = np.column_stack(
        [truth[:, 0] * np.exp(0.1 * rng.standard_normal(60)), truth[:, 1] + 0.1 * rng.standard_normal(60)]
    )
    y[::7, 1] = np.nan

    def f(x, theta):
        return np.column_stack([np.exp(theta[0] * x), theta[1] * x])

    problem = oc.Problem(
        x,
        y,
        f,
        {"rate": stats.uniform(1, 9), "slope": stats.norm(0, 5)},
        noise_cov=[0.01, 0.01],
        outcome_names=("count", "level"),
        transform={"count": "log"},
        units={"count": "1/s", "x": "cm"},
    )
    return oc.calibrate(problem, **QUICK).report(folder / "two-outcomes.html")


def labels(folder: Path) -> Path:
    """A numeric input beside labels, one of which has no data."""
    rng = np.random.default_rng(5)
    machine = rng.choice(["drill", "lathe", "mill"], 90)
    load = rng.uniform(0, 10, 90)
    level = pd.Series(machine).map({"drill": 0.0, "lathe": 1.5, "mill": -1.0}).to_numpy()
    x = pd.DataFrame({"load": load, "machine": pd.Categorical(machine, ["drill", "lathe", "mill", "press"])})
    problem = oc.Problem(
        x,
        2 * load + level + 0.3 * rng.standard_normal(90),
        lambda x, t: t[0] * x[:, 0],
        {"a": stats.norm(0, 10)},
        noise_cov=0.09,
        units={"load": "kN"},
    )
    return oc.calibrate(problem, **QUICK).report(folder / "labels.html")


def _outputs() -> oc.Problem:
    names = ["mass", "temperature at the outlet", "pressure", "yield", "loss", "gain"]
    y = np.array([4.1, 350.0, 1.2e5, 0.31, -2.0, np.nan])
    sd = np.array([0.1, 4.0, 2e3, 0.01, 0.2, 0.1])

    def f(theta):
        a, b = theta
        return np.array([a, 100 * a - 20 * b, 3e4 * a, 0.07 * a + 0.01 * b, -b, a * b])

    priors = {"a": stats.norm(4, 1), "b": stats.norm(2, 1)}
    return oc.Problem(None, y, f, priors, y_err=sd, outcome_names=names, units={"pressure": "Pa"})


def outputs(folder: Path) -> Path:
    """Outputs without inputs, one of them missing."""
    return oc.calibrate(_outputs(), **QUICK).report(folder / "outputs.html")


def _rigs() -> oc.Experiments:
    rng = np.random.default_rng(6)
    problems = {}
    for name, slope in zip("ABC", (2.0, 2.0, 3.0), strict=True):
        x = np.linspace(0, 1, 20)
        y = slope * x + ord(name) - 66 + 0.05 * np.sin(9 * x) + 0.05 * rng.standard_normal(20)
        priors = {"a": stats.norm(0, 10), "offset": stats.norm(0, 5)}
        problems[f"rig {name}"] = oc.Problem(
            x,
            y,
            lambda x, theta: theta[0] * x + theta[1],
            priors,
            oc.Box(0, 1, nodes=15),
            noise_cov=0.0025,
            starts=2,
            units={"a": "m/s"},
        )
    return oc.Experiments(problems, private=["offset"])


_GP = oc.methods.Joint(oc.bias.GP(sd=0.5, lengthscale=0.5))


def experiments(folder: Path) -> Path:
    """Three experiments together."""
    return oc.calibrate(_rigs(), _GP, **QUICK).report(folder / "experiments.html")


def compared_experiments(folder: Path) -> Path:
    """Three experiments, of which one disagrees."""
    return oc.compare_experiments(_rigs(), _GP, **QUICK).report(folder / "compared-experiments.html")


def comparison(folder: Path) -> Path:
    """Four methods with held-out scores."""
    rng = np.random.default_rng(7)
    x = rng.random(40)
    y = 4 * x + x * np.sin(5 * x) + 0.2 * rng.standard_normal(40)
    problem = oc.Problem(
        x,
        y,
        lambda x, t: t[0] * x + t[1],
        {"slope": stats.norm(0, 10), "offset": stats.norm(0, 5)},
        oc.Box(0, 1),
        noise_cov=0.04,
        units={"slope": "m/s"},
    )
    compared = oc.compare(problem, ["gp", "pgp", "ogp", "none"], folds=3, loo=True, **QUICK)
    return compared.report(folder / "comparison.html")


def compared_outputs(folder: Path) -> Path:
    """Two methods on outputs without inputs."""
    return oc.compare(_outputs(), ["gp", "none"], folds=0, **QUICK).report(folder / "compared-outputs.html")


def emulators(folder: Path) -> Path:
    """Two emulators of two outcomes."""
    rng = np.random.default_rng(10)
    theta, x = rng.random((40, 2)), np.linspace(0, 1, 8)[:, None]
    output = np.stack([np.column_stack([a * np.sin(3 * x[:, 0] + b), b * x[:, 0] + a**2]) for a, b in theta])
    runs = oc.RunTable(theta, output, x)
    compared = oc.compare_emulators(runs, ["gp", "bmars"], folds=2)
    return write_emulator_page(compared, runs, folder / "emulators.html", "Emulators of a table")


def study(folder: Path) -> Path:
    """The paper's first table with figures that are made up here."""
    table1 = study_by_name("table1")
    with Results(folder) as results:
        settings = _made_up(results, table1)
        write_pages(table1, results, settings, folder)
    return folder / "table1.html"


def examples(folder: Path) -> Path:
    """Two examples by several methods, with figures that are made up here."""
    studies = [example_study("model-1"), example_study("two-outcomes")]
    with Results(folder) as results:
        for one in studies:
            _made_up(results, one)
        write_example_pages(studies, results, folder)
    return folder / "examples.html"


def _made_up(results: Results, study: Study) -> Settings:
    """Four data sets of each method."""
    keys = tuple(column.key for column in study.columns if not column.extra)
    settings = Settings(seed=1, draws=400, replications=4, methods=keys)
    rng = np.random.default_rng(8)
    results.set_settings(study.name, settings)
    for key in keys:
        for r in range(1, 5):
            rows = {
                name: ParameterRow(
                    mean=star + 0.05 * rng.standard_normal(),
                    sd=0.03 + 0.01 * rng.random(),
                    low=0.0,
                    high=0.0,
                    covered=bool(rng.random() < 0.9),
                    ess=1000.0,
                    rhat=1.001,
                )
                for name, star in zip(study.model.parameters, study.model.theta_star, strict=True)
            }
            row = Row(
                column=key,
                replication=r,
                parameters=rows,
                cpu_seconds=1.0,
                wall_seconds=1.0,
                error=None,
                traceback=None,
            )
            results.add(study.name, Task("", key, r, 1, 400), row, "one machine", 4.0)
    return settings


def galaxy(folder: Path) -> Path:
    """A galaxy from a table of runs of a model that is linear in theta."""
    rng = np.random.default_rng(9)
    box = {"log10_mbh": (7.0, 9.0), "ml": (2.0, 4.0), "f_dm": (0.0, 0.4)}
    x = rng.uniform(-1, 1, (40, 2))

    def model(theta):
        u = (np.asarray(theta) - [8.0, 3.0, 0.2]) / [1.0, 1.0, 0.2]
        r = np.hypot(*x.T)
        v = 100 * x[:, 0] * (1 + 0.2 * u[1] + 0.2 * u[2] * r) + 20 * u[0] * x[:, 1]
        sigma = 180 * np.exp(-r) * (1 + 0.3 * u[0]) + 60 + 20 * u[1] * r + 20 * u[2] * x[:, 1] ** 2
        h3 = -x[:, 0] / 15 + 0.05 * (u[0] * x[:, 0] + u[1] * x[:, 1] + u[2] * x[:, 0] ** 3)
        h4 = 0.05 * (u[0] * np.exp(-r) + u[1] * x[:, 0] ** 2 + u[2] * r)
        return np.column_stack([v, sigma, h3, h4])

    theta = oc.design({name: stats.uniform(low, high - low) for name, (low, high) in box.items()}, 16).to_numpy()
    errors = np.tile([2.0, 2.0, 0.01, 0.01], (len(x), 1))
    arrays = {"theta": theta, "output": np.stack([model(one) for one in theta]), "x": x, "y_err": errors}
    arrays["y"] = model([8.2, 2.9, 0.15]) + errors * rng.standard_normal(errors.shape)
    runs = folder / "runs.npz"
    np.savez(runs, **arrays, theta_names=["a", "b", "c"], output_names=["v", "sigma", "h3", "h4"])
    sampling = Sampling(methods=["gp"], draws=60, chains=2, warmup=20, held_out=0)
    fit = fit_galaxy(table_data(runs, ranges=box), sampling, Stages(folder / "galaxy"), lambda _: None)
    return write_all(fit, folder / "galaxy")


KINDS: dict[str, Callable[[Path], Path]] = {
    one.__name__.replace("_", "-"): one
    for one in (
        one_input,
        algorithm_1,
        five_inputs,
        two_outcomes,
        labels,
        outputs,
        experiments,
        compared_experiments,
        comparison,
        compared_outputs,
        emulators,
        study,
        examples,
        galaxy,
    )
}
