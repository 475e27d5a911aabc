"""Hyperparameters of experiments with few data: a sample of their posterior in place of one value.

    p(psi | y) ∝ pi(psi) |H|^-1/2 exp(h'H^-1 h / 2) prod_e |S_e|^-1/2 exp(-z_e'S_e^-1 z_e / 2)
    H = sum_e G_e'S_e^-1 G_e,   h = sum_e G_e'S_e^-1 z_e

psi are log sd and log length-scales of every outcome of every experiment, beta and the biases are integrated out, and
pi is what is expected of each. Ten points leave the size of a bias open, and with one size for all draws the real
process between the points, and so theta, would be known too well. So it would with a prior of log sd, which lets the
many sds near 0 in: pi has a half-Cauchy law of the sd itself (Gelman 2006), see ``log_prior``.

Each outcome has candidates, drawn from a t density about what was found, with importance weights. A Gibbs sampler goes
over the outcomes and chooses one candidate of each given those of the others, which it feels through H and h alone.
What is kept are a few sets from its chain, a rule for integrals over psi; every draw of the real process has one of
them.
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
from ..regression.log_prior import LogPrior
from .scales import ALIKE, Fitted, Information, KnownGP

#: data of an outcome beyond which its hyperparameters are as they were found: they are known well, and each set costs
#: the cube of this number
MOST_POINTS = 200
#: sets of hyperparameters that are kept, and candidates of each outcome
SETS, TRIED = 64, 256
#: sweeps of the Gibbs sampler before the first set that is kept, and from each to the next
FIRST, BETWEEN = 20, 2
#: degrees of freedom of the densities that are drawn from, and their largest sd
FREEDOM, WIDEST = 5.0, 2.0
#: step of the differences that give their widths
STEP = 0.3


class Found(NamedTuple):
    """The prior of an experiment with the hyperparameters that were found, and with those of each set, where any."""

    prior: KnownGP
    sets: tuple[KnownGP, ...]


class _Candidates(NamedTuple):
    """Hyperparameters of one outcome (t, 1 + d), what it says with each, and log weights (t,) without beta's part.

    H (t, k, k) and h (t, k) have the ``own`` parameters alone, those that the outcome feels.
    """

    log_values: Array
    own: IntArray
    H: Array
    h: Array
    log_weights: Array


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
    chosen = _chosen(drawn, total.less([every[i].information for i in drawn]), rng)
    place, found = 0, []
    for own, is_few in zip(fitted, few, strict=True):
        places = range(place, place := place + len(own))
        sets = (
            [KnownGP.like(prior, scales) for scales in zip(*(chosen[i] for i in places), strict=True)] if is_few else []
        )
        found.append(Found(KnownGP.like(prior, [one.scales for one in own]), tuple(sets)))
    return found


def log_prior(expected: LogPrior, log_values: Array) -> float:
    """log pi of log sd and log length-scales (1 + d,), up to a constant: p(sd) ∝ 1 / (1 + sd² / scale²).

    scale is the root mean square of sds that are log-normal about those of the others, exp(ALIKE²) times their median.
    Below it sds are as probable as each other, 0 is nothing special, and the tail leaves an experiment the freedom to
    be unlike the others. Length-scales are log-normal about the others'.
    """
    size = log_values[0] - expected.mean[0] - ALIKE**2
    lengths = (log_values[1:] - expected.mean[1:-1]) / expected.sd[1:-1]
    # with u = log(sd / scale) the density of u is e^u / (1 + e^2u)
    return float(-np.logaddexp(-size, size) - 0.5 * lengths @ lengths)


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
        """What the outcome says, the log density, and the part of it without beta; -inf where there is none."""
        setting, prior = self.fitted.outcome.setting, self.fitted.expected
        scales = Scales(float(np.exp(log_values[0])), np.exp(log_values[1:]))
        numeric = np.setdiff1d(np.arange(len(log_values) - 1), setting.labels.columns)
        odds = np.delete(scales.lengthscale, numeric)
        inside = np.all(scales.lengthscale[numeric] >= SHORTEST * setting.span[numeric])
        if not (inside and np.all((odds >= LABEL_ODDS[0]) & (odds <= LABEL_ODDS[1]))):
            return self.fitted.information, -np.inf, -np.inf
        try:
            own = self.fitted.outcome.information(scales, self.nu)
        except np.linalg.LinAlgError:
            return self.fitted.information, -np.inf, -np.inf
        without = own.evidence + log_prior(prior, log_values)
        return own, without + float(of_beta(self.others.H + own.H, self.others.h + own.h)), without


def _candidates(prior: GP, one: Fitted, others: Information, rng: np.random.Generator) -> _Candidates:
    """Draws of one outcome's hyperparameters from a t density, with their weights."""
    found_ones = np.log(np.append(one.scales.sd, one.scales.lengthscale))
    density, free = _Density(one, prior.nu, others), _free(prior, one)
    centre, root = _shape(density, found_ones, free)
    uniform = qmc.Sobol(1 + len(root), rng=rng).random(TRIED)
    uniform = np.clip(uniform, 1e-9, 1 - 1e-9)
    tail = np.sqrt(FREEDOM / stats.chi2(FREEDOM).ppf(uniform[:, 0]))
    white = stats.norm.ppf(uniform[:, 1:]) * tail[:, None]
    log_values = np.tile(centre, (TRIED, 1))
    log_values[:, free] += white @ root.T
    found = [density.at(values) for values in log_values]
    drawn_from = -0.5 * (FREEDOM + len(root)) * np.log1p(np.sum(white**2, axis=1) / FREEDOM)
    own = np.flatnonzero(np.abs(one.outcome.G).max(axis=0) > 0)
    H = np.array([told.H[np.ix_(own, own)] for told, _, _ in found])
    h = np.array([told.h[own] for told, _, _ in found])
    return _Candidates(log_values, own, H, h, np.array([without for _, _, without in found]) - drawn_from)


