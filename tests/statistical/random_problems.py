"""Random calibration problems with known theta*: what a user might bring, and what nobody tuned anything to.

    f_k(x, theta) = sum_j g_j(t_j) cos(w_j . x (1 + e_j tanh t_j) + c_jk),  g_j(t) = t + r_j t^2,  t = theta / unit

theta* is drawn from the prior (or put on a bound of it), and the real process is f(., theta*) plus a random smooth
function that is orthogonal to the gradients there: so the prior is true, and theta* known.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy import stats
from scipy.optimize import least_squares

import orthocal as oc


@dataclass(frozen=True)
class Case:
    """A problem, its theta* (p,), and what is special about it."""

    problem: oc.Problem
    theta_star: np.ndarray
    traits: tuple[str, ...]


@dataclass
class Simulator:
    """The random simulator, in units of its parameters; it fails where ``corner`` (p,) is passed in all of t."""

    rng: np.random.Generator
    p: int
    d: int
    q: int
    unit: np.ndarray
    corner: np.ndarray | None = None
    raises: bool = False
    frequency: np.ndarray = field(init=False)

    def __post_init__(self):
        rng, p, d, q = self.rng, self.p, self.d, self.q
        direction = rng.standard_normal((p, d))
        # distinct frequencies, so that no two parameters do the same
        length = np.pi * (np.arange(p) + rng.uniform(0.3, 0.7, p))[:, None]
        self.frequency = length * np.abs(direction) / np.linalg.norm(direction, axis=1, keepdims=True)
        self.phase = rng.uniform(0, 2 * np.pi, (p, q))
        self.bend = rng.uniform(0, 0.15, p)
        self.curve = rng.uniform(-0.1, 0.1, p)

    def at(self, x, t):
        """f at x (m, d), (m, q)."""
        angle = (x @ self.frequency.T) * (1 + self.bend * np.tanh(t))
        waves = np.cos(angle[:, :, None] + self.phase)
        return np.einsum("mjq,j->mq", waves, t + self.curve * t**2)

    def slopes(self, x, t):
        """df/dt, (m, q, p)."""
        steps = 1e-5 * np.eye(self.p)
        return np.stack([(self.at(x, t + h) - self.at(x, t - h)) / 2e-5 for h in steps], axis=-1)

    def __call__(self, x, theta):
        t = np.asarray(theta) / self.unit
        if self.corner is not None and (t > self.corner).all():
            if self.raises:
                raise FloatingPointError("the solver did not converge")
            return np.full((len(x), self.q), np.nan)
        return self.at(np.reshape(x, (-1, self.d)), t)


def bump(rng, d, q):
    """A random smooth function of x (m, d), (m, q), of size one."""
    centre, width = rng.random((6, d)), rng.uniform(0.15, 0.5, (6, 1))
    height = rng.standard_normal((6, q)) / np.sqrt(3)
    return lambda x: np.exp(-0.5 * (((x[:, None] - centre) / width) ** 2).sum(axis=2)) @ height


def random_prior(rng, kind, unit):
    """A prior in native units, and its scale in units of t."""
    scale = {"wide": 3.0, "medium": 1.0, "tight": 0.1}[kind] * rng.uniform(0.7, 1.3)
    middle = rng.uniform(-1, 1)
    family = rng.choice(["norm", "uniform", "t"])
    if family == "norm":
        return stats.norm(middle * unit, scale * unit)
    if family == "uniform":
        return stats.uniform((middle - 1.7 * scale) * unit, 3.4 * scale * unit)
    return stats.t(5, middle * unit, scale * unit)


def random_case(seed: int) -> Case:
    """Problem number ``seed``."""
    rng = np.random.default_rng([2026, seed])
    p, d, q = int(rng.integers(1, 9)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    n = int(np.exp(rng.uniform(np.log(max(10, 3 * p)), np.log(500))))
    unit = 10.0 ** rng.uniform(-3, 3, p)
    simulator, traits = Simulator(rng, p, d, q, unit), []
    priors = [random_prior(rng, rng.choice(["wide", "medium", "tight"]), one) for one in unit]
    star = np.array([float(prior.rvs(random_state=rng)) for prior in priors]) / unit
    x, sd = _inputs(rng, n, d, traits), 10.0 ** rng.uniform(-1.5, -0.5)
    cov = _covariance(rng, sd, q)
    weight = np.linalg.inv(cov)
    nodes = stats.qmc.Sobol(d, rng=np.random.default_rng(0)).random(4096)
    if rng.random() < 0.25:
        traits.append("bound")
        j = int(rng.integers(p))
        priors[j] = stats.uniform(star[j] * unit[j], 3 * unit[j])
    if rng.random() < 0.3:
        traits.append("fails in a corner")
        simulator.corner = np.array([prior.ppf(0.95) for prior in priors]) / unit
        simulator.corner = np.maximum(simulator.corner, star + 0.5 * np.abs(simulator.corner - star) + 1e-9)
        simulator.raises = bool(rng.random() < 0.5)
    truth = _real_process(rng, simulator, star, nodes, weight, sd * rng.choice([0.0, 1.0, 3.0, 6.0]))
    star = _closest(simulator, truth(nodes[:512]), star, nodes[:512], weight, priors)
    y, noise = _observed(rng, truth(x), x, cov, traits)
    problem = oc.Problem(
        x,
        y,
        simulator,
        {f"theta{j}": prior for j, prior in enumerate(priors)},
        oc.Box(np.zeros(d), np.ones(d)),
        loss_weight=weight,
        **noise,
    )
    return Case(problem, star * unit, (f"p {p}", f"d {d}", f"q {q}", f"n {n}", *traits))


def _inputs(rng, n, d, traits):
    if rng.random() < 0.25 and n >= 30:
        traits.append("replicates")
        distinct = stats.qmc.LatinHypercube(d, rng=rng).random(n // 3)
        return distinct[np.arange(n) % len(distinct)]
    return rng.random((n, d)) if rng.random() < 0.5 else stats.qmc.LatinHypercube(d, rng=rng).random(n)


def _covariance(rng, sd, q):
    correlation = np.full((q, q), rng.uniform(0, 0.7)) + 0.0
    np.fill_diagonal(correlation, 1.0)
    return sd**2 * correlation


def _real_process(rng, simulator, star, nodes, weight, size):
    """f(., theta*) and a smooth function that is orthogonal to the gradients there, as a function of x."""
    rough = bump(rng, simulator.d, simulator.q)
    gradient = simulator.slopes(nodes, star)
    image = np.einsum("kl,mlp->mkp", weight, gradient)
    gram = np.einsum("mkp,mkr->pr", gradient, image)
    share = np.linalg.solve(gram, np.einsum("mkp,mk->p", image, rough(nodes)))
    return lambda x: simulator.at(x, star) + size * (rough(x) - simulator.slopes(x, star) @ share)


def _closest(simulator, target, star, nodes, weight, priors):
    """The t at which the simulator is closest to the real process, over the support; mostly ``star`` itself."""
    root = np.linalg.cholesky(weight)
    lower, upper = np.array([prior.support() for prior in priors]).T / simulator.unit

    def residual(t):
        return ((target - simulator.at(nodes, t)) @ root).ravel()

    quantiles = stats.qmc.Sobol(len(star), rng=np.random.default_rng(1)).random(16)
    starts = [
        star,
        *(np.array([prior.ppf(u) for prior, u in zip(priors, one, strict=True)]) / simulator.unit for one in quantiles),
    ]
    inside = [np.clip(start, lower + 1e-9, upper - 1e-9) for start in starts]
    fits = [least_squares(residual, start, bounds=(lower, upper), max_nfev=40) for start in inside]
    best = min(fits, key=lambda fit: fit.cost)
    # the first is at ``star``, but for bounds and the coarser nodes
    return star if fits[0].cost <= best.cost * (1 + 1e-3) + 1e-9 else best.x


def _observed(rng, truth, x, cov, traits):
    """Field outcomes, and how their noise is given."""
    n, q = truth.shape
    error = rng.standard_normal((n, q)) @ np.linalg.cholesky(cov).T
    noise = {"noise_cov": cov}
    if rng.random() < 0.3:
        traits.append("uneven noise")
        factor = np.exp(rng.uniform(0.5, 1.2) * (2 * x[:, :1] - 1))
        error = error * factor
        noise = {"noise_cov": cov * (factor**2)[:, :, None]} if rng.random() < 0.5 else {"noise_cov": oc.VaryingNoise()}
    elif rng.random() < 0.5 and n >= 20:
        traits.append("noise estimated")
        noise = {}
    y = truth + error
    if q > 1 and rng.random() < 0.3:
        traits.append("missing cells")
        y = np.where(rng.random((n, q)) < 0.15, np.nan, y)
        y[0] = truth[0]
    return y, noise
