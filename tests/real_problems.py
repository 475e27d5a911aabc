"""Public problems that nobody here wrote, with all defaults; their sources are in docs/real-problems.md.

The data are read from a folder beside the repository.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats
from scipy.integrate import solve_ivp

import orthocal as oc

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "reality"


def columns(name):
    table = pd.read_csv(DATA / f"{name}.csv").to_numpy(dtype=float)
    return table[:, 0], table[:, 1:].squeeze()


def ball_drop():
    return oc.Problem(*columns("ball_drop"), lambda h, t: np.sqrt(2 * h / t[0]), {"g": stats.uniform(6, 9)})


def bayarri_with_one_parameter():
    priors = {"u": stats.uniform(0, 10)}
    return oc.Problem(*columns("bayarri"), lambda x, t: 5 * np.exp(-t[0] * x), priors, oc.Box(0, 3.01))


def bayarri_with_two_parameters():
    priors = {"M": stats.uniform(0, 7), "U": stats.uniform(0, 7)}
    return oc.Problem(*columns("bayarri"), lambda x, t: t[0] + 5 * np.exp(-t[1] * x), priors, oc.Box(0, 3.01))


def chaboche():
    priors = {"R": stats.norm(7e8, 7e7), "C": stats.norm(2.5e9, 2.5e8), "gamma": stats.norm(8, 0.8)}

    def stress(strain, t):
        return t[0] - t[1] * np.expm1(-t[2] * strain) / t[2]

    return oc.Problem(*columns("chaboche"), stress, priors, noise_cov=1e14)


def population():
    def growth(year, theta):
        a, by0 = theta[0], np.exp(theta[1]) * 3.9e6
        return 3.9 * a / (by0 + (a - by0) * np.exp(-a * (year - 1790)))

    return oc.Problem(*columns("us_population"), growth, {"a": stats.norm(0.03, 0.01), "c": stats.norm(-22.6, 1)})


def common_cold():
    def epidemic(day, theta):
        g, v, s0 = theta
        times, place = np.unique(day, return_inverse=True)
        run = solve_ivp(
            lambda _, u: [-g * u[0] * u[1], g * u[0] * u[1] - v * u[1], v * u[1]],
            (1, times[-1]),
            [s0, 1, 0],
            t_eval=times,
            rtol=1e-8,
            atol=1e-8,
        )
        return run.y[1:, place].T

    priors = {"g": stats.uniform(0, 1), "v": stats.uniform(0, 1), "S0": stats.uniform(20, 80)}
    return oc.Problem(*columns("common_cold"), epidemic, priors)


def johnson_cook(x, theta, steps=60):
    """Flow stress in MPa, heated by its own work above a rate of 1 / s; x is strain, log10 of the rate, temperature."""
    strain, log_rate, temperature = x.T
    A, B, C, n, m = theta
    rate = 1 + C * np.log(10) * log_rate
    step, warm = np.where(log_rate > 0, strain, 0.0) / steps, temperature

    def stress(at, kelvin):
        return (A + B * at**n) * rate * (1 - np.clip((kelvin - 298) / 595, 0, 1) ** m)

    for k in range(steps):
        warm = warm + stress((k + 0.5) * step, warm) * step / (2.66 * 0.9)
    return stress(strain, warm)


def aluminium(**settings):
    """The domain is 15 strains along each of the eight curves."""
    table = pd.read_csv(DATA / "al5083.csv")
    x = np.column_stack([table.strain, np.log10(table.strain_rate_per_s), table.temperature_K])
    priors = {"A": (50, 400), "B": (100, 1500), "C": (0, 0.06), "n": (0.05, 1), "m": (0.5, 5)}
    along = [
        np.column_stack([np.linspace(*own[[0, -1], 0], 15), np.tile(own[0, 1:], (15, 1))])
        for own in (x[table.curve == curve] for curve in pd.unique(table.curve))
    ]
    return oc.Problem(
        x,
        table.stress_MPa,
        johnson_cook,
        {name: stats.uniform(low, high - low) for name, (low, high) in priors.items()},
        oc.Points(np.vstack(along)),
        groups=table.curve,
        starts=8,
        input_names=["strain", "log rate", "temperature"],
        **settings,
    )


REAL_PROBLEMS = {
    one.__name__: one
    for one in (
        ball_drop,
        bayarri_with_one_parameter,
        bayarri_with_two_parameters,
        chaboche,
        population,
        common_cold,
        aluminium,
    )
}
