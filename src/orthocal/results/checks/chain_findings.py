"""What is found about the chains: whether they have met, how theta moves, and which draws are stored."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...advice import DRAWS, RUN_LONGER, WARMUP, Advice
from ...findings import Finding, Level
from ...pages.tables import counted
from ..record import Record
from ..run_facts import RunFacts

RHAT_LIMIT, ESS_LIMIT = 1.01, 400
#: share of theta steps that may pass without any accepted proposal
STUCK_LIMIT = 0.05
#: correlation of theta before and after its step, given the bias, that may remain
MEMORY_LIMIT = 0.1


def mixing(record: Record, facts: RunFacts) -> Iterator[Finding]:
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


def theta_step(record: Record, facts: RunFacts) -> Iterator[Finding]:
    if not facts.remembers:
        return
    rate = record.values("sample_stats", "acceptance_rate")
    stuck, remembered = float(np.mean(rate == 0.0)), facts.theta_memory
    proposals = f"{counted(facts.inner_steps, 'proposal')} for each bias, " if facts.inner_steps else ""
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


def stored_draws(record: Record, facts: RunFacts) -> Iterator[Finding]:
    """Of large data: of how many draws model and bias at the data are there."""
    if not record.all_stored:
        some = f"{len(record.stored_draws)} of {record.draws} draws a chain"
        words = f"kept of {some}, with mean, sd and quantiles of each point beside them"
        yield Finding("fine", "draws at the data", f"model and bias at the data were {words} (keep_mb)")
