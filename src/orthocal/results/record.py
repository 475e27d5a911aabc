"""A result as types: what the labelled tree holds under names, as arrays, and what its attributes say.

This is the one place that writes and reads the attributes. Everything that looks at a result (predictions, checks,
figures, the report) looks through it.
"""

from __future__ import annotations

import json
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from scipy.spatial import cKDTree

from ..arrays import Array, BoolArray, IntArray, unique_rows
from ..errors import InputError
from ..methods.base import Drawn, Draws, Method
from ..problem.data.field_data import Groups, row_groups
from ..problem.data.labels import LabelColumns
from ..problem.data.transforms import Transforms
from ..problem.noise.noise import Noise
from ..problem.noise.row_correlation import RowCorrelation
from ..problem.prior.constraints import OPAQUE, Constraint
from ..problem.prior.parameters import KEPT, Support
from ..problem.problem import Problem
from ..projection import ProjectionKind
from .data_tree import observed_matrix
from .run_facts import RunFacts

FORMAT = "orthocal posterior 2"


def attributes(
    problem: Problem, method: Method, draws: Draws, facts: RunFacts, seed: str, warmup: int
) -> dict[str, str | int]:
    """What the tree says about itself."""
    transforms = problem.data.transforms
    libraries = {"python": platform.python_version(), **{name: version(name) for name in ("numpy", "scipy", "xarray")}}
    return {
        "format": FORMAT,
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "inference_library": "orthocal",
        "inference_library_version": version("orthocal"),
        "versions": json.dumps(libraries),
        "seed": seed,
        "warmup": warmup,
        "method": json.dumps(method.describe()),
        "loss_weight": problem.loss_weight,
        "projection": str(draws.projection),
        "nodes_drawn": int(draws.nodes_drawn),
        "drawn": str(draws.drawn),
        "samplers": json.dumps([sampler.settings() for sampler in draws.samplers]),
        "notes": facts.written(),
        "variables": json.dumps(problem.parameters.variables),
        "constraint": "" if problem.parameters.constraint is None else problem.parameters.constraint.text,
        "flat_x": int(problem.simulator.flat_x),
        **({"transforms": json.dumps(transforms.names)} if transforms else {}),
        "without_inputs": int(problem.data.without_inputs),
        **({"units": json.dumps(problem.units)} if problem.units else {}),
        **({"labels": problem.data.labels.written()} if problem.data.labels else {}),
    }


