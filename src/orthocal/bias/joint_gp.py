"""Gaussian processes of all outcomes at once: where the noise couples them, or the bias is integrated out."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from ..arrays import Array, IntArray
from .gp import GPSampler

#: with more points of all outcomes together, one outcome after the other is drawn
MOST_POINTS = 6_000


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

    def __init__(
        self, processes: list[GPSampler], at_data: list[IntArray], precision: Array, pull: Array | None = None
    ) -> None:
        """``at_data`` are the data points' places among each process's points, ``precision`` is (n, q, q) or more.

        ``pull`` (n, q) draws b towards zero at the data points, as observations of 0 with these precisions would.
        """
        n, q = precision.shape[:2]
        drawn = precision if pull is None else _pulled(precision, pull)
        roots = [process.prior_root for process in processes]
        data_roots = [root[rows[places]] for (root, rows), places in zip(roots, at_data, strict=True)]
        blocks = [
            [
                one.T @ (drawn[:, k, m, None] * other if drawn.ndim == 3 else drawn[:, k, :, m] @ other)
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
        self._information, self._precision, self._gain = information, precision, gain
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
        return sum(len(process.prior_root[0]) for process in processes) <= MOST_POINTS

    def draw(self, rngs: list[np.random.Generator], residual: Array) -> list[tuple[Array, Array]]:
        """For each outcome the state of its process, and b at its data and nodes, given the residual (c, n, q)."""
        flat = residual.reshape(len(rngs), -1)
        normal = np.array([rng.standard_normal(self.factors[0].shape[1]) for rng in rngs])
        states = [flat @ gain.T + normal @ factor.T for gain, factor in zip(self.gains, self.factors, strict=True)]
        return self.at_points(states)

    def at_points(self, states: list[Array]) -> list[tuple[Array, Array]]:
        """For each outcome the state of its process, and b at its data and nodes."""
        return [(state, state[:, rows]) for state, rows in zip(states, self._rows, strict=True)]

    def evidence_precision(self) -> Array:
        """S^-1, (n q, n q), where the residual without its bias known is N(0, S)."""
        n, q = self._precision.shape[:2]
        whole = self._precision if self._precision.ndim == 4 else np.zeros((n, q, n, q))
        if self._precision.ndim == 3:
            whole[np.arange(n), :, np.arange(n)] = self._precision
        return np.asarray(whole.reshape(n * q, n * q) - self._information.T @ self._gain)

    def factors_at_points(self) -> list[Array]:
        """The factors at each outcome's data and nodes."""
        return [factor[rows] for factor, rows in zip(self.factors, self._rows, strict=True)]

    def gains_at_points(self) -> list[Array]:
        """The gains at each outcome's data and nodes."""
        return [gain[rows] for gain, rows in zip(self.gains, self._rows, strict=True)]


def _pulled(precision: Array, pull: Array) -> Array:
    """The rows' precision with ``pull`` (n, q) on its diagonal."""
    n, q = pull.shape
    if precision.ndim == 3:
        return precision + pull[:, :, None] * np.eye(q)
    return precision + np.diag(pull.ravel()).reshape(n, q, n, q)
