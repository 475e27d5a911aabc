"""From a file that ``Posterior.save`` wrote to a posterior: netCDF without pickle, with a digest that shows damage."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import xarray as xr

from ...bias.base import BiasPrior
from ...errors import FileError, InputError
from ...files.netcdf import read_netcdf
from ...problem.outputs import OutputFunction, called_without_x
from ...problem.simulator.simulator import BoundSimulator
from ...problem.simulator.simulator_function import Function
from ..data_tree import tree_of
from ..joint_posterior import JointPosterior
from ..posterior import Posterior
from ..record import FORMAT, Record
from . import migrations

#: groups that every tree has
_GROUPS = {"posterior", "sample_stats", "observed_data", "constant_data", "bias_state"}


def load(
    path: str | Path,
    simulator: Function | OutputFunction | Mapping[str, Function | OutputFunction] | None = None,
    bias: BiasPrior | None = None,
) -> Posterior:
    """Read a posterior from a file that ``Posterior.save`` wrote; nothing in the file is run.

    Parameters
    ----------
    path
        The file.
    simulator
        Needed only to predict at new points. Of several experiments: name of an experiment -> its simulator.
    bias
        The prior on the bias, where it is one of your own: a file holds its draws, but not its code. It must have the
        settings that it had in the run.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> model1 = oc.examples.MODEL1
    >>> posterior = oc.calibrate(model1.problem(seed=1), draws=50, chains=2, seed=1, progress=False)
    >>> path = posterior.save("fit.nc")
    >>> again = oc.load(path, simulator=model1.simulator)
    >>> np.array_equal(again.theta, posterior.theta), again.predict([[0.5]])["mean"].shape
    (True, (2, 50, 1, 1))
    """
    if bias is not None and (not isinstance(bias, BiasPrior) or isinstance(bias, type)):
        raise InputError(f"bias={bias!r}: give the prior on the bias, for instance MyPrior()")
    data = read_tree(path)
    record = Record(data)
    if "experiments" in data.attrs:
        return _together(data, simulator, bias)
    if isinstance(simulator, Mapping):
        raise InputError("the file has one experiment: give its simulator, a function")
    return with_simulator(data, record, simulator, bias)


def read_tree(path: str | Path) -> xr.DataTree:
    """Read a tree and check that it is what ``save`` wrote."""
    foreign = "was not written by orthocal, or by another version of its format"
    data = read_netcdf(path, (FORMAT, migrations.FORMAT), foreign)
    if not set(data.children) >= _GROUPS:
        raise FileError(f"{path} has been changed or damaged since it was written: a part is missing")
    return migrations.with_todays_groups(data) if data.attrs["format"] == migrations.FORMAT else data


def with_simulator(
    data: xr.DataTree, record: Record, simulator: Function | OutputFunction | None, bias: BiasPrior | None = None
) -> Posterior:
    """The posterior of a tree that was loaded."""
    if simulator is None:
        return Posterior(data, prior=bias)
    own = called_without_x(simulator, record.outcome_names) if record.without_inputs else cast(Function, simulator)
    bound = BoundSimulator(own, record.support, record.q, record.flat_x, record.transforms)
    return Posterior(data, bound, prior=bias)


def _together(
    data: xr.DataTree, simulator: Function | OutputFunction | Mapping[str, Any] | None, bias: BiasPrior | None
) -> JointPosterior:
    """Of a tree that was loaded; ``simulator`` is one for all experiments, or name -> simulator."""
    names = json.loads(data.attrs["experiments"])
    given = simulator if isinstance(simulator, Mapping) else dict.fromkeys(names, simulator)
    unknown = [str(name) for name in given if name not in names]
    if unknown:
        raise InputError(f"there is no experiment {', '.join(unknown)} in the file: there are {', '.join(names)}")
    own = {name: tree_of(data, name) for name in names}
    return JointPosterior(
        data, {name: with_simulator(tree, Record(tree), given.get(name), bias) for name, tree in own.items()}
    )
