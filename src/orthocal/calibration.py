"""From a problem and a method to a posterior: seeds, chains, threads, and the results with their labels."""

from __future__ import annotations

import json
import platform
import warnings
from datetime import UTC, datetime
from importlib.metadata import version
from time import perf_counter
from typing import Any

import numpy as np
import xarray as xr
from threadpoolctl import threadpool_limits

from .arrays import Array
from .errors import InputError, OrthocalError, OrthocalWarning
from .methods import Draws, Method, Plan, method_by_name
from .problem.problem import Problem
from .progress import progress_shown
from .results.curvature import curvature_factors
from .results.posterior import Posterior
from .results.store import FORMAT

#: share of the draws outside of an emulator's runs that is worth a warning
OUTSIDE_LIMIT = 0.01
#: quantiles of each prior that are kept for plots
PRIOR_POINTS = 1000


def calibrate(
    problem: Problem,
    method: Any = "pgp",
    draws: int = 1000,
    chains: int = 4,
    seed: int | None = None,
    warmup: int = 200,
    progress: bool = True,
) -> Posterior:
    """Calibrate the simulator of ``problem``.

    Parameters
    ----------
    method
        A name (``"pgp"``) or an object, for instance ``oc.methods.Projected(bias=oc.bias.GP(nu=2.5))``.
    draws, warmup
        Kept draws and warm-up iterations of each chain.
    seed
        The same seed gives the same draws, whatever the number of threads. None takes a new one, which is kept in
        the results.
    progress
        Show a progress bar on a terminal if the run takes longer than a second.
    """
    if not isinstance(problem, Problem):
        raise InputError(f"problem is {type(problem).__name__}: give an oc.Problem")
    chosen = method_by_name(method)
    for name, value, least in (("draws", draws, 4), ("chains", chains, 1), ("warmup", warmup, 0)):
        if not isinstance(value, int | np.integer) or value < least:
            raise InputError(f"{name}={value!r}: give a whole number of at least {least}")
    if seed is not None and (not isinstance(seed, int | np.integer) or seed < 0):
        raise InputError(f"seed={seed!r}: give a whole number that is not negative, or None")
    sequence = np.random.SeedSequence(seed)
    plan = Plan(int(draws), int(warmup), [np.random.default_rng(one) for one in sequence.spawn(chains)])
    calls, spent, started = problem.simulator.calls, problem.simulator.seconds, perf_counter()
    # one BLAS thread: sums in another order would change the draws
    with threadpool_limits(limits=1, user_api="blas"), progress_shown(progress):
        result = chosen.run(problem, plan)
        checks = {
            "quadrature_error": problem.quadrature_error if result.nodes_drawn else None,
            "gradient_kind": problem.simulator.gradient_kind,
            "gradient_error": problem.gradient_error,
            "curvature_factors": _curvature(problem, result),
        }
    work = {
        "seconds": perf_counter() - started,
        "simulator_seconds": problem.simulator.seconds - spent,
        "simulator_calls": problem.simulator.calls - calls,
        "simulator_failures": problem.simulator.failures,
    }
    if problem.simulator.outside is None:
        _say_if_slow(work)
    checks["outside_runs"] = _share_outside(problem, result.theta)
    attributes = _attributes(problem, chosen, result, {**checks, **work}, sequence.entropy, warmup)
    return Posterior(_tree(problem, result, attributes), problem.simulator, result.samplers)


def _curvature(problem: Problem, result: Draws) -> list[float] | None:
    """``curvature_factors``, NaN where the loss has no minimum; None where they do not apply or cannot be found."""
    theta = result.theta.reshape(-1, result.theta.shape[-1])
    if result.projection == "none" or not (theta.std(axis=0) > 0).all():
        return None
    try:
        factors = curvature_factors(problem, theta, result.bias.mean(axis=(0, 1)))
    except (OrthocalError, np.linalg.LinAlgError):
        # the draws are good without it
        return None
    return None if factors is None else factors.tolist()


def _say_if_slow(work: dict[str, Any]) -> None:
    if work["seconds"] > 10 and work["simulator_seconds"] > 0.5 * work["seconds"]:
        each = 1000 * work["simulator_seconds"] / work["simulator_calls"]
        warnings.warn(
            f"{work['simulator_calls']} calls of the simulator ({each:.3g} ms each) took "
            f"{work['simulator_seconds'] / work['seconds']:.0%} of the {work['seconds']:.0f} s: an emulator, a cheap "
            "stand-in fitted to a table of runs and given as the simulator, would take this time away",
            OrthocalWarning,
            stacklevel=3,
        )


