"""Run the simulator at every point of a design, on whatever machines there are, and lose nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from functools import partial
from pathlib import Path
from uuid import uuid4
from warnings import warn

import numpy as np
from numpy.typing import ArrayLike

from ..advice import BATCHED
from ..arrays import Array, Names, as_columns, checked_names, repeated_rows
from ..errors import KEPT, InputError, OrthocalWarning, SimulatorError
from ..execution.work.batched import BatchedCalls, BatchedRuns
from ..execution.work.processes import ProcessWorkers
from ..execution.work.simulation import ByName, External, GoneError, RunResult, RunTask, Simulation, chance_arguments
from ..execution.work.workers import (
    DaskCluster,
    DaskWorkers,
    ExecutorWorkers,
    Lost,
    Settled,
    ThreadWorkers,
    Work,
    Workers,
    cores,
)
from ..problem.simulator.simulator_function import Simulator
from ..progress import progress_bar, progress_shown
from .store import CampaignPlan, RunStore, Status, simulator_identity
from .table import RunTable

#: what to do where processes cannot be started
CURE = (
    'Where a script calls oc.campaign, the call must stand below `if __name__ == "__main__":`, and the simulator in a '
    "module that can be imported; or give executor=concurrent.futures.ThreadPoolExecutor()"
)


def campaign(
    simulator: Callable[[Array, Array], ArrayLike] | External,
    design: ArrayLike,
    x: ArrayLike,
    *,
    executor: Executor | None = None,
    store: str | Path = "runs.db",
    retries: int = 1,
    timeout: float | None = None,
    progress: bool = True,
    jobs: int | None = None,
    cluster: str | None = None,
    replicates: int = 1,
    retry: bool = False,
    accept_changed: bool = False,
    parameter_names: Names = None,
    input_names: Names = None,
    outcome_names: Names = None,
    units: Mapping[str, str] | None = None,
) -> RunTable:
    """output[s] = f(x, theta[s]) for every row theta[s] of the design, each kept in ``store`` as soon as it is there.

    The same call goes on where an earlier one was ended, and runs only what is missing. A store belongs to one
    simulator, one x and one design, which may grow. A run that fails is kept with its error, and the others go on.

    Parameters
    ----------
    simulator
        ``f(x, theta)``, an ``oc.Program`` or an ``oc.UMBridge``; or an ``oc.Simulator``, with its ``jobs`` and
        ``timeout``, or ``batched``: then many runs are made at a time, in this process.
    design, x
        One row a run, ``oc.design(...)`` for instance; the points of every run, (m, d) or (m,).
    executor, cluster, jobs
        Any ``concurrent.futures.Executor``, or the address of a Dask scheduler, ``"tcp://..."``. Default: processes, or
        threads for what computes elsewhere, ``jobs`` of them; as many as this process has cores, or the servers take.
    store, progress, replicates
        The SQLite file of the runs; whether to show a bar with the time left, on a terminal; runs at each row of the
        design: a simulator that takes ``seed`` and ``replicate`` is given a seed of the run's own, and 0, 1, ...
    retries, timeout, retry, accept_changed
        How often a failed run is tried again, seconds after which one is ended as failed; whether to try failed and
        damaged runs of earlier calls again, and to go on though the simulator's code is not what it was.
    parameter_names, input_names, outcome_names, units
        As for ``oc.RunTable``.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> line = oc.Simulator(lambda x, theta: theta * x, batched=True)
    >>> oc.campaign(line, [[1.0], [2.0]], np.linspace(0, 1, 5), store="runs.db", progress=False).output[1, :, 0]
    array([0. , 0.5, 1. , 1.5, 2. ])
    """
    jobs, timeout, batched = _settings(simulator, jobs, timeout, retries)
    plan = campaign_plan(simulator, design, x, parameter_names, input_names, replicates)
    names = _checked_names(plan, campaign_outcome_names(simulator, outcome_names), units)
    simulation = _simulation(simulator, plan, np.ndim(x) == 1, timeout, cluster is None, replicates)
    make = partial(_workers, simulation, executor, jobs, cluster, batched)
    with RunStore(store, write=True) as runs, progress_shown(progress):
        _make_missing(runs, plan, simulation, make, 1 + retries, accept_changed, retry)
        _report_failures(runs.status(), runs.path)
        return _told_apart(runs.table(names, dict(units or {})), replicates)


def _make_missing(
    runs: RunStore,
    plan: CampaignPlan,
    simulation: Simulation,
    make: Callable[[], Workers[RunTask, RunResult]],
    attempts: int,
    accept_changed: bool,
    retry: bool,
) -> None:
    """Make the runs of the plan that the store has not got."""
    runs.adopt(plan, accept_changed, retry)
    if tasks := runs.missing(plan, attempts, retry):
        with make() as workers:
            _make(tasks, workers, runs, attempts, simulation)


def campaign_status(store: str | Path) -> Status:
    """How far the campaign of ``store`` is: how many runs are done, failed and missing, their mean time, and errors.

    Parameters
    ----------
    store
        The SQLite file of the runs.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> line = oc.Simulator(lambda x, theta: theta * x, batched=True)
    >>> runs = oc.campaign(line, [[1.0], [2.0]], np.linspace(0, 1, 5), store="runs.db", progress=False)
    >>> status = oc.campaign_status("runs.db")
    >>> status.done, status.failed, status.missing
    (2, 0, 0)
    """
    with RunStore(store) as runs:
        return runs.status()


def campaign_plan(
    simulator: object,
    design: ArrayLike,
    x: ArrayLike,
    parameter_names: Names = None,
    input_names: Names = None,
    replicates: int = 1,
) -> CampaignPlan:
    """The checked plan of a campaign."""
    if isinstance(replicates, bool) or not isinstance(replicates, int | np.integer) or replicates < 1:
        raise InputError(f"replicates={replicates!r}: give the number of runs at each theta, at least 1")
    if not callable(simulator) and not isinstance(simulator, External):
        raise InputError(f"the simulator is {type(simulator).__name__}: give a function f(x, theta) or an oc.Program")
    theta, points = as_columns(design, "design"), as_columns(x, "x")
    if not theta.size or not points.size:
        raise InputError("the design and x need at least one row each")
    for name, array in (("the design", theta), ("x", points)):
        if not np.isfinite(array).all():
            row = int(np.flatnonzero(~np.isfinite(array).all(axis=1))[0])
            raise InputError(f"{name} has a value that is not finite in row {row}")
    parameters = checked_names(parameter_names, theta.shape[1], "parameter_names", "theta", design)
    inputs = checked_names(input_names, points.shape[1], "input_names", "x", x)
    return CampaignPlan(np.repeat(theta, replicates, axis=0), points, parameters, inputs, simulator_identity(simulator))


def _simulation(
    simulator: Callable[[Array, Array], ArrayLike] | External,
    plan: CampaignPlan,
    flat_x: bool,
    timeout: float | None,
    here: bool,
    replicates: int,
) -> Simulation:
    """What all runs share; ``here``: a program is started on this machine."""
    if isinstance(simulator, Simulator):
        simulator = simulator.function
    if isinstance(simulator, External):
        simulator.check(plan.parameter_names, here)
    elif isinstance(simulator, ByName):
        simulator = simulator.for_parameters(plan.parameter_names)
    chance = () if isinstance(simulator, External) else chance_arguments(simulator, replicates)
    return Simulation(simulator, plan.x, flat_x, plan.parameter_names, plan.input_names, timeout, uuid4().hex, chance)


def _make(
    tasks: Sequence[tuple[RunTask, int]],
    workers: Workers[RunTask, RunResult],
    store: RunStore,
    attempts: int,
    simulation: Simulation,
) -> None:
    """Make the runs, each of which is in the store before the next one is looked at."""
    tried = {task.number: before for task, before in tasks}

    def settle(task: RunTask, result: RunResult | Lost) -> bool:
        kept = RunResult.of_lost(result) if isinstance(result, Lost) else result
        if kept.gone:
            raise GoneError(f"{kept.error}; {KEPT}")
        tried[task.number] += 1
        error = store.add(task.number, kept, tried[task.number])
        return error is None or tried[task.number] >= attempts

    try:
        for _ in progress_bar(Settled([task for task, _ in tasks], workers, settle), "runs"):
            pass
    finally:
        # before the workers are left: they would wait for them
        if isinstance(simulation.simulator, External):
            simulation.simulator.end_runs(simulation.campaign)


def _workers(
    simulation: Simulation, executor: Executor | None, jobs: int | None, cluster: str | None, batched: bool | int
) -> Workers[RunTask, RunResult]:
    """Those that were given, or processes, or threads for what computes elsewhere."""
    if batched:
        return _batches(simulation, batched, executor is not None or cluster is not None or jobs is not None)
    if executor is not None and cluster is not None:
        raise InputError("executor and cluster both say where the runs are made: leave one of them out")
    if jobs is not None and jobs < 1:
        raise InputError(f"jobs={jobs}: give at least 1")
    external = simulation.simulator if isinstance(simulation.simulator, External) else None
    if simulation.timeout is not None and external is None and (executor is not None or cluster is not None):
        raise InputError(
            "timeout: a Python function can be ended only in processes of orthocal's own; leave executor and cluster "
            "out, or make the simulator an oc.Program"
        )
    work = Work(simulation, simulation.timeout if external is None else None, CURE)
    if cluster is not None:
        return DaskWorkers(DaskCluster(cluster), work)

    def own(width: int) -> Workers[RunTask, RunResult]:
        return ProcessWorkers(work, width) if external is None else ThreadWorkers(work, width)

    if executor is None:
        return own(jobs or (external.width if external is not None else None) or cores())
    if not isinstance(executor, Executor):
        raise InputError(f"executor={executor!r}: give a concurrent.futures.Executor, or None")
    # the two standard pools know their size; for others the number of runs in flight is `jobs`
    size = getattr(executor, "_max_workers", None)
    width = jobs or (size if isinstance(size, int) else cores())
    instead = partial(own, width) if isinstance(executor, ProcessPoolExecutor) else None
    return ExecutorWorkers(executor, work, width, instead)


def _settings(
    simulator: object, jobs: int | None, timeout: float | None, retries: int
) -> tuple[int | None, float | None, bool | int]:
    """Jobs, time-out and batched: what was given, or what the simulator brings."""
    _check_settings(retries, timeout)
    if not isinstance(simulator, Simulator):
        return jobs, timeout, False
    # one job is what a function has that nobody thought of
    own = simulator.jobs if simulator.jobs > 1 else None
    return own if jobs is None else jobs, simulator.timeout if timeout is None else timeout, simulator.batched


def _batches(simulation: Simulation, batched: bool | int, others: bool) -> Workers[RunTask, RunResult]:
    """For a function that takes many theta at a time."""
    if others or simulation.timeout is not None or isinstance(simulation.simulator, External):
        raise InputError(
            "a simulator with " + BATCHED + " makes its runs in this process, many at a time: leave executor, cluster, "
            "jobs and timeout out"
        )
    return BatchedRuns(BatchedCalls(simulation.simulator, batched), simulation)


def _check_settings(retries: int, timeout: float | None) -> None:
    if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
        raise InputError(f"retries={retries!r}: give how often a failed run is tried again, 0 or more")
    if timeout is not None and not timeout > 0:
        raise InputError(f"timeout={timeout!r}: give seconds, or None")


def _checked_names(plan: CampaignPlan, outcome_names: Names, units: Mapping[str, str] | None) -> Names:
    """The outcomes' names; what the table of the runs would refuse after hours is refused now."""
    names = ["y"] if outcome_names is None else [outcome_names] if isinstance(outcome_names, str) else outcome_names
    # how many outcomes there are, and so their default names, is not known before the first run
    known = {*plan.parameter_names, *plan.input_names} if outcome_names is None else set(units or {})
    RunTable(
        plan.theta[:1],
        np.zeros((1, len(plan.x), len(names))),
        plan.x,
        plan.parameter_names,
        plan.input_names,
        names,
        {name: unit for name, unit in (units or {}).items() if name in known},
    )
    return outcome_names


