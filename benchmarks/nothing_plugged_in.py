"""What is known of theta where the noise is not given: coverage, widths, outliers, and what others find.

    python benchmarks/nothing_plugged_in.py [PART ...] [--methods gp,none,bart] [--noise WORD] [--sets 100] [--first 0]
        [--draws 1000] [--jobs 1] [--only WORDS] [--out rows.csv] [--reality FOLDER] [--list]

prints a line a case and method: how often central 95 % intervals hold theta*, the rms error of the mean of the draws,
mean sd and width, parameter by parameter; the mean noise sd of each outcome; the share of fits with a problem in
check(); smallest ESS; CPU seconds of problem and fit together, after a first fit that compiles. ``noise_cov`` is left
out of ``oc.Problem`` unless ``--noise`` has a word for it; ``--noise given`` is the truth. With ``--out`` every fit is
kept, a row a quantity, and one that is there is not done again, if it is of the same commit, noise and number of draws;
fits that failed stand there with what was said. The parts:

linear
    f = a + b x, sd .3, truth 1 + 2x + size sin 6x, x uniform; ``t`` is the interval of least squares.
decay
    y = 5 exp(-x / tau) + 1 + .1 e at 30 even points, the offset known or a parameter; ``ls error`` is that of least
    squares, ``outlier`` the share of data sets in which a row is called one.
outlier
    A line without a bias, n = 25, and a row 12 sds off, in the middle or at the end; ``named`` is the share of data
    sets in which check() names that row. And noise from a t with 3 degrees of freedom, of sd .3.
inputs
    f = t1 x1 + t2 x2^2 beside a bias of both inputs; ``mean covered`` is the share of data points at which the draws of
    f + b hold the truth.
models
    Examples of the package.
nist
    NIST's certified regressions: ``mean off`` is the mean of the draws minus the certified value in certified sds,
    ``sd ratio`` the sd of the draws over the certified sd times sqrt(nu / (nu - 2)), the sd of a t. Where the simulator
    is curved no posterior has these; ``exact off`` and ``exact width`` are medians and 95 % widths beside a walk on the
    posterior that is written here, and a fit is ``right`` where the first is at most .3 sds and the second within a
    quarter of 1 for every parameter; ``walk off`` says how far apart the walk's halves are, and where that is large it
    cannot judge. ``best off`` is of theta_tilde, which weighs the rows by the domain. One fit each, whatever ``--sets``
    says, as in:
lynx
    lynx-hare of posteriordb on the scale of log y: the same beside the reference means and sds.
speed
    Models 1 to 3 at n = 100, and n = 1000 in one and in five inputs.
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import argparse
import csv
import json
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from scipy import stats
from scipy.integrate import odeint
from scipy.optimize import curve_fit

import orthocal as oc
from history import ROOT, commit, record

CHAINS, SD, DECAY_SD, INPUTS_SD, OFF = 4, 0.3, 0.1, 0.2, 12
#: beside the repository, or beside the folder of its worktrees
REALITY = next((one for one in (up / "shared" / "reality" for up in ROOT.parents) if one.is_dir()), ROOT / "reality")
WIDE = stats.norm(0, 100)


@dataclass(frozen=True)
class DataSet:
    """Arguments of ``oc.Problem`` without the noise, theta*, the noise's covariance, and what else is measured."""

    arguments: Mapping[str, Any]
    star: tuple[float, ...] = ()
    noise_cov: Any = None
    also: Callable[[oc.Problem, oc.Posterior], Mapping[str, float]] = lambda problem, posterior: {}
    known: Mapping[str, float] = field(default_factory=dict)


Maker = Callable[[int], DataSet]


def named(columns: Mapping[str, Any], names: Iterable[str]) -> dict[str, float]:
    """quantity.parameter -> value, of quantity -> (p,)."""
    return {f"{what}.{name}": value for what, of in columns.items() for name, value in zip(names, of, strict=True)}


def projected(truth: Callable, basis: Callable, d: int) -> tuple[float, ...]:
    """theta* of a simulator that is linear, over the unit cube."""
    rule = oc.Box([0.0] * d, [1.0] * d, nodes=60 if d == 1 else 4096).rules(d)[0]
    G, root = basis(rule.nodes), np.sqrt(rule.weights)
    return tuple(np.linalg.lstsq(root[:, None] * G, root * truth(rule.nodes), rcond=None)[0])


