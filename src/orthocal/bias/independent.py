"""Independent biases of outputs without inputs: one number an output, and nothing that one says about another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar

from ..arrays import Array, as_floats
from ..errors import InputError
from ..problem.problem import Problem
from ..regression.gaussian_process import independent_columns, restricted_precision
from .base import SAMPLERS, ListedPrior, Setting, StoredSampler
from .gp import GPSampler

#: the search for s looks from here, in noise sds, and at so many places before it is refined
LEAST_SDS, PLACES = 1e-3, 80


@dataclass(frozen=True)
class Independent(ListedPrior):
    """b_k ~ N(0, s^2 sd_k^2) independently, sd_k the noise's standard deviation of output k.

    For outputs without inputs, ``oc.Problem(None, y, f, ...)``, where it is the default of the methods gp, pgp and ko.

    Parameters
    ----------
    noise_sds
        s: how large the biases are expected to be, in standard deviations of the noise. None chooses the mode of the
        restricted likelihood of the residuals times a weak prior, by which 1 / sqrt(1 + s^2), the noise's share in
        what the simulator misses, is anything between 0 and 1 with the same probability. The likelihood alone would
        call the biases of few outputs exactly zero too often.
    sd
        Instead of it, the prior standard deviation of each output's bias in its own unit: a number an output, in their
        order, or name -> number.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> from scipy import stats
    >>> y = np.array([1.0, 2.1, 2.9, 4.2])
    >>> def simulator(theta):
    ...     return theta[0] * np.array([1.0, 2.0, 3.0, 4.0])
    >>> problem = oc.Problem(None, y, simulator, {"a": stats.norm(0, 10)}, noise_cov=0.01)
    >>> alike = oc.methods.Joint(bias=oc.bias.Independent(noise_sds=2.0))
    >>> posterior = oc.calibrate(problem, alike, draws=100, chains=2, seed=1, progress=False)
    >>> print(posterior.theta.mean().round(1))
    1.0
    """

    name: ClassVar[str] = "independent"
    words: ClassVar[str] = "Each output has a bias of its own, independent of the others"

    noise_sds: float | None = None
    sd: ArrayLike | Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        if self.noise_sds is not None and self.sd is not None:
            raise InputError("noise_sds and sd both say how large the biases are: leave one of them out")
        if self.noise_sds is not None:
            _check_positive(self.noise_sds, "noise_sds")
        if self.sd is not None:
            each = list(self.sd.values()) if isinstance(self.sd, Mapping) else as_floats(self.sd, "sd").ravel()
            for value in each:
                _check_positive(value, "sd")

    def fitted(self, problem: Problem) -> Independent:
        """The prior with s, or with an sd for each output of ``problem``.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> from scipy import stats
        >>> def simulator(theta):
        ...     return theta[0] * np.array([1.0, 2.0, 3.0, 4.0])
        >>> y = np.array([1.0, 2.5, 2.5, 4.4])
        >>> problem = oc.Problem(None, y, simulator, {"a": stats.norm(0, 10)}, noise_cov=0.01)
        >>> bool(1 < oc.bias.Independent().fitted(problem).noise_sds < 20)
        True
        """
        names = problem.data.outcome_names
        if not problem.data.without_inputs:
            raise InputError("oc.bias.Independent is for outputs without x: take a bias that knows x, oc.bias.GP()")
        if self.sd is None:
            return self if self.noise_sds is not None else replace(self, noise_sds=likely_noise_sds(problem))
        if isinstance(self.sd, Mapping):
            if set(self.sd) != set(names):
                raise InputError(f"sd has {', '.join(map(str, self.sd))}: give one for each of {', '.join(names)}")
            return replace(self, sd=[float(self.sd[name]) for name in names])
        if np.shape(self.sd) != (len(names),):
            raise InputError(
                f"sd has shape {np.shape(self.sd)} for {len(names)} outputs: give one number an output, in its unit, "
                "or noise_sds, one number in noise sds for all"
            )
        return self

    def prepare(self, setting: Setting) -> IndependentSampler:
        if self.sd is not None:
            scale = float(as_floats(self.sd, "sd")[setting.outcome]) * setting.unit  # type: ignore[arg-type]
        elif self.noise_sds is not None:
            scale = float(self.noise_sds)
        else:
            raise InputError("oc.bias.Independent is for outputs without x, with the methods gp, pgp, ko and ogp")
        return IndependentSampler(scale, setting.x, setting.nodes, setting.noise_var, setting.unit)

    def describe(self) -> dict[str, Any]:
        sd: Any = dict(self.sd) if isinstance(self.sd, Mapping) else self.sd
        sd = {key: float(value) for key, value in sd.items()} if isinstance(sd, dict) else sd
        return {
            "kind": self.name,
            "noise_sds": None if self.noise_sds is None else float(self.noise_sds),
            "sd": sd if sd is None or isinstance(sd, dict) else as_floats(sd, "sd").tolist(),
        }


class IndependentSampler(GPSampler):
    """The bias of one output: a Gaussian process at a single point, sd in units of the noise."""

    def __init__(self, sd: float, x: Array, nodes: Array, noise_var: Array, unit: float) -> None:
        super().__init__(0.5, sd, np.ones(x.shape[1]), x, nodes, noise_var, unit=unit)

    def findings(self) -> dict[str, Any]:
        return {"sd": self.sd / self.unit, "noise_sds": self.sd}

    def settings(self) -> dict[str, Any]:
        return {"kind": Independent.name, "sd": self.sd, "unit": self.unit}

    @classmethod
    def restore(cls, settings: dict[str, Any], x: Array, nodes: Array, noise_var: Array) -> IndependentSampler:
        """The sampler of a stored posterior."""
        return cls(float(settings["sd"]), x, nodes, noise_var, float(settings["unit"]))


SAMPLERS[Independent.name] = StoredSampler(IndependentSampler.restore, Independent.remarks)


def likely_noise_sds(problem: Problem) -> float:
    """s, from what the best fit leaves of each output, averaged over its replicates.

    m ~ N(G t, s^2 I + A^-1), m the mean residual in noise sds, A what the rows say about it; t is flat.
    """
    precision = problem.noise.precision
    residual = problem.whiten(problem.complete_y - problem.fit)
    information = precision.sum(axis=0)
    seen = np.diag(information) > 0
    A = information[np.ix_(seen, seen)]
    mean = np.linalg.solve(A, np.einsum("nkl,nl->k", precision, residual)[seen])
    noise = np.linalg.inv(A)
    basis = independent_columns(problem.gradient_at_data[0][seen])

    def deviance(log_s: float) -> float:
        square = float(np.exp(2 * log_s))
        P, value = restricted_precision(noise + square * np.eye(len(mean)), basis)
        # p(s) = s (1 + s^2)^(-3/2)
        return value + float(mean @ P @ mean) - 2 * log_s + 3 * float(np.log1p(square))

    most = 10 * max(1.0, float(np.abs(mean).max()))
    places = np.linspace(np.log(LEAST_SDS), np.log(most), PLACES)
    best = int(np.argmin([deviance(place) for place in places]))
    ends = places[max(best - 1, 0)], places[min(best + 1, PLACES - 1)]
    return float(np.exp(minimize_scalar(deviance, bounds=ends, method="bounded", options={"xatol": 1e-8}).x))


def _check_positive(value: object, name: str) -> None:
    if isinstance(value, bool) or not (isinstance(value, Real) and 0 < float(value) < np.inf):
        raise InputError(f"{name}={value!r}: the size of a bias is a positive number, or None")
