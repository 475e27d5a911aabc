"""Problems for the findings of ``check()``: random ones where nothing is wrong, and for every finding one where it is.

    f_k(x, t) = sum_j (t_j + 0.05 t_j^2) cos(w_j . x + c_jk),  t = theta / unit

theta* is drawn from the prior; the real process is f(., theta*) plus a smooth bias that is orthogonal to the gradients
there. Each function takes a generator and returns a ``Case``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

import orthocal as oc

NODES = 60


@dataclass(frozen=True)
class Case:
    """What is calibrated, and how."""

    problem: oc.Problem
    method: Any = "gp"
    options: dict[str, int] = field(default_factory=dict)


Maker = Callable[[np.random.Generator], Case]


class World:
    """A random simulator, theta*, priors that are right, and data: what ``problem`` is made of, and may be changed."""

    def __init__(self, rng, p=None, d=None, q=None, n=None, bias=None, sd=0.1, x=None):
        self.rng, self.sd = rng, sd
        self.p, self.q = p or int(rng.integers(1, 4)), q or int(rng.integers(1, 3))
        d = d or int(rng.integers(1, 3))
        self.unit = 10.0 ** rng.uniform(-3, 3, self.p)
        direction = np.abs(rng.standard_normal((self.p, d)))
        length = np.pi * (np.arange(self.p) + rng.uniform(0.3, 0.7, self.p))[:, None]
        self.frequency = length * direction / np.linalg.norm(direction, axis=1, keepdims=True)
        self.phase = rng.uniform(0, 2 * np.pi, (self.p, self.q))
        self.star = rng.standard_normal(self.p)
        n = n or int(rng.integers(20, 61))
        self.x = stats.qmc.Sobol(d, rng=rng).random(64)[:n] if x is None else x
        size = sd * float(rng.choice([0.0, 1.0, 3.0])) if bias is None else sd * bias
        self.bias = self._bias(size, d)
        # far from zero, or around it
        self.level = float(rng.choice([0.0, 20.0]))
        self.truth = self.at(self.x, self.star) + self.bias(self.x)
        self.y = self.truth + sd * rng.standard_normal(self.truth.shape)
        self.options: dict[str, Any] = {"noise_cov": sd**2 * np.eye(self.q), "domain": oc.Box([0.0] * d, [1.0] * d)}
        if d == 1:
            self.options["domain"] = oc.Box(0, 1, nodes=NODES)
        self.priors = {f"t{j}": stats.norm(0, unit) for j, unit in enumerate(self.unit)}

    def at(self, x, t):
        waves = np.cos((x @ self.frequency.T)[:, :, None] + self.phase)
        return self.level * 1.0 + np.einsum("mjq,j->mq", waves, t + 0.05 * t**2)

    def _bias(self, size, d):
        """A smooth function of x whose rms is ``size``, orthogonal to the gradients at theta*."""
        self.level = 0.0
        grid = stats.qmc.Sobol(d, rng=np.random.default_rng(0)).random(512)
        centre, width = self.rng.random((5, d)), self.rng.uniform(0.2, 0.5, (5, 1))
        height = self.rng.standard_normal((5, self.q))

        def raw(x):
            return np.exp(-0.5 * (((x[:, None] - centre) / width) ** 2).sum(axis=2)) @ height

        slopes = np.stack([self._slope(grid, j).ravel() for j in range(self.p)], axis=1)
        coefficient = np.linalg.lstsq(slopes, raw(grid).ravel(), rcond=None)[0]

        def left(x):
            return raw(x) - np.einsum("jnq,j->nq", [self._slope(x, j) for j in range(self.p)], coefficient)

        scale = size / float(np.sqrt(np.mean(left(grid) ** 2)))
        return lambda x: scale * left(x)

    def _slope(self, x, j):
        step = 1e-5 * np.eye(self.p)[j]
        return (self.at(x, self.star + step) - self.at(x, self.star - step)) / 2e-5

    def simulator(self, x, theta):
        return self.at(x, np.asarray(theta) / self.unit)

    def problem(self, **changes):
        options = {"simulator": self.simulator, "parameters": self.priors, "starts": 4, **self.options, **changes}
        return oc.Problem(options.pop("x", self.x), options.pop("y", self.y), **options)


def line(rng, n=40, sd=0.1, bias=0.0, **changes):
    """y = 2 x + bias sin 6x: a problem of one parameter, whose parts are easy to spoil."""
    x = changes.pop("x", np.sort(rng.random((n, 1)), axis=0))
    noise = changes.pop("noise_sd", sd)
    y = 2 * x[:, 0] + bias * np.sin(6 * x[:, 0]) + noise * rng.standard_normal(len(x))
    options = {
        "simulator": lambda x, t: t[0] * x[:, 0],
        "parameters": {"a": stats.norm(1, 2)},
        "domain": oc.Box(0, 1, nodes=NODES),
        "noise_cov": sd**2,
        "starts": 4,
        **changes,
    }
    return oc.Problem(x, options.pop("y", y), **options)


def runs_of(world, count, x, reach=3.0):
    """A table of runs that fill the priors."""
    unit = stats.qmc.Sobol(world.p, rng=np.random.default_rng(0)).random(count)
    theta = reach * (2 * unit - 1) * world.unit
    output = np.stack([world.simulator(x, one) for one in theta])
    return oc.RunTable(theta, output, x, parameter_names=list(world.priors))


def emulated(rng, count=60, x=None, reach=3.5, p=None, **options):
    world = World(rng, p=p or int(rng.integers(1, 3)), d=1)
    grid = np.linspace(0, 1, 15)[:, None] if x is None else x
    return Case(world.problem(simulator=oc.emulate(runs_of(world, count, grid, reach), "gp")), options=options)


def outputs(rng, q=8, rows=12, missed=0.0, noise_cov="estimate"):
    """Outputs without inputs: q numbers, of which some are missed."""
    slopes = rng.standard_normal((q, 2))
    bias = np.where(np.arange(q) < 3, missed, 0.0)
    y = slopes @ np.array([1.0, -0.5]) + bias + rng.standard_normal((rows, q))
    priors = {"a": stats.norm(0, 3), "b": stats.norm(0, 3)}
    return Case(oc.Problem(None, y, lambda t: slopes @ t, priors, noise_cov=noise_cov, starts=4))


def replicated(rng, uneven=1.0, points=12, each=5):
    x = np.repeat(np.linspace(0, 1, points), each)[:, None]
    sd = 0.1 * np.repeat(np.where(np.arange(points) % 2, uneven, 1.0), each)
    y = 2 * x[:, 0] + 0.2 * np.sin(5 * x[:, 0]) + sd * rng.standard_normal(len(x))
    return Case(line(rng, x=x, y=y, noise_cov="estimate"))


def chained(rng, rho=0.8, series=1, n=100, **changes):
    """y = 2 x + a smooth bias, with AR(1) errors of sd 0.1 along x, in one or several series."""
    x = np.tile(np.linspace(0, 1, n), series)[:, None]
    errors = rng.standard_normal((series, n))
    for i in range(1, n):
        errors[:, i] = rho * errors[:, i - 1] + np.sqrt(1 - rho**2) * errors[:, i]
    y = 2 * x[:, 0] + 0.2 * np.sin(5 * x[:, 0]) + 0.1 * errors.ravel()
    if series > 1:
        changes["groups"] = np.repeat(np.arange(series), n)
    return Case(line(rng, x=x, y=y, **changes))


def said(rng, n=100, rho=0.8):
    """The same, with the correlation that there is."""
    length = -1 / ((n - 1) * np.log(rho))
    return chained(rng, rho, n=n, noise_cov=oc.CorrelatedNoise("x", length=length, share=1.0, sd=0.1), input_names="x")


def labelled(rng, n=60, seen=3, known=3):
    """Three machines with a bias of their own; one of them may have no data."""
    machine = rng.integers(0, seen, n)
    u = rng.random(n)
    shift = 0.2 * rng.standard_normal(known)
    y = 2 * u + shift[machine] * np.sin(4 * u) + 0.1 * rng.standard_normal(n)
    x = pd.DataFrame({"load": u, "machine": pd.Categorical.from_codes(machine, list("ABC"[:known]))})
    priors = {"a": stats.norm(1, 2)}
    return Case(oc.Problem(x, y, lambda x, t: t[0] * x[:, 0], priors, oc.Box(0, 1), noise_cov=0.01, starts=4))


SILENT: dict[str, Maker] = {
    "gp": lambda rng: Case(World(rng).problem()),
    # beside a larger bias its residuals are not noise, see docs/joint.md
    "pgp": lambda rng: Case(World(rng, p=1, d=1, q=1, n=30, bias=float(rng.choice([0, 1]))).problem(), "pgp"),
    "none, no bias": lambda rng: Case(World(rng, bias=0.0).problem(), "none"),
    "ko": lambda rng: Case(World(rng, d=1, q=1, n=30).problem(), "ko"),
    "estimated noise": lambda rng: Case(World(rng, n=int(rng.integers(30, 61))).problem(noise_cov="estimate")),
    "replicates": replicated,
    "sampled noise": lambda rng: Case(
        World(rng, d=1, q=1, n=30, bias=0.0).problem(noise_cov="sample"), str(rng.choice(["gp", "none"]))
    ),
    "emulator": emulated,
    "outputs": outputs,
    "errors in x": lambda rng: Case(line(rng, noise_sd=np.hypot(0.1, 0.02), x_err=0.01)),
    "uniform priors": lambda rng: Case(line(rng, bias=0.2, parameters={"a": stats.uniform(0, 4)})),
    "correlated noise that is said": said,
    "series": lambda rng: chained(rng, rho=0.0, series=3, n=30),
    "labels": labelled,
}


def _conflict(rng):
    """The prior in other units: a thousandth, and as sure as a twentieth of that."""
    world = World(rng, p=2, d=1)
    star = world.star[0] * world.unit[0]
    world.priors["t0"] = stats.norm(star / 1000, abs(star) / 20_000)
    return Case(world.problem())


def _five_sds(rng):
    world = World(rng, p=2, d=1)
    world.priors["t0"] = stats.norm((world.star[0] + 5 * 0.3) * world.unit[0], 0.3 * world.unit[0])
    return Case(world.problem())


def _at_a_bound(rng):
    world = World(rng, p=1, d=1)
    star = world.star[0] * world.unit[0]
    world.priors["t0"] = stats.uniform(star, 3 * world.unit[0])
    return Case(world.problem())


def _beyond_a_bound(rng):
    world = World(rng, p=1, d=1)
    star = world.star[0] * world.unit[0]
    world.priors["t0"] = stats.uniform(star + 0.5 * world.unit[0], 3 * world.unit[0])
    return Case(world.problem())


def _fails(rng):
    """The simulator fails in a fifth of the prior, which the draws reach."""
    world = World(rng, p=1, d=1, q=1)

    def partly(x, theta):
        return np.where(theta[0] / world.unit[0] > world.star[0], np.nan, world.simulator(x, theta)[:, 0])

    return Case(world.problem(simulator=partly))


def _edge(rng):
    world = World(rng, p=2, d=1)
    return Case(world.problem(constraint=f"t0 < {(world.star[0] - 0.1) * world.unit[0]:.17g}"), "none")


def _curved(rng, size=0.35):
    x = ((np.arange(60) + 0.5) / 60)[:, None]
    angle = 2 * np.pi * x[:, 0]

    def f(x, t):
        angle = 2 * np.pi * x[:, 0]
        return np.sqrt(2) * (np.sin(angle) * t[0] + np.cos(angle) * t[0] ** 2 / 2)

    y = size * np.sqrt(2) * np.cos(angle) + 0.1 * rng.standard_normal(60)
    return Case(line(rng, x=x, y=y, simulator=f, parameters={"a": stats.uniform(-1, 2)}), "pgp")


def _held(rng):
    priors = {"a": stats.norm(1, 0.5), "b": stats.norm(1, 0.5)}
    return Case(
        line(rng, simulator=lambda x, t: t[0] * x[:, 0] + t[1] * (x[:, 0] + x[:, 0] ** 2 / 50), parameters=priors)
    )


def _collinear(rng):
    priors = {"a": stats.norm(1, 5), "b": stats.norm(1, 5)}
    return Case(
        line(rng, simulator=lambda x, t: t[0] * x[:, 0] + t[1] * (x[:, 0] + x[:, 0] ** 2 / 20), parameters=priors)
    )


def _two_minima(rng, tilt=0.0):
    def f(x, t):
        return t[0] ** 2 * x[:, 0] + tilt * t[0] * np.sin(6 * x[:, 0])

    x = np.sort(rng.random((40, 1)), axis=0)
    y = f(x, np.array([2**0.5])) + 0.1 * rng.standard_normal(40)
    return Case(line(rng, x=x, y=y, simulator=f, parameters={"a": stats.norm(0, 3)}))


def _ripples(rng):
    return Case(line(rng, simulator=lambda x, t: (t[0] + 0.05 * np.sin(60 * t[0])) * x[:, 0], noise_sd=0.1))


def _outlier(rng):
    x = np.sort(rng.random((40, 1)), axis=0)
    y = 2 * x[:, 0] + 0.1 * rng.standard_normal(40)
    y[rng.integers(40)] += 1.0
    return Case(line(rng, x=x, y=y, noise_cov="estimate"))


def _tight_replicates(rng):
    """Four points with replicates that share their errors, among single ones."""
    x = np.concatenate([np.linspace(0, 1, 40), np.repeat([0.2, 0.4, 0.6, 0.8], 5)])[:, None]
    sd = np.where(np.arange(60) < 40, 0.3, 0.02)
    return Case(line(rng, x=x, y=2 * x[:, 0] + sd * rng.standard_normal(60), noise_cov="estimate"))


def _singular(rng):
    x = np.sort(rng.random((40, 1)), axis=0)
    noise = 0.1 * rng.standard_normal((40, 1)) * np.ones((1, 2)) + 0.005 * rng.standard_normal((40, 2))
    simulator = lambda x, t: np.stack([t[0] * x[:, 0], t[0] * x[:, 0] ** 2], axis=1)  # noqa: E731
    return Case(line(rng, x=x, y=2 * np.hstack([x, x**2]) + noise, simulator=simulator, noise_cov="estimate"))


def _counts(rng):
    x = np.sort(rng.random((40, 1)), axis=0)
    return Case(line(rng, x=x, y=rng.poisson(2 * x[:, 0] + 0.5).astype(float), noise_cov=1.5))


def _row_mean(rng):
    return Case(line(rng, simulator=lambda x, t: t[0] * x[:, 0] + 0.2 * t[0] * (x[:, 0].mean() - 0.5)))


def _curved_in_x(rng):
    x = np.sort(rng.random((40, 1)), axis=0)
    y = np.sin(12 * x[:, 0]) + 0.02 * rng.standard_normal(40)
    return Case(line(rng, x=x, y=y, simulator=lambda x, t: t[0] * np.sin(12 * x[:, 0]), noise_cov=4e-4, x_err=0.07))


def _network(rng):
    method = oc.methods.Projected(oc.bias.BNN(hidden=10))
    return Case(line(rng, n=25, bias=0.5, noise_cov=1e-10), method, {"draws": 100, "warmup": 50})


def _sampled(rng):
    method = oc.methods.Joint(oc.bias.GP())
    return Case(line(rng, bias=0.3), method, {"draws": 20, "warmup": 5})


_METROPOLIS = oc.methods.Projected(oc.bias.GP(), kernel=oc.kernels.AdaptiveMetropolis(steps=1))

#: finding -> where it must speak
SPEAKING: dict[str, Maker] = {
    "draws on a bound": _at_a_bound,
    "draws without a clear minimum": _ripples,
    "draws nearer to another minimum": lambda rng: _two_minima(rng, 0.012),
    "weights of the prior": lambda rng: Case(line(rng, n=10, sd=1.0, parameters={"a": stats.laplace(2, 0.02)})),
    "prior and data in conflict": _conflict,
    "prior and data in conflict, 5 sds": _five_sds,
    "parameters nearly collinear": _collinear,
    "directions left to the prior": lambda rng: Case(
        line(
            rng,
            simulator=lambda x, t: (t[0] + 2 * t[1]) * x[:, 0],
            parameters={"a": stats.norm(1, 2), "b": stats.norm(1, 2)},
        )
    ),
    "quadrature": lambda rng: Case(line(rng, simulator=lambda x, t: t[0] * x[:, 0] ** 6, domain=oc.Box(0, 1, nodes=3))),
    "best fit on a bound": _beyond_a_bound,
    "best fit misses the data": lambda rng: Case(line(rng, sd=0.01, bias=0.4)),
    "held by the prior": _held,
    "minima that fit alike": _two_minima,
    "another minimum close behind": lambda rng: _two_minima(rng, 0.012),
    "mixing": lambda rng: Case(line(rng), "ko", {"draws": 40}),
    "theta step": lambda rng: Case(line(rng, n=25), _METROPOLIS),
    "information": lambda rng: Case(line(rng, parameters={"a": stats.norm(2, 0.01)})),
    "draws at a bound of the prior": _at_a_bound,
    "constraint: best fit on its edge": _edge,
    "impossible theta": _fails,
    "calls that failed": _fails,
    "curvature, sds too short": _curved,
    "curvature, sds too long": lambda rng: _curved(rng, -0.5),
    "noise nearly singular": _singular,
    "outliers": _outlier,
    "replicates beside the curve": _tight_replicates,
    "replicates uneven": lambda rng: replicated(rng, uneven=6.0),
    "few degrees of freedom": lambda rng: Case(line(rng, n=7, noise_cov="estimate")),
    "residuals too large": lambda rng: Case(line(rng, n=30, noise_sd=0.1 * 1.41), "none"),
    "residuals with a pattern": lambda rng: Case(line(rng, n=30, bias=0.2), "none"),
    "scatter too small": lambda rng: Case(line(rng, n=30, noise_sd=0.05)),
    "correlated errors": lambda rng: chained(rng, n=200),
    "correlated errors: between series": lambda rng: chained(rng, series=3, n=30),
    "outputs: few replicates": lambda rng: outputs(rng, rows=4),
    "outputs that are missed": lambda rng: outputs(rng, missed=3.0),
    "errors in x: curvature": _curved_in_x,
    "errors in x: dilution": lambda rng: Case(line(rng, noise_sd=0.3, x_err=0.15)),
    "impossible predictions": _counts,
    "simulator no function of x": _row_mean,
    "gradient": lambda rng: Case(
        line(rng, simulator=oc.Simulator(lambda x, t: np.round(t[0] * x[:, 0], 4), gradient="difference"))
    ),
    "theta outside of the runs": lambda rng: emulated(rng, reach=0.3),
    "x outside of the runs": lambda rng: emulated(rng, x=np.linspace(0, 0.6, 12)[:, None]),
    "emulator's own error": lambda rng: emulated(rng, count=5, p=2, emulator_draws=0),
    "emulator's part of the variance": lambda rng: emulated(rng, count=5, p=2),
    "domain without data": lambda rng: Case(line(rng, domain=oc.Box(0, 1.5, nodes=NODES))),
    "label without data": lambda rng: labelled(rng, seen=2),
    "bias prior: smallest sd": lambda rng: Case(line(rng, noise_sd=0.07)),
    "bias prior: shortest length-scale": lambda rng: Case(line(rng, sd=0.01, noise_sd=0.1)),
    "bias prior: sampled hyperparameters": _sampled,
    "bias prior: network": _network,
}
