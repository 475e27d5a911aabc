"""What is found about the noise and the observations: residuals, errors of x, impossible and missing values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.stats import norm

from ...advice import JOINT, NOISE_COV, Y_ERR, named_transform
from ...arrays import Array
from ...findings import Finding, Level
from ...pages.tables import counted
from ...problem.noise.estimate import outliers_named
from ...problem.noise.noise import NoiseSource
from ...problem.noise.regression import Outlier
from ...projection import ProjectionKind
from ..record import Record
from ..run_facts import RunFacts
from .residuals import FALSE_ALARM, misfits

#: noise whose correlation matrix has a smaller eigenvalue is nearly singular
SINGULAR_LIMIT = 0.02
#: share of predicted observations that may be impossible
IMPOSSIBLE_LIMIT = 0.01
#: unless they are whole numbers, observations must be this unlikely to lie on one side of a limit by chance
BY_CHANCE = 0.1
#: draws that are enough for the share
MOST_DRAWS = 400
#: posterior sds by which what the first order leaves out may move theta: beyond the first a note, then a problem
MOVE_LIMITS = 0.3, 1.0
#: a cell whose noise sd is so many times that of the others, and which lies so many sds away, is an outlier
OUTLYING, FAR = 2.0, 4.0
#: fewer degrees of freedom hardly tell the noise
FEW_FREEDOM = 5
#: of theta's variance: a share that is not worth a word, and one that is worth a note
LITTLE_SHARE, LARGE_SHARE = 0.05, 0.5
IF_KNOWN = "if the noise is known from elsewhere, give " + NOISE_COV + " or " + Y_ERR
#: replicates behind an estimated noise that are few, and too few: its sds are uncertain by 25 and by 40 per cent
FEW_REPLICATES = 9, 4


def noise_findings(record: Record, facts: RunFacts) -> Iterator[Finding]:
    covariance = record.noise_cov
    sds = np.sqrt(np.diag(covariance))
    least = float(np.linalg.eigvalsh(covariance / np.outer(sds, sds))[0])
    if least < SINGULAR_LIMIT and facts.noise_source is not NoiseSource.KNOWN:
        message = f"its correlation matrix is nearly singular (smallest eigenvalue {least:.2g})"
        advice = (
            "some combination of the outcomes would be known almost exactly: give " + NOISE_COV + ", or variances alone"
        )
        yield Finding("problem", "noise", message, advice)
    if facts.noise_source is NoiseSource.UNKNOWN:
        yield from _unknown(record)
        yield from _outliers(record)
    yield from _share_of_unknowns(record, facts)
    if facts.noise_source is NoiseSource.ESTIMATED:
        # the relative error of a variance is sqrt(2 / freedom)
        errors = [1 / np.sqrt(2 * f) for f in facts.noise_freedom or ()]
        known = [f" ± {sd * error:.1g}" for sd, error in zip(sds, errors, strict=False)] or [""] * len(sds)
        sd = ", ".join(f"{value:.3g}{error}" for value, error in zip(sds, known, strict=True))
        scale = f" ({', '.join(record.scale_names)})" if record.transforms else ""
        yield Finding(
            "note", "noise", f"its standard deviation was estimated from the data: {sd}{scale}{_of_rows(record)}"
        )
    # replicates, and what else the estimate found in the data: see ``problem/noise/estimate.py``
    yield from facts.noise_remarks
    observed = ~np.isnan(record.y)
    projected = record.projection in (ProjectionKind.FUNCTIONAL, ProjectionKind.FINITE)
    pattern = "" if record.without_inputs else ", without a pattern in x"
    rate = f"of fits that are right, {FALSE_ALARM:.1%} would look like this"
    for misfit in misfits(record):
        scatter = f"{misfit.scatter:.2f} times the noise's standard deviation"
        if misfit.words:
            message = f"the residuals of {misfit.outcome} are not noise: {'; '.join(misfit.words)}"
            advice = NOISE_COV + " may be too small, or the bias prior too smooth"
            if projected:
                advice = "the bias was learnt given the best fit alone: take " + JOINT + "; else " + advice
            yield Finding("problem", "noise", f"{message} ({rate})", advice)
        elif misfit.too_small:
            message = f"the scatter of {misfit.outcome} around model + bias is {scatter} only ({rate})"
            yield Finding("problem", "noise", message, NOISE_COV + " may be too large, or the bias prior too rough")
        else:
            yield Finding("fine", "noise", f"the scatter of {misfit.outcome} around model + bias is {scatter}{pattern}")
    if not observed.all():
        missing = int((~observed).sum())
        rows = int((~observed).any(axis=1).sum())
        empty = int((~observed).all(axis=1).sum())
        nothing = f", {empty} of them without any observation" if empty else ""
        where = f"in {counted(rows, 'row')}{nothing}"
        message = f"{missing} of {observed.size} cells of y are missing, {where}; all others are used"
        yield Finding("note", "missing data", message)


def _unknown(record: Record) -> Iterator[Finding]:
    """The noise that was integrated over, and whether there was enough to tell it by."""
    sampled = record.sampled_noise
    if sampled is None:
        return
    sds = np.sqrt(np.einsum("cskk->csk", sampled))
    low, high = np.quantile(sds, (0.025, 0.975), axis=(0, 1))
    each = zip(sds.mean(axis=(0, 1)), low, high, strict=True)
    words = ", ".join(f"{mean:.3g} ({least:.3g} to {most:.3g})" for mean, least, most in each)
    scale = f" of {', '.join(record.scale_names)}" if record.transforms or record.q > 1 else ""
    message = f"its standard deviation{scale} was unknown and integrated over: {words}{_of_rows(record)}"
    yield Finding("fine", "noise", message)
    cells, p = int((~np.isnan(record.y)).sum()), len(record.parameter_names)
    if cells - p < FEW_FREEDOM:
        few = f"{cells} values of y and {p} parameters leave {cells - p} to tell the noise by"
        yield Finding("note", "noise", f"{few}: the intervals are as wide as that makes them", IF_KNOWN)


def _outliers(record: Record) -> Iterator[Finding]:
    """Values that neither simulator nor bias and noise can have: they have a noise variance of their own."""
    relative, smooth = record.noise_relative, record.run_facts.noise_smooth
    if relative is None or smooth or record.sampled_noise is None:
        return
    sds = np.sqrt(np.einsum("cskk->csk", record.sampled_noise[:, record.stored_draws]))
    for k, name in enumerate(record.outcome_names):
        rows = np.flatnonzero((relative[:, k] > OUTLYING) & ~np.isnan(record.y[:, k]))
        fit = record.at_data("model")[:, :, rows, k] + record.at_data("bias")[:, :, rows, k]
        distance = np.mean(np.abs(record.y[rows, k] - fit) / sds[:, :, k, None], axis=(0, 1))
        far = [Outlier(int(row), float(one)) for row, one in zip(rows, distance, strict=True) if one > FAR]
        if far:
            count = int((~np.isnan(record.y[:, k])).sum())
            yield outliers_named(name, far, record.labels, record.input_names, record.x, count)


def _share_of_unknowns(record: Record, facts: RunFacts) -> Iterator[Finding]:
    """How much of theta's variance comes from not knowing the noise and the bias's size and length-scales."""
    if facts.plugged_in_var is None or facts.emulator_draws:
        return
    theta = record.theta.reshape(-1, record.theta.shape[-1])
    share = 1 - np.array(facts.plugged_in_var) / np.maximum(theta.var(axis=0), 1e-300)
    worst = int(share.argmax())
    if share[worst] < LITTLE_SHARE:
        return
    what = "size and length-scales of the bias"
    what = f"the noise, and {what}" if facts.noise_source is NoiseSource.UNKNOWN else what
    message = f"{share[worst]:.0%} of the variance of {record.parameter_names[worst]} comes from not knowing {what}"
    large = share[worst] > LARGE_SHARE
    yield Finding("note" if large else "fine", "noise", message, IF_KNOWN if large else "")


def replicates_of_outputs(record: Record, seen: Array) -> Iterator[Finding]:
    """Whether the ``seen`` (q,) replicates of outputs without inputs tell noise from bias."""
    if record.run_facts.noise_source is NoiseSource.ESTIMATED:
        least = int(seen.min())
        message = (
            f"it was estimated from as few as {least} observations of an output, to {50 / (least / 2) ** 0.5:.0f} %"
        )
        if least <= FEW_REPLICATES[0]:
            level: Level = "problem" if least <= FEW_REPLICATES[1] else "note"
            yield Finding(level, "noise", message, "intervals are too narrow: give " + NOISE_COV + ", or more rows")
    single = int((seen == 1).sum())
    if single:
        message = f"{single} outputs have one observation, which cannot tell noise from bias: the noise that was given"
        yield Finding("note", "noise", f"{message} decides what counts as bias")


def _of_rows(record: Record) -> str:
    """Between what the noise's sd lies where rows have their own, in words."""
    if record.noise_by_point is None:
        return ""
    each = np.where(np.isnan(record.y), np.nan, record.noise_sds)
    ends = zip(np.nanmin(each, axis=0), np.nanmax(each, axis=0), strict=True)
    return f"; in single rows {', '.join(f'{low:.3g} to {high:.3g}' for low, high in ends)}"


