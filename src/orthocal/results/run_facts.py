"""Facts about a run that are stored with its draws, and what ``check`` and the report read of them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from functools import reduce
from typing import Any

from ..execution.work.calls import Spent
from ..findings import Finding, Level
from ..methods.base import RunNotes
from ..problem.noise.estimate import ADVICE
from ..problem.noise.noise import NoiseSource
from ..problem.noise.row_correlation import NoiseKernel
from ..problem.simulator.simulator import GradientKind


@dataclass(frozen=True)
class RunFacts(RunNotes):
    """The method's own facts, and those of the calibration. What an older file does not have is None.

    Attributes
    ----------
    seconds, simulator_seconds, simulator_calls, simulator_failures, simulator_failure
        Work of this calibration, and what of it was the simulator's; the first call that failed, in words.
    stages
        What each stage took: wall and CPU seconds, seconds spent waiting for the simulator, and its calls.
    quadrature_error, gradient_error, weakest_sensitivity
        As the problem has them; None where they do not apply.
    row_error
        By how much the simulator's values at the data depend on which other rows are asked for, in sds of the noise;
        None where that was not tried.
    curvature_factors
        By what the sds should be multiplied, NaN where the loss has no minimum; None where they do not apply.
    outside_runs
        Share of the draws where an emulator had no runs nearby; None for a simulator.
    emulator_sd, emulator_counted
        Root mean square of an emulator's own sd at the draws, in sds of the noise, where it has one; and whether the
        noise was given it.
    emulator_said, held_out_errors
        What an emulator says of its runs and of how it was chosen; and the errors of those it was chosen from.
    emulator_spread
        What the spread of an emulator's kept draws was multiplied by, one number an outcome; see
        ``emulators/emulator.py``.
    runs_to_halve
        How many runs, each where it is best, would halve what the emulator adds to the variance of theta: 0 where more
        than were tried, None where that is not known.
    outside_runs_x
        Shares of the rows and of the domain whose x an emulator's runs have no points near to; None where unknown.
    open_directions
        Combinations of the parameters that the simulator does not answer to, and those that it answers to instead.
    on_bound
        Parameters whose best fit lies on a bound.
    misfit
        The loss of the best fit, in units of what the noise alone would make of it: the mean of the draws' own, where
        it was unknown.
    prior_tails
        How improbable the priors make what the data say about each parameter, see ``results/checks/prior_conflict.py``.
    noise_freedom, noise_remarks, noise_smooth
        Of noise that was estimated: degrees of freedom for each outcome, what was found in the data, and whether its
        differences between points are those of a function of x.
    noise_kernel
        How the errors of rows are correlated along a line, where that is known.
    correlated
        Outcomes whose errors are correlated, though they were not said to be (``checks/noise_correlation.py``).
    allowed_share, on_edge
        Share of the prior that the constraint allows, and whether the best fit lies on its edge.
    unfinished
        Whether the search for the best fit ran out of evaluations before it came to the end.
    rivals
        By how much it is better than the other minima, in standard errors of the difference.
    """

    seconds: float = 0.0
    simulator_seconds: float = 0.0
    simulator_calls: int = 0
    simulator_failures: int = 0
    simulator_failure: str | None = None
    stages: dict[str, Spent] = field(default_factory=dict)
    quadrature_error: float | None = None
    gradient_error: float = 0.0
    row_error: float | None = None
    gradient_kind: GradientKind = GradientKind.DIFFERENCE
    weakest_sensitivity: float | None = None
    open_directions: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    curvature_factors: tuple[float, ...] | None = None
    outside_runs: float | None = None
    emulator_sd: float | None = None
    emulator_counted: bool = False
    emulator_spread: tuple[float, ...] | None = None
    runs_to_halve: int | None = None
    emulator_said: tuple[str, ...] = ()
    held_out_errors: dict[str, float] = field(default_factory=dict)
    outside_runs_x: tuple[float, float] | None = None
    on_bound: tuple[str, ...] = ()
    misfit: float | None = None
    prior_tails: tuple[float, ...] | None = None
    allowed_share: float | None = None
    on_edge: bool = False
    unfinished: bool = False
    rivals: tuple[float, ...] = ()
    domain_given: bool = True
    domain: str = ""
    noise_source: NoiseSource = NoiseSource.KNOWN
    noise_freedom: tuple[float, ...] | None = None
    noise_remarks: tuple[Finding, ...] = ()
    noise_smooth: bool = False
    noise_kernel: NoiseKernel | None = None
    correlated: tuple[tuple[Any, ...], ...] = ()

    @property
    def spent(self) -> Spent:
        """All stages together."""
        return reduce(Spent.plus, self.stages.values(), Spent())

    def written(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, text: str) -> RunFacts:
        """From JSON; keys that this version does not know are left out."""
        stored: dict[str, Any] = json.loads(text)
        # version 0.1 wrote a memory only where it had looked for one
        stored.setdefault("remembers", "theta_memory" in stored)
        known = {one.name: _tuples(stored[one.name]) for one in fields(cls) if one.name in stored}
        known["noise_remarks"] = tuple(_remark(*one) for one in known.get("noise_remarks", ()))
        for name, kind in (("gradient_kind", GradientKind), ("noise_source", NoiseSource)):
            if name in known:
                known[name] = kind(known[name])
        if known.get("noise_kernel") is not None:
            known["noise_kernel"] = NoiseKernel(*known["noise_kernel"])
        if "stages" in known:
            known["stages"] = {name: Spent(*spent) for name, spent in known["stages"].items()}
        return cls(**known)


def _tuples(value: object) -> Any:
    """JSON has lists only."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _remark(level: Level, topic: str, message: str, advice: str = "") -> Finding:
    """A file has the form for programs alone."""
    return Finding(level, topic, message, ADVICE.get(advice, advice))
