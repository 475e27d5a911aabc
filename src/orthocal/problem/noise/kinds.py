"""Kinds of noise as a user asks for them, beside numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...advice import Y_ERR
from ...arrays import Array, IntArray, as_floats, is_positive_definite
from ...errors import InputError
from ..data.field_data import FieldData, chosen_groups
from .noise import Noise, NoiseSource, known_noise, noise_from_errors
from .row_correlation import NoiseKernel, RowCorrelation, refuse_many_cells

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
        Whether the groups' variances are integrated over; otherwise they are estimated from y alone and plugged in.

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
    sample: bool = True


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


def is_unknown(asked: object) -> bool:
    """Whether this asks for noise that is integrated over."""
    if isinstance(asked, GroupNoise):
        return asked.sample
    return isinstance(asked, VaryingNoise) or (isinstance(asked, str) and asked in ("unknown", "sample"))


# Noise along a line, as ``oc.CorrelatedNoise`` asks for it: what is given, and what is to be estimated.


class Line(NamedTuple):
    """Where the rows lie along it: positions (n,), the number of each row's series (n,), and which inputs they are."""

    position: Array
    series: IntArray
    column: int | None
    series_column: int | None

    def correlation(self, nu: float, length: float, share: float) -> RowCorrelation:
        kernel = NoiseKernel(nu, length, share, self.column, self.series_column)
        return RowCorrelation(kernel.matrix(self.position, self.series), kernel)


def line_of(asked: CorrelatedNoise, data: FieldData) -> Line:
    """The line of ``asked``, or an error that names what it has not."""
    position, column = _positions(asked.column, data)
    series: NDArray[np.intp] = np.zeros(data.n, dtype=np.intp)
    series_column = None
    if asked.groups is not None or data.groups is not None:
        series = chosen_groups(data, asked.groups).codes
        own = isinstance(asked.groups, str) and (data.groups is None or asked.groups != data.groups.name)
        series_column = data.input_names.index(str(asked.groups)) if own else None
    return Line(position, series, column, series_column)


def _positions(column: str | ArrayLike | None, data: FieldData) -> tuple[Array, int | None]:
    names = ", ".join(data.input_names)
    if column is None:
        if data.d > 1:
            raise InputError(f"CorrelatedNoise(column=None) is for one input, and x has {names}: name the one")
        _refuse_labels(data, 0)
        return data.x[:, 0], 0
    if isinstance(column, str):
        if column not in data.input_names:
            raise InputError(
                f"CorrelatedNoise(column={column!r}): there is no such input; give one of {names}, or positions (n,)"
            )
        number = data.input_names.index(column)
        _refuse_labels(data, number)
        return data.x[:, number], number
    given = as_floats(column, "CorrelatedNoise(column=)")
    if given.shape != (data.n,) or not np.isfinite(given).all():
        raise InputError(
            f"CorrelatedNoise(column=) has shape {given.shape} but y has {data.n} rows: give a finite position of each "
            "row, or the name of an input"
        )
    return given, None


def _refuse_labels(data: FieldData, column: int) -> None:
    if data.labels.of(column) is not None:
        raise InputError(
            f"CorrelatedNoise goes along numbers, and {data.input_names[column]} holds labels: name another input, or "
            "take these as groups"
        )


class PartlyGiven(NamedTuple):
    """What was asked, and the noise of single rows where that is given."""

    asked: CorrelatedNoise
    own: Noise | None


def given_noise(asked: CorrelatedNoise, y_err: ArrayLike | None, data: FieldData) -> Noise | PartlyGiven:
    """The noise where all of it is given; else what is, after a look at it."""
    refuse_many_cells(data.y.size)
    line = line_of(asked, data)
    own = _variances(asked, y_err, data)
    if asked.length is None or asked.share is None or own is None:
        return PartlyGiven(asked, own)
    return with_correlation(own, line, asked.smoothness, asked.length, asked.share)


def with_correlation(own: Noise, line: Line, nu: float, length: float, share: float, **changes: Any) -> Noise:
    """Independent noise made one that is correlated along the line."""
    rows = line.correlation(nu, length, share)
    if not is_positive_definite(rows.matrix):
        raise InputError(_singular(line, length, share))
    if not (rows.matrix - np.eye(len(rows.matrix))).any():
        return replace(own, **changes)
    return replace(own, rows=rows, **changes)


def _singular(line: Line, length: float, share: float) -> str:
    """Why errors along the line have no positive definite covariance."""
    order = np.lexsort((line.position, line.series))
    same = (np.diff(line.position[order]) == 0) & (np.diff(line.series[order]) == 0)
    if same.any() and share == 1:
        first, second = order[np.flatnonzero(same)[0]], order[np.flatnonzero(same)[0] + 1]
        return (
            f"rows {min(first, second)} and {max(first, second)} have the same position in the same series, where "
            "CorrelatedNoise(share=1) would have the same error: give share below 1, or groups that tell series apart"
        )
    return (
        f"CorrelatedNoise(length={length:g}) makes neighbouring errors all but equal, and their covariance singular: "
        'give share below 1, a shorter length, or kind="ar1"'
    )


def _variances(asked: CorrelatedNoise, y_err: ArrayLike | None, data: FieldData) -> Noise | None:
    """The noise of single rows, where it is given."""
    if y_err is not None:
        if asked.sd is not None or asked.cov is not None:
            raise InputError("CorrelatedNoise(sd=) or cov= and y_err all give the noise: leave the others out")
        own = noise_from_errors(y_err, data.observed)
        if own.by_point is not None and data.q > 1:
            raise InputError(
                f"y_err differs between rows, and correlated noise of {data.q} outcomes has the same covariance in "
                "each: give CorrelatedNoise(sd=) with one number an outcome, or one outcome at a time"
            )
        return own
    if asked.cov is not None:
        given = as_floats(asked.cov, "CorrelatedNoise(cov=)")
        if given.shape not in ((), (data.q, data.q)):
            raise InputError(f"CorrelatedNoise(cov=) has shape {given.shape}: give a ({data.q}, {data.q}) matrix")
        return known_noise(given, data.observed)
    if asked.sd is None:
        return None
    sd = as_floats(asked.sd, "CorrelatedNoise(sd=)")
    if sd.shape not in ((), (1,), (data.q,)) or not (np.isfinite(sd).all() and (sd > 0).all()):
        one = "a positive number" if data.q == 1 else f"a positive number, or one an outcome ({data.q},)"
        raise InputError(f"CorrelatedNoise(sd=) has shape {sd.shape}: give {one}; errors of single rows are " + Y_ERR)
    return Noise(np.eye(data.q) * sd**2, data.observed, NoiseSource.KNOWN)