def _shape(density: _Density, found: Array, free: BoolArray) -> tuple[Array, Array]:
    """Where the density is about highest, and R with R R' the inverse of its curvature there, by differences.

    One Newton step from what was found, since that has another prior; no longer and no wider than what is sensible.
    """
    axes = np.eye(len(found))[free] * STEP
    middle = density.at(found)[1]

    def at(*steps: Array) -> float:
        # outside of the bounds nothing is known: as high as the middle, which makes the density wide
        value = density.at(found + np.sum(steps, axis=0))[1]
        return value if np.isfinite(value) else middle

    single = np.array([[at(sign * one) for sign in (1.0, -1.0)] for one in axes]).reshape(-1, 2)
    curvature = np.empty((len(axes), len(axes)))
    for i, one in enumerate(axes):
        curvature[i, i] = 2 * middle - single[i].sum()
        for j, other in enumerate(axes[:i]):
            mixed = at(one, -other) + at(-one, other) - at(one, other) - at(-one, -other)
            curvature[i, j] = curvature[j, i] = mixed / 4
    values, vectors = np.linalg.eigh(curvature / STEP**2)
    root = np.asarray(vectors / np.sqrt(np.maximum(values, WIDEST**-2)))
    step = root @ (root.T @ (single[:, 0] - single[:, 1])) / (2 * STEP)
    centre = found.copy()
    centre[free] += step * WIDEST / max(float(np.linalg.norm(step)), WIDEST)
    # a step to where there is nothing is not made
    return (centre if np.isfinite(density.at(centre)[1]) else found), root


def _chosen(drawn: dict[int, _Candidates], fixed: Information, rng: np.random.Generator) -> dict[int, list[Scales]]:
    """For each outcome its hyperparameters in every set; ``fixed`` is what those say that have one value."""
    if not drawn:
        return {}
    H, h = fixed.H.copy(), fixed.h.copy()
    # the first values are the most probable candidates without the others
    place = {i: int(np.argmax(one.log_weights)) for i, one in drawn.items()}
    for i, one in drawn.items():
        H[np.ix_(one.own, one.own)] += one.H[place[i]]
        h[one.own] += one.h[place[i]]
    kept: dict[int, list[int]] = {i: [] for i in drawn}
    for sweep in range(FIRST + SETS * BETWEEN):
        for i, one in drawn.items():
            block = np.ix_(one.own, one.own)
            H[block] -= one.H[place[i]]
            h[one.own] -= one.h[place[i]]
            place[i] = _drawn_place(one, H, h, rng)
            H[block] += one.H[place[i]]
            h[one.own] += one.h[place[i]]
        if sweep >= FIRST and (sweep - FIRST) % BETWEEN == 0:
            for i in drawn:
                kept[i].append(place[i])
    return {i: list(_scales(one.log_values[kept[i]])) for i, one in drawn.items()}


def _drawn_place(one: _Candidates, H: Array, h: Array, rng: np.random.Generator) -> int:
    """The number of a candidate, drawn given what the others say, H (P, P) and h (P,)."""
    rest = np.setdiff1d(np.arange(len(h)), one.own)
    inner, pull = H[np.ix_(one.own, one.own)], h[one.own]
    if len(rest):
        # parameters that the outcome does not feel are integrated out once, for all of its candidates
        gain = np.linalg.solve(H[np.ix_(rest, rest)], np.column_stack([H[np.ix_(rest, one.own)], h[rest]]))
        crossed = H[np.ix_(one.own, rest)] @ gain
        inner, pull = inner - crossed[:, :-1], pull - crossed[:, -1]
    log_weights = one.log_weights + of_beta(inner + one.H, pull + one.h)
    cumulative = np.cumsum(np.exp(log_weights - log_weights.max()))
    return min(int(np.searchsorted(cumulative, rng.random() * cumulative[-1])), len(cumulative) - 1)


def _scales(log_values: Array) -> Iterator[Scales]:
    for own in np.exp(log_values):
        yield Scales(float(own[0]), own[1:])
