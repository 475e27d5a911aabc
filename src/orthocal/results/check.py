"""What a user should know before trusting a posterior, in plain words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from .predict import noise_covariance
from .store import stored

if TYPE_CHECKING:
    from .posterior import Posterior

Level = Literal["fine", "note", "problem"]

ORTHOGONALITY_LIMIT = 1e-10
QUADRATURE_LIMIT = 0.02
RHAT_LIMIT, ESS_LIMIT = 1.01, 400
#: hyperparameters are nuisances: they need not mix as well as theta
HYPERPARAMETER_LIMIT = 1.05
#: share of theta steps that may pass without any accepted proposal
STUCK_LIMIT = 0.05
#: what the simulator's curvature may change of the sds: beyond the first a note, then a problem
CURVATURE_LIMITS = 0.15, 0.5
#: correlation of theta before and after its step, given the bias, that may remain
MEMORY_LIMIT = 0.1
#: R-hat of the log density of a bias that is sampled by Hamiltonian steps: beyond the first a note, then a problem
SETTLED_LIMITS = 1.1, 2.0
#: Hamiltonian steps that are shorter, in prior sds, or more often refused than this do not move the bias
SHORTEST_STEP, LEAST_ACCEPTANCE = 1e-12, 0.05


class Finding(NamedTuple):
    """One finding: how bad, about what, what was found, and what to do."""

    level: Level
    topic: str
    message: str
    advice: str = ""

    def __str__(self) -> str:
        mark = {"fine": "[fine]   ", "note": "[note]   ", "problem": "[problem]"}[self.level]
        return f"{mark} {self.topic}: {self.message}" + (f" -> {self.advice}" if self.advice else "")


class Findings(list[Finding]):
    """The findings, worst first; printing them gives one line each."""

    def __str__(self) -> str:
        return "\n".join(str(finding) for finding in self)

    __repr__ = __str__

    @property
    def ok(self) -> bool:
        """Whether there is no problem among them."""
        return not self.problems

    @property
    def problems(self) -> list[Finding]:
        return [finding for finding in self if finding.level == "problem"]


def findings(posterior: Posterior) -> Findings:
    """All findings about a posterior."""
    notes: dict[str, Any] = json.loads(posterior.data.attrs["notes"])
    parts = (
        _orthogonality,
        _sensitivity,
        _quadrature,
        _minima,
        _mixing,
        _theta_step,
        _identified,
        _curvature,
        _noise,
        _bias,
    )
    found = [finding for part in parts for finding in part(posterior, notes)]
    found += [*_simulator(notes), *_emulator(notes), *_gradient(notes), *_domain(notes)]
    return Findings(sorted(found, key=lambda finding: ("problem", "note", "fine").index(finding.level)))


def _orthogonality(posterior: Posterior, notes: dict[str, Any]) -> Iterator[Finding]:
    stats = posterior.data["sample_stats"].to_dataset()
    if "orthogonality_error" not in stats:
        return
    error = float(stats["orthogonality_error"].max())
    message = f"the bias is orthogonal to the simulator's gradients in every draw, to {error:.1g}"
    if error < ORTHOGONALITY_LIMIT:
        yield Finding("fine", "orthogonality", message)
    else:
        message = f"the bias of some draws is not orthogonal to the simulator's gradients (error {error:.1g})"
        yield Finding("problem", "orthogonality", message, "do not use these draws; please report this as a bug")


def _sensitivity(posterior: Posterior, notes: dict[str, Any]) -> Iterator[Finding]:
    weakest = notes["weakest_sensitivity"]
    if weakest is None:
        if json.loads(posterior.data.attrs["method"])["kind"] in ("ko", "sgasp"):
            message = "theta and the bias cannot be told apart: nothing keeps the bias from doing theta's work"
            advice = "take theta from a projected method, or from OGP or PCAL"
            yield Finding("note", "identifiability", message, advice)
        return
    if weakest > 0.1:
        yield Finding("fine", "parameters", "their effects on the simulator can be told apart")
        return
    yield Finding(
        "note" if weakest > 0.01 else "problem",
        "parameters",
        f"their effects on the simulator are nearly collinear (smallest singular value {weakest:.1g})",
        "expect strong posterior correlations; consider fixing a parameter",
    )


def _quadrature(posterior: Posterior, notes: dict[str, Any]) -> Iterator[Finding]:
    error = notes["quadrature_error"]
    if error is None:
        return
    nodes = posterior.data["constant_data"].sizes["node"]
    message = f"integrals over the domain with {nodes} nodes: half as many change them by {error:.1g} (relative)"
    if error < QUADRATURE_LIMIT:
        yield Finding("fine", "quadrature", message)
    else:
        yield Finding("problem", "quadrature", message, "take more nodes: oc.Box(lower, upper, nodes=...)")


def _minima(posterior: Posterior, notes: dict[str, Any]) -> Iterator[Finding]:
    constant = posterior.data["constant_data"].to_dataset()
    losses = constant["minima_loss"].values
    if notes["on_bound"]:
        yield Finding(
            "problem",
            "best fit",
            f"it lies on a bound of the prior of {', '.join(notes['on_bound'])}, where the loss need not be "
            "stationary and orthogonality has no meaning",
            "widen the prior, or fix the parameter",
        )
    close = np.flatnonzero(losses[1:] - losses[0] < 1e-3 * max(losses[0], 1e-300)) + 1
    if close.size:
        others = "; ".join(_theta_text(posterior, constant["minima"].values[k]) for k in close[:3])
        more = f" and {close.size - 3} more" if close.size > 3 else ""
        yield Finding(
            "note",
            "best fit",
            f"{close.size + 1} minima fit equally well; the posterior describes the one at "
            f"{_theta_text(posterior, constant['theta_tilde'].values)} (others: {others}{more})",
            "if another one is meant, restrict the priors to it",
        )
    elif losses.size > 1:
        message = (
            f"the best of {losses.size} minima found; the next one's loss is {losses[1] / losses[0]:.3g} times as large"
        )
        yield Finding("fine", "best fit", message)
    else:
        yield Finding("fine", "best fit", "every start of the search led to the same minimum")


def _mixing(posterior: Posterior, notes: dict[str, Any]) -> Iterator[Finding]:
    table: pd.DataFrame = posterior.summary()
    rhat, size = float(table["r_hat"].max()), float(table[["ess_bulk", "ess_tail"]].min().min())
    message = f"R-hat at most {rhat:.3f}, effective sample size at least {size:.0f}"
    if rhat < RHAT_LIMIT and size > ESS_LIMIT:
        yield Finding("fine", "mixing", message)
    else:
        yield Finding("problem", "mixing", message, "run longer: more draws, and more warmup if R-hat is above 1.01")


def _theta_step(posterior: Posterior, notes: dict[str, Any]) -> Iterator[Finding]:
    if "theta_memory" not in notes:
        return
    rate = stored(posterior.data, "sample_stats", "acceptance_rate")
    stuck, remembered = float(np.mean(rate == 0.0)), float(notes["theta_memory"])
    proposals = f"{notes['inner_steps']} proposal(s) for each bias, " if notes.get("inner_steps") else ""
    message = (
        f"{proposals}{rate.mean():.1%} accepted, none in {stuck:.1%} of the steps; "
        f"given the bias, theta's correlation with its start is {remembered:.2f}"
    )
    # four standard errors of a correlation come on top of the limit
    if stuck <= STUCK_LIMIT and remembered < MEMORY_LIMIT + 4 / np.sqrt(rate.size):
        yield Finding("fine", "theta step", message)
    else:
        advice = "theta is not drawn exactly given the bias: take more inner steps, or the kernel Laplace() or Slice()"
        yield Finding("problem", "theta step", message, advice)


def _identified(posterior: Posterior, notes: dict[str, Any]) -> Iterator[Finding]:
    constant = posterior.data["constant_data"].to_dataset()
    draws = posterior.theta.reshape(-1, len(posterior.parameter_names))
    share = draws.std(axis=0) / constant["prior_spread"].values
    for name, value in zip(posterior.parameter_names, share, strict=True):
        if value > 0.5:
            message = f"the posterior of {name} is {value:.2f} times as wide as its prior: the data say little about it"
            yield Finding("note", "information", message)
    edge = 0.01 * constant["prior_spread"].values
    near = (draws < constant["prior_lower"].values + edge) | (draws > constant["prior_upper"].values - edge)
    for name, part in zip(posterior.parameter_names, near.mean(axis=0), strict=True):
        if part > 0.02:
            message = f"{part:.0%} of the draws of {name} lie at a bound of its prior"
            yield Finding("note", "bounds", message, "check that the bound is meant")


def _curvature(posterior: Posterior, notes: dict[str, Any]) -> Iterator[Finding]:
    # older files do not have it
    factors = notes.get("curvature_factors")
    if factors is None:
        return
    change = float(np.max(np.abs(np.log(factors))))
    advice = "widen the intervals by as much; where y_R can be learnt well, oc.methods.PCAL() knows the curvature"
    if np.isnan(change):
        message = "beside this bias the simulator is so curved that the best fit is not a clear minimum"
        yield Finding("problem", "curvature", message, advice)
        return
    words = ", ".join(f"{name} {one:.2f}" for name, one in zip(posterior.parameter_names, factors, strict=True))
    if change < np.log1p(CURVATURE_LIMITS[0]):
        message = f"the simulator's curvature beside the bias hardly changes the sds (factors: {words})"
        yield Finding("fine", "curvature", message)
    else:
        message = f"the simulator's curvature beside the bias is left out; with it, sds would be about: {words} times"
        yield Finding("note" if change < np.log1p(CURVATURE_LIMITS[1]) else "problem", "curvature", message, advice)


def _noise(posterior: Posterior, notes: dict[str, Any]) -> Iterator[Finding]:
    data = posterior.data
    covariance = noise_covariance(data)
    if notes["noise_source"] != "known":
        sd = ", ".join(f"{value:.3g}" for value in np.sqrt(np.diag(covariance)))
        how = "estimated from the data" if notes["noise_source"] == "estimated" else "sampled with theta, with the mean"
        yield Finding("note", "noise", f"its standard deviation was {how}: {sd}")
    drawn = data["posterior"].to_dataset()
    misfit = stored(data, "observed_data", "y") - (drawn["model"] + drawn["bias"]).values
    variances = np.broadcast_to(np.diag(covariance), misfit.shape[2:])
    if "noise_cov_by_point" in data["constant_data"]:
        variances = np.einsum("nii->ni", stored(data, "constant_data", "noise_cov_by_point"))
    ratio = np.sqrt(np.nanmean(misfit**2 / variances, axis=(0, 1, 2)))
    observed = ~np.isnan(misfit[0, 0])
    for name, value, count in zip(posterior.outcome_names, ratio, observed.sum(axis=0), strict=True):
        tolerance = 4 * np.sqrt(0.5 / count)
        message = f"the scatter of {name} around model + bias is {value:.2f} times the noise's standard deviation"
        if value > 1 + tolerance:
            advice = "noise_cov may be too small, or the bias prior too smooth"
            yield Finding("problem", "noise", message, advice)
        elif value < 1 - tolerance:
            yield Finding("problem", "noise", message, "noise_cov may be too large, or the bias prior too rough")
        else:
            yield Finding("fine", "noise", message)
    if not observed.all():
        missing = int((~observed).sum())
        rows = int((~observed).any(axis=1).sum())
        empty = int((~observed).all(axis=1).sum())
        nothing = f", {empty} of them without any observation" if empty else ""
        message = f"{missing} of {observed.size} cells of y are missing, in {rows} rows{nothing}; all others are used"
        yield Finding("note", "missing data", message)


def _bias(posterior: Posterior, notes: dict[str, Any]) -> Iterator[Finding]:
    bias = stored(posterior.data, "posterior", "bias").mean(axis=(0, 1))
    sd = np.sqrt(np.diag(noise_covariance(posterior.data)))
    for k, name in enumerate(posterior.outcome_names):
        size = float(np.sqrt(np.mean(bias[:, k] ** 2)))
        yield Finding(
            "fine",
            "bias",
            f"that of {name} is {size:.3g} (rms), {size / sd[k]:.2g} noise standard deviations",
        )
    for one in notes.get("bias", []):
        if one.get("at_bound"):
            message = f"the search for its hyperparameters ended on a bound ({', '.join(one['at_bound'])})"
            yield Finding("note", "bias prior", message, "the bias may be absent or linear; consider giving them")
        if one.get("jitter", 0) > 1e-8:
            message = f"a jitter of {one['jitter']:.0e} of its variance was needed"
            yield Finding("note", "bias prior", message, "points may lie too close together for so smooth a prior")
        if "density_rhat" in one:
            yield from _settled(one)
        if one.get("hyperparameter_rhat", 1.0) > HYPERPARAMETER_LIMIT:
            message = f"its sampled hyperparameters have not mixed (R-hat {one['hyperparameter_rhat']:.3f})"
            yield Finding("problem", "bias prior", message, "run longer: more draws, and more warmup")


def _settled(one: dict[str, Any]) -> Iterator[Finding]:
    """Whether Hamiltonian Monte Carlo has found the bias, from the findings of its sampler."""
    rhat, step, acceptance = one["density_rhat"], one["hmc_step"], one["hmc_acceptance"]
    figures = f"R-hat of its log density {rhat:.3g}, shortest step {step:.1g}, lowest acceptance {acceptance:.0%}"
    stuck = step < SHORTEST_STEP or acceptance < LEAST_ACCEPTANCE
    if stuck or rhat > SETTLED_LIMITS[1]:
        state = "hardly moved" if stuck else "not settled"
        advice = "noise_cov may be far too small, or the bias too irregular for this prior: check it, or take another"
        yield Finding("problem", "bias prior", f"the chains have {state} ({figures})", advice)
    elif rhat > SETTLED_LIMITS[0]:
        message = f"the chains have not quite settled ({figures})"
        yield Finding("note", "bias prior", message, "run longer: more draws, and more warmup")


def _simulator(notes: dict[str, Any]) -> Iterator[Finding]:
    calls, seconds = notes["simulator_calls"], notes["simulator_seconds"]
    share = seconds / max(notes["seconds"], 1e-9)
    message = f"{calls} calls, {seconds:.2g} s of {notes['seconds']:.2g} s in all"
    if share > 0.5 and notes["seconds"] > 10 and notes.get("outside_runs") is None:
        yield Finding("note", "simulator", message, "replace it by an emulator fitted to a table of its runs")
    else:
        yield Finding("fine", "simulator", message)
    if notes["simulator_failures"]:
        message = f"{notes['simulator_failures']} calls gave NaN or infinity and were taken as impossible"
        yield Finding("note", "simulator", message, "restrict the priors to where it works")


def _emulator(notes: dict[str, Any]) -> Iterator[Finding]:
    # older files do not have it
    share = notes.get("outside_runs")
    if share is None:
        return
    if share == 0:
        yield Finding("fine", "emulator", "all draws of theta lie within the hull of its runs")
        return
    message = f"{share:.1%} of the draws of theta lie outside of the hull of its runs, where it extrapolates"
    advice = "add runs there (oc.next_runs), or restrict the priors to where runs are"
    yield Finding("note" if share < 0.2 else "problem", "emulator", message, advice)


def _gradient(notes: dict[str, Any]) -> Iterator[Finding]:
    if notes.get("outside_runs") is not None:
        # an emulator's own
        return
    error, differences = notes["gradient_error"], notes["gradient_kind"] == "difference"
    other = "differences with a longer step" if differences else "central differences"
    message = f"the gradient ({notes['gradient_kind']}) differs from {other} by {error:.1g} (relative)"
    if error < 1e-3:
        yield Finding("fine", "gradient", message)
    elif differences:
        advice = "the simulator's output is rounded or noisy: give a longer step, oc.Simulator(f, step=1e-3)"
        yield Finding("problem", "gradient", message, advice)
    else:
        yield Finding("problem", "gradient", message, "check the gradient: the projection depends on it")


def _domain(notes: dict[str, Any]) -> Iterator[Finding]:
    if not notes["domain_given"]:
        message = f"none was given, the smallest box around the data was taken: {notes['domain']}"
        yield Finding("note", "domain", message, "theta is defined by the domain: better give it")


def _theta_text(posterior: Posterior, theta: Any) -> str:
    pairs = zip(posterior.parameter_names, theta, strict=True)
    return ", ".join(f"{name} = {value:.4g}" for name, value in pairs)
