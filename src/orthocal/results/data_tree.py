"""The tree of a result: draws with their labels, a ``DataTree`` in ArviZ's schema.

``record.py`` has the same tree as types.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from ..arrays import Array, IntArray
from ..methods.base import KINDS, Draws
from ..methods.stored_draws import STATISTICS
from ..problem.noise.noise import HALF_FREEDOM
from ..problem.prior.parameters import KEPT, STORED_BESIDE, Parameters, variable_name
from ..problem.problem import Problem

#: quantiles of each prior that are kept for plots, and draws of it
PRIOR_POINTS, PRIOR_DRAWS = 1000, 2000
#: the group of the tree that holds those of the experiments
GROUP = "experiments"
#: what is known of the parameters before
OF_PARAMETERS = (
    *(f"prior_{name}" for name in ("lower", "upper", "median", "spread", "quantiles")),
    *("theta_tilde", "minima", "minima_loss", "least_squares"),
)
#: ArviZ's name of the group that is drawn anew when it is looked at
PREDICTIVE = "posterior_predictive"
#: what is stored beside the parameters -> its group; `posterior` has only what is sampled, for ArviZ
PLACES = {
    "model": "model",
    "bias": "bias",
    "bias_square": "bias",
    "process_square": "bias",
    "projection_coefficient": "projection",
    "prior_shift": "projection",
    "unshifted": "projection",
    "emulator_number": "projection",
    "emulator_tilt": "projection",
    "noise_cov": "posterior",
    "noise_cov_by_group": "posterior",
}


def result_tree(problem: Problem, draws: Draws, attributes: Mapping[str, str | int]) -> xr.DataTree:
    """The tree of a result."""
    data, rng = problem.data, prior_generator(attributes["seed"])
    index = {"chain": np.arange(draws.theta.shape[0]), "draw": np.arange(draws.theta.shape[1])}
    points = {"point": np.arange(data.n), "outcome": list(data.outcome_names)}
    named, others = {"parameter": list(problem.parameters.names)}, {"other_outcome": points["outcome"]}
    theta = theta_dataset(problem.parameters, draws.theta, index)
    groups = {
        "posterior": theta,
        **{name: xr.Dataset(coords=index) for name in ("model", "bias", "projection")},
        "sample_stats": xr.Dataset(
            {name: (("chain", "draw"), value) for name, value in draws.stats.items()}, coords=index
        ),
        "observed_data": observed_dataset(data.native_y, data.outcome_names, data.without_inputs),
        "constant_data": _constant_data(problem, draws).assign_coords({**points, **named}),
        "prior": prior_dataset(problem.parameters, rng),
        "bias_state": _states(draws.bias_state, ("chain", "draw")).assign_coords(index),
    }
    if takes_prior(attributes["method"]):
        groups["log_prior"] = log_prior_dataset(problem.parameters, draws.theta, index)
    for name, variable in _beside(problem, draws).items():
        coords = {dim: values for dim, values in {**points, **named, **others}.items() if dim in variable.dims}
        groups[PLACES[name]] = groups[PLACES[name]].assign({name: variable}).assign_coords(coords)
    if draws.kept is not None:
        for name in ("model", "bias"):
            groups[name] = groups[name].assign_coords({KEPT: draws.kept})
    if draws.at_data:
        dims = ("statistic", "point", "outcome")
        statistics = xr.Dataset({name: (dims, values) for name, values in draws.at_data.items()})
        groups["at_data"] = statistics.assign_coords({"statistic": list(STATISTICS), **points})
    if draws.reference_state:
        groups["reference_state"] = _states(draws.reference_state, ("reference",))
    tree = xr.DataTree.from_dict(groups)
    tree.attrs = dict(attributes)
    return tree


def theta_dataset(parameters: Parameters, theta: Array, coords: Mapping[str, IntArray]) -> xr.Dataset:
    """theta (c, s, p) as a variable a parameter."""
    variables = {
        variable: (("chain", "draw"), theta[:, :, j], {"long_name": name})
        for j, (name, variable) in enumerate(zip(parameters.names, parameters.variables, strict=True))
    }
    return xr.Dataset(variables, coords=coords)


def _beside(problem: Problem, draws: Draws) -> dict[str, xr.Variable]:
    """What there is beside the parameters."""
    found = {
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
    variables = {}
    for name, values in found.items():
        if values is None:
            continue
        at_data = name in ("model", "bias")
        some = draws.kept is not None and at_data
        dims = tuple(KEPT if some and dim == "draw" else dim for dim in STORED_BESIDE[name])
        if dims[-1] == "parameter" and values.shape[-1] != problem.parameters.p:
            # of several experiments: the prior moved all of their parameters
            dims = (*dims[:-1], "parameter_of_all")
        transforms = problem.data.transforms
        scale = {"scale": ", ".join(transforms.labels(problem.data.outcome_names))} if at_data and transforms else {}
        variables[name] = xr.Variable(dims, values, scale)
    return variables


def observed_dataset(y: Array, names: Sequence[str], without_inputs: bool) -> xr.Dataset:
    """ArviZ's ``observed_data``: a variable an outcome, of the cells of y (n, q) that were observed.

    An outcome with missing cells has points of its own. Outputs without inputs are one variable, cell after cell: one
    of them alone has too few values to look at.
    """
    if without_inputs:
        rows, columns = np.nonzero(~np.isnan(y))
        cells = {"output": ("cell", np.array(names)[columns]), "replicate": ("cell", rows)}
        return xr.Dataset({"y": (("cell",), y[rows, columns])}, coords={"cell": np.arange(len(rows)), **cells})
    found = xr.Dataset()
    for k, name in enumerate(outcome_variables(names)):
        rows = np.flatnonzero(~np.isnan(y[:, k]))
        dim = "point" if len(rows) == len(y) else f"point_of_{name}"
        found[name] = xr.DataArray(y[rows, k], {dim: rows}, (dim,), attrs={"long_name": names[k]})
    return found


def observed_matrix(observed: xr.Dataset, n: int, names: Sequence[str], without_inputs: bool) -> Array:
    """The same as y (n, q), NaN where nothing was observed."""
    y = np.full((n, len(names)), np.nan)
    if without_inputs:
        column = {name: k for k, name in enumerate(names)}
        y[observed["replicate"].values, [column[str(name)] for name in observed["output"].values]] = observed["y"]
        return y
    for k, name in enumerate(outcome_variables(names)):
        (dim,) = observed[name].dims
        y[observed[dim].values, k] = observed[name].values
    return y


def outcome_variables(names: Sequence[str]) -> list[str]:
    """The names of the outcomes' variables: those of dimensions are taken."""
    return [f"{name} (outcome)" if name in ("chain", "draw", "point") else variable_name(name) for name in names]


