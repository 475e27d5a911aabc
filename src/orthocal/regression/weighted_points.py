"""A density of few unknowns as weighted points: adaptive importance sampling with quasi-random Student t's.

Each round draws points from a t with the mean and covariance of the weighted points so far; every point is weighted
by the density over the mixture of all t's so far (Cornuet and others, Scandinavian Journal of Statistics 2012): no
round is lost. While few points have all the weight, tempered weights give the next t.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp, ndtri, softmax
from scipy.stats import chi2, qmc

from ..arrays import Array

#: degrees of freedom of the t's: heavier tails than those of a log-normal or a half-Cauchy in logarithms
FREEDOM = 5.0
#: points of a round at least, where so many unknowns are more at least
FEWEST, MANY, FEWEST_OF_MANY = 64, 4, 256
#: rounds after which the points are taken as they are
MOST_ROUNDS = 12
#: the next t is as wide as the weighted points, and by this factor of the variance wider
WIDER = 1.2
#: tempered weights are worth as many points as this for each unknown
TEMPERED = 8.0


class WeightedPoints(NamedTuple):
    """Points (m, k) with weights (m,) that add up to one, and how many points the weights are worth."""

    points: Array
    weights: Array
    effective: float

    def alike(self, count: int) -> Array:
        """So many points (count, k), each about as often as its weight says; along the first unknown evenly."""
        order = np.argsort(self.points[:, 0], kind="stable") if self.points.shape[1] else np.zeros(1, dtype=np.intp)
        places = np.searchsorted(np.cumsum(self.weights[order]), (np.arange(count) + 0.5) / count)
        return self.points[order[np.minimum(places, len(order) - 1)]]

    def moments(self) -> tuple[Array, Array]:
        """Mean (k,) and covariance (k, k)."""
        mean = self.weights @ self.points
        away = self.points - mean
        return mean, (away.T * self.weights) @ away


class _StudentT(NamedTuple):
    """A multivariate t with a mean and a root of its scale."""

    mean: Array
    root: Array

    def points(self, count: int, seed: int) -> Array:
        """Quasi-random, (count, k)."""
        k = len(self.mean)
        uniform = qmc.Sobol(k + 1, rng=np.random.default_rng(seed)).random(count)
        uniform = np.clip(uniform, 1e-12, 1 - 1e-12)
        length = np.sqrt(chi2.ppf(uniform[:, k], FREEDOM) / FREEDOM)
        return np.asarray(self.mean + ndtri(uniform[:, :k]) / length[:, None] @ self.root.T)

    def log_density(self, points: Array) -> Array:
        k = len(self.mean)
        white = np.linalg.solve(self.root, (points - self.mean).T)
        constant = gammaln((FREEDOM + k) / 2) - gammaln(FREEDOM / 2) - k / 2 * np.log(FREEDOM * np.pi)
        size = constant - np.log(np.abs(np.diag(self.root))).sum()
        return np.asarray(size - (FREEDOM + k) / 2 * np.log1p(np.sum(white**2, axis=0) / FREEDOM))


def weighted_points(
    log_density: Callable[[Array], Array], mean: Array, root: Array, enough: float, near: bool = False
) -> WeightedPoints:
    """Points that stand for a density that is known up to a constant.

    Parameters
    ----------
    log_density
        Of points (m, k), (m,); -inf where it is zero.
    mean, root
        Roughly where the density is, (k,), and a root of its covariance, (k, k): rather too wide than too narrow.
    enough
        How many points the weights are to be worth.
    near
        Whether ``mean`` and ``root`` are about right already: then rounds may be small.

    Examples
    --------
    >>> import numpy as np
    >>> def normal(v):
    ...     return -0.5 * np.sum((v - 1) ** 2, axis=1) / 0.01
    >>> found = weighted_points(normal, np.zeros(2), np.eye(2), enough=100)
    >>> mean, covariance = found.moments()
    >>> mean.round(2), bool(found.effective >= 100)
    (array([1., 1.]), True)
    """
    proposals, counts = [_StudentT(np.asarray(mean, dtype=float), np.asarray(root, dtype=float))], list[int]()
    if not len(mean):
        return WeightedPoints(np.empty((1, 0)), np.ones(1), 1.0)
    points, density = np.empty((0, len(mean))), np.empty(0)
    # quasi-random numbers come in powers of two
    each = max(FEWEST if near or len(mean) <= MANY else FEWEST_OF_MANY, 2 ** int(np.log2(enough)))
    enough_before = False
    for number in range(MOST_ROUNDS):
        new = proposals[-1].points(each, number)
        points = np.concatenate([points, new])
        density = np.concatenate([density, log_density(new)])
        counts.append(len(new))
        share = np.log(np.array(counts) / len(points))
        mixture = logsumexp([one.log_density(points) + own for one, own in zip(proposals, share, strict=True)], axis=0)
        log_weights = density - mixture
        weights = softmax(log_weights)
        effective = float(1 / np.sum(weights**2))
        # one more round where there are enough: its t is the first that has their mean and covariance
        if enough_before:
            break
        enough_before = bool(effective >= enough)
        proposals.append(_next(points, log_weights, proposals[0].root))
    return WeightedPoints(points, weights, effective)


def _next(points: Array, log_weights: Array, widest: Array) -> _StudentT:
    """The t of the next round."""
    k = points.shape[1]
    wanted = min(TEMPERED * k, 0.5 * np.isfinite(log_weights).sum())
    power, weights = 1.0, softmax(log_weights)
    while 1 / np.sum(weights**2) < wanted and power > 1e-8:
        power *= 0.8
        weights = softmax(power * log_weights)
    mean, covariance = WeightedPoints(points, weights, wanted).moments()
    # points that lie in a plane must not end the search there
    floor = 1e-6 * widest @ widest.T
    return _StudentT(mean, np.linalg.cholesky(WIDER * covariance + floor))
