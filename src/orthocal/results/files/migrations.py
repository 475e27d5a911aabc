"""Trees of version 0.1, which had everything in fewer groups: they are given today's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from ...problem.prior.parameters import KEPT
from .. import record
from ..data_tree import PLACES, observed_dataset

#: what version 0.1 wrote
FORMAT = "orthocal posterior 1"
#: dimensions of ``posterior`` that belonged to what has moved
_MOVED_DIMS = ("point", "parameter", KEPT)


def with_todays_groups(old: xr.DataTree) -> xr.DataTree:
    """The tree, and those of its experiments, with the groups of today.

    Draws of the prior and its density cannot be made from what the file has: ``prior`` and ``log_prior`` are not there.
    """
    groups = {str(name): node.to_dataset(inherit=False) for name, node in old.children.items() if not node.children}
    found = xr.DataTree.from_dict(_renewed(groups, old.attrs))
    found.attrs = {**old.attrs, "format": record.FORMAT}
    for name, node in old.children.items():
        for own, tree in node.children.items():
            found[f"{name}/{own}"] = with_todays_groups(tree)
    return found


def _renewed(groups: dict[str, xr.Dataset], attributes: Mapping[Any, Any]) -> dict[str, xr.Dataset]:
    posterior, prior = groups["posterior"], groups.pop("prior")
    # it is made again when it is asked for
    groups.pop("log_likelihood", None)
    moved = {name: place for name, place in PLACES.items() if name in posterior and place != "posterior"}
    for name, place in moved.items():
        there = groups.get(place, xr.Dataset(coords={dim: posterior[dim] for dim in ("chain", "draw")}))
        groups[place] = there.assign({name: posterior[name]})
    if "model" in moved:
        groups.setdefault("projection", xr.Dataset())
    stays = posterior.drop_vars([*moved, *(dim for dim in _MOVED_DIMS if dim in posterior.coords)])
    if not any("outcome" in one.dims for one in stays.data_vars.values()):
        stays = stays.drop_vars("outcome", errors="ignore")
    groups["posterior"] = stays
    quantiles = np.stack([prior[name].values[0] for name in json.loads(attributes["variables"])], axis=-1)
    groups["constant_data"] = groups["constant_data"].assign(prior_quantiles=(("quantile", "parameter"), quantiles))
    observed = groups["observed_data"]
    if "y" in observed:
        names = [str(name) for name in observed["outcome"].values]
        without_inputs = bool(attributes.get("without_inputs", 0))
        groups["observed_data"] = observed_dataset(observed["y"].values, names, without_inputs)
    return groups
