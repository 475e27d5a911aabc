"""The noise of one outcome: what a Gaussian process leaves of y, or of what the best fit has left.

    z ~ N(B beta, sd^2 k(x, x) + var diag(s)),  var by restricted likelihood, s = 1 where nothing else is known

A row far from what all others predict gets a variance of its own (the variance-shift outlier model of Cook, Holschuh
and Weisberg 1982): one bad value neither swells the variance nor makes a curve through all points look likely. Rows of
groups, or along x, have s by Fisher scoring of the same likelihood. B is a trend in x where z is y, and the
simulator's gradient where z is what the best fit leaves: then the noise is not asked for what the simulator explains.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy import stats
from scipy.interpolate import BSpline

from ...advice import NOISE_COV
from ...arrays import Array, IntArray, unique_rows
from ...errors import InputError
from ...regression.gaussian_process import (
    LIKELIHOOD_POINTS,
    SEARCH_POINTS,
    SHORTEST,
    Hyperparameters,
    correlation,
    fit_hyperparameters,
    independent_columns,
    residual_precision,
    sample_of_points,
)
from ..data.field_data import FieldData
from ..data.labels import NO_LABELS, LabelColumns

# Noise variances that differ between rows: log s = C g, the coefficients g by penalised restricted likelihood.
#
# With P the precision of what a regression leaves of z, and s the variances, the deviance has the slopes
# s_i (P_ii - (P z)_i^2) along log s_i and the expected curvature s_i s_j P_ij^2: Fisher scoring.

#: the longest change of a log variance in a step
LONGEST_STEP = 1.0
#: a group's log variance a priori: normal around the others', so a group of few rows is like them
GROUP_SD = 2.0
#: splines for each input, of this degree
SPLINES, DEGREE = 8, 3
#: range of the penalty's strength, and a ridge for what the penalty leaves free: the level and straight lines
LEAST_SMOOTHING, MOST_SMOOTHING, RIDGE = 1e-2, 1e6, 1e-2


class GroupVariance:
    """A log variance for each group, from the rows' group numbers (n,).

    Attributes
    ----------
    penalty
        Of the coefficients, (g, g).
    smooth
        Whether the strength of the penalty is found by likelihood; one otherwise.
    along_mean
        Whether the variances depend on what a regression predicts.
    """

    smooth: bool = False
    along_mean: bool = False

    def __init__(self, codes: IntArray) -> None:
        self._codes, self._groups = codes, int(codes.max()) + 1
        self.penalty: Array = np.eye(self._groups) / GROUP_SD**2

    def columns(self, rows: IntArray, mean: Array) -> Array:
        """C (m, g) for rows of the data (m,) where a regression predicts ``mean`` (m,)."""
        return np.eye(self._groups)[self._codes[rows]]


class SmoothVariance:
    """A sum of splines in the inputs (n, d), or a spline in the mean where ``x`` is None."""

    smooth: bool = True

    def __init__(self, x: Array | None) -> None:
        self.along_mean = x is None
        self._x = None if x is None else x[:, np.ptp(x, axis=0) > 0]
        second = np.diff(np.eye(SPLINES), 2, axis=0)
        inputs = 1 if self._x is None else max(self._x.shape[1], 1)
        self.penalty: Array = np.kron(np.eye(inputs), second.T @ second)

    def columns(self, rows: IntArray, mean: Array) -> Array:
        along = mean[:, None] if self._x is None else self._x[rows]
        return np.column_stack([_splines(column) for column in along.T] or [np.ones((len(rows), SPLINES))])


#: what the rows' log variances are made of
VarianceModel: TypeAlias = GroupVariance | SmoothVariance


def _splines(values: Array) -> Array:
    """Cubic B-splines over the range of the values, (m, SPLINES)."""
    width = float(np.ptp(values)) or 1.0
    unit = np.clip((values - values.min()) / width, 0.0, 1.0)
    pieces = SPLINES - DEGREE
    knots = np.arange(-DEGREE, pieces + DEGREE + 1) / pieces
    # the last spline's piece is half open
    return np.asarray(BSpline.design_matrix(np.minimum(unit, 1 - 1e-12), knots, DEGREE).toarray())


class PenalisedFit(NamedTuple):
    """Coefficients (g,), and the strength of their penalty."""

    coefficients: Array
    smoothing: float


def scoring_step(
    model: VarianceModel, now: PenalisedFit, C: Array, variances: Array, P: Array, z: Array
) -> PenalisedFit:
    """One step of Fisher scoring from ``now``, for rows with the columns C, variances s (m,) and precision P (m, m)."""
    curvature = C.T @ ((np.outer(variances, variances) * P**2) @ C) / 2
    slope = C.T @ (variances * (np.diag(P) - (P @ z) ** 2)) / 2
    penalty = now.smoothing * model.penalty + (RIDGE * np.eye(len(slope)) if model.smooth else 0.0)
    whole = curvature + penalty
    step = -np.linalg.solve(whole, slope + penalty @ now.coefficients)
    step *= min(1.0, LONGEST_STEP / max(float(np.max(np.abs(C @ step))), 1e-300))
    coefficients = now.coefficients + step
    if not model.smooth:
        return PenalisedFit(coefficients, now.smoothing)
    # the variance of the coefficients by likelihood (Schall 1991)
    used = np.linalg.matrix_rank(model.penalty) - now.smoothing * np.trace(np.linalg.solve(whole, model.penalty))
    size = float(coefficients @ model.penalty @ coefficients)
    smoothing = float(np.clip(used / max(size, 1e-300), LEAST_SMOOTHING, MOST_SMOOTHING))
    return PenalisedFit(coefficients, smoothing)


#: smoothness of the regressions
NU = 2.5
#: noise of a smaller share of the variance may be none at all
LITTLE_NOISE = 1e-5
#: share of Gaussian data sets in which some row is taken for an outlier
FALSE_ALARM = 0.001
#: share of the rows that may be outliers: more are heavy tails
MOST_OUTLIERS = 0.1
#: with fewer degrees of freedom no row is called one
LEAST_FREEDOM = 6
#: rows that may be outliers where there is no process
MOST_ALONE = 2
#: distance, in sds of its own, at which an outlier's variance is still too small
UNSETTLED = 1.2
#: shorter length-scales, in spans, may come from an outlier that the curve goes through
SUSPECT_LENGTH, SMOOTH_LENGTH = 0.25, 0.5
#: degrees of freedom of replicates that say more than the regression, and how improbable a difference by chance is
LEAST_PURE, CONTRADICTION = 5, 0.001
#: cells of a correlation matrix that are there at a time
BLOCK = 10_000_000
#: replicated points whose variances are compared
MOST_SETS = 1000
#: rounds between the variances of rows and the hyperparameters, steps in each, and the change that ends them
ROUNDS, STEPS, SETTLED = 8, 5, 0.02


class Outlier(NamedTuple):
    """A row, and its distance from what the other rows predict, in sds."""

    row: int
    distance: float


@dataclass(frozen=True)
class PureError:
    """What replicates say alone.

    Attributes
    ----------
    var, freedom
        The variance within them, of scaled values, and its degrees of freedom.
    ratio
        Its root in units of the regression's.
    unevenness
        p-value of equal variances at all replicated points, None where that cannot be said.
    used
        Whether it contradicts the regression, and was taken instead.
    """

    var: float
    freedom: int
    ratio: float
    unevenness: float | None
    used: bool


class Regression(NamedTuple):
    """What the regression of one outcome leaves.

    Attributes
    ----------
    noise_var
        That of a typical row, in the outcome's unit squared.
    relative_var
        Of every row of the data, (n,).
    freedom
        Degrees of freedom of ``noise_var``: its relative error is sqrt(2 / freedom).
    rows, residual, matrix
        For the correlation with other outcomes: rows (m,), the whitened residual there and M (m, m) with
        residual = M e for whitened noise e.
    """

    noise_var: float
    relative_var: Array
    freedom: float
    rows: IntArray
    residual: Array
    matrix: Array
    outliers: tuple[Outlier, ...]
    suspects: tuple[Outlier, ...]
    pure: PureError | None


#: rows a label, on average, from which on labels have levels of their own in the trend
ROWS_A_LABEL = 5


class _Series(NamedTuple):
    """Inputs (n, d) and values (n,) of an outcome, centred and scaled, and the rows that are looked at one by one."""

    x: Array
    z: Array
    trend: Array
    span: Array
    seen: IntArray
    labels: LabelColumns = NO_LABELS
    most: int = LIKELIHOOD_POINTS

    def size(self, relative: Array) -> float:
        """The sd of the values; outliers count as little as they say."""
        if (relative == relative[0]).all():
            return float(np.std(self.z)) or 1.0
        middle = np.average(self.z, weights=1 / relative)
        return float(np.sqrt(np.average((self.z - middle) ** 2, weights=1 / relative))) or 1.0

    def fit(
        self,
        relative: Array,
        shortest: float = SHORTEST,
        cautious: bool = True,
        near: Hyperparameters | None = None,
    ) -> Hyperparameters:
        return fit_hyperparameters(
            self.x,
            self.z,
            NU,
            span=self.span,
            basis=self.trend,
            relative_var=relative,
            cautious=cautious,
            shortest=shortest,
            size=self.size(relative),
            near=near,
            labelled=self.labels.columns,
            most=self.most,
        )

    def precision(self, fit: Hyperparameters, relative: Array) -> Array:
        seen = self.seen
        return residual_precision(self.x[seen], NU, fit, self.trend[seen], relative[seen], self.labels.columns)

    def mean(self, fit: Hyperparameters, relative: Array) -> Array:
        """What the regression predicts at every row, (n,)."""
        seen = self.seen
        left = self.precision(fit, relative) @ self.z[seen]
        # a few rows at a time: the matrix of all would not fit into memory
        parts = np.array_split(self.x, len(self.x) * len(seen) // BLOCK + 1)
        process = np.concatenate(
            [
                fit.sd**2 * correlation(part, self.x[seen], fit.lengthscale, NU, self.labels.columns) @ left
                for part in parts
            ]
        )
        rest = self.z[seen] - process[seen] - fit.noise_var * relative[seen] * left
        return np.asarray(process + self.trend @ np.linalg.lstsq(self.trend[seen], rest, rcond=None)[0])


class _Fit(NamedTuple):
    """Hyperparameters, relative variances (n,) and the outliers among the rows, best described with a cost each.

    ``suspects`` are all that a rough or a smooth curve would have for outliers.
    """

    hyper: Hyperparameters
    relative: Array
    outliers: tuple[Outlier, ...]
    suspects: tuple[Outlier, ...] = ()

    @property
    def cost(self) -> float:
        n = len(self.relative)
        return self.hyper.deviance + len(self.outliers) * _worth(float(stats.norm.isf(FALSE_ALARM / 2 / n)) ** 2)


class BestFit(NamedTuple):
    """What a theta leaves of y, (n, q), and the simulator's gradient there, (n, q, p)."""

    left: Array
    gradient: Array


