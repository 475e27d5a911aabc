"""Gaussian processes with many data: what a draw is, and how it is predicted, in each of their forms.

A draw is a handful of numbers that does not grow with the data: states along one input, values on a grid, values at
inducing points. ``methods/joint/regress_large.py`` makes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.optimize import minimize

from ..advice import LENGTHSCALE, NODES
from ..arrays import Array
from ..errors import InputError
from ..findings import Finding
from ..regression.inducing import BLOCK, Inducing, RegularGrid
from .base import SAMPLERS, StoredSampler
from .gp import GP, Scales

if TYPE_CHECKING:
    from ..regression.markov import Bridges

#: what doubling the functions, and the nodes, may move theta by, in sds: beyond the first a note, then a problem
MOVE_LIMITS = 0.1, 0.5
#: how far the likelihood of all data may take the logarithms of hyperparameters, and in how many evaluations
REFINED, MOST_EVALUATIONS = 1.5, 30


def refined(prior: GP, scales: Scales, deviance: Callable[[Scales], float], shortest: Array | None = None) -> Scales:
    """Hyperparameters by the likelihood of all data, near those that some data have led to; what is given stays.

    Length-scales stay above ``shortest`` (d,), and what ended on a bound of the first search stays there.
    """
    start = np.log(np.array([scales.sd, *scales.lengthscale]))
    names = ["sd", *(f"lengthscale {j + 1}" for j in range(len(start) - 1))]
    given = [prior.sd is not None, *([prior.lengthscale is not None] * (len(start) - 1))]
    ended = [any(place.endswith(name) for place in scales.at_bound) for name in names]
    free = ~(np.array(given) | np.array(ended))
    if not free.any():
        return scales
    least = start - REFINED
    if shortest is not None:
        least[1:] = np.maximum(least[1:], np.minimum(np.log(shortest), start[1:]))

    def scales_at(values: Array) -> Scales:
        full = start.copy()
        full[free] = values
        return Scales(float(np.exp(full[0])), np.exp(full[1:]), scales.at_bound)

    def objective(values: Array) -> float:
        return deviance(scales_at(values))

    found = minimize(
        objective,
        start[free],
        method="L-BFGS-B",
        bounds=list(zip(least[free], start[free] + REFINED, strict=True)),
        options={"maxfun": MOST_EVALUATIONS, "eps": 1e-4},
    )
    return scales_at(found.x)


class LargeGP:
    """What the forms share. They are drawn together with theta, never given a residual."""

    kind: ClassVar[str]
    form: ClassVar[str]
    takes_noise_scale = False

    def __init__(self, nu: float, scales: Scales, unit: float) -> None:
        self.nu, self.sd, self.lengthscale = nu, scales.sd, scales.lengthscale
        self.at_bound, self.unit = scales.at_bound, unit
        #: how good it is, for ``findings``
        self.noted: dict[str, Any] = {}

    def draw(self, rngs: Any, state: Any, residual: Array, noise_scale: Array | None = None) -> tuple[Any, Array]:
        raise InputError("a Gaussian process for large data is drawn together with theta: take oc.methods.Joint")

    def record(self, state: Array) -> dict[str, Array]:
        return {"values": state}

    def predict(self, rng: np.random.Generator, records: dict[str, Array], x_new: Array) -> Array:
        return self.at(x_new, records["values"], rng.standard_normal)

    def at(self, x: Array, values: Array, normal: Callable[[tuple[int, int]], Array]) -> Array:
        """b at x (m, d) of draws (s, ...), (s, m); ``normal`` gives standard normals of a shape, for what is chance."""
        raise NotImplementedError

    def findings(self) -> dict[str, Any]:
        return {
            "sd": self.sd / self.unit,
            "lengthscale": self.lengthscale.tolist(),
            "at_bound": list(self.at_bound),
            "form": self.form,
            **self.noted,
        }

    def settings(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "nu": "inf" if self.nu == np.inf else self.nu,
            "sd": self.sd,
            "lengthscale": self.lengthscale.tolist(),
            "unit": self.unit,
            **self._own_settings(),
        }

    def _own_settings(self) -> dict[str, Any]:
        raise NotImplementedError

    @staticmethod
    def _stored(settings: dict[str, Any]) -> tuple[float, Scales, float]:
        scales = Scales(float(settings["sd"]), np.asarray(settings["lengthscale"], dtype=np.float64))
        return float(settings["nu"]), scales, float(settings["unit"])


class MarkovGP(LargeGP):
    """One input: states at support points; between two of them the process is drawn given both."""

    kind, form = "gp along one input", "exact along one input"

    def __init__(self, nu: float, scales: Scales, unit: float, support: Array) -> None:
        super().__init__(nu, scales, unit)
        self.support = support
        self._known: tuple[Array, Bridges] | None = None

    def at(self, x: Array, values: Array, normal: Callable[[tuple[int, int]], Array]) -> Array:
        # compiled, and loaded by those who use it
        from ..regression.markov import Bridges

        # draws come one after the other, at the same points
        if self._known is None or self._known[0] is not x:
            self._known = x, Bridges.of(x[:, 0], self.support, self.nu, self.sd, float(self.lengthscale[0]))
        states = values.reshape(len(values), len(self.support), -1)
        return self._known[1].at(states, normal((len(values), len(x))))

    def _own_settings(self) -> dict[str, Any]:
        return {"support": self.support.tolist()}

    @classmethod
    def restore(cls, settings: dict[str, Any], x: Array, nodes: Array, noise_var: Array) -> MarkovGP:
        return cls(*cls._stored(settings), np.asarray(settings["support"], dtype=np.float64))


class GridGP(LargeGP):
    """Few inputs: values on a grid."""

    kind, form = "gp on a grid", "values on a grid"

    def __init__(self, nu: float, scales: Scales, unit: float, grid: RegularGrid) -> None:
        super().__init__(nu, scales, unit)
        self.grid = grid

    def at(self, x: Array, values: Array, normal: Callable[[tuple[int, int]], Array]) -> Array:
        return self.grid.at(x, values)

    def _own_settings(self) -> dict[str, Any]:
        return {"grid": [part.tolist() for part in self.grid]}

    @classmethod
    def restore(cls, settings: dict[str, Any], x: Array, nodes: Array, noise_var: Array) -> GridGP:
        lower, step, counts = settings["grid"]
        grid = RegularGrid(np.asarray(lower), np.asarray(step), np.asarray(counts, dtype=np.intp))
        return cls(*cls._stored(settings), grid)


class InducingGP(LargeGP):
    """Many inputs: white coefficients of values at inducing points; what these do not say is drawn point by point."""

    kind, form = "gp by inducing points", "values at inducing points"

    def __init__(self, nu: float, scales: Scales, unit: float, points: Array) -> None:
        super().__init__(nu, scales, unit)
        self.process = Inducing.at(points, self.sd, self.lengthscale, nu)
        self._known: tuple[Array, Array] | None = None

    def at(self, x: Array, values: Array, normal: Callable[[tuple[int, int]], Array]) -> Array:
        blocks = [slice(start, start + BLOCK) for start in range(0, len(x), BLOCK)]
        # draws come one after the other, at the same points
        if self._known is None or self._known[0] is not x:
            parts = [self.process.unsaid(self.process.functions(x[rows])) for rows in blocks]
            self._known = x, np.sqrt(np.concatenate(parts))
        found = normal((len(values), len(x))) * self._known[1]
        weights = self.process.weights(values)
        for rows in blocks:
            found[:, rows] += weights @ self.process.covariance(x[rows])
        return found

    def _own_settings(self) -> dict[str, Any]:
        return {"points": self.process.points.tolist()}

    @classmethod
    def restore(cls, settings: dict[str, Any], x: Array, nodes: Array, noise_var: Array) -> InducingGP:
        return cls(*cls._stored(settings), np.asarray(settings["points"], dtype=np.float64))


def _remarks(findings: dict[str, Any]) -> Iterator[Finding]:
    """What was taken, and how good it is."""
    yield from GP.remarks(findings)
    parts = [f"large data: the Gaussian process is computed in one pass, {findings['form']}"]
    if "functions" in findings:
        parts.append(f"{findings['functions']} functions")
    yield Finding("fine", "bias prior", ", ".join(parts))
    for what, number, key, advice in (
        ("functions", findings.get("functions"), "moved", "give a longer " + LENGTHSCALE),
        ("nodes of the bias", findings.get("nodes"), "nodes_moved", "take more " + NODES),
    ):
        moved = findings.get(key)
        if moved is None:
            continue
        message = f"half of the {number} {what} would move theta by {moved:.2g} posterior sds"
        if moved <= MOVE_LIMITS[0]:
            yield Finding("fine", "bias prior", message)
        else:
            yield Finding("problem" if moved > MOVE_LIMITS[1] else "note", "bias prior", message, advice)


for sampler in (MarkovGP, GridGP, InducingGP):
    SAMPLERS[sampler.kind] = StoredSampler(sampler.restore, _remarks)
