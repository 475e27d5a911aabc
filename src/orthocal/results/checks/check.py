"""What a user should know before trusting a posterior, in plain words."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...advice import DRAWS, EMULATOR_DRAWS, JOINT, NOISE_COV, STARTS, Advice
from ...findings import Finding, Findings, Level
from ...methods.base import KINDS
from ...pages.tables import counted
from ...problem.common_findings import (
    RIVAL_LIMITS,
    best_on_bound,
    misses_data,
    quadrature_finding,
    rival_minimum,
    told_apart,
)
from ...problem.noise.noise import NoiseSource
from ...projection import ProjectionKind
from ..data_coverage import domain_findings
from ..predict.bias_size import bias_integrals
from ..record import Record
from ..run_facts import Notes
from .emulator_findings import emulator_findings
from .findings import (
    ESS_LIMIT,
    allowed,
    bias_findings,
    errors_in_x,
    gradient_error,
    identified,
    impossible_observations,
    kept_draws,
    mixing,
    simulator_work,
)
from .noise_correlation import correlated
from .open_directions import open_finding
from .prior_conflict import conflict, in_conflict
from .residuals import FALSE_ALARM, misfits

ORTHOGONALITY_LIMIT = 1e-10
#: each draw's own theta is found by iteration
JOINT_LIMIT = 1e-3
#: the same for a loss of the user's, as a share of theta's spread
OWN_LOSS_LIMIT = 0.05
#: importance weights with a larger Pareto shape are not to be relied on (Vehtari and others, JMLR 2024)
PARETO_LIMIT = 0.7
#: shares of draws on a bound, or at no clear minimum, that are worth a word, and a problem
DRAW_LIMITS = 0.001, 0.05
#: least squares further from the best fit than this, in prior spreads: the prior holds it
HELD_LIMIT = 1.0
#: noise whose correlation matrix has a smaller eigenvalue is nearly singular
SINGULAR_LIMIT = 0.02
#: share of theta steps that may pass without any accepted proposal
STUCK_LIMIT = 0.05
#: what the simulator's curvature may change of the sds: beyond the first a note, then a problem
CURVATURE_LIMITS = 0.15, 0.5
#: correlation of theta before and after its step, given the bias, that may remain
MEMORY_LIMIT = 0.1


def findings(record: Record) -> Findings:
    """All findings about a result."""
    parts = (
        orthogonality,
        projected_draws,
        _maxima,
        sensitivity,
        quadrature,
        bias_integrals,
        minima_findings,
        mixing,
        kept_draws,
        _theta_step,
        identified,
        conflict,
        allowed,
        _curvature,
        noise_findings,
        correlated,
        errors_in_x,
        impossible_observations,
        bias_findings,
        simulator_work,
        emulator_findings,
        gradient_error,
        domain_findings,
    )
    notes = record.notes
    found = Findings([finding for part in parts for finding in part(record, notes)])
    return found.in_files() if record.problem_file else found


def orthogonality(record: Record, notes: Notes) -> Iterator[Finding]:
    if not record.has("sample_stats", "orthogonality_error"):
        return
    errors = record.values("sample_stats", "orthogonality_error")
    # draws at no minimum are a finding of their own
    errors = errors[record.values("sample_stats", "stuck") == 0] if record.has("sample_stats", "stuck") else errors
    error = float(errors.max(initial=0.0))
    joint, loss = record.projection is ProjectionKind.JOINT, record.method.get("loss", "squared")
    limit = JOINT_LIMIT if joint else ORTHOGONALITY_LIMIT
    fine = f"the bias is orthogonal to the simulator's gradients in every draw, to {error:.1g}"
    wrong = f"the bias of some draws is not orthogonal to the simulator's gradients (error {error:.1g})"
    if joint and loss != "squared":
        own = isinstance(loss, dict) and loss["kind"] == "own"
        limit = OWN_LOSS_LIMIT if own else limit
        of = " of theta's spread" if own else ""
        fine = f"the loss is stationary in theta for every draw, to {error:.1g}{of}"
        wrong = f"the loss of some draws is not stationary in theta (error {error:.1g}{of})"
    if error < limit:
        yield Finding("fine", "orthogonality", fine)
    else:
        yield Finding("problem", "orthogonality", wrong, "do not use these draws; please report this as a bug")


def projected_draws(record: Record, notes: Notes) -> Iterator[Finding]:
    """Of the joint projection: draws without a clear theta, and the weights of theta's prior."""
    if record.projection is not ProjectionKind.JOINT:
        return
    rough = "the simulator may be rough or fail there: check it, or narrow the priors"
    if notes.outside_runs is not None and not notes.emulator_draws:
        rough = (
            "an emulator of trees has steps, and no minimum on one: let its draws, which are smooth, stand for the "
            "simulator (" + EMULATOR_DRAWS + "), or take a smooth emulator, 'gp' or 'bmars'"
        )
    for name, words, advice in (
        ("on_bound", "lie on a bound of the priors' support", "widen the prior, or read the bound as the answer"),
        (
            "stuck",
            "have no clear minimum of the loss",
            rough,
        ),
        (
            "elsewhere",
            "are closer to the simulator at another minimum of the loss",
            "the posterior describes one of them: see the best fit, and restrict the priors to the one that is meant",
        ),
    ):
        share = float(record.values("sample_stats", name).mean()) if record.has("sample_stats", name) else 0.0
        if share > DRAW_LIMITS[0]:
            level: Level = "problem" if share > DRAW_LIMITS[1] else "note"
            yield Finding(level, "projection", f"{share:.1%} of the draws {words}", advice)
    if notes.pareto_k is not None:
        size = notes.weighted_draws or 0.0
        message = f"importance weights for the prior of theta: Pareto k {notes.pareto_k:.2f}, worth {size:.0f} draws"
        # few draws are another finding
        enough = min(ESS_LIMIT, 0.5 * record.theta[..., 0].size)
        if not notes.pareto_k <= PARETO_LIMIT or size < enough:
            advice = (
                "the prior contradicts the data, or is far from Gaussian where they are: widen it, or take more "
                + DRAWS
            )
            yield Finding("problem", "prior of theta", message, advice)
        else:
            yield Finding("fine", "prior of theta", message)


