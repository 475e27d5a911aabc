"""The result of several experiments: one posterior of all parameters, and an ordinary one of each experiment."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from ..arrays import Array
from ..errors import InputError
from ..findings import Finding, Findings
from ..machine.threads import one_blas_thread
from ..problem.prior.parameters import Parameters, variable_name
from ..problem.problem import Problem
from .checks import check
from .checks.emulator_findings import emulator_findings
from .checks.findings import (
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
from .checks.prior_conflict import conflict
from .data_coverage import domain_findings
from .files import store
from .labelled import prior_quantiles
from .posterior import Posterior
from .predict.bias_size import bias_integrals
from .predict.predictive_data import PREDICTIVE
from .record import Record

#: the group of the tree that holds those of the experiments
GROUP = "experiments"
#: what is known of the parameters before
OF_PARAMETERS = (
    *(f"prior_{name}" for name in ("lower", "upper", "median", "spread", "quantiles")),
    *("theta_tilde", "minima", "minima_loss", "least_squares"),
)
#: groups about rows, of each experiment, that are put together when the tree is looked at
OF_ROWS = ("observed_data", "log_likelihood", PREDICTIVE)
#: what is found in the draws of all, and in those of each experiment
OF_ALL = (
    check.orthogonality,
    check.projected_draws,
    check.sensitivity,
    check.minima_findings,
    mixing,
    identified,
    conflict,
    allowed,
)
OF_EACH = (
    check.quadrature,
    bias_integrals,
    kept_draws,
    check.noise_findings,
    errors_in_x,
    impossible_observations,
    bias_findings,
    simulator_work,
    emulator_findings,
    gradient_error,
    domain_findings,
)


class TogetherPosterior(Posterior):
    """Draws of the parameters of several experiments; ``posterior["rig A"]`` is the posterior of one of them.

    Attributes
    ----------
    data
        ``posterior`` holds each parameter (chain, draw), private ones as ``offset[rig A]``, and mu and tau of pooled
        ones; ``experiments`` has a tree for each experiment, as a posterior of one problem has it.
    experiments
        Name -> ``Posterior``: predictions, checks and pages of each.
    """

    def __init__(
        self,
        data: xr.DataTree,
        experiments: Mapping[str, Posterior],
        more: Callable[[int], Posterior] | None = None,
    ) -> None:
        super().__init__(data, more=more)
        self.experiments = dict(experiments)

    def __repr__(self) -> str:
        return f"<Posterior of {len(self.experiments)} experiments: {', '.join(self.parameter_names)}>"

    def _complete(self) -> None:
        """What each experiment has, with its name behind that of the variable: ``y[rig A]``."""
        tree = self.record.data
        if PREDICTIVE in tree.children:
            return
        for group in OF_ROWS:
            trees = {name: one.data for name, one in self.experiments.items()}
            if all(group in one.children for one in trees.values()):
                named = [_with_name(one[group].to_dataset(), name) for name, one in trees.items()]
                tree[group] = xr.DataTree(xr.merge(named, compat="equals", join="outer"))

    def __getitem__(self, name: str) -> Posterior:
        if name not in self.experiments:
            raise InputError(f"there is no experiment {name!r}: there are {', '.join(self.experiments)}")
        return self.experiments[name]

    @property
    def outcome_names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for one in self.experiments.values() for name in one.outcome_names))

    @one_blas_thread()
    def check(self) -> Findings:
        """What is fine, what is not, and what to do: of all experiments together, and of each."""
        found = Findings([*self._of_all(), *self._of_each()])
        return found.in_files() if self.record.problem_file else found

    def _of_all(self) -> Iterator[Finding]:
        notes = self.record.notes
        for part in OF_ALL:
            yield from part(self.record, notes)

    def _of_each(self) -> Iterator[Finding]:
        for name, one in self.experiments.items():
            notes = one.record.notes
            for part in OF_EACH:
                for finding in part(one.record, notes):
                    yield finding._replace(topic=f"{name}: {finding.topic}")

    def bias_size(self, interval: float = 0.95) -> pd.DataFrame:
        """How large each experiment's bias is over its domain, one row an experiment and outcome."""
        tables = {name: one.bias_size(interval) for name, one in self.experiments.items()}
        return pd.concat(tables, names=["experiment"])

    def save(self, path: str | Path) -> Path:
        """Write everything, all experiments included, to a netCDF file."""
        for one in self.experiments.values():
            _ = one.curves
        return store.save(self.record.data, path)

    def report(self, path: str | Path) -> Path:
        """Write one self-contained HTML page about all experiments."""
        from .report.joint_report import write_together_report

        for one in self.experiments.values():
            _ = one.curves
        records = {name: one.record for name, one in self.experiments.items()}
        return write_together_report(self.record, records, self.check(), path)

    def _drawn_record(self) -> Record:
        raise InputError(
            f"say of which experiment: posterior[{next(iter(self.experiments))!r}].plot_fit(), for instance"
        )

    def predict(self, *_: Any, **__: Any) -> xr.Dataset:
        raise InputError(f"say of which experiment: posterior[{next(iter(self.experiments))!r}].predict(x_new)")

    @property
    def log_likelihood(self) -> xr.Dataset:
        raise InputError(f"say of which experiment: posterior[{next(iter(self.experiments))!r}].log_likelihood")

    def loo(self) -> Any:
        """Of each experiment: ``posterior["rig A"].loo()``."""
        raise InputError(f"say of which experiment: posterior[{next(iter(self.experiments))!r}].loo()")


def _with_name(rows: xr.Dataset, experiment: str) -> xr.Dataset:
    """Variables and dimensions of an experiment's rows with its name."""
    own = {name: f"{name}[{experiment}]" for name in (*rows.dims, *rows.variables) if name not in ("chain", "draw")}
    return rows.rename({name: variable_name(str(new)) for name, new in own.items()})


def together_tree(
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
        "constant_data": _constants(together, every).assign_coords(parameter=list(names)),
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


def _constants(together: Problem, every: list[Parameters]) -> xr.Dataset:
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
