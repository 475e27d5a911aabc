"""What the scale of an outcome and errors of its inputs mean for a fit: findings for ``check``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

import numpy as np
from scipy.stats import norm

from ...advice import DRAWS, JOINT, RUN_LONGER, WARMUP, Y_ERR, Advice, named_transform
from ...arrays import Array
from ...bias.base import SAMPLERS
from ...findings import Finding, Level
from ...problem.common_findings import rows_depend
from ...problem.simulator.simulator import GradientKind
from ...projection import ProjectionKind
from ..predict.outputs import output_findings
from ..record import Record
from ..run_facts import Notes

#: share of predicted observations that may be impossible
IMPOSSIBLE_LIMIT = 0.01
#: unless they are whole numbers, observations must be this unlikely to lie on one side of a limit by chance
BY_CHANCE = 0.1
#: draws that are enough for the share
MOST_DRAWS = 400
#: posterior sds by which what the first order leaves out may move theta: beyond the first a note, then a problem
MOVE_LIMITS = 0.3, 1.0


def impossible_observations(record: Record, notes: Notes) -> Iterator[Finding]:
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
    keep = record.kept[:: max(1, record.chains * len(record.kept) // MOST_DRAWS)]
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


def errors_in_x(record: Record, notes: Notes) -> Iterator[Finding]:
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


# What is found about the bias, and what its prior says about itself.

_INPUT = re.compile(r"\binput (\d+)\b")


def bias_findings(record: Record, notes: Notes) -> Iterator[Finding]:
    if record.without_inputs:
        yield from output_findings(record)
        return
    bias = record.at_data("bias").mean(axis=(0, 1))
    sd = np.sqrt(np.diag(record.noise_cov))
    for k, name in enumerate(record.scale_names):
        size = float(np.sqrt(np.mean(bias[:, k] ** 2)))
        yield Finding(
            "fine",
            "bias",
            f"that of {name} is {size:.3g} (rms), {size / sd[k]:.2g} noise standard deviations",
        )
    # the prior's own file says what its figures mean; of a prior of the user's nothing is known
    for settings, found in zip(record.samplers, notes.bias, strict=True):
        known = SAMPLERS.get(str(settings.get("kind")))
        for one in known.remarks(found) if known is not None else ():
            # it knows inputs by their numbers
            yield one._replace(message=_INPUT.sub(partial(_named, record.input_names), one.message))


def _named(inputs: tuple[str, ...], found: re.Match[str]) -> str:
    number = int(found[1])
    return inputs[number - 1] if number <= len(inputs) else found[0]


# What is to be known about the simulator, or the emulator in its place: its work, its runs, its gradient.


def simulator_work(record: Record, notes: Notes) -> Iterator[Finding]:
    """How often it was called, how long that took, and how often it failed."""
    calls, seconds = notes.simulator_calls, notes.simulator_seconds
    share = seconds / max(notes.seconds, 1e-9)
    message = f"{calls} calls, {seconds:.2g} s of {notes.seconds:.2g} s in all"
    if share > 0.5 and notes.seconds > 10 and notes.outside_runs is None:
        yield Finding("note", "simulator", message, "replace it by an emulator fitted to a table of its runs")
    else:
        yield Finding("fine", "simulator", message)
    if notes.simulator_failures:
        share = notes.simulator_failures / max(calls, 1)
        first = "" if notes.simulator_failure is None else f"; the first: {notes.simulator_failure}"
        message = f"{notes.simulator_failures} calls ({share:.1%}) failed, and their theta count as impossible{first}"
        yield Finding("note", "simulator", message, "restrict the priors to where it works")
    yield from rows_depend(notes.row_error)


def gradient_error(record: Record, notes: Notes) -> Iterator[Finding]:
    """Whether the gradient agrees with differences."""
    if notes.outside_runs is not None:
        # an emulator's own
        return
    if np.isnan(notes.gradient_error):
        message = "it could not be compared with longer differences: the simulator fails, or nothing is allowed, beside"
        yield Finding("note", "gradient", f"{message} the best fit")
        return
    error, differences = notes.gradient_error, notes.gradient_kind is GradientKind.DIFFERENCE
    other = "differences with a longer step" if differences else "central differences"
    message = f"the gradient ({notes.gradient_kind}) differs from {other} by {error:.1g} (relative)"
    if error < 1e-3:
        yield Finding("fine", "gradient", message)
    elif differences:
        advice = "the simulator's output is rounded or noisy: " + Advice(
            "give a longer step, oc.Simulator(f, step=1e-3)",
            "let it return more digits, or give gradient in [simulator]",
        )
        yield Finding("problem", "gradient", message, advice)
    else:
        yield Finding("problem", "gradient", message, "check the gradient: the projection depends on it")


# Findings about the support of theta: what the data say beside the prior, bounds, and what is impossible.

#: draws that must be left where impossible ones were left out, or this share of all
LEAST_LEFT, LEAST_SHARE = 400, 0.5
#: share of the draws that may be left out because the simulator fails, where no constraint has excluded them
MOST_UNASKED = 0.05


def identified(record: Record, notes: Notes) -> Iterator[Finding]:
    support = record.support
    draws = record.theta.reshape(-1, len(support.names))
    share = draws.std(axis=0) / support.spread
    for name, value in zip(support.names, share, strict=True):
        if value > 0.5:
            message = f"the posterior of {name} is {value:.2f} times as wide as its prior: the data say little about it"
            yield Finding("note", "information", message)
    edge = 0.01 * support.spread
    near = (draws < support.lower + edge) | (draws > support.upper - edge)
    for name, part in zip(support.names, near.mean(axis=0), strict=True):
        if part > 0.02:
            message = f"{part:.0%} of the draws of {name} lie at a bound of its prior"
            yield Finding("note", "bounds", message, "check that the bound is meant")


def allowed(record: Record, notes: Notes) -> Iterator[Finding]:
    """What a constraint, or a simulator that fails, excludes."""
    if record.constraint:
        share = "" if notes.allowed_share is None else f" ({notes.allowed_share:.2g} of the prior)"
        yield Finding("fine", "constraint", f"theta is restricted to {record.constraint}{share}")
    if notes.on_edge:
        projected = record.projection in (ProjectionKind.FUNCTIONAL, ProjectionKind.FINITE)
        yield Finding(
            "problem" if projected else "note",
            "constraint",
            "the best fit lies on the edge of what it allows, where the loss need not be stationary"
            + (" and orthogonality has no meaning" if projected else ""),
            "take " + JOINT + ", or check that the constraint is meant" if projected else "",
        )
    if notes.impossible > 0:
        excluded = (
            "the constraint excludes theta or the simulator fails" if record.constraint else "the simulator fails"
        )
        left = notes.weighted_draws or 0.0
        enough = min(LEAST_LEFT, LEAST_SHARE * record.theta[..., 0].size)
        # of a failure nobody has said that theta is impossible there
        unasked = not record.constraint and notes.impossible > MOST_UNASKED
        level: Level = "problem" if left < enough or unasked else "note"
        message = (
            f"{notes.impossible:.1%} of the draws of the real process are closest to the simulator where {excluded}; "
            f"they were left out, and the others are worth {left:.0f} draws"
        )
        advice = "" if level == "note" else "take more " + DRAWS + "; the data contradict what is allowed"
        if unasked:
            advice = "mend the simulator there, or say by a constraint that such theta are impossible"
        yield Finding(level, "impossible theta", message, advice)


# Have the chains met? Effective sample sizes, R-hat, and chains that never moved.

RHAT_LIMIT, ESS_LIMIT = 1.01, 400


def mixing(record: Record, notes: Notes) -> Iterator[Finding]:
    table = record.summary()
    still = record.standing
    if still.any():
        each = [
            f"{name} ({own.sum()} of {len(own)} chains)"
            for name, own in zip(record.parameter_names, still.T, strict=True)
            if own.any()
        ]
        yield Finding(
            "problem",
            "mixing",
            f"chains that never moved: {', '.join(each)}",
            "their draws say nothing: where every draw is on a bound of the prior, widen it or fix the parameter; else "
            "take another kernel, "
            + Advice("oc.kernels.Slice()", 'kernel = "slice" in [method]')
            + " for instance, or more "
            + WARMUP,
        )
    rhat = float(table["r_hat"].max(skipna=False))
    size = float(table[["ess_bulk", "ess_tail"]].min(skipna=False).min(skipna=False))
    message = f"R-hat at most {rhat:.3f}, effective sample size at least {size:.0f}"
    if rhat < RHAT_LIMIT and size > ESS_LIMIT:
        yield Finding("fine", "mixing", message)
    else:
        yield Finding("problem", "mixing", message, RUN_LONGER + " if R-hat is above 1.01")


def kept_draws(record: Record, notes: Notes) -> Iterator[Finding]:
    """Of large data: of how many draws model and bias at the data are there."""
    if not record.all_kept:
        words = (
            f"{len(record.kept)} of {record.draws} draws a chain, with mean, sd and quantiles of each point beside them"
        )
        yield Finding("fine", "draws at the data", f"model and bias at the data were kept of {words} (keep_mb)")