def _share_outside(problem: Problem, theta: Array) -> float | None:
    """Share of the draws where an emulator had no runs around; None for a simulator."""
    outside = problem.simulator.outside
    if outside is None:
        return None
    flat = theta.reshape(-1, theta.shape[-1])
    # some thousand draws tell the share well enough
    share = float(np.mean(outside(flat[:: max(1, len(flat) // 2000)])))
    if share > OUTSIDE_LIMIT:
        warnings.warn(
            f"{share:.0%} of the draws of theta lie outside of the runs' hull, where the emulator extrapolates: add "
            "runs there (oc.next_runs), or restrict the priors to where runs are",
            OrthocalWarning,
            stacklevel=3,
        )
    return share


def _attributes(
    problem: Problem, method: Method, result: Draws, facts: dict[str, Any], entropy: Any, warmup: int
) -> dict[str, Any]:
    sensitivity = {"functional": "sensitivity", "finite": "sensitivity_at_data"}.get(result.projection)
    notes = {
        **result.notes,
        **facts,
        "weakest_sensitivity": None if sensitivity is None else getattr(problem, sensitivity).weakest,
        "on_bound": list(problem.on_bound()),
        "domain_given": problem.domain_given,
        "domain": repr(problem.domain),
        "noise_source": problem.noise.source,
    }
    return {
        "format": FORMAT,
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "inference_library": "orthocal",
        "inference_library_version": version("orthocal"),
        "versions": json.dumps(
            {"python": platform.python_version(), **{m: version(m) for m in ("numpy", "scipy", "xarray")}}
        ),
        "seed": str(entropy),
        "warmup": int(warmup),
        "method": json.dumps(method.describe()),
        "loss_weight": problem.loss_weight,
        "projection": result.projection,
        "nodes_drawn": int(result.nodes_drawn),
        "drawn": result.drawn,
        "samplers": json.dumps([sampler.settings() for sampler in result.samplers]),
        "notes": json.dumps(notes),
        "variables": json.dumps(problem.parameters.variables),
        "flat_x": int(problem.simulator.flat_x),
    }


def _tree(problem: Problem, result: Draws, attributes: dict[str, Any]) -> xr.DataTree:
    data, parameters = problem.data, problem.parameters
    chains, draws = result.theta.shape[:2]
    index = {"chain": np.arange(chains), "draw": np.arange(draws)}
    points = {"point": np.arange(data.n), "outcome": list(data.outcome_names)}
    named = {"parameter": list(parameters.names)}

    posterior = xr.Dataset(coords={**index, **points, **named})
    for j, (name, variable) in enumerate(zip(parameters.names, parameters.variables, strict=True)):
        posterior[variable] = (("chain", "draw"), result.theta[:, :, j], {"long_name": name})
    posterior["model"] = (("chain", "draw", "point", "outcome"), result.model)
    posterior["bias"] = (("chain", "draw", "point", "outcome"), result.bias)
    if result.coefficient is not None:
        posterior["projection_coefficient"] = (("chain", "draw", "parameter"), result.coefficient)
    if result.noise_cov is not None:
        posterior["noise_cov"] = (("chain", "draw", "outcome", "other_outcome"), result.noise_cov)

    stats = xr.Dataset({name: (("chain", "draw"), value) for name, value in result.stats.items()}, coords=index)
    observed = xr.Dataset({"y": (("point", "outcome"), data.y)}, coords=points)
    u = (np.arange(PRIOR_POINTS) + 0.5) / PRIOR_POINTS
    quantiles = parameters.quantile(np.tile(u[:, None], parameters.p))
    prior = xr.Dataset(
        {name: (("chain", "draw"), quantiles[None, :, j]) for j, name in enumerate(parameters.variables)},
        coords={"chain": [0], "draw": np.arange(PRIOR_POINTS)},
    )
    state = xr.Dataset(
        {
            name: (("chain", "draw", *(f"{name}_dim_{i}" for i in range(value.ndim - 2))), value)
            for name, value in result.bias_state.items()
        },
        coords=index,
    )
    groups = {
        "posterior": posterior,
        "sample_stats": stats,
        "observed_data": observed,
        "constant_data": _constant_data(problem, result.directions, points | named),
        "prior": prior,
        "bias_state": state,
    }
    if result.reference_state:
        groups["reference_state"] = xr.Dataset(
            {
                name: (("reference", *(f"{name}_dim_{i}" for i in range(value.ndim - 1))), value)
                for name, value in result.reference_state.items()
            }
        )
    tree = xr.DataTree.from_dict(groups)
    tree.attrs = attributes
    return tree


def _constant_data(problem: Problem, directions: Array | None, coords: dict[str, Any]) -> xr.Dataset:
    data, parameters = problem.data, problem.parameters
    lower, upper = problem.domain.bounds(data.d)
    constant = xr.Dataset(
        {
            "x": (("point", "input"), data.x),
            "domain": (("corner", "input"), np.stack([lower, upper])),
            "nodes": (("node", "input"), problem.rule.nodes),
            "node_weights": (("node",), problem.rule.weights),
            "noise_cov": (("outcome", "other_outcome"), problem.noise.cov),
            "noise_variances": (("point", "outcome"), problem.noise.variances),
            "whitener": (("outcome", "other_outcome"), problem.noise.whitener),
            "theta_tilde": (("parameter",), problem.theta_tilde),
            "minima": (("minimum", "parameter"), np.stack([one.theta for one in problem.minima])),
            "minima_loss": (("minimum",), np.array([one.loss for one in problem.minima])),
            "prior_lower": (("parameter",), parameters.lower),
            "prior_upper": (("parameter",), parameters.upper),
            "prior_median": (("parameter",), parameters.median),
            "prior_spread": (("parameter",), parameters.spread),
        },
        coords={**coords, "input": list(data.input_names), "corner": ["lower", "upper"]},
    )
    if problem.noise.by_point is not None:
        constant["noise_cov_by_point"] = (("point", "outcome", "other_outcome"), problem.noise.by_point)
    if directions is not None:
        constant["projection_direction"] = (("point", "outcome", "parameter"), directions)
    return constant