def _maxima(record: Record, notes: Notes) -> Iterator[Finding]:
    if notes.maxima:
        message = (
            f"{notes.maxima:.1%} of the draws were where the distance to the real process is stationary but not least; "
            "they were left out"
        )
        yield Finding("note", "stationary points", message, "none of these are in " + JOINT)


def sensitivity(record: Record, notes: Notes) -> Iterator[Finding]:
    weakest = notes.weakest_sensitivity
    if weakest is None:
        family = KINDS.get(record.method["kind"])
        if family is not None and not family.tells_apart:
            message = "theta and the bias cannot be told apart: nothing keeps the bias from doing theta's work"
            advice = "take theta from a projected method, or from OGP or PCAL"
            yield Finding("note", "identifiability", message, advice)
        return
    if notes.open_directions[0]:
        yield open_finding(*notes.open_directions)
        return
    yield told_apart(weakest)


def quadrature(record: Record, notes: Notes) -> Iterator[Finding]:
    error = notes.quadrature_error
    if error is None:
        return
    nodes = len(record.constant("nodes"))
    message = f"integrals over the domain with {nodes} nodes: their relative error is at most about {error:.1g}"
    yield quadrature_finding(error, message, "problem")


def minima_findings(record: Record, notes: Notes) -> Iterator[Finding]:
    losses = record.constant("minima_loss")
    yield from best_on_bound(notes.on_bound, "where the loss need not be stationary and orthogonality has no meaning")
    if notes.unfinished:
        message = "the search ran out of evaluations on its way down: the loss has not come to its minimum"
        advice = (
            "theta may be far off: give more "
            + STARTS
            + ", scale the parameters alike, or smooth the simulator's output"
        )
        yield Finding("problem", "best fit", message, advice)
    if notes.misfit is not None:
        advice = (
            "the noise may be far too small, or the search may have failed: give "
            + NOISE_COV
            + ", or more "
            + STARTS
            + "; a simulator that is so wrong says little"
        )
        yield from misses_data(notes.misfit, "at best", advice)
    yield from _held(record, notes)
    close = np.flatnonzero(losses[1:] - losses[0] < 1e-3 * max(losses[0], 1e-300)) + 1
    nearest = min(notes.rivals, default=np.inf)
    if nearest < RIVAL_LIMITS[1] and not close.size:
        ranks = 0, 1 + notes.rivals.index(nearest)
        best, other = (record.support.describe(record.constant("minima")[k], 4) for k in ranks)
        yield rival_minimum(nearest, other, f"the posterior describes the one at {best}")
    elif close.size:
        others = "; ".join(record.support.describe(record.constant("minima")[k], 4) for k in close[:3])
        best = record.support.describe(record.constant("theta_tilde"), 4)
        more = f" and {close.size - 3} more" if close.size > 3 else ""
        yield Finding(
            "problem",
            "best fit",
            f"{close.size + 1} minima fit equally well; the posterior describes the one at "
            f"{best} (others: {others}{more})",
            "if another one is meant, restrict the priors to it",
        )
    elif losses.size > 1:
        message = (
            f"the best of {losses.size} minima found; the next one's loss is {losses[1] / losses[0]:.3g} times as large"
        )
        yield Finding("fine", "best fit", message)
    else:
        yield Finding("fine", "best fit", "every start of the search led to the same minimum")


def _held(record: Record, notes: Notes) -> Iterator[Finding]:
    """Parameters that the prior keeps away from where least squares alone would have them."""
    if not record.has("constant_data", "least_squares"):
        return
    alone, best = record.constant("least_squares"), record.constant("theta_tilde")
    away = np.abs(alone - best) / record.support.spread
    held = [
        f"{name} at {value:.4g} ({far:.1f} prior sds from the best fit)"
        for name, value, far in zip(record.parameter_names, alone, away, strict=True)
        if far > HELD_LIMIT
    ]
    if held:
        # else they say what is a finding of its own
        little = "" if in_conflict(notes) else ": there the data say little"
        yield Finding("note", "best fit", f"without the priors, least squares would have {', '.join(held)}{little}")