def takes_prior(method: str | int) -> bool:
    """Whether a method, as the attributes describe it, takes more than the support from theta's prior."""
    family = KINDS.get(str(json.loads(str(method)).get("kind")))
    return family is None or family.takes_prior


def log_prior_dataset(parameters: Parameters, theta: Array, coords: Mapping[str, IntArray]) -> xr.Dataset:
    """log pi of theta (c, s, p), a variable a block; the constant that a constraint adds is left out."""
    densities = parameters.log_prior_by_block(theta)
    return xr.Dataset({name: (("chain", "draw"), one) for name, one in densities.items()}, coords=coords)


def prior_dataset(parameters: Parameters, rng: np.random.Generator) -> xr.Dataset:
    """Draws of the prior in one chain."""
    theta = parameters.prior_draws(PRIOR_DRAWS, rng)
    return theta_dataset(parameters, theta[None], {"chain": np.arange(1), "draw": np.arange(len(theta))})


def prior_generator(seed: str | int) -> np.random.Generator:
    """Of draws of the prior: nothing else has its numbers."""
    return np.random.default_rng(np.random.SeedSequence(int(seed), spawn_key=(2**31 + 1,)))


def prior_quantiles(parameters: Parameters) -> Array:
    """Evenly spread quantiles of each parameter's prior by itself, (quantile, p)."""
    u = (np.arange(PRIOR_POINTS) + 0.5) / PRIOR_POINTS
    return parameters.marginal_quantile(np.tile(u[:, None], parameters.p))


def _states(records: dict[str, Array], leading: tuple[str, ...]) -> xr.Dataset:
    return xr.Dataset(
        {
            name: ((*leading, *(f"{name}_dim_{i}" for i in range(value.ndim - len(leading)))), value)
            for name, value in records.items()
        }
    )