def impossible_observations(record: Record, facts: RunFacts) -> Iterator[Finding]:
    """Predicted observations below 0 or above 1, of outcomes that never are.

    Positive data far from zero have none. Data near zero may be positive by chance: unless they are counts, the
    predictions must make that improbable.
    """
    if record.without_inputs:
        # one number says nothing about which ones are possible
        return
    y = record.native_y
    for k, name in enumerate(record.outcome_names):
        seen = ~np.isnan(y[:, k])
        values = y[seen, k]
        if (record.transforms and record.transforms.names[k]) or values.min() < 0:
            continue
        counts = bool((values == np.round(values)).all())
        below, above = _shares_beyond(record, k, seen)
        ends = [("negative", below)] + ([("above 1", above)] if values.max() <= 1 else [])
        found = [(words, share) for words, share in ends if _impossible(share, counts)]
        if found:
            shares = " and ".join(f"{share.mean():.1%} are {words}" for words, share in found)
            kind = "a whole number" if counts else "positive" if values.min() > 0 else "0 or more"
            kind = "between 0 and 1" if len(ends) > 1 and not counts else kind
            message = f"every observed {name} is {kind}, but of the predicted observations at the data {shares}"
            yield Finding("note", "predictions", message, _advice(name, values, [words for words, _ in found]))


