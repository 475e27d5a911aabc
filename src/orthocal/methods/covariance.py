"""The posterior covariance of the bias at the data points, which the finite projection needs.

Only its products with the constraint's p columns enter, so it need not be inverted: for a prior that is not Gaussian
the sample covariance of draws given theta_tilde will do, and the projection is the regression of the bias on the p
constraints over these draws.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import Array
from ..bias.outcomes import OutcomesBias
from ..progress import progress_bar

#: draws behind the covariance of a bias that is not Gaussian, and those before them
DRAWS, WARMUP = 1000, 50


class BiasCovariance(NamedTuple):
    """F (n q, r) with F F' = Cov(b | y) at the data points; for a sample also its draws.

    ``records`` hold what predictions need of each draw, name -> (r, ...); column j of F is draw j less the mean,
    over sqrt(r - 1).
    """

    factor: Array
    records: dict[str, Array]


def bias_covariance(bias: OutcomesBias, residual: Array, rngs: list[np.random.Generator]) -> BiasCovariance:
    """The covariance given the residual at theta_tilde, (n, q): exact for Gaussian processes."""
    exact = bias.covariance_factor()
    if exact is not None:
        return BiasCovariance(exact, {})
    n, q = residual.shape
    each = np.broadcast_to(residual, (len(rngs), n, q))
    state, values, records = None, [], []
    for number in progress_bar(range(WARMUP + -(-DRAWS // len(rngs))), "bias covariance"):
        state, drawn = bias.draw(rngs, state, each)
        if number >= WARMUP:
            values.append(drawn[:, :n].reshape(len(rngs), -1))
            records.append(bias.records(state))
    sample = np.concatenate(values)
    factor = (sample - sample.mean(axis=0)).T / np.sqrt(len(sample) - 1)
    return BiasCovariance(factor, {name: joined([one[name] for one in records]) for name in records[0]})


def joined(records: list[Array]) -> Array:
    """Records (c, l, ...) of several draws as one array (draws * c, longest l, ...), zeros at their ends."""
    return np.concatenate(padded_ends(records))


def padded_ends(records: list[Array]) -> list[Array]:
    """Records (c, l, ...) filled up with zeros to the longest l."""
    longest = max(record.shape[1] for record in records)
    return [np.pad(one, [(0, 0), (0, longest - one.shape[1])] + [(0, 0)] * (one.ndim - 2)) for one in records]


def stacked_records(records: list[dict[str, Array]]) -> dict[str, list[Array]]:
    """Name -> the records of all draws, filled up to the longest."""
    return {name: padded_ends([one[name] for one in records]) for name in records[0]}
