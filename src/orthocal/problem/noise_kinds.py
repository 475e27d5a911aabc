"""Kinds of noise that are estimated from the field data, as a user asks for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError

Along = Literal["x", "mean"]


@dataclass(frozen=True)
class LowRankNoise:
    """Noise covariance D + L L', D diagonal and L with ``rank`` columns, estimated from the data.

    For many outcomes: a full covariance has q (q + 1) / 2 numbers, this one q (rank + 1).
    """

    rank: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.rank, bool) or not isinstance(self.rank, int | np.integer) or self.rank < 0:
            raise InputError(f"LowRankNoise(rank={self.rank!r}): give a whole number, 0 for independent outcomes")


@dataclass(frozen=True, eq=False)
class GroupNoise:
    """A noise variance of its own for every group of rows (a curve, an instrument, a session).

    var_i = var of the group of row i; the outcomes' correlations are the same in all groups.

    Parameters
    ----------
    groups
        Labels (n,), or the name of an input of x or of the problem's own ``groups``; None for these.
    sample
        Whether each group's covariance is drawn together with theta, around its estimate: so without a bias it grows
        to what the simulator leaves there.
    """

    groups: str | ArrayLike | None = None
    sample: bool = False


@dataclass(frozen=True)
class VaryingNoise:
    """A noise variance that changes smoothly: log var_i = s(x_i), a sum of splines, or s(mean_i).

    Parameters
    ----------
    along
        ``"x"``: with each input; ``"mean"``: with the level of the outcome.
    """

    along: Along = "x"

    def __post_init__(self) -> None:
        if self.along not in get_args(Along):
            raise InputError(f'VaryingNoise(along={self.along!r}): give "x" or "mean"')


#: what the noise may be asked to be, beside numbers and words
AskedNoise = LowRankNoise | GroupNoise | VaryingNoise


def is_sampled(asked: object) -> bool:
    """Whether this asks for noise that is drawn together with theta."""
    return asked.sample if isinstance(asked, GroupNoise) else isinstance(asked, str) and asked == "sample"
