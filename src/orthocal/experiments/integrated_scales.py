"""Hyperparameters of experiments with few data: a sample of their posterior in place of one value.

    p(psi | y) ∝ pi(psi) |H|^-1/2 exp(h'H^-1 h / 2) prod_e |S_e|^-1/2 exp(-z_e'S_e^-1 z_e / 2)
    H = sum_e G_e'S_e^-1 G_e,   h = sum_e G_e'S_e^-1 z_e

psi are log sd and log length-scales of every outcome of every experiment, beta and the biases are integrated out, and
pi is what was expected of each. Ten points leave the size of a bias open, and with one size for all draws the real
process between the points, and so theta, would be known too well. Each outcome's psi is drawn by importance, from a t
density about what was found, with those of the others as they were found; the draws are then put together at random,
and weighted by how far the density of all is from the product of theirs. What is kept are a few sets with the same
weight, a rule for integrals over psi; every draw of the real process has one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.stats import qmc

from ..arrays import Array, BoolArray, IntArray
from ..bias import GP
from ..bias.gp import Scales
from ..regression.gaussian_process import LABEL_ODDS, SHORTEST
from .scales import Fitted, Information, KnownGP

#: data of an outcome beyond which its hyperparameters are as they were found: they are known well, and each set costs
#: the cube of this number
MOST_POINTS = 200
#: sets of hyperparameters that are kept, and that are tried
SETS, TRIED = 64, 256
#: degrees of freedom of the densities that are drawn from, and their largest sd
FREEDOM, WIDEST = 5.0, 2.0
#: step of the differences that give their widths
STEP = 0.3


class Found(NamedTuple):
    """The prior of an experiment with the hyperparameters that were found, and with those of each set, where any."""

    prior: KnownGP
    sets: tuple[KnownGP, ...]


class _Candidates(NamedTuple):
    """Hyperparameters of one outcome (t, 1 + d), what it says with each, log weights (t,), and the part of beta."""

    log_values: Array
    H: Array
    h: Array
    log_weights: Array
    of_beta: Array


def with_sets(prior: GP, fitted: Sequence[Sequence[Fitted]]) -> list[Found]:
    """Each experiment's prior, and, where it has few data, its priors with sets of hyperparameters."""
    every = [one for own in fitted for one in own]
    few = [all(len(one.outcome.setting.x) <= MOST_POINTS for one in own) for own in fitted]
    open_ones = [is_few for own, is_few in zip(fitted, few, strict=True) for _ in own]
    total = every[0].information.plus([one.information for one in every[1:]])
    rng = np.random.default_rng(0)
    drawn = {
        i: _candidates(prior, one, total.less([one.information]), rng) for i, one in enumerate(every) if open_ones[i]
    }
    chosen = _chosen(drawn, total, every, rng)
    place, found = 0, []
    for own, is_few in zip(fitted, few, strict=True):
        places = range(place, place := place + len(own))
        sets = (
            [KnownGP.like(prior, scales) for scales in zip(*(chosen[i] for i in places), strict=True)] if is_few else []
        )
        found.append(Found(KnownGP.like(prior, [one.scales for one in own]), tuple(sets)))
    return found


def of_beta(H: Array, h: Array) -> Array:
    """log of |H|^-1/2 exp(h'H^-1 h / 2), for H (..., P, P)."""
    solved = np.linalg.solve(H, h[..., None])[..., 0]
    return np.asarray(-0.5 * np.linalg.slogdet(H)[1] + 0.5 * np.sum(h * solved, axis=-1))


def _free(prior: GP, one: Fitted) -> BoolArray:
    """Which of log sd and log length-scales were found, (1 + d,)."""
    x = one.outcome.setting.x
    given = prior.given_scales(x.shape[1], one.outcome.setting.labels.columns)
    return np.append(prior.sd is None, np.isnan(given) & (np.ptp(x, axis=0) > 0))


