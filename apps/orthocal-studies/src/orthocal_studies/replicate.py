"""One replication: simulate a data set, calibrate, and keep what the tables need."""

from __future__ import annotations

import gc
import traceback
import warnings
from time import perf_counter, process_time
from typing import NamedTuple, NotRequired, TypedDict

import numpy as np
from threadpoolctl import threadpool_limits

import orthocal as oc
from orthocal.applications import Array, one_blas_thread
from orthocal.examples import Example

from .base import MEASURED, Column, Study
from .registry import study_by_name

#: the draws of a replication are split over so many chains
CHAINS = 4
#: memory is tidied up in every so many replications
COLLECTED = 5


class Task(NamedTuple):
    """What to run, by names: it goes to other processes and other machines.

    ``draws`` are the kept ones of all chains together.
    """

    study: str
    column: str
    replication: int
    seed: int
    draws: int


class ParameterRow(TypedDict):
    """The posterior of one parameter; ``low`` and ``high`` end its central 95 %; without a truth nothing is covered."""

    mean: float
    sd: float
    low: float
    high: float
    covered: bool | None
    ess: float
    rhat: float


class Row(TypedDict):
    """What came of a task; ``parameters`` is empty where ``error`` says why.

    ``problems`` are the topics of those that ``check()`` found, None or missing where it was not asked.
    """

    column: str
    replication: int
    parameters: dict[str, ParameterRow]
    cpu_seconds: float
    wall_seconds: float
    error: str | None
    traceback: str | None
    problems: NotRequired[list[str] | None]


def run_task(task: Task) -> Row:
    """Run one replication. It never raises: an error is a result too, and the others go on."""
    if task.replication % COLLECTED == 0:
        # results hold themselves in circles of references, which the collector would find late
        gc.collect()
    wall, cpu = perf_counter(), process_time()
    try:
        study = study_by_name(task.study)
        column = study.column(task.column)
        # one thread a process: the processes share the cores already. Notes to a user would be lost among so many.
        # OpenMP's threads are those of this thread, BLAS's are those of the process.
        with threadpool_limits(limits=1, user_api="openmp"), one_blas_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore", oc.OrthocalWarning)
            posterior = _calibrated(task, study, column)
            cpu, wall = process_time() - cpu, perf_counter() - wall
            parameters = _parameter_rows(posterior, study.theta_star(column))
            problems = [finding.topic for finding in posterior.check().problems] if study.checked else None
    except Exception as error:
        return failed_row(task, f"{type(error).__name__}: {error}", traceback.format_exc())
    return Row(
        column=task.column,
        replication=task.replication,
        parameters=parameters,
        cpu_seconds=cpu,
        wall_seconds=wall,
        error=None,
        traceback=None,
        problems=problems,
    )


def failed_row(task: Task, error: str, trace: str | None = None) -> Row:
    return Row(
        column=task.column,
        replication=task.replication,
        parameters={},
        cpu_seconds=0.0,
        wall_seconds=0.0,
        error=error,
        traceback=trace,
    )


def data_set(model: Example, seed: int, replication: int, stream: str = "") -> tuple[Array, Array]:
    """Field data x, y of a replication: the same for every method."""
    if replication == MEASURED:
        return model.data
    return model.simulate(np.random.default_rng(_sequence(seed, stream, replication, 0)))


def _calibrated(task: Task, study: Study, column: Column) -> oc.Posterior:
    x, y = data_set(study.model, task.seed, task.replication, study.stream)
    return oc.calibrate(
        column.problem(study.model, x, y),
        column.method(),
        draws=task.draws // CHAINS,
        chains=CHAINS,
        seed=int(_sequence(task.seed, study.stream, task.replication, 1).generate_state(1)[0]),
        progress=False,
    )


def _sequence(seed: int, stream: str, replication: int, purpose: int) -> np.random.SeedSequence:
    """Independent numbers for the data (0) and the draws (1) of every replication of a stream."""
    # its bytes, since Python's own hash of a text differs from process to process
    return np.random.SeedSequence(seed, spawn_key=(*stream.encode(), replication, purpose))


def _parameter_rows(posterior: oc.Posterior, theta_star: tuple[float, ...]) -> dict[str, ParameterRow]:
    summary = posterior.summary()
    lower, upper = (column for column in summary.columns if str(column).startswith("eti"))
    return {
        str(name): ParameterRow(
            mean=float(row["mean"]),
            sd=float(row["sd"]),
            low=float(row[lower]),
            high=float(row[upper]),
            covered=None if truth is None else bool(row[lower] < truth < row[upper]),
            ess=float(row["ess_bulk"]),
            rhat=float(row["r_hat"]),
        )
        for (name, row), truth in zip(summary.iterrows(), theta_star or [None] * len(summary), strict=True)
    }
