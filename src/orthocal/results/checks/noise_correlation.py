"""Whether the errors of the field data are correlated, where they were not said to be: found once, told by ``check``.

A Gaussian-process bias absorbs correlated errors as a rough bias, and its residuals look white. So what is looked at is
what the simulator and a *smooth* bias leave, see ``regression/line_correlation.py``; where series were measured at the
same x, how these differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ...advice import Advice
from ...arrays import Array, IntArray, unique_rows
from ...errors import OrthocalError
from ...findings import Finding
from ...machine.threads import one_blas_thread
from ...problem.problem import Problem
from ...regression.line_correlation import (
    LONGEST,
    LineCorrelation,
    Values,
    along,
    fitted_line,
    found_correlation,
    spacing,
)
from ..record import Record
from ..run_facts import RunFacts

#: at most so many fits with independent errors are told to have others, for each outcome
FALSE_ALARM = 0.01
#: rows that say something, and that are looked at; more than this of all for the sds
LEAST_ROWS, MOST_ROWS, MOST_FOR_SDS = 25, 300, 3_000
#: degrees of freedom between replicated series from which on these are looked at alone
LEAST_REPLICATED = 20
#: sds of theta that are too small by such a factor are a problem
FACTOR_LIMIT = 1.3
#: what the order of the rows is called
IN_ORDER = "the order of the rows"


class Correlated(NamedTuple):
    """What was found of one outcome.

    Attributes
    ----------
    outcome, line
        The outcome's name, and along what: an input, or the order of the rows.
    odds
        By how much the correlation is more likely than none, beside the number of those that were tried.
    length, share, sd, neighbours
        Of the errors: length and share of their correlation, their standard deviation, and the correlation between
        neighbours.
    replicated
        Whether series that were measured at the same x say so: then it is no bias.
    factors
        By how much the sds of theta are too small, at least, (p,).
    """

    outcome: str
    line: str
    odds: float
    length: float
    share: float
    sd: float
    neighbours: float
    replicated: bool
    factors: tuple[float, ...]


class _Line(NamedTuple):
    name: str
    position: Array
    series: IntArray


def correlated_errors(problem: Problem, theta: Array) -> tuple[Correlated, ...]:
    """What is found of each outcome, for draws of theta (..., p); nothing where the noise is as it was taken to be."""
    if problem.data.without_inputs:
        return ()
    found = []
    with one_blas_thread():
        for k in range(problem.data.q):
            try:
                one = _of_outcome(problem, theta.reshape(-1, theta.shape[-1]), k)
            except (OrthocalError, np.linalg.LinAlgError):
                # the draws are good without it
                continue
            found += [] if one is None else [one]
    return tuple(found)


def _lines(problem: Problem, rows: IntArray) -> list[_Line]:
    """Along every input, within series where there are some, and along the rows where these are in another order."""
    data = problem.data
    series = np.zeros(data.n, dtype=np.intp) if data.groups is None else data.groups.codes
    varied = [j for j in data.labels.numeric(data.d) if np.ptp(data.x[rows, j]) > 0]
    lines = [_Line(data.input_names[j], data.x[rows, j], series[rows]) for j in varied]
    order = np.arange(len(rows), dtype=float)
    if not any(_same_order(one.position, one.series) for one in lines):
        lines.append(_Line(IN_ORDER, order, series[rows]))
    return lines


def _same_order(position: Array, series: IntArray) -> bool:
    """Whether positions go up, or down, from row to row of each series."""
    order = np.argsort(series, kind="stable")
    steps = np.diff(position[order])[np.diff(series[order]) == 0]
    return bool((steps >= 0).all() or (steps <= 0).all())


def _of_outcome(problem: Problem, theta: Array, k: int) -> Correlated | None:
    data = problem.data
    rows = np.flatnonzero(data.observed[:, k])
    if len(rows) < LEAST_ROWS:
        return None
    values, replicated = _values(problem, rows, k)
    best: tuple[LineCorrelation, _Line, IntArray] | None = None
    lines = _lines(problem, rows)
    groups = [lines] if len(rows) <= MOST_ROWS else [[one] for one in lines]
    for own in groups:
        window = _window(own[0].position, own[0].series)
        near = [_Line(one.name, one.position[window], one.series[window]) for one in own]
        found = found_correlation(values.part(window), [(one.position, one.series) for one in near])
        if found is not None and (best is None or found.gain > best[0].gain):
            best = found, near[found.line], window
    if best is None or best[0].gain - np.log(len(groups)) < np.log(1 / FALSE_ALARM):
        return None
    found, line, window = best
    step, width = spacing(line.position, line.series), float(np.ptp(line.position))
    fit = fitted_line(
        values.part(window),
        line.position,
        line.series,
        found.correlated if values.curved else None,
        lengths=(0.1 * step, max(2 * LONGEST * width, 2 * step)),
        near=found.length,
    )
    whole = next(one for one in lines if one.name == line.name)
    sd = np.sqrt(fit.noise_var)
    factors = _factors(problem, theta, k, rows, whole, (sd, fit.length, fit.share))
    typical = sd * float(np.sqrt(np.mean(values.sd**2)))
    neighbours = fit.share * float(np.exp(-step / fit.length))
    gain = best[0].gain - np.log(len(groups))
    return Correlated(
        data.outcome_names[k],
        line.name,
        float(np.exp(min(gain, 600.0))),
        fit.length,
        fit.share,
        typical,
        neighbours,
        replicated,
        factors,
    )


def _values(problem: Problem, rows: IntArray, k: int) -> tuple[Values, bool]:
    """What the best fit leaves, and the gradients beside; or how series at the same x differ, if enough of them do."""
    data, noise = problem.data, problem.noise
    z = (data.y - problem.fit)[rows, k]
    gradient = np.einsum("kl,nlp->nkp", noise.unwhitener, problem.gradient_at_data)[rows, k]
    own = np.ones(len(rows)) if noise.by_point is None else noise.by_point[rows, k, k] / noise.cov[k, k]
    relative = own
    if noise.rows is not None:
        relative = noise.rows.matrix[np.ix_(rows, rows)] * np.sqrt(np.outer(own, own))
    whole = Values(data.x[rows], z, gradient, relative, problem.span, labelled=data.labels.columns)
    if data.groups is None:
        return whole, False
    points, (place,) = unique_rows(data.x[rows])
    freedom = len(rows) - len(points)
    if freedom < max(LEAST_REPLICATED, len(rows) // 4) or len(rows) > MOST_ROWS:
        return whole, False
    means = (place[:, None] == np.arange(len(points))).astype(float)
    return whole._replace(basis=means, curved=False), True


def _window(position: Array, series: IntArray) -> IntArray:
    """The rows, or of many those that follow each other along the line, from the middle."""
    order = np.lexsort((position, series))
    if len(order) <= MOST_ROWS:
        return np.arange(len(order), dtype=np.intp)
    start = (len(order) - MOST_ROWS) // 2
    return np.sort(order[start : start + MOST_ROWS])


def _factors(
    problem: Problem, theta: Array, k: int, rows: IntArray, line: _Line, fit: tuple[float, float, float]
) -> tuple[float, ...]:
    """sqrt(a'R a) / sd of theta, with a' the weights of y in the least-squares theta: what its sds are at least."""
    sd, length, share = fit
    noise, volumes = problem.noise, problem.volumes
    weighted = np.einsum("n,nkp,kl->npl", volumes, problem.gradient_at_data, problem.metric)
    gram = np.einsum("npl,nlr->pr", weighted, problem.gradient_at_data)
    each = np.einsum("pr,nrl->nlp", np.linalg.pinv(gram, hermitian=True), weighted)
    own = each[rows] @ np.eye(problem.parameters.p)
    weights = np.einsum("nlp,l->np", own, noise.whitener[:, k])
    relative = np.ones(len(rows)) if noise.by_point is None else noise.by_point[rows, k, k] / noise.cov[k, k]
    scaled = sd * np.sqrt(relative)[:, None] * weights
    some = slice(None) if len(rows) <= MOST_FOR_SDS else slice(0, MOST_FOR_SDS)
    C = share * along(line.position[some], line.series[some], length)
    C[np.diag_indices_from(C)] = 1.0
    var = np.einsum("np,nm,mp->p", scaled[some], C, scaled[some], optimize=True)
    # of many rows some say by how much correlation increases the variance
    var = var * np.sum(scaled**2, axis=0) / np.maximum(np.sum(scaled[some] ** 2, axis=0), 1e-300)
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = 1 / np.sqrt(1 / var + 1 / problem.parameters.spread**2)
        factors = np.nan_to_num(needed / theta.std(axis=0), nan=1.0, posinf=1.0)
    return tuple(np.maximum(factors, 1.0).tolist())


def correlated(record: Record, facts: RunFacts) -> Iterator[Finding]:
    """What ``check`` says of errors that go together, and of those that were said to."""
    found = [Correlated(*one) for one in facts.correlated]
    rate = f"of fits with independent errors, at most {FALSE_ALARM:.0%} would look like this"
    for one in found:
        large = [
            f"{name} {factor:.1f}"
            for name, factor in zip(record.parameter_names, one.factors, strict=True)
            if factor > FACTOR_LIMIT
        ]
        how = f"correlated along {one.line}: {one.neighbours:.2f} between neighbours, over a length of {one.length:.3g}"
        sds = (
            f"the sds of theta are too small, these should be at least so many times as large: {', '.join(large)}"
            if large
            else "the sds of theta hardly change"
        )
        column = "np.arange(n)" if one.line == IN_ORDER else f'"{one.line}"'
        length, share, sd = (f"{value:.3g}" for value in (one.length, one.share, one.sd))
        noise = Advice(
            f"noise_cov=oc.CorrelatedNoise({column}, length={length}, share={share}, sd={sd})",
            f'kind = "ar1", column = {column}, length = {length}, share = {share} and sd = {sd} in [noise]',
        )
        if one.replicated:
            message = f"series of {one.outcome} at the same x differ by errors that are {how} ({rate}); {sds}"
            advice = "give " + noise
        else:
            message = (
                f"what the simulator and a smooth bias leave of {one.outcome} is {how} ({rate}). Errors that go so "
                "together, and a bias that is so rough, cannot be told apart by one series. If they are errors, " + sds
            )
            advice = (
                "if they are errors, give " + noise + ", or measure the series again and name the series in groups; "
                "if the real process is so rough, this is its bias"
            )
        yield Finding("problem" if large else "note", "correlated errors", message, advice)
    rows = record.row_correlation
    if rows is not None and not found:
        worth = float(rows.inverse(np.ones(len(rows.matrix), dtype=bool)).sum())
        kernel = rows.kernel
        along_line = "" if kernel is None else f", over a length of {kernel.length:.3g} (share {kernel.share:.2g})"
        message = (
            f"the errors are correlated between rows{along_line}: for a mean, {len(rows.matrix)} are worth {worth:.3g}"
        )
        yield Finding("fine", "correlated errors", message)
