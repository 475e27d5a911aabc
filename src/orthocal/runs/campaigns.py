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

from ..arrays import Array, Names, as_columns, checked_names
from ..errors import InputError, OrthocalWarning, SimulatorError
from ..execution.dask_cluster import DaskCluster
from ..execution.processes import ProcessWorkers
from ..execution.program import Program, stop_programs
from ..execution.simulation import RunResult, RunTask, Simulation
from ..execution.work import Lost, Settled, Work, Workers
from ..execution.workers import DaskWorkers, ExecutorWorkers, ThreadWorkers, cores
from ..problem.simulator import Simulator
from ..progress import progress_bar, progress_shown
from .identity import simulator_identity
from .store import Plan, RunStore, Status
from .table import RunTable

#: what to do where processes cannot be started
CURE = (
    'Where a script calls oc.campaign, the call must stand below `if __name__ == "__main__":`, and the simulator in a '
    "module that can be imported; or give executor=concurrent.futures.ThreadPoolExecutor()"
)


def campaign(
    simulator: Callable[[Array, Array], ArrayLike] | Program,
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
        ``f(x, theta)`` that returns (m,) or (m, q), or an ``oc.Program``.
    design
        One row a run and one column a parameter: ``oc.design(...)``, another pandas table, or an array.
    x
        The points of every run, (m, d); a vector is handed to the simulator as a vector.
    executor, cluster, jobs
        Any ``concurrent.futures.Executor``, or the address of a Dask scheduler, ``"tcp://..."``. Default: processes, or
        threads for an ``oc.Program``, ``jobs`` of them; as many as the cores that this process may use.
    store
        The SQLite file of the runs.
    retries, timeout
        How often a run that failed is tried again, and after how many seconds a run is ended, with all that it has
        started, and has failed.
    progress
        Show a bar with the time left, on a terminal.
    retry, accept_changed
        Try failed and damaged runs once more; go on though the simulator's code is not what it was.
    parameter_names, input_names, outcome_names, units
        As for ``oc.RunTable``.
    """
    _check_settings(retries, timeout)
    plan = campaign_plan(simulator, design, x, parameter_names, input_names)
    names = campaign_outcome_names(simulator, outcome_names)
    _check_names(plan, names, units)
    simulation = _simulation(simulator, plan, np.ndim(x) == 1, timeout, here=cluster is None)
    with RunStore(store, write=True) as runs:
        runs.adopt(plan, accept_changed, retry)
        tasks = runs.missing(plan, 1 + retries, retry)
        if tasks:
            with _workers(simulation, executor, jobs, cluster) as workers, progress_shown(progress):
                _make(tasks, workers, runs, 1 + retries, simulation.campaign)
        _report_failures(runs.status(), runs.path)
        return runs.table(names, dict(units or {}))


def campaign_status(store: str | Path) -> Status:
    """How far the campaign of ``store`` is: how many runs are done, failed and missing, their mean time, and errors."""
    with RunStore(store) as runs:
        return runs.status()


def campaign_plan(
    simulator: object, design: ArrayLike, x: ArrayLike, parameter_names: Names = None, input_names: Names = None
) -> Plan:
    """The checked plan of a campaign."""
    if not callable(simulator) and not isinstance(simulator, Program):
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
    return Plan(theta, points, parameters, inputs, simulator_identity(simulator))


def _simulation(
    simulator: Callable[[Array, Array], ArrayLike] | Program,
    plan: Plan,
    flat_x: bool,
    timeout: float | None,
    here: bool,
) -> Simulation:
    """What all runs share; ``here``: a program is started on this machine."""
    if isinstance(simulator, Program):
        simulator.check(plan.parameter_names, here)
    elif isinstance(simulator, Simulator):
        simulator = simulator.function
    return Simulation(simulator, plan.x, flat_x, plan.parameter_names, plan.input_names, timeout, uuid4().hex)


def _make(
    tasks: Sequence[tuple[RunTask, int]],
    workers: Workers[RunTask, RunResult],
    store: RunStore,
    attempts: int,
    campaign: str,
) -> None:
    """Make the runs, each of which is in the store before the next one is looked at."""
    tried = {task.number: before for task, before in tasks}

    def settle(task: RunTask, result: RunResult | Lost) -> bool:
        tried[task.number] += 1
        kept = RunResult.of_lost(result) if isinstance(result, Lost) else result
        error = store.add(task.number, kept, tried[task.number])
        return error is None or tried[task.number] >= attempts

    try:
        for _ in progress_bar(Settled([task for task, _ in tasks], workers, settle), "runs"):
            pass
    finally:
        # before the workers are left: they would wait for them
        stop_programs(campaign)


def _workers(
    simulation: Simulation, executor: Executor | None, jobs: int | None, cluster: str | None
) -> Workers[RunTask, RunResult]:
    """Those that were given, or processes, or threads for a program."""
    if executor is not None and cluster is not None:
        raise InputError("executor and cluster both say where the runs are made: leave one of them out")
    if jobs is not None and jobs < 1:
        raise InputError(f"jobs={jobs}: give at least 1")
    program = isinstance(simulation.simulator, Program)
    if simulation.timeout is not None and not program and (executor is not None or cluster is not None):
        raise InputError(
            "timeout: a Python function can be ended only in processes of orthocal's own; leave executor and cluster "
            "out, or make the simulator an oc.Program"
        )
    work = Work(simulation, None if program else simulation.timeout, CURE)
    if cluster is not None:
        return DaskWorkers(DaskCluster(cluster), work)

    def own(width: int) -> Workers[RunTask, RunResult]:
        return ThreadWorkers(work, width) if program else ProcessWorkers(work, width)

    if executor is None:
        return own(jobs or cores())
    if not isinstance(executor, Executor):
        raise InputError(f"executor={executor!r}: give a concurrent.futures.Executor, or None")
    # the two standard pools know their size; for others the number of runs in flight is `jobs`
    size = getattr(executor, "_max_workers", None)
    width = jobs or (size if isinstance(size, int) else cores())
    instead = partial(own, width) if isinstance(executor, ProcessPoolExecutor) else None
    return ExecutorWorkers(executor, work, width, instead)


def _check_settings(retries: int, timeout: float | None) -> None:
    if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
        raise InputError(f"retries={retries!r}: give how often a failed run is tried again, 0 or more")
    if timeout is not None and not timeout > 0:
        raise InputError(f"timeout={timeout!r}: give seconds, or None")


def _check_names(plan: Plan, outcome_names: Names, units: Mapping[str, str] | None) -> None:
    """Refuse now what the table of the runs would refuse after hours."""
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


def campaign_outcome_names(simulator: object, given: Names) -> Names:
    """Names that were given, or those of a program's columns."""
    if given is None and isinstance(simulator, Program) and simulator.columns is not None:
        names = [one for one in simulator.columns if isinstance(one, str)]
        return names if len(names) == len(simulator.columns) else None
    return given


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