def t_widths(G: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Of the exact 95 % intervals of least squares."""
    freedom = len(y) - G.shape[1]
    squares = np.linalg.lstsq(G, y, rcond=None)[1][0]
    return 2 * stats.t.ppf(0.975, freedom) * np.sqrt(squares / freedom * np.diag(np.linalg.inv(G.T @ G)))


def line_of(x: np.ndarray, y: np.ndarray, star: tuple[float, ...] = (1.0, 2.0), **rest: Any) -> DataSet:
    arguments = {
        "x": x,
        "y": y,
        "simulator": lambda x, t: t[0] + t[1] * x,
        "parameters": {"a": WIDE, "b": WIDE},
        "domain": oc.Box(0, 1),
    }
    widths = t_widths(np.column_stack([np.ones_like(x), x]), y)
    return DataSet(arguments, star, SD**2, known=named({"t width": widths}, "ab"), **rest)


def linear(seed: int, size: float, n: int) -> DataSet:
    rng = np.random.default_rng(seed)
    x = rng.random(n)

    def truth(x):
        return 1 + 2 * x + size * np.sin(6 * x)

    star = projected(lambda u: truth(u[:, 0]), lambda u: np.column_stack([np.ones(len(u)), u]), 1)
    return line_of(x, truth(x) + SD * rng.standard_normal(n), star)


def called(posterior: oc.Posterior) -> list[str]:
    return [finding.message for finding in posterior.check() if finding.topic == "outliers"]


def decay(seed: int, tau: float, known_offset: bool) -> DataSet:
    x = np.linspace(0, 1, 30)
    y = 5 * np.exp(-x / tau) + 1 + DECAY_SD * np.random.default_rng(seed).standard_normal(30)
    priors = {"a": stats.norm(0, 20), "tau": stats.uniform(0.002, 0.498), "c": stats.norm(0, 20)}
    star = (5.0, tau, 1.0)[: 2 if known_offset else 3]

    def curve(x, a, tau, c=1.0):
        return a * np.exp(-x / tau) + c

    squares = curve_fit(curve, x, y, p0=star)[0] - star
    arguments = {
        "x": x,
        "y": y,
        "simulator": lambda x, t: curve(x, *t),
        "parameters": dict(list(priors.items())[: len(star)]),
        "domain": oc.Box(0, 1),
    }

    def also(problem, posterior):
        return {"outlier": bool(called(posterior))}

    return DataSet(arguments, star, DECAY_SD**2, also, named({"ls error": squares}, arguments["parameters"]))


def outlier(seed: int, row: int | None) -> DataSet:
    rng = np.random.default_rng(seed)
    x = np.sort(rng.random(25))
    e = rng.standard_normal(25) if row is not None else rng.standard_t(3, 25) / np.sqrt(3)
    y = 1 + 2 * x + SD * e
    if row is not None:
        y[row] += OFF * SD

    def also(problem, posterior):
        messages = called(posterior)
        own = {} if row is None else {"named": any(f"row {row % 25} (" in one for one in messages)}
        return {"outlier": bool(messages), **own}

    return line_of(x, y, also=also)


def inputs(seed: int, n: int) -> DataSet:
    rng = np.random.default_rng(seed)
    x = rng.random((n, 2))

    def basis(x):
        return np.column_stack([x[:, 0], x[:, 1] ** 2])

    def truth(x):
        return basis(x) @ [2.0, 3.0] + 0.6 * np.sin(6 * x[:, 0]) * np.cos(4 * x[:, 1])

    def also(problem, posterior):
        draws = (posterior.data["model"]["model"] + posterior.data["bias"]["bias"]).to_numpy().reshape(-1, n)
        low, high = np.quantile(draws, [0.025, 0.975], axis=0)
        return {"mean covered": np.mean((low < truth(x)) & (truth(x) < high))}

    arguments = {
        "x": x,
        "y": truth(x) + INPUTS_SD * rng.standard_normal(n),
        "simulator": lambda x, t: basis(x) @ t,
        "parameters": {"t1": WIDE, "t2": WIDE},
        "domain": oc.Box([0.0, 0.0], [1.0, 1.0]),
    }
    return DataSet(arguments, projected(truth, basis, 2), INPUTS_SD**2, also)


def example(seed: int, name: str, n: int | None = None) -> DataSet:
    known = oc.examples.get(name)
    x, y = known.simulate(np.random.default_rng(seed), n)
    arguments = {
        "x": x,
        "y": y,
        "simulator": known.simulator if known.gradient is None else oc.Simulator(known.simulator, known.gradient),
        "parameters": known.parameters,
        "domain": oc.Box(*known.box, nodes=known.nodes),
        **known.settings,
    }
    return DataSet(arguments, known.theta_star, known.noise_cov)


def log_nelson(x, b):
    return b[0] - b[1] * x[:, 0] * np.exp(-b[2] * x[:, 1])


def two_peaks(x, b):
    peaks = b[2] * np.exp(-(((x - b[3]) / b[4]) ** 2)) + b[5] * np.exp(-(((x - b[6]) / b[7]) ** 2))
    return b[0] * np.exp(-b[1] * x) + peaks


#: their models; Nelson's is of log y
NIST: dict[str, Callable] = {
    "BoxBOD": lambda x, b: b[0] * (1 - np.exp(-b[1] * x)),
    "Chwirut2": lambda x, b: np.exp(-b[0] * x) / (b[1] + b[2] * x),
    "DanWood": lambda x, b: b[0] * x ** b[1],
    "Eckerle4": lambda x, b: b[0] / b[1] * np.exp(-0.5 * ((x - b[2]) / b[1]) ** 2),
    "Gauss1": two_peaks,
    "Kirby2": lambda x, b: (b[0] + b[1] * x + b[2] * x**2) / (1 + b[3] * x + b[4] * x**2),
    "Lanczos1": lambda x, b: b[0] * np.exp(-b[1] * x) + b[2] * np.exp(-b[3] * x) + b[4] * np.exp(-b[5] * x),
    "MGH09": lambda x, b: b[0] * (x**2 + x * b[1]) / (x**2 + x * b[2] + b[3]),
    "MGH17": lambda x, b: b[0] + b[1] * np.exp(-x * b[3]) + b[2] * np.exp(-x * b[4]),
    "Misra1a": lambda x, b: b[0] * (1 - np.exp(-b[1] * x)),
    "Misra1c": lambda x, b: b[0] * (1 - (1 + 2 * b[1] * x) ** -0.5),
    "Nelson": log_nelson,
    "Rat42": lambda x, b: b[0] / (1 + np.exp(b[1] - b[2] * x)),
    "Roszman1": lambda x, b: b[0] - b[1] * x - np.arctan(b[2] / (x - b[3])) / np.pi,
}


def compared(reference: np.ndarray, problem: oc.Problem, posterior: oc.Posterior, t_sds: float = 1) -> dict[str, float]:
    """Beside means and sds, (p, 2), of others; the sd of the draws should be ``t_sds`` times theirs."""
    theta, (value, sd) = posterior.theta.reshape(-1, len(reference)), reference.T
    measured = {
        "best off": (problem.theta_tilde - value) / sd,
        "mean off": (theta.mean(axis=0) - value) / sd,
        "sd ratio": theta.std(axis=0, ddof=1) / sd / t_sds,
    }
    return named(measured, posterior.parameter_names) | right(measured["mean off"], measured["sd ratio"])


def right(off: np.ndarray, ratio: np.ndarray) -> dict[str, float]:
    return {"right": float(np.abs(off).max() <= 0.3 and np.abs(np.log(ratio)).max() <= np.log(1.25))}


def walked(arguments: Mapping[str, Any], certified: np.ndarray, steps: int = 3000, walkers: int = 40) -> np.ndarray:
    """Draws from S(theta)^(-n/2) and the priors by differential evolution, from around the certified values."""
    x, y, simulator = (arguments[name] for name in ("x", "y", "simulator"))
    mean, sd = np.array([(prior.mean(), prior.std()) for prior in arguments["parameters"].values()]).T
    rng, p = np.random.default_rng(0), len(mean)

    def density(theta):
        value = -len(y) / 2 * np.log(np.sum((y - simulator(x, theta)) ** 2)) - np.sum(((theta - mean) / sd) ** 2) / 2
        return value if np.isfinite(value) else -np.inf

    at = certified[:, 0] + 0.5 * certified[:, 1] * rng.standard_normal((walkers, p))
    densities, kept = np.array([density(one) for one in at]), []
    for step in range(steps):
        for half in (0, 1):
            others = np.arange(1 - half, walkers, 2)
            for own in range(half, walkers, 2):
                a, b = rng.choice(others, 2, replace=False)
                length = 1.0 if rng.random() < 0.1 else 2.38 / np.sqrt(2 * p)
                new = at[own] + length * (at[a] - at[b]) + 1e-6 * certified[:, 1] * rng.standard_normal(p)
                value = density(new)
                if np.log(rng.random()) < value - densities[own]:
                    at[own], densities[own] = new, value
        if step >= steps // 5 and step % 10 == 0:
            kept.append(at.copy())
    return np.array(kept)


def certified_and_exact(
    arguments: Mapping[str, Any], certified: np.ndarray, t_sds: float, problem: oc.Problem, posterior: oc.Posterior
) -> dict[str, float]:
    p, walk = len(certified), walked(arguments, certified)
    quantiles = [0.5, 0.025, 0.975]
    middle, low, high = np.quantile(posterior.theta.reshape(-1, p), quantiles, axis=0)
    exact, below, above = np.quantile(walk.reshape(-1, p), quantiles, axis=0)
    first, second = (np.median(half.reshape(-1, p), axis=0) for half in np.array_split(walk, 2))
    sd = (above - below) / 3.92
    off, width = (middle - exact) / sd, (high - low) / (above - below)
    columns = named({"exact off": off, "exact width": width}, posterior.parameter_names)
    said = {**compared(certified, problem, posterior, t_sds), **columns, **right(off, width)}
    return said | {"walk off": np.abs((first - second) / sd).max()}


def nist(seed: int, name: str, folder: Path) -> DataSet:
    """Normal priors three times as wide as the larger start, around the second; both starts are those of the search."""
    text = (folder / "nist" / f"{name}.dat").read_text()
    table = np.array([line.split()[2:6] for line in re.findall(r"^ +b\d += .*$", text, re.MULTILINE)], dtype=float)
    rows = text.rsplit("Data:", 1)[1].splitlines()[1:]
    values = np.array([line.split() for line in rows if line.strip()], dtype=float)
    y, x = values[:, 0], values[:, 1:] if values.shape[1] > 2 else values[:, 1]
    starts, certified = table[:, :2].T, table[:, 2:]
    freedom = len(y) - len(table)
    priors = {f"b{j + 1}": stats.norm(starts[1, j], 3 * np.abs(starts[:, j]).max()) for j in range(len(table))}
    observed = np.log(y) if name == "Nelson" else y
    arguments = {"x": x, "y": observed, "simulator": NIST[name], "parameters": priors, "starts": starts}
    t_sds = float(np.sqrt(freedom / (freedom - 2)))
    return DataSet(arguments, also=partial(certified_and_exact, arguments, certified, t_sds))


def lynx(seed: int, folder: Path) -> DataSet:
    text = json.loads((folder / "lynx_hare.json").read_text())
    reference = np.array(list(text["reference (mean, sd)"].values())[:6])
    years = np.array([0.0, *text["data"]["ts"]])
    y = np.array([text["data"]["y_init"], *text["data"]["y"]], dtype=float)

    def rates(z, t, birth, eaten, death, grown):
        return z[0] * (birth - eaten * z[1]), z[1] * (grown * z[0] - death)

    def both(year, theta):
        times, place = np.unique([0.0, *year], return_inverse=True)
        return odeint(rates, theta[4:], times, args=tuple(theta[:4]), rtol=1e-9, atol=1e-9)[place[1:]]

    rate, small = stats.truncnorm(-2, np.inf, 1, 0.5), stats.truncnorm(-1, np.inf, 0.05, 0.05)
    priors = {"birth": rate, "eaten": small, "death": rate, "grown": small}
    priors |= dict.fromkeys(("hare", "lynx"), stats.lognorm(1, scale=10))
    arguments = {"x": years, "y": y, "simulator": both, "parameters": priors, "transform": "log", "starts": 8}
    return DataSet(arguments, also=partial(compared, reference))


MODELS = (
    *("model-1", "model-2", "model-3", "curved-0.5", "curved-minus-0.5"),
    *("cooling-fin", "saturation-1-2", "two-outcomes"),
)
#: part -> its methods where none are named
METHODS = {
    **dict.fromkeys(("linear", "decay", "outlier", "inputs", "models", "lynx"), ("gp", "none")),
    "nist": ("none",),
    "speed": ("gp",),
}
#: whose data are what they are
ONCE = ("nist", "lynx")


def cases(part: str, reality: Path) -> dict[str, Maker]:
    """Name -> data set of a seed."""
    if part == "linear":
        sizes = product((0, 0.8), (5, 8, 12, 25))
        return {f"size {size} n {n}": partial(linear, size=size, n=n) for size, n in sizes}
    if part == "decay":
        both = product((0.04, 0.02), (True, False))
        return {f"tau {tau} offset {'un' * (not c)}known": partial(decay, tau=tau, known_offset=c) for tau, c in both}
    if part == "outlier":
        rows = {"middle": 12, "end": -1, "t noise": None}
        return {name: partial(outlier, row=row) for name, row in rows.items()}
    if part == "inputs":
        return {f"n {n}": partial(inputs, n=n) for n in (30, 60, 100)}
    if part == "models":
        return {name: partial(example, name=name) for name in MODELS}
    if part == "speed":
        sizes = [(name, 100) for name in MODELS[:3]] + [("model-1", 1000), ("model-3", 1000)]
        return {f"{name} n {n}": partial(example, name=name, n=n) for name, n in sizes}
    if part == "nist":
        return {name: partial(nist, name=name, folder=reality) for name in NIST if (reality / "nist").is_dir()}
    return {"log scale": partial(lynx, folder=reality)} if (reality / "lynx_hare.json").exists() else {}


def problem_of(data: DataSet, noise: str) -> oc.Problem:
    if noise == "default":
        return oc.Problem(**data.arguments)
    return oc.Problem(**data.arguments, noise_cov=data.noise_cov if noise == "given" else noise)


def noise_sds(posterior: oc.Posterior) -> dict[str, float]:
    """Means over the draws, or the estimate."""
    sampled = posterior.data["posterior"]
    cov = (sampled if "noise_cov" in sampled else posterior.data["constant_data"])["noise_cov"].to_numpy()
    sds = np.sqrt(np.diagonal(cov, axis1=-2, axis2=-1)).reshape(-1, posterior.q).mean(axis=0)
    return named({"noise sd": sds}, posterior.outcome_names)


@cache
def compiled(method: str, noise: str) -> None:
    oc.calibrate(problem_of(linear(0, 0, 25), noise), method, draws=20, chains=2, seed=1, progress=False)


def fit(maker: Maker, method: str, noise: str, draws: int, seed: int) -> dict[str, float]:
    """Quantity, or quantity.parameter -> value; "failed: " and what was said."""
    warnings.simplefilter("ignore")
    data, each = maker(seed), max(1, draws // CHAINS)
    try:
        compiled(method, noise)
        started = process_time()
        problem = problem_of(data, noise)
        posterior = oc.calibrate(problem, method, draws=each, chains=CHAINS, seed=seed, progress=False)
        seconds = process_time() - started
        theta = posterior.theta.reshape(-1, len(posterior.parameter_names))
        low, high = np.quantile(theta, [0.025, 0.975], axis=0)
        columns = {"sd": theta.std(axis=0, ddof=1), "width": high - low}
        if data.star:
            held = (low < data.star) & (np.array(data.star) < high)
            columns = {"held": held, "error": theta.mean(axis=0) - data.star, **columns}
        row = named(columns, posterior.parameter_names) | noise_sds(posterior) | dict(data.known)
        row |= {**data.also(problem, posterior), "problem": not posterior.check().ok}
        row |= {"ess": posterior.summary()["ess_bulk"].min(), "cpu": seconds}
    except Exception as error:
        row = {f"failed: {type(error).__name__}: {' '.join(str(error).split())}": 1.0}
    return {name: float(value) for name, value in row.items()}


#: of a row of the file, besides quantity and value
KEY = ("commit", "noise", "draws", "part", "case", "method", "set")


class Kept:
    """Fits of a file, or of none."""

    def __init__(self, file: Path | None) -> None:
        self.file, self.rows = file, {}
        if file is not None and file.exists():
            with file.open(newline="") as lines:
                for line in csv.DictReader(lines):
                    row = self.rows.setdefault(tuple(line[name] for name in KEY), {})
                    row[line["quantity"]] = float(line["value"])

    def add(self, key: tuple[str, ...], row: dict[str, float]) -> None:
        self.rows[key] = row
        if self.file is not None:
            new = not self.file.exists()
            with self.file.open("a", newline="") as lines:
                writer = csv.writer(lines)
                writer.writerows([(*KEY, "quantity", "value")] * new)
                writer.writerows([(*key, name, value) for name, value in row.items()])


def shown(rows: list[dict[str, float]]) -> str:
    """Over data sets: the rms of errors, the mean of all else, and the ratio of mean widths."""
    done = [row for row in rows if "cpu" in row]
    said = [f"{len(done):3} fits"]
    over = {
        name: float(np.sqrt(np.mean(values**2)) if "error" in name else np.mean(values))
        for name in (done[0] if done else {})
        for values in [np.array([row[name] for row in done])]
    }
    over |= {f"of t.{name[8:]}": over[f"width.{name[8:]}"] / over[name] for name in over if name.startswith("t width")}
    columns: dict[str, list[str]] = {}
    for name, value in over.items():
        columns.setdefault(name.split(".")[0], []).append(f"{value:.3g}")
    said += [f"{what} {' '.join(values)}" for what, values in columns.items() if what != "t width"]
    failed = [name for row in rows for name in row if name.startswith("failed")]
    said += [f"{len(failed)} {name}"[:300] for name in failed[:1]]
    return " | ".join(said)


def verdicts(rows: list[dict[str, float]]) -> str:
    wrong = [row for row in rows if not row.get("right")]
    loud = sum(bool(row.get("problem", True)) for row in wrong)
    right, silent = len(rows) - len(wrong), len(wrong) - loud
    return f"{right} right, {loud} wrong with a problem in check() or an error, {silent} wrong and silent"


def measured(
    part: str, given: argparse.Namespace, kept: Kept, mapped: Callable
) -> Iterator[tuple[str, str, list[dict[str, float]]]]:
    """Case, method, and its rows."""
    sets = range(given.first, given.first + (1 if part in ONCE else given.sets))
    chosen = {name: maker for name, maker in cases(part, given.reality).items() if given.only in name}
    for (case, maker), method in product(chosen.items(), given.methods or METHODS[part]):
        keys = [(commit(), given.noise, str(given.draws), part, case, method, str(one)) for one in sets]
        wanted = [key for key in keys if key not in kept.rows]
        one = partial(fit, maker, method, given.noise, given.draws)
        for key, row in zip(wanted, mapped(one, [int(key[-1]) for key in wanted]), strict=True):
            kept.add(key, row)
        yield case, method, [kept.rows[key] for key in keys]


def asked(words: list[str]) -> argparse.Namespace:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("parts", nargs="*", metavar="PART", help=", ".join(METHODS))
    arguments.add_argument("--methods", type=lambda words: words.split(","), help="default: as each part has them")
    arguments.add_argument("--noise", default="default", help='for instance "estimate"; "given" is the truth')
    arguments.add_argument("--sets", type=int, default=100)
    arguments.add_argument("--first", type=int, default=0, help="seed of the first data set")
    arguments.add_argument("--draws", type=int, default=1000, help=f"of all {CHAINS} chains together")
    arguments.add_argument("--jobs", type=int, default=1)
    arguments.add_argument("--only", default="", help="cases with these words in their names")
    arguments.add_argument("--out", type=Path)
    arguments.add_argument("--reality", type=Path, default=REALITY)
    arguments.add_argument("--list", action="store_true", help="names of the cases")
    given = arguments.parse_args(words)
    given.parts = given.parts or list(METHODS)
    if unknown := [name for name in given.parts if name not in METHODS]:
        arguments.error(f"no part is called {', '.join(unknown)}: {', '.join(METHODS)}")
    return given


def main(words: list[str] | None = None) -> None:
    given = asked(sys.argv[1:] if words is None else words)
    kept = Kept(given.out)
    with ProcessPoolExecutor(given.jobs) if given.jobs > 1 else nullcontext() as pool:
        mapped = map if pool is None else pool.map
        for part in given.parts:
            names = list(cases(part, given.reality))
            if given.list or not names:
                print(f"{part}: {', '.join(names) or f'left out, {given.reality} has no data for it'}", flush=True)
                continue
            all_of_part: list[dict[str, float]] = []
            for case, method, rows in measured(part, given, kept, mapped):
                print(f"{part:8} {case:26} {method:5} {shown(rows)}", flush=True)
                all_of_part += rows
                if part == "speed" and (seconds := [row["cpu"] for row in rows if "cpu" in row]):
                    record(f"{case}, {method}", float(np.mean(seconds)), "CPU s")
            if part == "nist":
                print(f"{part:8} {verdicts(all_of_part)}", flush=True)


def table() -> None:
    """What run.py shows of it: seconds, and twenty data sets of a line."""
    print("\nnoise not given, 4 x 250 draws: CPU seconds of problem and fit, and 95 % intervals of a line\n")
    main(["speed", "--sets", "2"])
    main(["linear", "--sets", "20"])


if __name__ == "__main__":
    main()
