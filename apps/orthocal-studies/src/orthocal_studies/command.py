"""The command ``orthocal study``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orthocal.errors import InputError

if TYPE_CHECKING:
    from .base import Study
    from .replicate import Row
    from .run import Request, StudyWorkers

#: said where a study is interrupted
KEPT = "what had finished is kept: the same command goes on from there"
#: failed replications that are listed one by one
MOST_LISTED = 10
#: the study of ``orthocal.examples``
EXAMPLES = "examples"


def study(
    name: Annotated[
        str,
        typer.Argument(
            help="table1, table2, table3, finite1, finite2, outcomes, unavailable or all; joint-... of our own; "
            "examples for the problems of orthocal.examples; or yours, module:NAME."
        ),
    ],
    replications: Annotated[int | None, typer.Option(help="Number of data sets. Default: 100; examples: 20.")] = None,
    methods: Annotated[
        str | None, typer.Option(help="Keys of methods, with commas. Default: the paper's; examples: six.")
    ] = None,
    examples: Annotated[
        str | None, typer.Option(help="Of the study examples: names of problems, with commas. Default: all.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Processes. Default: number of cores.")] = None,
    cluster: Annotated[str | None, typer.Option(help="Address of a Dask scheduler, instead of --jobs.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the data sets and of the draws. Default: 1.")] = None,
    draws: Annotated[
        int | None, typer.Option(help="Kept draws, over 4 chains. Default: 5000; unavailable: 4000; examples: 2000.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Folder for the results. Default: study-NAME.")] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Run failed replications again.")] = False,
) -> None:
    """Repeat the paper's simulation study, our figures beside the paper's; or run methods over all examples.

    A run that was ended goes on where it stopped: give the same command, or only the folder. A folder that is
    complete runs nothing and writes its tables again. Options that are left out are those the folder was given last.
    """
    from .run import Request, run_study, study_workers

    if jobs is not None and jobs < 1:
        raise InputError(f"--jobs {jobs}: give at least 1")
    keys = _listed(methods)
    kind, _, one_example = name.partition("/")
    if kind == EXAMPLES:
        request = Request(replications, keys, seed, draws, retry)
        where = out or Path("study-examples")
        _study_examples(_listed(one_example or examples), request, where, lambda: study_workers(jobs, cluster))
        return
    if examples is not None:
        raise InputError(f"--examples {examples}: only `orthocal study examples` takes it")
    chosen = _studies(name, keys)
    folder = out or Path("study-all" if name == "all" else f"study-{chosen[0].name}")
    failed: list[tuple[Study, list[Row]]] = []
    for one in chosen:
        own = keys if keys is None or name != "all" else _keys_of(one, keys)
        request = Request(replications, own, seed, draws, retry)
        try:
            outcome = run_study(one, request, folder, lambda: study_workers(jobs, cluster), typer.echo)
        except KeyboardInterrupt:
            typer.echo(f"error: interrupted; {KEPT}", err=True)
            raise typer.Exit(130) from None
        typer.echo(f"\n{outcome.page}\n\nFiles: {folder / one.name}.md, .csv, .html, .svg, .png\n")
        if outcome.failures:
            failed.append((one, outcome.failures))
    if failed:
        _list_failures(failed, name, folder)
        raise typer.Exit(1)


def _listed(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(key.strip() for key in text.split(",") if key.strip())


def _study_examples(
    names: tuple[str, ...] | None, request: Request, folder: Path, start_workers: Callable[[], StudyWorkers]
) -> None:
    import orthocal as oc

    from .example_run import run_examples

    for name in names or ():
        oc.examples.get(name)
    if names == ():
        raise InputError(f"--examples names none: choose from {', '.join(oc.examples.names())}")
    try:
        page, failed = run_examples(names, request, folder, start_workers, typer.echo)
    except KeyboardInterrupt:
        typer.echo(f"error: interrupted; {KEPT}", err=True)
        raise typer.Exit(130) from None
    typer.echo(f"\n{page}\n\nFiles: {folder / EXAMPLES}.md, .csv, .html\n")
    if failed:
        _list_failures(failed, EXAMPLES, folder)
        raise typer.Exit(1)


def _studies(name: str, keys: tuple[str, ...] | None) -> list[Study]:
    from .registry import STUDIES, columns_by_key, study_by_name

    if name != "all":
        chosen = study_by_name(name)
        columns_by_key(chosen, keys)
        return [chosen]
    known = {column.key for one in STUDIES.values() for column in one.columns}
    unknown = [key for key in keys or () if key not in known]
    if unknown or keys == ():
        raise InputError(f"no study has a method {', '.join(unknown)}: there are {', '.join(sorted(known))}")
    return [one for one in STUDIES.values() if keys is None or _keys_of(one, keys)]


def _keys_of(one: Study, keys: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(column.key for column in one.columns if column.key in keys)


def _list_failures(failed: list[tuple[Study, list[Row]]], name: str, folder: Path) -> None:
    for one, rows in failed:
        typer.echo(f"error: {one.name}: {len(rows)} replication{'s' if len(rows) > 1 else ''} failed", err=True)
        for row in rows[:MOST_LISTED]:
            typer.echo(f"  {row['column']}, replication {row['replication']}: {row['error']}", err=True)
        if len(rows) > MOST_LISTED:
            typer.echo(f"  and {len(rows) - MOST_LISTED} more, in {folder / 'results.db'}", err=True)
    typer.echo(f"Run them again with: orthocal study {name} --out {folder} --retry", err=True)
