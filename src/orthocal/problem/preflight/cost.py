"""How often a run will call the simulator, by its method.

Counted in runs of problems with two to four parameters, from linear to strongly curved ones. The joint projection calls
it once a draw where it is linear, and about twice where it is curved. The theta step of a Markov chain takes as many
proposals as the curvature asks for, and only the run itself knows how many.
"""

from __future__ import annotations

from typing import NamedTuple

from ..known import Known
from ..search.minima import ALIKE, MANY
from ..simulator.simulator import GradientKind

#: steps of a descent of the search: of a linear simulator, of a curved one
STEPS = {True: 3.0, False: 7.0}
#: calls a draw of the joint projection, calls for each theta step of a chain, and Gauss-Newton steps for each draw of
#: PCAL, at least and at most: of a linear simulator, of a curved one
A_DRAW = {True: (1.0, 1.0), False: (1.8, 2.6)}
A_STEP = {True: (1.1, 1.6), False: (2.5, 14.0)}
PCAL_STEPS = {True: (2.0, 2.5), False: (6.0, 14.0)}
JOINT = ("gp", "bart", "softbart", "bmars", "bnn")
#: chains whose steps need no gradient
CHAINS = ("none", "ko", "sgasp", "pgp", "pbart", "psoftbart", "pbmars", "pbnn")


class Planned(NamedTuple):
    """What a run is asked for."""

    method: str
    draws: int
    chains: int
    warmup: int


class Calls(NamedTuple):
    """Calls of the search, and of what follows it, at least and at most."""

    search: float
    least: float
    most: float

    @property
    def middle(self) -> float:
        """Between least and most, by their ratio."""
        return float((self.least * self.most) ** 0.5)


def gradient_calls(problem: Known) -> int:
    """Calls of a gradient."""
    differences = problem.simulator.gradient_kind in (GradientKind.DIFFERENCE, GradientKind.AUTO)
    return 2 * problem.parameters.p if differences else 1


def search_calls(problem: Known, linear: bool = False) -> float:
    """Of the search for the best fit."""
    p, starts = problem.parameters.p, len(problem._starts)
    descents = min(starts, ALIKE) if p > MANY else starts
    # those that go to the end, from the best place at least, and to the minima of the loss alone
    return starts + (descents + 2) * STEPS[linear] * (1 + gradient_calls(problem))


def expected_calls(problem: Known, planned: Planned, linear: bool) -> Calls | None:
    """Of the whole run; None for a method that is not known."""
    p, a_gradient = problem.parameters.p, gradient_calls(problem)
    total, iterations = (planned.chains * count for count in (planned.draws, planned.draws + planned.warmup))
    if planned.method in JOINT:
        each = tuple(one * total for one in A_DRAW[linear])
    elif planned.method in CHAINS:
        each = tuple(one * iterations for one in A_STEP[linear])
    elif planned.method == "ogp":
        each = tuple((one + a_gradient) * iterations for one in (1, 2))
    elif planned.method == "pcal":
        each = tuple((1 + one * (1 + a_gradient)) * total for one in PCAL_STEPS[linear])
    else:
        return None
    # gradients at data and nodes with their checks, and the expansion of the projection
    around = 12 * a_gradient + 3 * p * p
    return Calls(0.0 if problem.searched else search_calls(problem, linear), around + each[0], around + each[1])
