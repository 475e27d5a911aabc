"""What a calibration method is: a Problem in, draws out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..arrays import Array
from ..bias import BiasSampler
from ..problem.problem import Problem


class Plan(NamedTuple):
    """How long to run: draws and warm-up iterations a chain, and a generator a chain."""

    draws: int
    warmup: int
    rngs: list[np.random.Generator]


@dataclass(frozen=True)
class Draws:
    """What a method returns; arrays have (chain, draw) first and are in the outcomes' units.

    Attributes
    ----------
    theta
        (c, s, p).
    model, bias
        f(x_i, theta) and the bias at the data points, (c, s, n, q).
    stats
        Name -> (c, s): at least ``lp`` and ``acceptance_rate``.
    projection
        ``"functional"``, ``"finite"`` or ``"none"``.
    coefficient
        Coefficients of what the projection took away, (c, s, p).
    directions
        Of the finite projection: what a coefficient of one takes away at the data points, whitened, (n, q, p).
    noise_cov
        Sigma_F, (c, s, q, q), where it is sampled.
    bias_state
        What the bias samplers need to predict, name -> (c, s, ...); the outcome's number ends the name.
    reference_state
        The same for draws that stand for the covariance of the bias, name -> (r, ...), and their ``constraint`` (r, p).
    samplers
        The bias samplers, one an outcome; none for a method without bias.
    nodes_drawn
        Whether their draws include the nodes.
    drawn
        What they draw: ``"bias"``, or ``"process"`` for y_R, whose difference from the simulator is the bias.
    notes
        Facts about the run that ``check`` reads, as what JSON can store.
    """

    theta: Array
    model: Array
    bias: Array
    stats: dict[str, Array]
    projection: str = "none"
    coefficient: Array | None = None
    directions: Array | None = None
    noise_cov: Array | None = None
    bias_state: dict[str, Array] = field(default_factory=dict)
    reference_state: dict[str, Array] = field(default_factory=dict)
    samplers: list[BiasSampler] = field(default_factory=list)
    nodes_drawn: bool = False
    drawn: str = "bias"
    notes: dict[str, Any] = field(default_factory=dict)


class Method(Protocol):
    """A way to calibrate."""

    def run(self, problem: Problem, plan: Plan) -> Draws:
        """Draw from the method's posterior."""

    def describe(self) -> dict[str, Any]:
        """The user's choices, as what JSON can store."""