def campaign_outcome_names(simulator: object, given: Names) -> Names:
    """Names that were given, or those that the simulator knows, such as a program's columns."""
    return simulator.outcome_names if given is None and isinstance(simulator, External) else given


def _told_apart(runs: RunTable, replicates: int) -> RunTable:
    """The runs, with a warning where replicates were asked for and tell nothing."""
    repeats = repeated_rows(runs.theta)
    if replicates == 1 or repeats is None:
        return runs
    output = np.asarray(runs.output).reshape(runs.s, -1)
    first = output[repeats.first][repeats.place]
    if np.array_equal(np.where(np.isnan(output), first, output), first, equal_nan=True):
        warn(
            "the replicates of every theta agree to the last digit: the simulator has no random numbers, or does not "
            "use its seed (an argument `seed` of a function, {seed} of a program, seed_config of a server)",
            OrthocalWarning,
            stacklevel=3,
        )
    return runs


def _report_failures(status: Status, path: Path) -> None:
    if not status.failed:
        return
    number, error = status.errors[0]
    if not status.done:
        raise SimulatorError(f"all {status.failed} runs failed; run {number}: {error}")
    warn(
        f"{status.failed} of {status.failed + status.done} runs failed; run {number}: {error} "
        f"(all in {path}; retry=True or --retry runs them again)",
        OrthocalWarning,
        stacklevel=3,
    )