def _impossible(shares: Array, counts: bool) -> bool:
    by_chance = float(np.prod(1 - shares))
    return bool(shares.mean() > IMPOSSIBLE_LIMIT and (counts or by_chance < BY_CHANCE))


def _shares_beyond(record: Record, k: int, rows: Array) -> tuple[Array, Array]:
    """Probabilities that an observation of outcome k lies below 0 and above 1, at each of the rows, (m,) each."""
    keep = record.stored_draws[:: max(1, record.chains * len(record.stored_draws) // MOST_DRAWS)]
    model, bias = (record.at_data(name, keep)[:, :, rows, k] for name in ("model", "bias"))
    mean, var = model + bias, record.noise_of_rows[..., k, k]
    var = var[:, keep] if var.shape[1] > 1 else var
    sd = np.sqrt(var[:, :, rows] if var.shape[2] > 1 else var)
    below, above = norm.cdf(-mean / sd), norm.sf((1 - mean) / sd)
    return below.mean(axis=(0, 1)), above.mean(axis=(0, 1))


def _advice(name: str, values: Array, beyond: list[str]) -> str:
    condition = f"if {name} cannot be so, "
    if "above 1" in beyond:
        if values.min() > 0 and values.max() < 1:
            return condition + "give " + named_transform("logit")
        return (
            f"{condition}no normal noise fits it: take shares of groups, moved inwards, (k + 0.5) / (m + 1) for k of "
            "m, and " + named_transform("logit")
        )
    roots = named_transform("log", "sqrt") if values.min() > 0 else named_transform("sqrt")
    return condition + "give " + roots + ", or " + Y_ERR + " that is smaller where it is small"


def errors_in_x(record: Record, facts: RunFacts) -> Iterator[Finding]:
    """Whether errors of x are small enough for the first order: beside the curvature of f, and the range of x."""
    if not record.has("constant_data", "x_err"):
        return
    each, seen = record.noise_by_point, ~np.isnan(record.y)
    assert each is not None
    parts = np.einsum("nii->ni", record.constant("x_err_cov")) / np.einsum("nii->ni", each)
    message = f"they make up {parts[seen].mean():.0%} of the noise variance, to first order"
    sd = record.theta.std(axis=(0, 1))
    moves = np.abs(record.constant("x_err_moves")) / np.where(sd > 0, sd, np.inf)
    (bent, by_curvature), (diluted, by_dilution) = ((int(one.argmax()), float(one.max())) for one in moves)
    small = True
    if by_curvature > MOVE_LIMITS[0]:
        small = False
        words = f"the simulator's curvature over them moves {record.parameter_names[bent]} by {by_curvature:.2g}"
        advice = "the first order is not enough: do not trust theta beyond that, or measure x better"
        level: Level = "problem" if by_curvature > MOVE_LIMITS[1] else "note"
        yield Finding(level, "errors in x", f"{message}; {words} posterior sds", advice)
    if by_dilution > MOVE_LIMITS[0]:
        small = False
        words = f"if x was measured with them, {record.parameter_names[diluted]} is off by about {by_dilution:.2g}"
        advice = (
            "slopes are drawn towards zero by the share of error in the variance of x; not so if x was set and missed"
        )
        yield Finding("note", "errors in x", f"{message}; {words} posterior sds", advice)
    if small:
        yield Finding("fine", "errors in x", message)