def _theta_step(record: Record, notes: Notes) -> Iterator[Finding]:
    if not notes.remembers:
        return
    rate = record.values("sample_stats", "acceptance_rate")
    stuck, remembered = float(np.mean(rate == 0.0)), notes.theta_memory
    proposals = f"{counted(notes.inner_steps, 'proposal')} for each bias, " if notes.inner_steps else ""
    moves = f"{proposals}{rate.mean():.1%} accepted, none in {stuck:.1%} of the steps"
    advice = "theta is not drawn exactly given the bias: take "
    advice += Advice(
        "more inner steps, or the kernel Laplace() or Slice()", 'kernel = "laplace" or "slice" in [method]'
    )
    if remembered is None:
        message = f"{moves}; the draws are too few to tell whether theta remembers its start"
        level: Level = "note" if stuck <= STUCK_LIMIT else "problem"
        yield Finding(level, "theta step", message, "take more " + DRAWS if level == "note" else advice)
        return
    message = f"{moves}; given the bias, theta's correlation with its start is {remembered:.2f}"
    # four standard errors of a correlation come on top of the limit
    if stuck <= STUCK_LIMIT and remembered < MEMORY_LIMIT + 4 / np.sqrt(rate.size):
        yield Finding("fine", "theta step", message)
    else:
        yield Finding("problem", "theta step", message, advice)


def _curvature(record: Record, notes: Notes) -> Iterator[Finding]:
    if notes.curvature_factors is None:
        return
    factors, least = np.array(notes.curvature_factors), np.log1p(CURVATURE_LIMITS[0])
    change = float(np.max(np.abs(np.log(factors))))
    advice = "take the joint projection, which knows the curvature: " + Advice(
        'method="gp", or oc.methods.Joint with this prior', 'name = "gp" in [method], or this one without its p'
    )
    if np.isnan(change):
        message = "beside this bias the simulator is so curved that the best fit is not a clear minimum"
        yield Finding("problem", "curvature", message, advice)
        return
    words = ", ".join(f"{name} {one:.2f}" for name, one in zip(record.parameter_names, factors, strict=True))
    if change < least:
        message = f"the simulator's curvature beside the bias hardly changes the sds (factors: {words})"
        yield Finding("fine", "curvature", message)
    else:
        wrong = {"too short": factors > np.exp(least), "too long": factors < np.exp(-least)}
        named = (
            f"{how} for {', '.join(np.array(record.parameter_names)[which])}"
            for how, which in wrong.items()
            if which.any()
        )
        message = (
            "the simulator's curvature beside the bias is left out; with it, the sds would be these times as large: "
            f"{words}. Intervals are {' and '.join(named)}"
        )
        yield Finding("note" if change < np.log1p(CURVATURE_LIMITS[1]) else "problem", "curvature", message, advice)


def noise_findings(record: Record, notes: Notes) -> Iterator[Finding]:
    covariance = record.noise_cov
    sds = np.sqrt(np.diag(covariance))
    least = float(np.linalg.eigvalsh(covariance / np.outer(sds, sds))[0])
    if least < SINGULAR_LIMIT and notes.noise_source is not NoiseSource.KNOWN:
        message = f"its correlation matrix is nearly singular (smallest eigenvalue {least:.2g})"
        advice = (
            "some combination of the outcomes would be known almost exactly: give " + NOISE_COV + ", or variances alone"
        )
        yield Finding("problem", "noise", message, advice)
    if notes.noise_source is not NoiseSource.KNOWN:
        estimated = notes.noise_source is NoiseSource.ESTIMATED
        how = "estimated from the data" if estimated else "sampled with theta, with the mean"
        # the relative error of a variance is sqrt(2 / freedom)
        errors = [1 / np.sqrt(2 * f) for f in notes.noise_freedom or ()] if estimated else []
        known = [f" ± {sd * error:.1g}" for sd, error in zip(sds, errors, strict=False)] or [""] * len(sds)
        sd = ", ".join(f"{value:.3g}{error}" for value, error in zip(sds, known, strict=True))
        scale = f" ({', '.join(record.scale_names)})" if record.transforms else ""
        yield Finding("note", "noise", f"its standard deviation was {how}: {sd}{scale}{_of_rows(record)}")
    yield from notes.noise_remarks
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


def _of_rows(record: Record) -> str:
    """Between what the noise's sd lies where rows have their own, in words."""
    own = record.noise_by_point
    if own is None:
        return ""
    each = np.where(np.isnan(record.y), np.nan, np.sqrt(np.einsum("nii->ni", own)))
    ends = zip(np.nanmin(each, axis=0), np.nanmax(each, axis=0), strict=True)
    return f"; in single rows {', '.join(f'{low:.3g} to {high:.3g}' for low, high in ends)}"
