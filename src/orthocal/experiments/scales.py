"""Hyperparameters of the biases of all experiments, by the restricted likelihood of all data with one beta.

    z_e ~ N(G_e beta, S_e), S_e = K_e + R_e, for every experiment e,   beta flat and common

By itself an experiment could give a part of its bias to theta that the others contradict, and its bias would seem
small. Given the hyperparameters of the others, what they say about beta is Gaussian, with the precision
H = sum G'S^-1 G over them; so each is fitted in turn to z_e - G_e m, with the noise R_e + G_e H^-1 G_e' and those
directions flat that the others do not know. The first fits have beta at theta_tilde, which is that of all.

Ten points say little about a length-scale, and one that is far off makes theta too certain. So an experiment is
expected to be like the others, to a factor of three either way: its log hyperparameters have a normal prior around the
median of theirs, which a hundred points overrule. The sd that counts there is not the most probable one, which is often
0 with few data, and 0 to a factor of three would be said to all: it is the median of what the data allow, see
``likely_sd``. And what few points leave open is integrated over, with another law of the sd, see
``integrated_scales.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from ..arrays import Array, IntArray
from ..bias import GP, BiasPrior
from ..bias.base import Setting
from ..bias.gp import Scales
from ..methods.bias_samplers import residuals_of
from ..problem.problem import Problem
from ..regression.gaussian_process import correlation
from ..regression.log_prior import LogPrior

#: rounds over all experiments after the first fits
ROUNDS = 2
#: what the others know of a direction beside what an experiment itself does, below which it is flat
UNKNOWN = 1e-6
#: sd of log hyperparameters between experiments: a factor of three
ALIKE = float(np.log(3.0))
#: the same of what nothing is expected about
NOTHING = 1e6
#: logarithms of sds at which the density of one is summed, in units of the noise
LOG_SDS = np.linspace(np.log(1e-3), np.log(1e5), 400)


@dataclass(frozen=True)
class KnownGP(GP):
    """A Gaussian process whose hyperparameters are known, one set an outcome."""

    known: tuple[Scales, ...] = ()

    def scales(self, setting: Setting, expected: LogPrior | None = None) -> Scales:
        return self.known[setting.outcome]

    @classmethod
    def like(cls, prior: GP, known: Sequence[Scales]) -> KnownGP:
        """A prior of the user's, with hyperparameters that were found."""
        settings = {name: getattr(prior, name) for name in ("nu", "sd", "lengthscale", "form", "label_correlation")}
        return cls(**settings, known=tuple(known))


class Information(NamedTuple):
    """What an outcome says about beta: H = G'S^-1 G, (P, P), h = G'S^-1 z, (P,), and -log|S| / 2 - z'S^-1 z / 2."""

    H: Array
    h: Array
    evidence: float

    def plus(self, others: Sequence[Information]) -> Information:
        H, h, evidence = self
        for one in others:
            H, h, evidence = H + one.H, h + one.h, evidence + one.evidence
        return Information(H, h, evidence)

    def less(self, others: Sequence[Information]) -> Information:
        H, h, evidence = self
        for one in others:
            H, h, evidence = H - one.H, h - one.h, evidence - one.evidence
        return Information(H, h, evidence)


class Outcome(NamedTuple):
    """One outcome of one experiment: what is fitted, G (n, P) in units of the gradients' lengths, and its noise."""

    setting: Setting
    G: Array
    noise: Array

    def information(self, scales: Scales, nu: float) -> Information:
        x = self.setting.x
        k = correlation(x, x, scales.lengthscale, nu, self.setting.labels.columns)
        lower = cholesky(scales.sd**2 * k + self.noise, lower=True)
        white = solve_triangular(lower, np.column_stack([self.G, self.setting.residual]), lower=True)
        G, z = white[:, :-1], white[:, -1]
        return Information(G.T @ G, G.T @ z, float(-np.log(np.diag(lower)).sum() - 0.5 * z @ z))

    def relative(self, sd: float, lengthscale: Array) -> tuple[float, float]:
        """log sd in the outcome's unit, and the mean log length-scale in spans."""
        lengths = np.log(lengthscale / self.setting.span)[self._numeric]
        return float(np.log(sd / self.setting.unit)), float(lengths.mean()) if len(lengths) else np.nan

    @property
    def _numeric(self) -> IntArray:
        """Inputs that are no labels, whose length-scales are odds."""
        return np.setdiff1d(np.arange(self.setting.x.shape[1]), self.setting.labels.columns)

    def expected(self, others: Sequence[tuple[float, float]], sizes: Array) -> LogPrior:
        """What others, of so many points each, make one expect."""
        sd, length = (_weighted_median(np.array(values), sizes) for values in zip(*others, strict=True))
        d = self.setting.x.shape[1]
        mean = np.concatenate([[sd + np.log(self.setting.unit)], np.zeros(d + 1)])
        known = np.full(d + 2, NOTHING)
        known[0] = ALIKE
        if np.isfinite(length):
            mean[1 + self._numeric] = length + np.log(self.setting.span[self._numeric])
            known[1 + self._numeric] = ALIKE
        return LogPrior(mean, known)

    def given(self, H: Array, h: Array) -> Setting:
        """What is left to fit where the others say N(H^-1 h, H^-1) about beta."""
        own = np.abs(self.G).max(axis=0) > 0
        G, rest = self.G[:, own], ~own
        inner, pull = H[np.ix_(own, own)], h[own]
        if rest.any():
            # what other experiments have for themselves is integrated out
            gain = H[np.ix_(own, rest)] @ np.linalg.pinv(H[np.ix_(rest, rest)], hermitian=True)
            inner, pull = inner - gain @ H[np.ix_(rest, own)], pull - gain @ h[rest]
        values, vectors = np.linalg.eigh((inner + inner.T) / 2)
        known = values > UNKNOWN * float(np.max(np.sum(G**2, axis=0) / np.median(np.diag(self.noise))))
        turned = vectors[:, known] / np.sqrt(values[known])
        mean, spread = turned @ (turned.T @ pull), G @ turned
        return self.setting._replace(
            residual=self.setting.residual - G @ mean,
            gradient=G @ vectors[:, ~known],
            noise_cov=self.noise + spread @ spread.T,
        )