def _relative(problem: Problem, draws: Draws) -> Array | None:
    """sds of single cells in units of what is common to all, (n, q), None where they are alike.

    Of cells that may be outliers it is the root mean square given the errors, 1 / k^2 | e ~ Gamma(5 / 2, 2 + e^2 / 2).
    """
    noise = problem.noise
    if not noise.suspects or draws.noise_cov is None:
        return noise.relative
    found = np.ones(noise.observed.shape) if noise.relative is None else noise.relative.copy()
    numbers = slice(None) if draws.kept is None else draws.kept
    for row, k in noise.suspects:
        error = problem.data.y[row, k] - draws.model[:, :, row, k] - draws.bias[:, :, row, k]
        square = np.mean(error**2 / draws.noise_cov[:, numbers, k, k])
        found[row, k] = np.sqrt((HALF_FREEDOM + square / 2) / (HALF_FREEDOM - 0.5))
    return found


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
            "prior_quantiles": (("quantile", "parameter"), prior_quantiles(parameters)),
        },
        coords={"input": list(data.input_names), "corner": ["lower", "upper"]},
    )
    if problem.noise.by_point is not None:
        constant["noise_cov_by_point"] = (("point", "outcome", "other_outcome"), problem.noise.by_point)
    relative = _relative(problem, draws)
    if relative is not None:
        constant["noise_relative"] = (("point", "outcome"), relative)
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


# The tree of several experiments, with that of each in it.


def joint_tree(
    together: Problem,
    theta: Array,
    hyper: Mapping[str, Array],
    hyper_priors: Mapping[str, Parameters],
    priors: Mapping[str, xr.Dataset],
    stats: Mapping[str, Array],
    attributes: Mapping[str, str | int],
    own: Mapping[str, xr.DataTree],
) -> xr.DataTree:
    """The tree of all experiments: ``theta`` (c, s, P), and mu and tau of pools, (c, s) each, with their priors.

    ``priors`` are the groups ``prior`` and ``log_prior``.
    """
    names = (*together.parameters.names, *hyper)
    values = np.concatenate([theta, *(one[:, :, None] for one in hyper.values())], axis=2)
    index = {"chain": np.arange(theta.shape[0]), "draw": np.arange(theta.shape[1])}
    posterior = xr.Dataset(
        {
            variable_name(name): (("chain", "draw"), values[:, :, j], {"long_name": name})
            for j, name in enumerate(names)
        },
        coords=index,
    )
    every = [together.parameters, *hyper_priors.values()]
    groups = {
        "posterior": posterior,
        "sample_stats": xr.Dataset({name: (("chain", "draw"), one) for name, one in stats.items()}, coords=index),
        "observed_data": xr.Dataset(),
        "constant_data": _joint_constants(together, every).assign_coords(parameter=list(names)),
        **priors,
        "bias_state": xr.Dataset(),
    }
    return with_experiments(xr.DataTree.from_dict(groups), attributes, [variable_name(name) for name in names], own)


def with_experiments(
    tree: xr.DataTree, attributes: Mapping[Any, Any], variables: list[str], own: Mapping[str, xr.DataTree]
) -> xr.DataTree:
    """The tree with those of the experiments in it."""
    for name, one in own.items():
        tree[f"{GROUP}/{name}"] = one
    tree.attrs = {**attributes, "variables": json.dumps(variables), "experiments": json.dumps(list(own))}
    return tree


def tree_of(tree: xr.DataTree, name: str) -> xr.DataTree:
    """That of one experiment."""
    own = tree[f"{GROUP}/{name}"]
    assert isinstance(own, xr.DataTree)
    return own


def _joint_constants(together: Problem, every: list[Parameters]) -> xr.Dataset:
    """What is known of the parameters before; of mu and tau, that of their priors."""
    centre = np.concatenate([one.median for one in every[1:]]) if every[1:] else np.empty(0)

    def whole(theta: Array) -> Array:
        return np.append(theta, centre)

    parts = {
        f"prior_{name}": (("parameter",), np.concatenate([getattr(one, name) for one in every]))
        for name in ("lower", "upper", "median", "spread")
    }
    quantiles = np.concatenate([prior_quantiles(one) for one in every], axis=1)
    return xr.Dataset(
        {
            **parts,
            "prior_quantiles": (("quantile", "parameter"), quantiles),
            "theta_tilde": (("parameter",), whole(together.theta_tilde)),
            "minima": (("minimum", "parameter"), np.stack([whole(one.theta) for one in together.minima])),
            "minima_loss": (("minimum",), np.array([one.loss for one in together.minima])),
            "least_squares": (("parameter",), whole(together.loss_minima[0].theta)),
        }
    )


def saved_part(data: xr.DataTree) -> xr.DataTree:
    """The tree without what a file does not hold."""
    if not any(node.name == PREDICTIVE for node in data.subtree):
        return data
    kept = {node.path: node.to_dataset(inherit=False) for node in data.subtree if node.name != PREDICTIVE}
    if "experiments" in data.attrs:
        # of all experiments together: each has its own
        kept.pop("/log_likelihood", None)
        kept["/observed_data"] = xr.Dataset()
    return xr.DataTree.from_dict(kept)
