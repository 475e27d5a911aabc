"""Draws with their labels: a ``DataTree`` in ArviZ's schema."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from ..arrays import Array
from ..methods.at_data import STATISTICS
from ..methods.base import Draws
from ..problem.parameters import KEPT, STORED_BESIDE
from ..problem.problem import Problem

#: quantiles of each prior that are kept for plots
PRIOR_POINTS = 1000


def labelled(problem: Problem, draws: Draws, attributes: Mapping[str, str | int]) -> xr.DataTree:
    """The tree of a result."""
    data = problem.data
    index = {"chain": np.arange(draws.theta.shape[0]), "draw": np.arange(draws.theta.shape[1])}
    points = {"point": np.arange(data.n), "outcome": list(data.outcome_names)}
    named = {"parameter": list(problem.parameters.names)}
    groups = {
        "posterior": _posterior(problem, draws).assign_coords({**index, **points, **named}),
        "sample_stats": xr.Dataset(
            {name: (("chain", "draw"), value) for name, value in draws.stats.items()}, coords=index
        ),
        "observed_data": xr.Dataset({"y": (("point", "outcome"), data.native_y)}, coords=points),
        "constant_data": _constant_data(problem, draws).assign_coords({**points, **named}),
        "prior": _prior(problem),
        "bias_state": _states(draws.bias_state, ("chain", "draw")).assign_coords(index),
    }
    if draws.at_data:
        dims = ("statistic", "point", "outcome")
        statistics = xr.Dataset({name: (dims, values) for name, values in draws.at_data.items()})
        groups["at_data"] = statistics.assign_coords({"statistic": list(STATISTICS), **points})
    if draws.reference_state:
        groups["reference_state"] = _states(draws.reference_state, ("reference",))
    tree = xr.DataTree.from_dict(groups)
    tree.attrs = dict(attributes)
    return tree


def _posterior(problem: Problem, draws: Draws) -> xr.Dataset:
    parameters = problem.parameters
    posterior = xr.Dataset()
    for j, (name, variable) in enumerate(zip(parameters.names, parameters.variables, strict=True)):
        posterior[variable] = (("chain", "draw"), draws.theta[:, :, j], {"long_name": name})
    beside = {
        "model": draws.model,
        "bias": draws.bias,
        "projection_coefficient": draws.coefficient,
        "prior_shift": draws.prior_shift,
        "unshifted": draws.unshifted,
        "bias_square": draws.bias_square,
        "process_square": draws.process_square,
        "emulator_number": draws.emulator_number,
        "emulator_tilt": draws.emulator_tilt,
        "noise_cov": draws.noise_cov,
        "noise_cov_by_group": draws.noise_by_group,
    }
    for name, values in beside.items():
        if values is not None:
            some = draws.kept is not None and name in ("model", "bias")
            dims = tuple(KEPT if some and dim == "draw" else dim for dim in STORED_BESIDE[name])
            if dims[-1] == "parameter" and values.shape[-1] != parameters.p:
                # of several experiments: the prior moved all of their parameters
                dims = (*dims[:-1], "parameter_of_all")
            posterior[name] = (dims, values)
    if draws.kept is not None:
        posterior = posterior.assign_coords({KEPT: draws.kept})
    if problem.data.transforms:
        for name in ("model", "bias"):
            posterior[name].attrs["scale"] = ", ".join(problem.data.transforms.labels(problem.data.outcome_names))
    return posterior


def _prior(problem: Problem) -> xr.Dataset:
    parameters = problem.parameters
    u = (np.arange(PRIOR_POINTS) + 0.5) / PRIOR_POINTS
    quantiles = parameters.marginal_quantile(np.tile(u[:, None], parameters.p))
    return xr.Dataset(
        {name: (("chain", "draw"), quantiles[None, :, j]) for j, name in enumerate(parameters.variables)},
        coords={"chain": [0], "draw": np.arange(PRIOR_POINTS)},
    )


def _states(records: dict[str, Array], leading: tuple[str, ...]) -> xr.Dataset:
    return xr.Dataset(
        {
            name: ((*leading, *(f"{name}_dim_{i}" for i in range(value.ndim - len(leading)))), value)
            for name, value in records.items()
        }
    )


def _constant_data(problem: Problem, draws: Draws) -> xr.Dataset:
    data, parameters = problem.data, problem.parameters
    constant = xr.Dataset(
        {
            "x": (("point", "input"), data.x),
            "domain": (("corner", "input"), np.stack(problem.domain.bounds(data.d))),
            "nodes": (("node", "input"), problem.rule.nodes),
            "node_weights": (("node",), problem.rule.weights),
            "noise_cov": (("outcome", "other_outcome"), problem.noise.cov),
            "noise_variances": (("point", "outcome"), problem.noise.variances),
            "whitener": (("outcome", "other_outcome"), problem.noise.whitener),
            "theta_tilde": (("parameter",), problem.theta_tilde),
            "minima": (("minimum", "parameter"), np.stack([one.theta for one in problem.minima])),
            "minima_loss": (("minimum",), np.array([one.loss for one in problem.minima])),
            "least_squares": (("parameter",), problem.loss_minima[0].theta),
            "prior_lower": (("parameter",), parameters.lower),
            "prior_upper": (("parameter",), parameters.upper),
            "prior_median": (("parameter",), parameters.median),
            "prior_spread": (("parameter",), parameters.spread),
        },
        coords={"input": list(data.input_names), "corner": ["lower", "upper"]},
    )
    if problem.noise.by_point is not None:
        constant["noise_cov_by_point"] = (("point", "outcome", "other_outcome"), problem.noise.by_point)
    if problem.noise.rows is not None:
        constant["noise_correlation"] = (("point", "other_point"), problem.noise.rows.matrix)
    if problem.noise.groups is not None:
        constant["noise_group_of_point"] = (("point",), problem.noise.groups)
    if problem.input_errors is not None:
        constant["x_err"] = (("point", "input"), problem.input_errors.x_err)
        moves = problem.input_errors.moved_theta(
            problem.gradient_at_data, problem.noise.precision, problem.noise.whitener
        )
        constant["x_err_moves"] = (("effect", "parameter"), moves)
        constant["x_err_cov"] = (("point", "outcome", "other_outcome"), problem.input_errors.cov)
    if data.groups is not None:
        constant["group"] = (("point",), list(data.groups.of_rows), {"name": data.groups.name})
    if draws.directions is not None:
        constant["projection_direction"] = (("point", "outcome", "parameter"), draws.directions)
    if draws.emulator_shift is not None and draws.emulator_shift.shape[1] == parameters.p:
        constant["emulator_shift"] = (("emulator_draw", "parameter"), draws.emulator_shift)
    return constant