def regression(
    data: FieldData, k: int, span: Array, model: VarianceModel | None = None, fit: BestFit | None = None
) -> Regression:
    """Regress outcome k on x, or what the best ``fit`` leaves; replicated x sharpen the variance by themselves."""
    shared = sample_of_points(data.n, LIKELIHOOD_POINTS)
    rows = shared[data.observed[shared, k]]
    everything = np.flatnonzero(data.observed[:, k])
    x = data.x[everything]
    values = data.y[everything, k] if fit is None else fit.left[everything, k]
    trend = trend_of(x, data.labels) if fit is None else independent_columns(fit.gradient[everything, k])
    n, d = x.shape
    label = "" if data.q == 1 else f" of {data.outcome_names[k]}"
    if n < (d if fit is None else trend.shape[1]) + 4:
        raise InputError(
            f"{n} observations{label} are too few to estimate the noise: give its variance as " + NOISE_COV
        )
    centre = float(values.mean()) if fit is None else 0.0
    unit = float(np.std(values)) or 1.0
    seen = np.searchsorted(everything, np.sort(rows))
    # beside a fit its size is integrated over afterwards: roughly is enough
    most = LIKELIHOOD_POINTS if fit is None else SEARCH_POINTS
    series = _Series(x, (values - centre) / unit, trend, span, seen, data.labels, most)
    found = _robust(series, np.ones(n)) if model is None else _with_model(series, model, everything)
    if fit is not None:
        each = {one.row: one for one in (*_without_process(series), *found.suspects)}
        found = found._replace(suspects=tuple(each.values()))
    hyper, relative = found.hyper, found.relative
    if (
        hyper.noise_var < LITTLE_NOISE * series.size(relative) ** 2
        and "noise" in series.fit(relative, cautious=False).at_bound
    ):
        raise InputError(
            f"the noise variance{label} cannot be estimated from these data (y follows a curve without scatter, or is "
            "constant): give it as " + NOISE_COV
        )
    pure = _pure_error(x, series.z, relative, hyper.noise_var)
    root = np.sqrt(relative[series.seen])
    matrix = hyper.noise_var * np.outer(root, root) * series.precision(hyper, relative)
    whole = np.ones(data.n)
    whole[everything] = relative
    used = pure is not None and pure.used
    return Regression(
        noise_var=(pure.var if pure is not None and used else hyper.noise_var) * unit**2,
        relative_var=whole,
        freedom=float(pure.freedom) if pure is not None and used else float(np.sum(matrix**2)),
        rows=everything[series.seen],
        residual=matrix @ (series.z[series.seen] / root),
        matrix=matrix,
        outliers=tuple(Outlier(int(everything[one.row]), one.distance) for one in found.outliers),
        suspects=tuple(Outlier(int(everything[one.row]), one.distance) for one in found.suspects),
        pure=pure,
    )


