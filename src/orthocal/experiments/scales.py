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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.linalg import cholesky, solve_triangular
from scipy.stats import qmc

from ..arrays import Array, BoolArray, IntArray
from ..bias import BART, GP, BiasPrior, SoftBART
from ..bias.base import BiasSampler, Setting
from ..bias.gp import Scales
from ..bias.tree_size import WithOffset, with_size
from ..methods.bias_samplers import residuals_of
from ..problem.problem import Problem
from ..regression.gaussian_process import LABEL_ODDS, SHORTEST, LogPrior, correlation

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


class OutcomeRegression(NamedTuple):
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


class FittedScales(NamedTuple):
    """One outcome with the hyperparameters that were found, what it says with them, and what was expected of them."""

    outcome: OutcomeRegression
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
) -> list[list[FittedScales]]:
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
    found = list[FittedScales]()
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
            found.append(FittedScales(one, scales[i], known[i], alike))
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


def _outcomes(problem: Problem, G: Array) -> list[OutcomeRegression]:
    residuals = residuals_of(problem)
    points = residuals.split(problem.rule.nodes[:0])
    found = []
    for setting, own in zip(residuals.settings(points, problem.span), points, strict=True):
        noise = np.diag(setting.noise_var) if setting.noise_cov is None else setting.noise_cov
        found.append(OutcomeRegression(setting, G[own.informed, setting.outcome], noise))
    return found


# Hyperparameters of experiments with few data: a sample of their posterior in place of one value.
#
#     p(psi | y) ∝ pi(psi) |H|^-1/2 exp(h'H^-1 h / 2) prod_e |S_e|^-1/2 exp(-z_e'S_e^-1 z_e / 2)
#     H = sum_e G_e'S_e^-1 G_e,   h = sum_e G_e'S_e^-1 z_e
#
# psi are log sd and log length-scales of every outcome of every experiment, beta and the biases are integrated out, and
# pi is what is expected of each. Ten points leave the size of a bias open, and with one size for all draws the real
# process between the points, and so theta, would be known too well. So it would with a prior of log sd, which lets the
# many sds near 0 in: pi has a half-Cauchy law of the sd itself (Gelman 2006), see ``log_prior``.
#
# Each outcome has candidates, drawn from a t density about what was found, with importance weights. A Gibbs sampler
# goes over the outcomes and chooses one candidate of each given those of the others, which it feels through H and h
# alone. What is kept are a few sets from its chain, a rule for integrals over psi; every draw of the real process has
# one of them.

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


class ScaleSets(NamedTuple):
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


def with_sets(prior: GP, fitted: Sequence[Sequence[FittedScales]]) -> list[ScaleSets]:
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
        found.append(ScaleSets(KnownGP.like(prior, [one.scales for one in own]), tuple(sets)))
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


def _free(prior: GP, one: FittedScales) -> BoolArray:
    """Which of log sd and log length-scales were found, (1 + d,)."""
    x = one.outcome.setting.x
    given = prior.given_scales(x.shape[1], one.outcome.setting.labels.columns)
    return np.append(prior.sd is None, np.isnan(given) & (np.ptp(x, axis=0) > 0))


class _Density(NamedTuple):
    """That of one outcome's hyperparameters, with the others' as they were found."""

    fitted: FittedScales
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


def _candidates(prior: GP, one: FittedScales, others: Information, rng: np.random.Generator) -> _Candidates:
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


# Trees for an experiment with few data: what these leave open of the bias is left open.
#
# Usual trees have five points a leaf, so that ten points leave one cut, cuts between the data only, so that a gap is
# bridged by a constant, and leaves whose size is a guess from the range of the data. With the usual weights such an
# experiment has as much say in theta as one of a thousand points, and theta would be known too well. Here cuts are
# anywhere in the domain, a leaf without data has its prior, and the size of the leaves is drawn.

#: lower and upper end of each numeric input; they come first where labels have become columns
Corners = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class SmallDataBART(BART):
    """Trees with cuts anywhere between the corners of the domain, whose size is drawn with them."""

    corners: Corners = ()

    def cut_points(self, setting: Setting) -> list[Array]:
        wide = [np.linspace(*ends, self.cuts + 2)[1:-1] if ends[1] > ends[0] else np.empty(0) for ends in self.corners]
        return [*wide, *super().cut_points(setting)[len(wide) :]]

    def prepare(self, setting: Setting) -> BiasSampler:
        return _sized(super().prepare(setting), setting)


@dataclass(frozen=True)
class SmallDataSoftBART(SoftBART):
    """The same with smooth trees, whose leaves have data of their own only in part in any case."""

    corners: Corners = ()

    def range_of_cuts(self, setting: Setting) -> tuple[Array, Array]:
        low, width = super().range_of_cuts(setting)
        for j, (lower, upper) in enumerate(self.corners):
            low[j], width[j] = lower, upper - lower
        return low, width

    def prepare(self, setting: Setting) -> BiasSampler:
        return _sized(super().prepare(setting), setting)


def _sized(trees: BiasSampler, setting: Setting) -> BiasSampler:
    assert isinstance(trees, WithOffset)
    return with_size(trees, setting.noise_var)


def small_data_prior(prior: BiasPrior, problem: Problem) -> BiasPrior:
    """The prior of an experiment's bias: trees as they are for few data, and any other as it is."""
    data = problem.data
    if not isinstance(prior, BART | SoftBART) or data.without_inputs or problem.unmerged.data.n > MOST_POINTS:
        return prior
    ends = np.stack(problem.domain.bounds(data.d), axis=1)[data.labels.numeric(data.d)]
    corners = tuple((float(lower), float(upper)) for lower, upper in ends)
    chosen = {one.name: getattr(prior, one.name) for one in fields(BART if isinstance(prior, BART) else SoftBART)}
    if isinstance(prior, BART):
        return SmallDataBART(**{**chosen, "least": 0}, corners=corners)
    return SmallDataSoftBART(**chosen, corners=corners)