@dataclass(frozen=True)
class Record:
    """A typed view of a result; it holds the tree itself, and copies nothing that it need not."""

    data: xr.DataTree

    def values(self, group: str, name: str) -> Array:
        """The values of one variable."""
        return np.asarray(self.data[group].to_dataset()[name].values)

    def has(self, group: str, name: str) -> bool:
        """Whether a group holds a variable."""
        return group in self.data.children and name in self.data[group].to_dataset()

    def constant(self, name: str) -> Array:
        """One of ``constant_data``."""
        return self.values("constant_data", name)

    @cached_property
    def support(self) -> Support:
        names = tuple(str(name) for name in self.constant("parameter"))
        lower, upper, spread = (self.constant(f"prior_{part}") for part in ("lower", "upper", "spread"))
        # a function cannot be in a file
        known = self.constraint and self.constraint != OPAQUE
        return Support(names, lower, upper, spread, Constraint(self.constraint, names) if known else None)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return self.support.names

    @cached_property
    def outcome_names(self) -> tuple[str, ...]:
        return tuple(str(name) for name in self.constant("outcome"))

    @cached_property
    def input_names(self) -> tuple[str, ...]:
        return tuple(str(name) for name in self.constant("input"))

    @cached_property
    def units(self) -> dict[str, str]:
        """Of inputs, outcomes and parameters, by name, where they are known."""
        return dict(json.loads(self.data.attrs.get("units", "{}")))

    @cached_property
    def labels(self) -> LabelColumns:
        """Which inputs are categorical, and what their numbers stand for."""
        return LabelColumns.from_text(self.data.attrs.get("labels", "[]"))

    @property
    def along_one_input(self) -> bool:
        """Whether there is a single input, of numbers: then figures have curves."""
        return len(self.input_names) == 1 and not self.labels

    @cached_property
    def label_combinations(self) -> Array:
        """The distinct combinations of labels in the domain, as their numbers, (c, l)."""
        return unique_rows(self.constant("nodes")[:, list(self.labels.columns)])[0]

    @property
    def span(self) -> Array:
        """Width of the domain in each input, (d,); 1 where labels have none."""
        lower, upper = self.constant("domain")
        span = np.where(upper > lower, upper - lower, 1.0)
        span[list(self.labels.columns)] = 1.0
        return span

    @property
    def q(self) -> int:
        return len(self.outcome_names)

    @property
    def chains(self) -> int:
        return int(self.data["posterior"].sizes["chain"])

    @property
    def draws(self) -> int:
        return int(self.data["posterior"].sizes["draw"])

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """The parameters' variables in the tree."""
        return tuple(json.loads(self.data.attrs["variables"]))

    @cached_property
    def theta(self) -> Array:
        """The draws of theta, (c, s, p)."""
        return np.stack([self.values("posterior", name) for name in self.variables], axis=-1)

    @cached_property
    def stored_draws(self) -> IntArray:
        """Numbers of the draws whose model and bias at the data are there: all of them, but of large data."""
        model = self.data["model"].to_dataset()
        return np.asarray(model[KEPT].values, dtype=np.intp) if KEPT in model.coords else np.arange(self.draws)

    @property
    def all_stored(self) -> bool:
        """Whether model and bias at the data are there for every draw."""
        return len(self.stored_draws) == self.draws

    def at_data(self, name: str, keep: IntArray | None = None) -> Array:
        """``"model"`` or ``"bias"`` at the data, (c, s, n, q), of all kept draws or of those numbered ``keep``."""
        values = self.values(name, name)
        return values if keep is None else values[:, np.searchsorted(self.stored_draws, keep)]

    @property
    def emulator_draws(self) -> int:
        """How many draws of an emulator stood for the simulator."""
        return self.run_facts.emulator_draws

    @property
    def standing(self) -> BoolArray:
        """Which chains of which parameters never moved, (c, p)."""
        size = np.abs(self.theta).max(axis=1)
        # a difference in the last digit is no move
        return np.asarray(np.ptp(self.theta, axis=1) <= 1e-14 * size)

    @property
    def x(self) -> Array:
        return self.constant("x")

    @property
    def groups(self) -> Groups | None:
        """Which rows belong together, where the problem said so."""
        if not self.has("constant_data", "group"):
            return None
        stored = self.data["constant_data"].to_dataset()["group"]
        return row_groups(stored.values, len(stored), str(stored.attrs["name"]))

    @cached_property
    def native_y(self) -> Array:
        """The observations as they were given, (n, q), NaN where there is none."""
        observed = self.data["observed_data"].to_dataset()
        return observed_matrix(observed, len(self.x), self.outcome_names, self.without_inputs)

    @cached_property
    def y(self) -> Array:
        """The observations on the scale of model, bias and noise, (n, q)."""
        return self.transforms.forward(self.native_y)

    @cached_property
    def transforms(self) -> Transforms:
        """Of the outcomes."""
        return Transforms(tuple(json.loads(self.data.attrs.get("transforms", "[]"))))

    @property
    def scale_names(self) -> tuple[str, ...]:
        """What the scale of model, bias and noise is called, one name an outcome: ``log y``."""
        return self.transforms.labels(self.outcome_names)

    @cached_property
    def run_facts(self) -> RunFacts:
        return RunFacts.read(self.data.attrs["notes"])

    @property
    def method(self) -> dict[str, Any]:
        """The method's description."""
        return dict(json.loads(self.data.attrs["method"]))

    @property
    def samplers(self) -> list[dict[str, Any]]:
        """The settings of the bias samplers, one an outcome."""
        return list(json.loads(self.data.attrs["samplers"]))

    @property
    def versions(self) -> dict[str, str]:
        """Of Python and the libraries."""
        return dict(json.loads(self.data.attrs["versions"]))

    @property
    def projection(self) -> ProjectionKind:
        return ProjectionKind(self.data.attrs["projection"])

    @property
    def drawn(self) -> Drawn:
        return Drawn(self.data.attrs["drawn"])

    @property
    def nodes_drawn(self) -> bool:
        return bool(self.data.attrs["nodes_drawn"])

    @property
    def constraint(self) -> str:
        """Of the parameters: an expression, "a function" that no file can hold, or nothing."""
        return str(self.data.attrs.get("constraint", ""))

    @property
    def loss_weight(self) -> str:
        return str(self.data.attrs["loss_weight"])

    @property
    def flat_x(self) -> bool:
        return bool(self.data.attrs["flat_x"])

    @property
    def without_inputs(self) -> bool:
        """Whether the outcomes are outputs without inputs."""
        return bool(self.data.attrs.get("without_inputs", 0))

    @property
    def seed(self) -> int:
        return int(self.data.attrs["seed"])

    @property
    def warmup(self) -> int:
        return int(self.data.attrs["warmup"])

    @property
    def created(self) -> str:
        return str(self.data.attrs["created_at"])

    @property
    def version(self) -> str:
        """Of orthocal, when the run was made."""
        return str(self.data.attrs["inference_library_version"])

    @property
    def title(self) -> str:
        return str(self.data.attrs.get("title", "Calibration report"))

    @property
    def problem_file(self) -> str:
        """The file that the command line was given; nothing where a program made the result."""
        return str(self.data.attrs.get("problem_file", ""))

    @property
    def curves(self) -> xr.Dataset | None:
        """Bands along the domain, where they have been computed; see ``results/predict/predict.py``."""
        return self.data["curves"].to_dataset() if "curves" in self.data.children else None

    @property
    def noise_by_point(self) -> Array | None:
        """Sigma_i, (n, q, q), where the covariance differs between points; the mean of what was sampled."""
        if self.sampled_noise is not None:
            by_group, relative = self._sampled_by_group, self.noise_relative
            if by_group is None and relative is None:
                return None
            each = self.noise_cov[None] if by_group is None else by_group.mean(axis=(0, 1))[self._noise_groups]
            return np.asarray(each if relative is None else each * relative[:, :, None] * relative[:, None, :])
        return self.constant("noise_cov_by_point") if self.has("constant_data", "noise_cov_by_point") else None

    @property
    def _noise_groups(self) -> IntArray | None:
        """The group of each row, (n,), where each group's covariance was sampled."""
        there = self.has("constant_data", "noise_group_of_point")
        return self.constant("noise_group_of_point").astype(int) if there else None

    @property
    def _sampled_by_group(self) -> Array | None:
        """The covariances of groups of rows in every draw, (c, s, g, q, q), where these were sampled."""
        there = self.has("posterior", "noise_cov_by_group")
        return self.values("posterior", "noise_cov_by_group") if there else None

    @property
    def sampled_noise(self) -> Array | None:
        """Sigma_F of every draw, (c, s, q, q), where it was sampled."""
        return self.values("posterior", "noise_cov") if self.has("posterior", "noise_cov") else None

    @property
    def noise_cov(self) -> Array:
        """Sigma_F, (q, q): given, estimated, or the mean of what was sampled."""
        sampled = self.sampled_noise
        return self.constant("noise_cov") if sampled is None else np.asarray(sampled.mean(axis=(0, 1)))

    @property
    def noise_sds(self) -> Array:
        """The noise's standard deviation of each cell, (n, q)."""
        own = self.noise_by_point
        variances = np.diag(self.noise_cov) if own is None else np.einsum("nii->ni", own)
        return np.broadcast_to(np.sqrt(variances), (len(self.x), self.q))

    @property
    def noise_of_rows(self) -> Array:
        """Sigma_i, (c, s, n, q, q), with axes of length one where it does not depend on the chain, draw or point."""
        if self.sampled_noise is not None:
            by_group, relative = self._sampled_by_group, self.noise_relative
            each = self.sampled_noise[:, :, None] if by_group is None else by_group[:, :, self._noise_groups]
            return np.asarray(each if relative is None else each * relative[:, :, None] * relative[:, None, :])
        own = self.noise_by_point
        return self.noise_cov[None, None, None] if own is None else own[None, None]

    def noise_roots(self, keep: IntArray, x_new: Array) -> Array:
        """R with R R' = Sigma_F at x_new (m, d): (q, q), (m, q, q), or (c, s, 1, q, q) where it was sampled."""
        sampled = self.sampled_noise
        if not self.run_facts.noise_smooth:
            each = self.constant("noise_cov") if sampled is None else sampled[:, keep][:, :, None]
            return np.linalg.cholesky(each)
        apart, span = self.labels.apart, self.span
        nearest = np.asarray(cKDTree(apart(self.x, span)).query(apart(x_new, span))[1])
        of_rows = self.noise_of_rows[:, :, nearest]
        return np.linalg.cholesky(of_rows[0, 0] if sampled is None else of_rows[:, keep])

    @property
    def noise(self) -> Noise:
        """The noise that the run began with."""
        source = self.run_facts.noise_source
        by_point = self.constant("noise_cov_by_point") if self.has("constant_data", "noise_cov_by_point") else None
        smooth = self.run_facts.noise_smooth
        cov, observed, rows = self.constant("noise_cov"), ~np.isnan(self.y), self.row_correlation
        groups, relative = self._noise_groups, self.noise_relative
        return Noise(cov, observed, source, by_point, smooth=smooth, groups=groups, rows=rows, relative=relative)

    @property
    def noise_relative(self) -> Array | None:
        """Of an unknown noise: sds of single cells in units of what is common to all, (n, q)."""
        return self.constant("noise_relative") if self.has("constant_data", "noise_relative") else None

    @cached_property
    def row_correlation(self) -> RowCorrelation | None:
        """How the errors of different rows are correlated, where they are."""
        if not self.has("constant_data", "noise_correlation"):
            return None
        return RowCorrelation(self.constant("noise_correlation"), self.run_facts.noise_kernel)

    def times(self) -> pd.DataFrame:
        """One row a stage and their total: seconds of wall and CPU, seconds waiting for the simulator, its calls."""
        facts = self.run_facts
        rows = {stage: list(spent) for stage, spent in facts.stages.items()}
        # a file of version 0.1 knows no stages, and no CPU
        older = [facts.seconds, np.nan, facts.simulator_seconds, facts.simulator_calls]
        rows["total"] = list(facts.spent) if rows else older
        table = pd.DataFrame.from_dict(rows, orient="index", columns=["wall", "cpu", "simulator", "calls"])
        return table.astype({"calls": int}).rename_axis("stage")

    def summary(self, interval: float = 0.95) -> pd.DataFrame:
        """One row a parameter: mean, sd, equal-tailed interval, effective sample sizes and R-hat.

        Where a chain never moved, its draws are worth nothing: the sizes are 0 and R-hat is infinite.
        """
        from arviz_stats import summary

        if not 0 < interval < 1:
            raise InputError(f"interval={interval}: give its probability, between 0 and 1")
        # of constant draws R-hat is 0 / 0: a warning would not help
        with np.errstate(divide="ignore", invalid="ignore"):
            table: pd.DataFrame = summary(
                self.data, var_names=list(self.variables), ci_prob=interval, ci_kind="eti", round_to="none"
            )
        table.index = pd.Index(self.parameter_names, name="parameter")
        table = table.drop(columns=["mcse_mean", "mcse_sd"]).astype(float)
        still = self.standing.any(axis=0)
        table.loc[still, ["ess_bulk", "ess_tail"]] = 0.0
        table.loc[still, "r_hat"] = np.inf
        return table