def trend_of(x: Array, labels: LabelColumns = NO_LABELS) -> Array:
    """A constant and the numeric inputs that vary, (n, r), and a level for each label where there are rows enough."""
    levels: Array = np.empty((len(x), 0))
    if labels:
        numeric = len(labels.numeric(x.shape[1]))
        wide = labels.one_hot(x)
        x, levels = wide[:, :numeric], _levels(wide[:, numeric:], labels)
    width = np.ptp(x, axis=0)
    centred = (x - x.mean(axis=0)) / np.where(width > 0, width, 1.0)
    trend = np.column_stack([np.ones(len(x)), centred[:, width > 0], levels])
    return trend if np.linalg.matrix_rank(trend) == trend.shape[1] else trend[:, :1]


def _levels(one_hot: Array, labels: LabelColumns) -> Array:
    """Columns by which the labels of each input may have levels of their own, (n, r): none for the first that is there.

    Labels with few rows share the process alone, or their levels would leave no noise.
    """
    ends = np.cumsum([len(one.labels) for one in labels.each])
    each = [part[:, part.any(axis=0)][:, 1:] for part in np.split(one_hot, ends[:-1], axis=1)]
    columns = np.hstack(each)
    return columns if columns.shape[1] * ROWS_A_LABEL <= len(one_hot) else columns[:, :0]


