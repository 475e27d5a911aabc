"""Have the chains met? Effective sample sizes, R-hat, and chains that never moved."""

from __future__ import annotations

from collections.abc import Iterator

from ..findings import Finding
from .notes import Notes
from .record import Record

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
            "take another kernel, oc.kernels.Slice() for instance, or more warmup",
        )
    rhat = float(table["r_hat"].max(skipna=False))
    size = float(table[["ess_bulk", "ess_tail"]].min(skipna=False).min(skipna=False))
    message = f"R-hat at most {rhat:.3f}, effective sample size at least {size:.0f}"
    if rhat < RHAT_LIMIT and size > ESS_LIMIT:
        yield Finding("fine", "mixing", message)
    else:
        yield Finding("problem", "mixing", message, "run longer: more draws, and more warmup if R-hat is above 1.01")


def kept_draws(record: Record, notes: Notes) -> Iterator[Finding]:
    """Of large data: of how many draws model and bias at the data are there."""
    if not record.all_kept:
        words = (
            f"{len(record.kept)} of {record.draws} draws a chain, with mean, sd and quantiles of each point beside them"
        )
        yield Finding("fine", "draws at the data", f"model and bias at the data were kept of {words} (keep_mb)")
