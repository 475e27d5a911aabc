"""Run what is missing of a study, and write its pages."""

from __future__ import annotations

import os
import platform
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Protocol

import numpy as np

import orthocal as oc
from orthocal.applications import (
    DaskCluster,
    DaskWorkers,
    Lost,
    ProcessWorkers,
    Settled,
    Work,
    Workers,
    cores,
    progress_bar,
    progress_shown,
)
from orthocal.errors import InputError

from .base import Study
from .pages import write_pages
from .registry import columns_by_key
from .replicate import CHAINS, Row, Task, failed_row, run_task
from .results import Results, Settings

SEED = 1
#: a task whose process died so often is given up
MOST_DEATHS = 3


class StudyWorkers(Workers[Task, Row], Protocol):
    """Workers that say where they are."""

    @property
    def words(self) -> str:
        """Where the replications run, in words."""


def study_workers(jobs: int | None = None, cluster: str | None = None) -> StudyWorkers:
    """Processes on this machine, or a Dask cluster whose workers have this version of orthocal."""
    work = Work(run_task)
    if cluster is None:
        return ProcessWorkers(work, jobs or cores())
    dask = DaskCluster(cluster, option=True)
    for distribution in ("orthocal", "orthocal-studies"):
        dask.require_this_version(distribution)
    return DaskWorkers(dask, work)


@dataclass(frozen=True)
class Request:
    """What the user asks for; None is what the folder was asked for last, or the paper's choice."""

    replications: int | None = None
    methods: tuple[str, ...] | None = None
    seed: int | None = None
    draws: int | None = None
    retry: bool = False

    def __post_init__(self) -> None:
        if self.replications is not None and self.replications < 1:
            raise InputError(f"--replications {self.replications}: give at least 1")
        if self.seed is not None and self.seed < 0:
            raise InputError(f"--seed {self.seed}: give a whole number that is not negative")
        if self.draws is not None and (self.draws < 4 * CHAINS or self.draws % CHAINS):
            raise InputError(f"--draws {self.draws}: give a multiple of {CHAINS} (the chains), at least {4 * CHAINS}")

    def settings(self, study: Study, before: Settings | None, folder: Path) -> Settings:
        """The settings of this run. A folder has one seed and one number of draws for a study."""
        last = before or Settings(SEED, study.draws, study.replications, methods=())
        for name, given, stored in (("seed", self.seed, last.seed), ("draws", self.draws, last.draws)):
            if before and given is not None and given != stored:
                raise InputError(
                    f"--{name} {given}: {folder} holds {study.name} with {name} {stored}; "
                    "leave the option out to go on with it, or give another --out"
                )
        keys = self.methods if self.methods is not None else last.methods or None
        return Settings(
            seed=last.seed if self.seed is None else self.seed,
            draws=last.draws if self.draws is None else self.draws,
            replications=self.replications or last.replications,
            methods=tuple(column.key for column in columns_by_key(study, keys)),
        )


@dataclass(frozen=True)
class Outcome:
    """What a run left: its page, and the replications that failed."""

    page: str
    failures: list[Row]


def run_study(
    study: Study,
    request: Request,
    folder: Path,
    start_workers: Callable[[], StudyWorkers],
    say: Callable[[str], None] = lambda _: None,
) -> Outcome:
    """Run the replications that ``folder`` does not have yet, and write the pages from all it has."""
    with Results(folder) as results:
        settings = request.settings(study, results.settings(study.name), folder)
        results.set_settings(study.name, settings)
        tasks = missing(study, settings, results.rows(study.name), request.retry)
        total = len(study.numbers(settings.replications)) * len(settings.methods)
        run_tasks(study.name, tasks, total, {study.address: study.name}, results, start_workers, say)
        page = write_pages(study, results, settings, folder)
        return Outcome(page, [row for row in results.rows(study.name) if row["error"] is not None])


def missing(study: Study, settings: Settings, rows: list[Row], retry: bool) -> list[Task]:
    """What is left to do, all methods of a replication together: a run that is cut short can compare them."""
    done = {(row["column"], row["replication"]) for row in rows if not (retry and row["error"] is not None)}
    return [
        Task(study.address, key, replication, settings.seed, settings.draws)
        for replication in study.numbers(settings.replications)
        for key in settings.methods
        if (key, replication) not in done
    ]


def run_tasks(
    label: str,
    tasks: list[Task],
    total: int,
    names: Mapping[str, str],
    results: Results,
    start_workers: Callable[[], StudyWorkers],
    say: Callable[[str], None],
) -> None:
    """Run what is left of ``total`` replications; ``names`` has the name of a study by the address in its tasks."""
    if not tasks:
        say(f"{label}: all {total} replications are there")
        return
    with start_workers() as workers:
        say(f"{label}: {len(tasks)} of {total} replications to run, {workers.words}")
        _run(label, tasks, names, workers, results)


def _run(label: str, tasks: list[Task], names: Mapping[str, str], workers: StudyWorkers, results: Results) -> None:
    machine = _machine(workers)
    deaths: Counter[Task] = Counter()
    last = perf_counter()

    def settle(task: Task, result: Row | Lost) -> bool:
        nonlocal last
        if isinstance(result, Lost):
            deaths[task] += result.died
            if result.died and deaths[task] < MOST_DEATHS:
                return False
            died = f"its process died {MOST_DEATHS} times; was the memory too small?"
            result = failed_row(task, died if result.died else result.error)
        now = perf_counter()
        results.add(names[task.study], task, result, machine, now - last)
        last = now
        return True

    with progress_shown(True):
        for _ in progress_bar(Settled(tasks, workers, settle), label):
            pass


def _machine(workers: StudyWorkers) -> str:
    return (
        f"{workers.words}; {os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, "
        f"NumPy {np.__version__}, orthocal {oc.__version__}"
    )
