"""The result of several experiments: one posterior of all parameters, and an ordinary one of each experiment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

from ..errors import InputError
from ..files.netcdf import write_netcdf
from ..findings import Findings
from ..machine.threads import one_blas_thread
from ..problem.prior.parameters import variable_name
from .checks.check import joint_findings
from .data_tree import PREDICTIVE, saved_part
from .posterior import Posterior
from .record import Record

#: groups about rows, of each experiment, that are put together when the tree is looked at
OF_ROWS = ("observed_data", "log_likelihood", PREDICTIVE)


class JointPosterior(Posterior):
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
        return joint_findings(self.record, {name: one.record for name, one in self.experiments.items()})

    def bias_size(self, interval: float = 0.95) -> pd.DataFrame:
        """How large each experiment's bias is over its domain, one row an experiment and outcome."""
        tables = {name: one.bias_size(interval) for name, one in self.experiments.items()}
        return pd.concat(tables, names=["experiment"])

    def save(self, path: str | Path) -> Path:
        """Write everything, all experiments included, to a netCDF file."""
        for one in self.experiments.values():
            _ = one.curves
        return write_netcdf(saved_part(self.record.data), path)

    def report(self, path: str | Path) -> Path:
        """Write one self-contained HTML page about all experiments."""
        from .report.report import write_joint_report

        for one in self.experiments.values():
            _ = one.curves
        records = {name: one.record for name, one in self.experiments.items()}
        return write_joint_report(self.record, records, self.check(), path)

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
