"""From a table of runs to an emulator: by name, by settings, by an object of the user's, or the best of all."""

from __future__ import annotations

from ..runs.table import RunTable
from .emulator import Emulator
from .fitting import EmulatorChoice, LayoutChoice, fitted_emulator
from .held_out.held_out import compare_emulators


def emulate(
    runs: RunTable,
    emulator: EmulatorChoice = "auto",
    layout: LayoutChoice = "auto",
    components: int | None = None,
    progress: bool = True,
    jobs: int | None = None,
) -> Emulator:
    """An emulator f_hat(x, theta) of the simulator that made ``runs``: it can be given to ``oc.Problem`` as simulator.

    Parameters
    ----------
    runs
        The table of runs; those that failed are left out.
    emulator
        ``"gp"``, ``"bart"``, ``"bmars"``, ``"forest"`` or ``"mlp"``; one of these with settings, for instance
        ``oc.emulators.BART(draws=500)``; any object with ``fit(inputs, targets)`` and ``predict(inputs)``; or
        ``"auto"`` (default), the best at held-out runs, by ``oc.compare_emulators(runs, race=True)``;
        ``emulator.choice`` says how it was chosen.
    layout
        ``"components"``: the output at common points is decomposed into principal components, whose scores are
        learnt from theta; ``"stacked"``: outcomes are learnt from rows (x, theta). Default: what suits the emulator
        and the table.
    components
        Number of components of each outcome; default: all that there are. Few are faster, and lose detail.
    progress
        Show progress on a terminal.
    jobs
        With ``"auto"``, fits at a time; default: the number of cores. It changes no result.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> from scipy import stats
    >>> def slow(x, theta):
    ...     return theta[0] * np.exp(-theta[1] * x)
    >>> design = oc.design({"a": stats.uniform(1, 2), "b": stats.uniform(0, 3)}, 32)
    >>> x = np.linspace(0, 1, 20)
    >>> runs = oc.RunTable(design, [slow(x, theta) for theta in design.to_numpy()], x)
    >>> emulator = oc.emulate(runs, "gp", progress=False)
    >>> bool(np.abs(emulator(x, [1.5, 1.0])[:, 0] - slow(x, [1.5, 1.0])).max() < 0.01)
    True
    """
    if not (isinstance(emulator, str) and emulator == "auto"):
        return fitted_emulator(runs, emulator, layout, components, progress)
    compared = compare_emulators(runs, progress=progress, race=True, jobs=jobs)
    best = fitted_emulator(runs, compared.best, layout, components, progress)
    best.choice = compared.choice
    return best
