"""Kinds of noise as a user asks for them, beside numbers."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError

Along = Literal["x", "mean"]


@dataclass(frozen=True)
class LowRankNoise:
    """Noise covariance D + L L', D diagonal and L with ``rank`` columns, estimated from the data.

    For many outcomes: a full covariance has q (q + 1) / 2 numbers, this one q (rank + 1).

    Parameters
    ----------
    rank
        Number of factors that the outcomes share; 0 for independent outcomes.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> from scipy import stats
    >>> rng = np.random.default_rng(1)
    >>> x = np.linspace(0, 1, 200)
    >>> shared = rng.standard_normal((200, 1))
    >>> y = x[:, None] + 0.1 * shared + 0.01 * rng.standard_normal((200, 6))
    >>> def line(x, theta):
    ...     return np.tile(theta[0] * x[:, None], 6)
    >>> problem = oc.Problem(x, y, line, {"slope": stats.norm(0, 10)}, noise_cov=oc.LowRankNoise(1))
    >>> cov = problem.noise.cov
    >>> bool(cov[0, 1] / cov[0, 0] > 0.9)
    True
    """

    rank: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.rank, bool) or not isinstance(self.rank, int | np.integer) or self.rank < 0:
            raise InputError(f"LowRankNoise(rank={self.rank!r}): give a whole number, 0 for independent outcomes")


@dataclass(frozen=True, eq=False)
class GroupNoise:
    """A noise variance of its own for every group of rows (a curve, an instrument, a session).

    var_i = var of the group of row i; the outcomes' correlations are the same in all groups.

    Parameters
    ----------
    groups
        Labels (n,), or the name of an input of x or of the problem's own ``groups``; None for these.
    sample
        Whether each group's covariance is drawn together with theta, around its estimate: so without a bias it grows
        to what the simulator leaves there.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> from scipy import stats
    >>> rng = np.random.default_rng(1)
    >>> x, instrument = np.tile(np.linspace(0, 1, 50), 2), np.repeat(["good", "poor"], 50)
    >>> y = x + np.where(instrument == "good", 0.01, 0.1) * rng.standard_normal(100)
    >>> slope = {"slope": stats.norm(0, 10)}
    >>> noise = oc.GroupNoise(instrument)
    >>> problem = oc.Problem(x, y, lambda x, theta: theta[0] * x, slope, noise_cov=noise)
    >>> np.sqrt(problem.noise.by_point[[0, -1], 0, 0]).round(2)
    array([0.01, 0.08])
    """

    groups: str | ArrayLike | None = None
    sample: bool = False


@dataclass(frozen=True)
class VaryingNoise:
    """A noise variance that changes smoothly: log var_i = s(x_i), a sum of splines, or s(mean_i).

    Parameters
    ----------
    along
        ``"x"``: with each input; ``"mean"``: with the level of the outcome.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> from scipy import stats
    >>> rng = np.random.default_rng(1)
    >>> x = np.linspace(0, 1, 200)
    >>> y = x + 0.1 * np.exp(-2 * x) * rng.standard_normal(200)
    >>> slope = {"slope": stats.norm(0, 10)}
    >>> problem = oc.Problem(x, y, lambda x, theta: theta[0] * x, slope, noise_cov=oc.VaryingNoise())
    >>> first, last = np.sqrt(problem.noise.by_point[[0, -1], 0, 0])
    >>> bool(3 < first / last < 15)
    True
    """

    along: Along = "x"

    def __post_init__(self) -> None:
        if self.along not in get_args(Along):
            raise InputError(f'VaryingNoise(along={self.along!r}): give "x" or "mean"')


@dataclass(frozen=True, eq=False)
class CorrelatedNoise:
    """Noise that is correlated along time, or another line, within each series, and independent between series.

        Cov(e_i, e_j) = sd^2 [share k(|t_i - t_j| / length) + (1 - share) (i = j)]

    For several outcomes the correlation is the same for each, beside their covariance: Cov(e_i, e_j) = C_ij Sigma_F.

    Parameters
    ----------
    column
        t: the name of an input of x, or positions (n,) of their own; None for the only input.
    kind
        ``"ar1"``, k = exp(-distance / length), so that even steps h have the correlation rho^1, rho^2, ... with
        rho = exp(-h / length); ``"matern"``, a smoother one with ``nu`` 1.5 or 2.5.
    length
        In units of t; None to estimate it, from series that were measured at the same x, or with a ``prior``.
    share
        Of the variance that is correlated, at most 1; the rest is independent from row to row. None to estimate it.
    groups
        Which rows are one series: labels (n,), or the name of an input of x or of the problem's own ``groups``. None
        for the problem's groups, or one series where it has none.
    sd
        Standard deviation, one or one an outcome, on the scale of a transform where there is one; None to estimate it,
        or where ``y_err`` has it, or ``cov``.
    cov
        Sigma_F, (q, q), in place of ``sd``, where outcomes are correlated.
    nu
        Smoothness of ``"matern"``.
    prior
        Of the length that is estimated: a frozen ``scipy.stats`` distribution.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> from scipy import stats
    >>> t = np.linspace(0, 10, 40)
    >>> noise = oc.CorrelatedNoise(length=2.0, sd=0.1)
    >>> rate = {"rate": stats.norm(0, 10)}
    >>> problem = oc.Problem(t, 3 * t, lambda t, theta: theta[0] * t, rate, noise_cov=noise)
    >>> problem.theta_tilde.round(2)
    array([3.])
    >>> oc.CorrelatedNoise(kind="brownian")
    Traceback (most recent call last):
        ...
    orthocal.errors.InputError: CorrelatedNoise(kind='brownian'): give "ar1" or "matern"
    """

    column: str | ArrayLike | None = None
    kind: Literal["ar1", "matern"] = "ar1"
    length: float | None = None
    share: float | None = 1.0
    groups: str | ArrayLike | None = None
    sd: ArrayLike | None = None
    cov: ArrayLike | None = None
    nu: float = 1.5
    prior: Any = None

    def __post_init__(self) -> None:
        if self.kind not in ("ar1", "matern"):
            raise InputError(f'CorrelatedNoise(kind={self.kind!r}): give "ar1" or "matern"')
        if self.nu not in (1.5, 2.5):
            raise InputError(f"CorrelatedNoise(nu={self.nu!r}): the smoothness of matern is 1.5 or 2.5; ar1 is 0.5")
        if self.length is not None and not (isinstance(self.length, Real) and 0 < self.length < np.inf):
            raise InputError(f"CorrelatedNoise(length={self.length!r}): give a positive number, or None to estimate it")
        if self.share is not None and not (isinstance(self.share, Real) and 0 < self.share <= 1):
            raise InputError(f"CorrelatedNoise(share={self.share!r}): give a number above 0, at most 1, or None")
        if self.sd is not None and self.cov is not None:
            raise InputError("CorrelatedNoise(sd=, cov=) both give the variances: leave one of them out")
        if self.prior is not None and (self.length is not None or not hasattr(self.prior, "logpdf")):
            raise InputError(
                "CorrelatedNoise(prior=) is that of a length that is estimated: give a frozen scipy.stats distribution "
                "and length=None"
            )

    @property
    def smoothness(self) -> float:
        """nu of the correlation k: 0.5 for ``"ar1"``.

        Examples
        --------
        >>> import orthocal as oc
        >>> oc.CorrelatedNoise().smoothness, oc.CorrelatedNoise(kind="matern", nu=2.5).smoothness
        (0.5, 2.5)
        """
        return 0.5 if self.kind == "ar1" else self.nu


#: what the noise may be asked to be, beside numbers and words
AskedNoise = LowRankNoise | GroupNoise | VaryingNoise | CorrelatedNoise


def is_sampled(asked: object) -> bool:
    """Whether this asks for noise that is drawn together with theta."""
    return asked.sample if isinstance(asked, GroupNoise) else isinstance(asked, str) and asked == "sample"
