"""An emulator in the simulator's place, before a run: where its runs are, and how wrong it is beside the noise."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...advice import COMPARE_EMULATORS, KNOWS_ITS_ERROR, NEXT_RUNS, Advice
from ...findings import Finding
from ..shared_findings import emulator_error, outside_x
from ..simulator.emulator import RunsEmulator
from .probe import Probe, Setup

#: share of the prior without runs nearby that is worth a word
PRIOR_SHARE = 0.2
#: theta of the prior that are asked about
ASKED = 512


def emulator_findings(setup: Setup, probe: Probe) -> Iterator[Finding]:
    """Findings, where there is an emulator."""
    if setup.simulator.emulator is None:
        return
    yield from _over_theta(setup, probe)
    yield from _over_x(setup)
    yield from _held_out(setup, probe)
    yield from _own_error(setup, probe)


def _over_theta(setup: Setup, probe: Probe) -> Iterator[Finding]:
    outside = setup.simulator.outside
    if outside is None:
        return
    if outside(probe.theta[None])[0]:
        place = setup.parameters.support.describe(probe.theta, 4)
        message = f"it has no runs near the best fit, {place}: it extrapolates there"
        yield Finding("problem", "emulator", message, "add runs there " + NEXT_RUNS + ", or restrict the priors")
    share = float(np.mean(outside(setup.parameters.starts(ASKED))))
    if share > PRIOR_SHARE:
        message = f"{share:.0%} of the prior of theta has no runs nearby; if the posterior is there, it extrapolates"
        yield Finding("note", "emulator", message, "restrict the priors to where runs are, or add runs")
    elif not outside(probe.theta[None])[0]:
        yield Finding("fine", "emulator", f"it has runs near the best fit, and near {1 - share:.0%} of the prior")


def _over_x(setup: Setup) -> Iterator[Finding]:
    emulator = setup.simulator.emulator
    if setup.data.without_inputs:
        return
    if not isinstance(emulator, RunsEmulator):
        message = "at which x its runs are is not known, and whether it extrapolates over x was not looked at"
        yield Finding("note", "emulator", message)
        return
    rows = float(np.mean(emulator.outside_x(setup.data.x)))
    domain = float(setup.rule.weights[np.asarray(emulator.outside_x(setup.rule.nodes))].sum())
    yield outside_x(rows, domain)


def _held_out(setup: Setup, probe: Probe) -> Iterator[Finding]:
    emulator = setup.simulator.emulator
    chosen = emulator.choice if isinstance(emulator, RunsEmulator) else None
    if chosen is None:
        message = "its error at held-out runs is not known: it was not compared with others"
        advice = (
            "see " + COMPARE_EMULATORS + ", or take " + Advice('emulator "auto"', 'emulator = "auto" in [simulator]')
        )
        yield Finding("note", "emulator", message, advice)
        return
    sds = np.sqrt(np.diag(setup.noise.cov))
    # on the scale of the noise, where outcomes are transformed
    slopes = np.sqrt(np.mean(setup.simulator.slope(setup.data.x, probe.theta) ** 2, axis=0))
    own = [chosen.rmse.get(name) for name in setup.data.outcome_names]
    if any(one is None for one in own) and len(chosen.rmse) == len(own):
        own = list(chosen.rmse.values())
    each = [
        f"{name} {error * slope / sd:.2g}"
        for name, error, slope, sd in zip(setup.data.outcome_names, own, slopes, sds, strict=True)
        if error is not None
    ]
    worst = max((e * s / sd for e, s, sd in zip(own, slopes, sds, strict=True) if e is not None), default=np.nan)
    message = f"its rms error at {chosen.held_out} held-out runs, in noise standard deviations: {', '.join(each)}"
    advice = "add runs " + NEXT_RUNS + ", nearer to the best fit; its error over all the runs may be larger than there"
    yield emulator_error(worst, message, advice)


def _own_error(setup: Setup, probe: Probe) -> Iterator[Finding]:
    emulator = setup.simulator.emulator
    if emulator is None or not emulator.has_variance:
        message = "it does not know its own error, and neither will the posterior"
        yield Finding("note", "emulator", message, "take " + KNOWS_ITS_ERROR)
        return
    x = setup.data.x
    shares = setup.simulator.slope(x, probe.theta) ** 2 * emulator.variance(x, probe.theta)
    size = float(np.sqrt(np.mean(shares / np.diag(setup.noise.cov))))
    message = f"its own standard deviation at the best fit is {size:.2g} of the noise's"
    yield emulator_error(size, message, "add runs there " + NEXT_RUNS)