def _robust(series: _Series, relative: Array) -> _Fit:
    """The regression with a variance of its own for each outlier, from all rows and from a smooth curve."""
    plain = _with_outliers(series, relative, SHORTEST)
    lengths = (plain.hyper.lengthscale / series.span)[series.labels.numeric(len(series.span))]
    if np.min(lengths, initial=np.inf) > SUSPECT_LENGTH:
        return plain._replace(suspects=plain.outliers)
    smooth = _with_outliers(series, relative, SMOOTH_LENGTH)
    if not smooth.outliers:
        return plain._replace(suspects=plain.outliers)
    # the outliers of the smooth curve, with a curve that may be rough again
    smooth = smooth._replace(hyper=series.fit(smooth.relative))
    either = {one.row: one for one in (*plain.outliers, *smooth.outliers)}
    return min(plain, smooth, key=lambda one: one.cost)._replace(suspects=tuple(either.values()))


def _without_process(series: _Series) -> tuple[Outlier, ...]:
    """Rows that are far from what the basis alone makes of the others: a process may go through one at the end."""
    rows, left = np.arange(len(series.z)), list[Outlier]()
    while len(left) < MOST_ALONE:
        basis = independent_columns(series.trend[rows])
        residual = series.z[rows] - basis @ (basis.T @ series.z[rows])
        free = 1 - np.sum(basis**2, axis=1)
        freedom = len(rows) - basis.shape[1]
        size = np.sqrt(float(np.sum(residual**2)) / max(freedom, 1)) or 1.0
        distance = np.where(free > 1e-9, np.abs(residual) / np.sqrt(np.maximum(free, 1e-9)), 0.0) / size
        worst = int(distance.argmax())
        if not _far(float(distance[worst]), freedom, len(rows)):
            break
        left.append(Outlier(int(rows[worst]), float(distance[worst])))
        rows = np.delete(rows, worst)
    return tuple(left)


