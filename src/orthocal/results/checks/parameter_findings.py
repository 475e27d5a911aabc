"""What is found about theta: its projection, the best fit, and what the simulator's curvature does."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...advice import DRAWS, EMULATOR_DRAWS, JOINT, NOISE_COV, STARTS, Advice
from ...findings import Finding, Level
from ...problem.shared_findings import RIVAL_LIMITS, best_on_bound, misses_data, rival_minimum
from ...projection import ProjectionKind
from ..record import Record
from ..run_facts import RunFacts
from .chain_findings import ESS_LIMIT
from .prior_conflict import in_conflict

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
#: what the simulator's curvature may change of the sds: beyond the first a note, then a problem
CURVATURE_LIMITS = 0.15, 0.5


def orthogonality(record: Record, facts: RunFacts) -> Iterator[Finding]:
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


def projected_draws(record: Record, facts: RunFacts) -> Iterator[Finding]:
    """Of the joint projection: draws without a clear theta, and the weights of theta's prior."""
    if record.projection is not ProjectionKind.JOINT:
        return
    rough = "the simulator may be rough or fail there: check it, or narrow the priors"
    if facts.outside_runs is not None and not facts.emulator_draws:
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
    if facts.pareto_k is not None:
        size = facts.weighted_draws or 0.0
        message = f"importance weights for the prior of theta: Pareto k {facts.pareto_k:.2f}, worth {size:.0f} draws"
        # few draws are another finding
        enough = min(ESS_LIMIT, 0.5 * record.theta[..., 0].size)
        if not facts.pareto_k <= PARETO_LIMIT or size < enough:
            advice = (
                "the prior contradicts the data, or is far from Gaussian where they are: widen it, or take more "
                + DRAWS
            )
            yield Finding("problem", "prior of theta", message, advice)
        else:
            yield Finding("fine", "prior of theta", message)


def maxima(record: Record, facts: RunFacts) -> Iterator[Finding]:
    if facts.maxima:
        message = (
            f"{facts.maxima:.1%} of the draws were where the distance to the real process is stationary but not least; "
            "they were left out"
        )
        yield Finding("note", "stationary points", message, "none of these are in " + JOINT)


def minima_findings(record: Record, facts: RunFacts) -> Iterator[Finding]:
    losses = record.constant("minima_loss")
    yield from best_on_bound(facts.on_bound, "where the loss need not be stationary and orthogonality has no meaning")
    if facts.unfinished:
        message = "the search ran out of evaluations on its way down: the loss has not come to its minimum"
        advice = (
            "theta may be far off: give more "
            + STARTS
            + ", scale the parameters alike, or smooth the simulator's output"
        )
        yield Finding("problem", "best fit", message, advice)
    if facts.misfit is not None:
        advice = (
            "the noise may be far too small, or the search may have failed: give "
            + NOISE_COV
            + ", or more "
            + STARTS
            + "; a simulator that is so wrong says little"
        )
        yield from misses_data(facts.misfit, "at best", advice)
    yield from _held(record, facts)
    close = np.flatnonzero(losses[1:] - losses[0] < 1e-3 * max(losses[0], 1e-300)) + 1
    nearest = min(facts.rivals, default=np.inf)
    if nearest < RIVAL_LIMITS[1] and not close.size:
        ranks = 0, 1 + facts.rivals.index(nearest)
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


def _held(record: Record, facts: RunFacts) -> Iterator[Finding]:
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
        little = "" if in_conflict(facts) else ": there the data say little"
        yield Finding("note", "best fit", f"without the priors, least squares would have {', '.join(held)}{little}")


def curvature(record: Record, facts: RunFacts) -> Iterator[Finding]:
    if facts.curvature_factors is None:
        return
    factors, least = np.array(facts.curvature_factors), np.log1p(CURVATURE_LIMITS[0])
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
