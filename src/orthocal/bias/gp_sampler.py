"""Draws of a Gaussian-process bias, whose hyperparameters are known: of one outcome, or of all that noise couples."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from ..arrays import Array, IntArray, unique_rows
from ..errors import InputError
from ..regression.gaussian_process import Labelled, correlation, jittered_cholesky, label_correlation

#: beyond this the matrices take more than about 1 GB each
MOST_POINTS = 10_000
#: with more points of all outcomes together, one outcome after the other is drawn
MOST_JOINT_POINTS = 6_000
#: predictions are joint within blocks of this many points
PREDICTION_BLOCK = 2_000


def found_scales(lengthscale: Array, labelled: Labelled) -> dict[str, Any]:
    """For findings: length-scales, one an input, and, in the place of labels', None and their correlations."""
    lengths: list[float | None] = lengthscale.tolist()
    if not labelled:
        return {"lengthscale": lengths}
    shared = [float(label_correlation(lengthscale[j])) for j in labelled]
    return {
        "lengthscale": [None if j in labelled else one for j, one in enumerate(lengths)],
        "label_correlation": shared,
    }


class GPSampler:
    """Joint draws at data and nodes from the Gaussian posterior, with everything factorised once.

    With K = L L' the prior covariance at all distinct points, b = L w and w ~ N(0, I). Given the residual z at the
    data (rows L_n, noise variances D), w ~ N(H^-1 L_n' D^-1 z, H^-1) with H = I + L_n' D^-1 L_n. H is at least I, so
    no second jitter is needed, and b = G z + F e with e ~ N(0, I) is one matrix product for all chains.
    """

    takes_noise_scale = True

    def __init__(
        self,
        nu: float,
        sd: float,
        lengthscale: Array,
        x: Array,
        nodes: Array,
        noise_var: Array,
        at_bound: tuple[str, ...] = (),
        unit: float = 1.0,
        labelled: Labelled = (),
    ) -> None:
        self.nu, self.sd, self.lengthscale, self.unit, self.at_bound = nu, sd, lengthscale, unit, at_bound
        self.labelled = labelled
        self._points, (at_data, at_nodes) = unique_rows(x, nodes)
        if len(self._points) > MOST_POINTS and labelled:
            raise InputError(
                f"the Gaussian process would need matrices of {len(self._points)} x {len(self._points)}: with "
                f"categorical inputs it is made for at most {MOST_POINTS} points: take bart, or thin or average them"
            )
        if len(self._points) > MOST_POINTS:
            raise InputError(
                f"the Gaussian process would need matrices of {len(self._points)} x {len(self._points)}: "
                f"in this form it is made for at most {MOST_POINTS} points: take the method gp, which has another for "
                "large data, or thin or average them"
            )
        self._noise_var = noise_var
        self._rows = np.concatenate([at_data, at_nodes])
        self._n = len(x)
        self._root, self.jitter = jittered_cholesky(self._prior(self._points, self._points))

    @cached_property
    def _posterior(self) -> tuple[Array, Array]:
        """Gain and factor: b at the distinct points = gain z + factor e. Predictions need neither."""
        data_root, noise_var = self._root[self._rows[: self._n]], self._noise_var
        precision = data_root.T @ (data_root / noise_var[:, None])
        precision[np.diag_indices_from(precision)] += 1.0
        lower = cholesky(precision, lower=True)
        gain = self._root @ cho_solve((lower, True), (data_root / noise_var[:, None]).T)
        return gain, solve_triangular(lower, self._root.T, lower=True).T

    def draw(
        self,
        rngs: list[np.random.Generator],
        state: Array | None,
        residual: Array,
        noise_scale: Array | None = None,
    ) -> tuple[Array, Array]:
        normal = np.array([rng.standard_normal(len(self._points)) for rng in rngs])
        if noise_scale is None:
            gain, factor = self._posterior
            values = residual @ gain.T + normal @ factor.T
        else:
            spectrum, information, root = self._spectral
            precision = 1 + spectrum**2 / noise_scale[:, None]
            pull = residual @ information.T * spectrum / noise_scale[:, None]
            values = (pull / precision + normal / np.sqrt(precision)) @ root.T
        return values, values[:, self._rows]

    @cached_property
    def _spectral(self) -> tuple[Array, Array, Array]:
        """For noise variances s D with any s: D^-1/2 L_n = U diag(e) V', then H = I + V e^2 V' / s.

        Returned are e (u,) and U' D^-1/2 (u, n), both filled up with zeros, and L V (u, u).
        """
        sd = np.sqrt(self._noise_var)[:, None]
        U, values, Vt = np.linalg.svd(self._root[self._rows[: self._n]] / sd, full_matrices=True)
        rank = len(values)
        rest = len(self._points) - rank
        information = np.pad((U[:, :rank] / sd).T, ((0, rest), (0, 0)))
        return np.pad(values, (0, rest)), information, self._root @ Vt.T

    def record(self, state: Array) -> dict[str, Array]:
        return {"values": state}

    def predict(self, rng: np.random.Generator, records: dict[str, Array], x_new: Array) -> Array:
        """b(x_new) given b at the data and nodes: Gaussian conditioning; joint within blocks of 2000 points."""
        white = solve_triangular(self._root, records["values"].T, lower=True)
        blocks = []
        for start in range(0, len(x_new), PREDICTION_BLOCK):
            points, (place,) = unique_rows(x_new[start : start + PREDICTION_BLOCK])
            cross = solve_triangular(self._root, self._prior(self._points, points), lower=True)
            covariance = self._prior(points, points) - cross.T @ cross
            # what conditioning leaves of the variance at a known point is rounding: it may be slightly negative
            values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
            root = vectors * np.sqrt(np.maximum(values, 0.0))
            normal = rng.standard_normal((len(records["values"]), len(points)))
            blocks.append((white.T @ cross + normal @ root.T)[:, place])
        return np.concatenate(blocks, axis=1)

    def covariance_factor(self) -> Array:
        """F (n + m, r) with F F' = Cov(b | y) at data and nodes."""
        return np.asarray(self._posterior[1][self._rows])

    def extended(self, values: Array, x_new: Array) -> Array:
        """E(b(x_new) | b = values at data and nodes (n + m, ...)): how a direction of the bias goes on elsewhere."""
        at_points = np.empty((len(self._points), *values.shape[1:]))
        at_points[self._rows] = values
        weights = cho_solve((self._root, True), self._prior(self._points, x_new)).T
        return np.asarray(weights @ at_points)

    @property
    def prior_root(self) -> tuple[Array, IntArray]:
        """L with L L' the prior covariance at the distinct points, and which of these the data and nodes are."""
        return self._root, self._rows

    def findings(self) -> dict[str, Any]:
        return {
            "sd": self.sd / self.unit,
            **found_scales(self.lengthscale, self.labelled),
            "jitter": self.jitter / self.sd**2,
            "at_bound": list(self.at_bound),
        }

    def settings(self) -> dict[str, Any]:
        return {
            "kind": "gp",
            "nu": json_number(self.nu),
            "sd": self.sd,
            "lengthscale": self.lengthscale.tolist(),
            "unit": self.unit,
            **({"labelled": list(self.labelled)} if self.labelled else {}),
        }

    @classmethod
    def restore(cls, settings: dict[str, Any], x: Array, nodes: Array, noise_var: Array) -> GPSampler:
        """The sampler of a stored posterior."""
        return cls(
            float(settings["nu"]),
            float(settings["sd"]),
            np.asarray(settings["lengthscale"], dtype=np.float64),
            x,
            nodes,
            noise_var,
            unit=float(settings["unit"]),
            labelled=tuple(settings.get("labelled", ())),
        )

    def _prior(self, a: Array, b: Array) -> Array:
        return np.asarray(self.sd**2 * correlation(a, b, self.lengthscale, self.nu, self.labelled))