def _with_outliers(series: _Series, relative: Array, shortest: float) -> _Fit:
    """Take the row that is furthest from what the others predict as an outlier, until none is far."""
    relative, rows = relative.copy(), list[int]()
    hyper = series.fit(relative, shortest)
    seen, large = series.seen, len(series.x) > len(series.seen)
    most = max(1, int(MOST_OUTLIERS * len(seen)))
    for _ in range(2 * most):
        P = series.precision(hyper, relative)
        diagonal = np.diag(P)
        distance = np.abs(P @ series.z[seen]) / np.sqrt(diagonal)
        others = np.where(np.isin(seen, rows), 0.0, distance)
        freedom = float(np.sum(hyper.noise_var * relative[seen] * diagonal)) - len(rows)
        worst = np.argsort(-others, kind="stable")[: (most if large else 1)][: most - len(rows)]
        # of large data all that are half as far at a time: each round is a fit
        new = [row for row in worst if others[row] > others[worst[0]] / 2 and _far(others[row], freedom, len(others))]
        places = np.flatnonzero(np.isin(seen, rows)).tolist()
        if not new and (not places or np.max(distance[places]) < UNSETTLED):
            break
        rows += [int(seen[row]) for row in new]
        # the variances at which their distances are what is to be expected
        for place in (*places, *new):
            change = (distance[place] ** 2 - 1) / (diagonal[place] * hyper.noise_var)
            relative[seen[place]] = max(relative[seen[place]] + change, 1.0)
        hyper = series.fit(relative, shortest, near=hyper if large else None)
    return _Fit(hyper, relative, tuple(Outlier(row, float(np.sqrt(relative[row]))) for row in rows))


def _far(distance: float, freedom: float, n: int) -> bool:
    """Whether the largest of n distances, in sds that were estimated with it, is improbable."""
    if freedom < LEAST_FREEDOM:
        return False
    if distance**2 >= freedom:
        return True
    own = distance * np.sqrt((freedom - 1) / (freedom - distance**2))
    return bool(stats.t.sf(own, freedom - 1) < FALSE_ALARM / 2 / n)


