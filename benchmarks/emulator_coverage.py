"""How often 95 % intervals hold theta* where an emulator's draws stand for what is uncertain about the simulator.

    python benchmarks/emulator_coverage.py [model2-gp] [model2-bart] [friedman] [galaxy] [--sets 50] [--draws 250]
        [--first 0] [--beside 50] [--runs 30 60 120] [--emulator-draws 64] [--galaxy-designs 0 1 2]

prints one row a case: coverage of each parameter, mean posterior sd and rms error of the posterior mean, with the
emulator's draws, and, for the first ``--beside`` data sets, without (``emulator_draws=0``) and with the simulator
itself. Where the emulator's part of the variance is small, a few of its draws say the same and cost less. The cases:

model2-gp, model2-bart
    Model 2 known from 7 x 7 runs at the data points, an emulator for each data set, as in ``orthocal study``.
friedman
    Friedman's function with all of its five inputs as parameters, each with an effect of its own along x (two inputs),
    known from 30, 60 and 120 runs over the priors (a new design for each data set), GP emulator; 80 data, noise sd 0.2,
    theta* drawn from the middle of the prior for each data set, no bias.
galaxy
    The mock galaxy of ``orthocal galaxy mock --full`` (``--galaxy small`` for a try), known from 400 runs over the
    priors (``--galaxy-runs``), one GP emulator for all data sets of a design, and no simulator beside. Not among the
    default cases: a run takes 2 s of a core. They are kept in ``--store``, where a second try finds them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import gettempdir

import numpy as np
from scipy import stats
from scipy.optimize import least_squares

import orthocal as oc
from orthocal.examples import MODEL2_PART
from orthocal_galaxy import PARAMETERS, mock_galaxy, theta_star
from orthocal_studies.emulated import emulated

#: of the Friedman problem
RUNS, NOISE_SD = (30, 60, 120), 0.2
#: data sets after which it says how far it is
EVERY = 5
FRIEDMAN_PRIORS = {name: stats.uniform(0, 1) for name in "abcde"}


def friedman(x, theta):
    """10 sin(pi a b) + 20 (c - 1/2)^2 + 10 d + 5 e, with x in each term so that they can be told apart."""
    a, b, c, d, e = theta
    u, v = x.T
    bent = 10 * np.sin(np.pi * (a * (0.3 + u) + 0.5 * b * v))
    return bent + 20 * (c - u) ** 2 + 10 * d * u * v + 5 * e * np.cos(np.pi * v)


def friedman_case(runs: int, seed: int):
    """Problem with the emulator, with the simulator, and theta*."""
    rng = np.random.default_rng([seed, runs, 18])
    star = rng.uniform(0.3, 0.7, 5)
    x = rng.random((80, 2))
    y = friedman(x, star) + NOISE_SD * rng.standard_normal(80)
    design = oc.design(FRIEDMAN_PRIORS, runs, seed=1000 * seed + runs)
    output = np.stack([friedman(x, one) for one in design.to_numpy()])
    emulator = oc.emulate(oc.RunTable(design, output, x), "gp", progress=False)
    domain = oc.Points(x, np.ones(len(x)))
    made = [
        oc.Problem(x, y, simulator, FRIEDMAN_PRIORS, domain=domain, noise_cov=NOISE_SD**2, starts=4)
        for simulator in (emulator, friedman)
    ]
    return made[0], made[1], star


def model2_case(name: str, seed: int):
    x, y = MODEL2_PART.simulate(np.random.default_rng([seed, 11]))
    emulator = emulated(MODEL2_PART, x, name)
    options = {"domain": oc.Box(0, 1), "starts": 4}
    return (
        MODEL2_PART.problem(x, y, simulator=emulator, **options),
        MODEL2_PART.problem(x, y, **options),
        np.array(MODEL2_PART.theta_star),
    )


def galaxy_case(settings: str, runs: int, design: int, store: Path) -> Callable[[int], tuple]:
    """What makes the problem of a data set, with the same emulator for all, and theta*."""
    galaxy = mock_galaxy(settings)
    low, high = np.array([galaxy.prior_box[name] for name in PARAMETERS]).T
    priors = {name: stats.uniform(a, b - a) for name, a, b in zip(PARAMETERS, low, high, strict=True)}
    own = store.with_stem(f"{store.stem}-{settings}-{design}")
    table = oc.campaign(galaxy.model, oc.design(priors, runs, seed=design), galaxy.x, store=own, progress=False)
    emulator = oc.emulate(table, "gp", progress=False)
    domain = oc.Points(galaxy.x, np.ones(len(galaxy.x)))

    def missed(unit):
        return ((emulator(galaxy.x, low + unit * (high - low)) - galaxy.truth) / galaxy.errors).ravel()

    fits = [least_squares(missed, np.full(3, share), bounds=(0, 1), diff_step=1e-3) for share in (0.4, 0.5, 0.6)]
    near = low + min(fits, key=lambda fit: fit.cost).x * (high - low)
    star = theta_star(galaxy.model, galaxy.truth, galaxy.errors, starts=[near]).theta

    def case(seed: int):
        y = galaxy.noisy(np.random.default_rng([7, seed]))
        return oc.Problem(galaxy.x, y, emulator, priors, domain, y_err=galaxy.errors), None, star

    return case


def theta_of(problem, draws: int, seed: int, emulator_draws: int | None):
    posterior = oc.calibrate(problem, "gp", draws=draws, seed=seed, progress=False, emulator_draws=emulator_draws)
    return posterior.theta.reshape(-1, problem.parameters.p)


def measured(
    case: Callable[[int], tuple], sets: range, draws: int, beside: int, emulator_draws: int
) -> dict[str, list]:
    """name -> (data sets, p): where theta* is held, errors of the means, and sds."""
    found: dict[str, list] = {}
    for number, seed in enumerate(sets):
        with_emulator, alone, star = case(seed)
        fits = [("draws", with_emulator, emulator_draws), ("mean", with_emulator, 0), ("simulator", alone, None)]
        for label, problem, count in fits[: 3 if number < beside else 1]:
            if problem is None:
                continue
            theta = theta_of(problem, draws, seed, count)
            low, high = np.quantile(theta, [0.025, 0.975], axis=0)
            found.setdefault(f"{label} held", []).append((low < star) & (star < high))
            found.setdefault(f"{label} error", []).append(theta.mean(axis=0) - star)
            found.setdefault(f"{label} sd", []).append(theta.std(axis=0))
        if (number + 1) % EVERY == 0:
            print(f"{number + 1} data sets:", row("so far", found), file=sys.stderr, flush=True)
    return found


def row(title: str, found: dict[str, list]) -> str:
    def numbers(values):
        return " ".join(f"{value:.3g}" for value in values)

    parts = [title]
    for label in ("draws", "mean", "simulator"):
        if f"{label} held" in found:
            held, sd, error = (np.array(found[f"{label} {what}"]) for what in ("held", "sd", "error"))
            rms = np.sqrt(np.mean(error**2, axis=0))
            parts.append(
                f"{label}, {len(held)} data sets: coverage {numbers(held.mean(axis=0))}, "
                f"all together in {held.all(axis=1).sum()}, "
                f"sd {numbers(sd.mean(axis=0))}, rms error {numbers(rms)}"
            )
    return " | ".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="*", default=["model2-gp", "model2-bart", "friedman"])
    parser.add_argument("--sets", type=int, default=50)
    parser.add_argument("--first", type=int, default=0, help="number of the first data set")
    parser.add_argument("--draws", type=int, default=250)
    parser.add_argument("--beside", type=int, default=50)
    parser.add_argument("--runs", type=int, nargs="*", default=RUNS)
    parser.add_argument("--emulator-draws", type=int, default=64)
    parser.add_argument("--galaxy", choices=["full", "small"], default="full")
    parser.add_argument("--galaxy-runs", type=int, default=400)
    parser.add_argument("--galaxy-designs", type=int, nargs="*", default=[0])
    parser.add_argument("--store", type=Path, default=Path(gettempdir()) / "mock_galaxy_runs.db")
    given = parser.parse_args()
    sets = range(given.first, given.first + given.sets)
    sizes = sets, given.draws, given.beside, given.emulator_draws
    for case in given.cases:
        if case == "friedman":
            for runs in given.runs:
                found = measured(lambda seed, runs=runs: friedman_case(runs, seed), *sizes)
                print(row(f"friedman, {runs} runs", found), flush=True)
        elif case == "galaxy":
            for design in given.galaxy_designs:
                found = measured(galaxy_case(given.galaxy, given.galaxy_runs, design, given.store), *sizes)
                print(row(f"galaxy, {given.galaxy}, {given.galaxy_runs} runs of design {design}", found), flush=True)
        else:
            name = case.removeprefix("model2-")
            found = measured(lambda seed, name=name: model2_case(name, seed), *sizes)
            print(row(case, found), flush=True)


if __name__ == "__main__":
    main()
