"""The simulator's gradients at the nodes, each computed once, and what they say about its second derivatives."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np

from ...arrays import Array
from ...errors import NonFiniteError
from ...problem.problem import Problem

#: gradients that are kept at least, and numbers that they may take
REMEMBERED, MOST_NUMBERS = 50, 20_000_000
#: gradients a coefficient that a regression needs
GRADIENTS_A_TERM = 4


class Gradients:
    """T df/dtheta at the nodes, (m, q, p), remembered for the thetas that were asked for last.

    What is ``known`` decides how second derivatives are found: it belongs to the state of a chain.
    """

    def __init__(self, problem: Problem, chains: int) -> None:
        self._problem = problem
        p = problem.parameters.p
        self._pairs = list(combinations_with_replacement(range(p), 2))
        size = len(problem.rule.nodes) * problem.data.q * p
        # the chains' own ones are never forgotten
        least = max(REMEMBERED, 4 * chains)
        wanted = max(least, 2 * GRADIENTS_A_TERM * (p + len(self._pairs)))
        self._most = max(least, min(wanted, MOST_NUMBERS // size))
        self.known: dict[bytes, tuple[Array, Array]] = {}
        self._ahead: dict[bytes, Array] = {}

    def ahead(self, theta: Array) -> None:
        """Of theta (c, p), which will be asked for next: the simulator may be called for all of them together."""
        if not self._problem.simulator.many_at_a_time:
            return
        missing = {one.tobytes(): one for one in theta if one.tobytes() not in self.known}
        if len(missing) > 1:
            found = self._problem.whitened_gradients(self._problem.rule.nodes, np.stack(list(missing.values())))
            self._ahead = dict(zip(missing, found, strict=True))

    def at(self, theta: Array) -> Array:
        """For theta (p,); NaN where the simulator fails."""
        key = theta.tobytes()
        found = self.known.pop(key, None)
        if found is None:
            ahead = self._ahead.pop(key, None)
            found = theta.copy(), self._called(theta) if ahead is None else ahead
        # the end of the line is for what was used last
        self.known[key] = found
        if len(self.known) > self._most:
            del self.known[next(iter(self.known))]
        return found[1]

    def _called(self, theta: Array) -> Array:
        try:
            return self._problem.whitened_gradient(self._problem.rule.nodes, theta)
        except NonFiniteError:
            return np.full((len(self._problem.rule.nodes), self._problem.data.q, len(theta)), np.nan)

    def second_derivative(self, theta: Array, along: Array, root: Array) -> tuple[Array, float] | None:
        """d2 <f, along> / dz2 at theta + root z, z = 0, for ``along`` (m, q) and ``root`` (p, p), with its error.

        By regression of the gradients that are known nearby on z and its products; None where they are too few.
        """
        others = [one for one in self.known.values() if np.isfinite(one[1][0, 0, 0]) and not np.all(one[0] == theta)]
        p, terms = len(theta), len(theta) + len(self._pairs)
        if len(others) < GRADIENTS_A_TERM * terms:
            return None
        z = np.linalg.solve(root, np.stack([one[0] - theta for one in others], axis=1)).T
        near = np.argsort(np.sum(z**2, axis=1), kind="stable")[: GRADIENTS_A_TERM * terms]
        gradients = np.stack([others[i][1] for i in near]) - self.at(theta)
        changes = np.einsum("smkp,mk->sp", gradients, along) @ root
        z = z[near]
        features = np.column_stack([z, *(z[:, i] * z[:, j] for i, j in self._pairs)])
        found, _, rank, _ = np.linalg.lstsq(features, changes, rcond=None)
        if rank < terms:
            return None
        error_var = np.sum((changes - features @ found) ** 2, axis=0).max() / (len(near) - terms)
        slope, spread = found[:p], np.linalg.inv(features.T @ features)[:p, :p].diagonal().max()
        # that of a function is symmetric
        lopsided = float(np.abs(slope - slope.T).max())
        return 0.5 * (slope + slope.T), float(np.sqrt(error_var * spread)) + 0.5 * lopsided