def _worth(square: float) -> float:
    """By how much a variance of its own lowers the deviance of a row at a squared distance."""
    return float(square - 1 - np.log(square))


def _with_model(series: _Series, model: VarianceModel, rows: IntArray) -> _Fit:
    """The regression with variances by a model, and outliers beside it."""
    found = _robust(series, _varied(series, np.ones(len(rows)), model, rows))
    own = np.ones(len(rows))
    own[[one.row for one in found.outliers]] = [one.distance**2 for one in found.outliers]
    # once more, without what the outliers did to it
    relative = own * _varied(series, own, model, rows) if found.outliers else found.relative
    return _Fit(series.fit(relative), relative, found.outliers, found.suspects)


def _varied(series: _Series, own: Array, model: VarianceModel, rows: IntArray) -> Array:
    """Relative variances (n,) by a model of their logarithms, beside factors of the rows' ``own``."""
    now, level, seen = PenalisedFit(np.zeros(len(model.penalty)), 1.0), np.zeros(len(rows)), series.seen
    hyper: Hyperparameters | None = None
    for _ in range(ROUNDS):
        relative = np.exp(level) * own
        hyper, before = series.fit(relative, near=hyper), level
        C = model.columns(rows, series.mean(hyper, relative) if model.along_mean else level)
        for _ in range(STEPS):
            relative = np.exp(C @ now.coefficients) * own
            P, variances = series.precision(hyper, relative), hyper.noise_var * relative[seen]
            now = scoring_step(model, now, C[seen], variances, P, series.z[seen])
        level = C @ now.coefficients
        # the common level is that of the noise; the columns of each row add up to a whole number
        middle = level.mean()
        now, level = now._replace(coefficients=now.coefficients - middle / C[0].sum()), level - middle
        if np.max(np.abs(level - before)) < SETTLED:
            break
    return np.asarray(np.exp(level))


def _pure_error(x: Array, z: Array, relative: Array, noise_var: float) -> PureError | None:
    """What replicates say of the variance alone; it is used where it contradicts the regression."""
    _, (place,) = unique_rows(x)
    counts = np.bincount(place)
    freedom = len(x) - len(counts)
    if freedom < 1:
        return None
    weight = 1 / relative
    means = np.bincount(place, weight * z) / np.bincount(place, weight)
    squares = np.bincount(place, weight * (z - means[place]) ** 2)
    var = float(squares.sum() / freedom)
    tail = stats.chi2.cdf(freedom * var / noise_var, freedom)
    used = freedom >= LEAST_PURE and min(tail, 1 - tail) < CONTRADICTION / 2 and var > 0
    each = (z / np.sqrt(relative))[np.argsort(place, kind="stable")]
    # more sets than this say the same, and take minutes
    many = np.flatnonzero(counts > 2)
    ends, some = np.cumsum(counts), many[np.sort(sample_of_points(len(many), MOST_SETS))]
    sets: list[Array] = [each[ends[one] - counts[one] : ends[one]] for one in some]
    return PureError(var, freedom, float(np.sqrt(var / noise_var)), _unevenness(sets), bool(used))


def _unevenness(sets: list[Array]) -> float | None:
    """p-value of equal variances: Levene's test, or ten times that of Bartlett's, whichever is less.

    Of 12 points with 5 replicates each and sds that differ by 6, Levene's test, which heavy tails do not mislead, finds
    6 %, and Bartlett's all; of even noise with 5 degrees of freedom Bartlett's would find 4 % at the same level.
    """
    if len(sets) < 2:
        return None
    found = [float(stats.levene(*sets, center="median")[1])]
    # rounded replicates may be equal, which is no variance of zero
    if all(np.ptp(one) > 0 for one in sets):
        found.append(10 * float(stats.bartlett(*sets)[1]))
    finite = [one for one in found if np.isfinite(one)]
    return min(1.0, *finite) if finite else None