def json_number(value: float) -> float | str:
    """JSON has no infinity."""
    return "inf" if value == np.inf else value


class JointGP:
    """Joint draws of coupled outcomes from their Gaussian posterior.

    As in ``GPSampler``, b_k = L_k w_k with w ~ N(0, I) a priori. With the rows' precision matrices P (q, q) the
    posterior precision of all w is H, with blocks H_kl = delta_kl I + sum_i L_k[i]' P_i,kl L_l[i]. Where the noise is
    correlated between rows, P is (n, q, n, q), and the sum is one over pairs of rows.

    Attributes
    ----------
    factors
        For each outcome F_k with F_k F_l' = Cov(b_k, b_l | y) at its distinct points.
    gains
        For each outcome the matrix that takes the residual (n q,) to E(b_k | y) there.
    """

    def __init__(self, processes: list[GPSampler], at_data: list[IntArray], precision: Array) -> None:
        """``at_data`` are the data points' places among each process's points, ``precision`` is (n, q, q) or more."""
        n, q = precision.shape[:2]
        roots = [process.prior_root for process in processes]
        data_roots = [root[rows[places]] for (root, rows), places in zip(roots, at_data, strict=True)]
        blocks = [
            [
                one.T @ (precision[:, k, m, None] * other if precision.ndim == 3 else precision[:, k, :, m] @ other)
                for m, other in enumerate(data_roots)
            ]
            for k, one in enumerate(data_roots)
        ]
        H = np.block(blocks)
        H[np.diag_indices_from(H)] += 1.0
        lower = cholesky(H, lower=True)
        # what the residual says about w, (sum of u_k, n q)
        information = np.concatenate(
            [
                (one.T[:, :, None] * precision[:, k]).reshape(-1, n * q)
                if precision.ndim == 3
                else one.T @ precision[:, k].reshape(n, n * q)
                for k, one in enumerate(data_roots)
            ]
        )
        gain = cho_solve((lower, True), information)
        factor = solve_triangular(lower, np.eye(len(H)), lower=True).T
        ends = np.cumsum([len(root) for root, _ in roots])
        self._rows = [rows for _, rows in roots]
        self.gains, self.factors = (
            [root @ part for (root, _), part in zip(roots, np.split(whole, ends[:-1]), strict=True)]
            for whole in (gain, factor)
        )

    @staticmethod
    def possible(processes: list[GPSampler]) -> bool:
        """Whether the matrices are small enough."""
        return sum(len(process.prior_root[0]) for process in processes) <= MOST_JOINT_POINTS

    def draw(self, rngs: list[np.random.Generator], residual: Array) -> list[tuple[Array, Array]]:
        """For each outcome the state of its process, and b at its data and nodes, given the residual (c, n, q)."""
        flat = residual.reshape(len(rngs), -1)
        normal = np.array([rng.standard_normal(self.factors[0].shape[1]) for rng in rngs])
        states = [flat @ gain.T + normal @ factor.T for gain, factor in zip(self.gains, self.factors, strict=True)]
        return [(state, state[:, rows]) for state, rows in zip(states, self._rows, strict=True)]

    def factors_at_points(self) -> list[Array]:
        """The factors at each outcome's data and nodes."""
        return [factor[rows] for factor, rows in zip(self.factors, self._rows, strict=True)]
