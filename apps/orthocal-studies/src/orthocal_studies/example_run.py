"""Run the study of the examples: what is missing of all of them in one go, and one page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import orthocal as oc

from .base import Study
from .example_pages import write_example_pages
from .example_studies import PREFIX, example_study
from .replicate import Row
from .results import Results
from .run import Request, StudyWorkers, missing, run_tasks


def run_examples(
    names: Sequence[str] | None,
    request: Request,
    folder: Path,
    start_workers: Callable[[], StudyWorkers],
    say: Callable[[str], None] = lambda _: None,
) -> tuple[str, list[tuple[Study, list[Row]]]]:
    """Run what ``folder`` does not have yet, and write the page of all it has.

    ``names`` are those of examples; None is what the folder was asked for before, or all. Returns the page, and the
    replications that failed.
    """
    with Results(folder) as results:
        kept = {name.removeprefix(PREFIX) for name in results.studies() if name.startswith(PREFIX)}
        asked = set(names) if names is not None else kept or set(oc.examples.names())
        studies = [example_study(name) for name in oc.examples.names() if name in asked]
        tasks, total = [], 0
        for study in studies:
            settings = request.settings(study, results.settings(study.name), folder)
            results.set_settings(study.name, settings)
            tasks += missing(study, settings, results.rows(study.name), request.retry)
            total += len(study.numbers(settings.replications)) * len(settings.methods)
        # a run that is cut short has a few data sets of every example
        tasks.sort(key=lambda task: task.replication)
        run_tasks(
            "examples", tasks, total, {study.address: study.name for study in studies}, results, start_workers, say
        )
        shown = [example_study(name) for name in oc.examples.names() if name in asked | kept]
        page = write_example_pages(shown, results, folder)
        failed = [(study, [row for row in results.rows(study.name) if row["error"] is not None]) for study in studies]
        return page, [(study, rows) for study, rows in failed if rows]