class Fitted(NamedTuple):
    """One outcome with the hyperparameters that were found, what it says with them, and what was expected of them."""

    outcome: Outcome
    scales: Scales
    information: Information
    expected: LogPrior


def likely_sd(setting: Setting, lengthscale: Array, nu: float) -> float:
    """The median of a bias's sd given its length-scales, all sds as probable as each other before the data.

    p(sd | z) ∝ |S|^-1/2 |G'S^-1 G|^-1/2 exp(-z'S^-1 z / 2 + ...), S = sd² C + N, with the gradient's coefficients
    flat. Data in which no bias is seen say by it how large one could have been overlooked.
    """
    assert setting.noise_cov is not None
    lower = cholesky(setting.noise_cov, lower=True)
    white = solve_triangular(lower, np.column_stack([setting.gradient, setting.residual]), lower=True)
    Q, _ = np.linalg.qr(white[:, :-1])
    root = solve_triangular(
        lower, correlation(setting.x, setting.x, lengthscale, nu, setting.labels.columns), lower=True
    )
    root = solve_triangular(lower, root.T, lower=True)
    # without the coefficients of the gradient, in which S is the identity and z is 0 then
    root -= Q @ (Q.T @ root)
    root -= (root @ Q) @ Q.T
    values, vectors = np.linalg.eigh((root + root.T) / 2)
    squares = (vectors.T @ (white[:, -1] - Q @ (Q.T @ white[:, -1]))) ** 2
    spread = 1 + np.exp(2 * LOG_SDS)[:, None] * np.maximum(values, 0.0)
    # of log sd
    log_density = LOG_SDS - 0.5 * np.sum(np.log(spread) + squares / spread, axis=1)
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()
    return float(np.exp(np.interp(0.5, np.cumsum(weights) - 0.5 * weights, LOG_SDS)))


def fitted_scales(
    prior: GP, problems: Sequence[Problem], gradients: Sequence[Array], unit: Array
) -> list[list[Fitted]]:
    """The hyperparameters of every outcome of each experiment; ``gradients`` (n, q, P) are those by all parameters."""
    outcomes = [_outcomes(problem, G * unit) for problem, G in zip(problems, gradients, strict=True)]
    every = [one for own in outcomes for one in own]
    nothing = [one.setting._replace(gradient=one.G[:, :0], noise_cov=one.noise) for one in every]
    scales = [prior.scales(setting) for setting in nothing]
    known = [one.information(own, prior.nu) for one, own in zip(every, scales, strict=True)]
    sizes = np.array([float(len(one.setting.x)) for one in every])

    def size(setting: Setting, own: Scales) -> float:
        return likely_sd(setting, own.lengthscale, prior.nu) if prior.sd is None else own.sd

    likely = [size(setting, own) for setting, own in zip(nothing, scales, strict=True)]
    found = list[Fitted]()
    for _ in range(ROUNDS):
        found.clear()
        for i, one in enumerate(every):
            others = [j for j in range(len(every)) if j != i]
            rest = known[others[0]].plus([known[j] for j in others[1:]])
            alike = one.expected([every[j].relative(likely[j], scales[j].lengthscale) for j in others], sizes[others])
            setting = one.given(rest.H, rest.h)
            scales[i] = prior.scales(setting, alike)
            likely[i] = size(setting, scales[i])
            known[i] = one.information(scales[i], prior.nu)
            found.append(Fitted(one, scales[i], known[i], alike))
    each = iter(found)
    return [[next(each) for _ in own] for own in outcomes]


def to_be_found(prior: BiasPrior, problems: Sequence[Problem]) -> bool:
    """Whether there are hyperparameters to find for all experiments together."""
    if len(problems) < 2 or not isinstance(prior, GP) or any(one.data.without_inputs for one in problems):
        return False
    return prior.sd is None or prior.lengthscale is None


def _weighted_median(values: Array, weights: Array) -> float:
    """NaN where there are no values."""
    values, weights = values[np.isfinite(values)], weights[np.isfinite(values)]
    if not len(values):
        return np.nan
    order = np.argsort(values)
    total = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(total, 0.5 * total[-1])])


def _outcomes(problem: Problem, G: Array) -> list[Outcome]:
    residuals = residuals_of(problem)
    points = residuals.split(problem.rule.nodes[:0])
    found = []
    for setting, own in zip(residuals.settings(points, problem.span), points, strict=True):
        noise = np.diag(setting.noise_var) if setting.noise_cov is None else setting.noise_cov
        found.append(Outcome(setting, G[own.informed, setting.outcome], noise))
    return found