class _Density(NamedTuple):
    """That of one outcome's hyperparameters, with the others' as they were found."""

    fitted: Fitted
    nu: float
    others: Information

    def at(self, log_values: Array) -> tuple[Information, float, float]:
        """What the outcome says, the log density, and the part of beta in it; -inf where there is none."""
        setting, prior = self.fitted.outcome.setting, self.fitted.expected
        scales = Scales(float(np.exp(log_values[0])), np.exp(log_values[1:]))
        numeric = np.setdiff1d(np.arange(len(log_values) - 1), setting.labels.columns)
        odds = np.delete(scales.lengthscale, numeric)
        inside = np.all(scales.lengthscale[numeric] >= SHORTEST * setting.span[numeric])
        if not (inside and np.all((odds >= LABEL_ODDS[0]) & (odds <= LABEL_ODDS[1]))):
            return self.fitted.information, -np.inf, 0.0
        try:
            own = self.fitted.outcome.information(scales, self.nu)
        except np.linalg.LinAlgError:
            return self.fitted.information, -np.inf, 0.0
        part = float(of_beta(self.others.H + own.H, self.others.h + own.h))
        away = prior.deviance(np.append(log_values, prior.mean[-1]))[0]
        return own, own.evidence + part - 0.5 * float(np.sum(away)), part


def _candidates(prior: GP, one: Fitted, others: Information, rng: np.random.Generator) -> _Candidates:
    """Draws of one outcome's hyperparameters from a t density, with their weights."""
    centre = np.log(np.append(one.scales.sd, one.scales.lengthscale))
    density, free = _Density(one, prior.nu, others), _free(prior, one)
    root = _root(density, centre, free)
    uniform = qmc.Sobol(1 + len(root), rng=rng).random(TRIED)
    uniform = np.clip(uniform, 1e-9, 1 - 1e-9)
    tail = np.sqrt(FREEDOM / stats.chi2(FREEDOM).ppf(uniform[:, 0]))
    white = stats.norm.ppf(uniform[:, 1:]) * tail[:, None]
    log_values = np.tile(centre, (TRIED, 1))
    log_values[:, free] += white @ root.T
    found = [density.at(values) for values in log_values]
    drawn_from = -0.5 * (FREEDOM + len(root)) * np.log1p(np.sum(white**2, axis=1) / FREEDOM)
    H, h = (np.array([own[k] for own, _, _ in found]) for k in (0, 1))
    log_density, part = (np.array([each[k] for each in found]) for k in (1, 2))
    return _Candidates(log_values, H, h, log_density - drawn_from, part)


def _root(density: _Density, centre: Array, free: BoolArray) -> Array:
    """R with R R' the inverse of the curvature of -log density, by differences; no wider than what is sensible."""
    axes = np.eye(len(centre))[free] * STEP
    middle = density.at(centre)[1]

    def at(*steps: Array) -> float:
        # outside of the bounds nothing is known: as high as the middle, which makes the density wide
        value = density.at(centre + np.sum(steps, axis=0))[1]
        return value if np.isfinite(value) else middle

    single = [[at(sign * one) for sign in (1.0, -1.0)] for one in axes]
    curvature = np.empty((len(axes), len(axes)))
    for i, one in enumerate(axes):
        curvature[i, i] = 2 * middle - single[i][0] - single[i][1]
        for j, other in enumerate(axes[:i]):
            mixed = at(one, -other) + at(-one, other) - at(one, other) - at(-one, -other)
            curvature[i, j] = curvature[j, i] = mixed / 4
    values, vectors = np.linalg.eigh(curvature / STEP**2)
    return np.asarray(vectors / np.sqrt(np.maximum(values, WIDEST**-2)))


def _chosen(
    drawn: dict[int, _Candidates], total: Information, every: Sequence[Fitted], rng: np.random.Generator
) -> dict[int, list[Scales]]:
    """For each outcome its hyperparameters in every set."""
    if not drawn:
        return {}
    rows = {i: rng.permutation(_resampled(one.log_weights, TRIED)) for i, one in drawn.items()}
    fixed = total.less([every[i].information for i in drawn])
    H = fixed.H + np.sum([one.H[rows[i]] for i, one in drawn.items()], axis=0)
    h = fixed.h + np.sum([one.h[rows[i]] for i, one in drawn.items()], axis=0)
    together = of_beta(H, h) - np.sum([one.of_beta[rows[i]] for i, one in drawn.items()], axis=0)
    kept = rng.permutation(_resampled(together, SETS))
    return {i: list(_scales(one.log_values[rows[i][kept]])) for i, one in drawn.items()}


def _scales(log_values: Array) -> Iterator[Scales]:
    for own in np.exp(log_values):
        yield Scales(float(own[0]), own[1:])


def _resampled(log_weights: Array, count: int) -> IntArray:
    """Numbers of as many as ``count``, each as often as its weight says, to within one."""
    weights = np.exp(log_weights - log_weights.max())
    places = (np.arange(count) + 0.5) / count
    chosen = np.searchsorted(np.cumsum(weights / weights.sum()), places)
    return np.minimum(chosen, len(weights) - 1).astype(np.intp)
