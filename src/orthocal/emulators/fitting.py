"""From a table of runs to an emulator: by name, by settings, by an object of the user's, or the best of all."""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..arrays import refuse_extreme, repeated_rows
from ..errors import InputError
from ..machine.threads import one_blas_thread
from ..progress import progress_shown
from ..runs.table import RunTable
from .base import EMULATORS, Layout, Regressor
from .components import ComponentEmulator
from .emulator import Emulator
from .scikit_learn import ExternalRegressor, FitPredict
from .stacked import StackedEmulator

LayoutChoice = Literal["auto"] | Layout
#: a name, or what learns
EmulatorChoice = str | Regressor | FitPredict


def fitted_emulator(
    runs: RunTable,
    emulator: EmulatorChoice,
    layout: LayoutChoice = "auto",
    components: int | None = None,
    progress: bool = True,
) -> Emulator:
    """The emulator of ``runs`` that was asked for; see ``oc.emulate``."""
    name, regressor = regressor_by_name(emulator)
    used = usable_runs(runs)
    with progress_shown(progress), one_blas_thread():
        if chosen_layout(used, regressor, layout) == "stacked":
            if components is not None:
                raise InputError("components go with the layout 'components', and this one is stacked")
            return StackedEmulator(name, used, regressor)
        return ComponentEmulator(name, used, regressor, components)


def regressor_by_name(emulator: EmulatorChoice) -> tuple[str, Regressor]:
    """The name of an emulator, and its regressor."""
    if isinstance(emulator, str):
        if emulator not in EMULATORS:
            raise InputError(f"there is no emulator {emulator!r}: give one of auto, {', '.join(EMULATORS)}")
        return emulator, EMULATORS[emulator]()
    for name, kind in EMULATORS.items():
        if isinstance(emulator, kind):
            return name, emulator
    # a class of the user's may say which layout suits it
    return type(emulator).__name__, emulator if isinstance(emulator, Regressor) else ExternalRegressor(emulator)


def usable_runs(runs: RunTable) -> RunTable:
    """The runs that did not fail."""
    if not isinstance(runs, RunTable):
        raise InputError(f"runs is {type(runs).__name__}: give an oc.RunTable")
    there = ~runs.failed
    if there.sum() < 3:
        raise InputError(f"{int(there.sum())} of {runs.s} runs have output: an emulator needs at least 3")
    repeats = repeated_rows(runs.theta[there])
    if repeats is not None and len(repeats.first) < 3:
        raise InputError(f"the runs have {len(repeats.first)} distinct theta: an emulator needs at least 3")
    if not (np.ptp(runs.theta[there], axis=0) > 0).all():
        name = runs.parameter_names[int(np.argmin(np.ptp(runs.theta[there], axis=0)))]
        raise InputError(f"all runs have the same {name!r}: vary it, or leave it out of the table")
    refuse_extreme(runs.theta, runs.parameter_names, "parameter")
    refuse_extreme(runs.long.output, runs.outcome_names, "outcome")
    return runs if there.all() else runs.subset(there)


def chosen_layout(runs: RunTable, regressor: Regressor, layout: LayoutChoice) -> Layout:
    """The layout for these runs, where none is asked for."""
    if layout not in ("auto", "components", "stacked"):
        raise InputError(f"layout={layout!r}: give 'auto', 'components' or 'stacked'")
    if layout != "auto":
        return layout
    many_holes = (~runs.complete).sum() > runs.s / 5
    return "stacked" if runs.ragged or many_holes else regressor.layout
