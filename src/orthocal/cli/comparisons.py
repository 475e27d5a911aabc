"""The command ``orthocal compare``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ConfigError
from .documents import Json, Prints, Quiet, give, prints_left_out, quietly, say
from .fits import provenance
from .outputs import (
    LEAST_PAGE,
    Chains,
    Draws,
    Methods,
    Out,
    ProblemFileName,
    Seed,
    Settings,
    changed_file,
    listed,
    outputs_in,
)
from .results import Kept, Restart, checkpoint_at, ended_in_words

if TYPE_CHECKING:
    from ..comparison.comparison import Comparison
    from ..config.experiments_file import ExperimentsFile
    from ..config.problem_file import ProblemFile
    from .outputs import OutputFolder


# ``orthocal compare`` of a file with several experiments.

EXPERIMENT_TABLES = ("disagreements", "predictions")


def compared_experiments(
    config: ExperimentsFile, given: dict[str, Any], prints: bool, checkpoint: bool, restart: bool
) -> None:
    """Each experiment alone, all together, and all but one: tables and a page; ``given`` is what the command was."""
    from ..comparison.experiments import compare_experiments
    from ..config.experiments_file import build_any, files_of
    from ..config.problem_file import build_method
    from ..experiments import Experiments
    from ..files import whole_file

    if given["methods"] is not None or given["groups"] is not None:
        raise ConfigError("--methods and --groups are for one problem: experiments are compared with each other")
    path: Path = given["problem_file"]
    folder, sampling = given["out"] or path.parent / config.output.folder, config.sampling
    names = ("compare.html", *(f"compare-{name}.csv" for name in EXPERIMENT_TABLES))
    title = config.output.title or f"Comparison of the experiments of {path.name}"
    with prints_left_out(prints), outputs_in(folder, names, files_of(config, path)) as outputs, ended_in_words():
        where = checkpoint_at(folder / "compare.ckpt", checkpoint, restart, "compare", **given)
        outputs.need(LEAST_PAGE)
        experiments = build_any(config, path)
        assert isinstance(experiments, Experiments)
        comparison = compare_experiments(
            experiments,
            build_method(config.method, config.loss),
            where,
            draws=sampling.draws,
            chains=sampling.chains,
            seed=sampling.seed,
            warmup=sampling.warmup,
        )
        comparison.together.record.data.attrs |= provenance(path, folder, given["settings"])

        def tables(folder: Path) -> str:
            for name, table in zip(
                EXPERIMENT_TABLES, (comparison.disagreements(), comparison.predictions), strict=True
            ):
                with whole_file(folder / f"compare-{name}.csv") as draft:
                    table.to_csv(draft)
            return ", ".join(str(folder / f"compare-{name}.csv") for name in EXPERIMENT_TABLES)

        written = outputs.written(tables)
        page = outputs.written(lambda folder: comparison.report(folder / "compare.html", title))
        if where is not None and outputs.complete:
            where.path.unlink(missing_ok=True)
    say(f"\n{comparison}\n\nTables: {written}\nReport: {page}")
    give(
        {
            "disagreements": comparison.disagreements().reset_index(),
            "predictions": comparison.predictions.reset_index(),
            "files": {"tables": str(written).split(", "), "report": str(page)},
        }
    )
    outputs.conclude()


def compare(
    problem_file: ProblemFileName,
    out: Out = None,
    methods: Methods = None,
    groups: Annotated[
        str | None, typer.Option(help="Column of the data that says which rows to hold out together.")
    ] = None,
    seed: Seed = None,
    draws: Draws = None,
    chains: Chains = None,
    settings: Settings = None,
    prints: Prints = False,
    checkpoint: Kept = True,
    restart: Restart = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Calibrate by several methods, and score how they predict observations that they have not seen.

    Of a file with several experiments: each alone, all together, and all but one.

    After a minute the work is kept in a checkpoint beside the results: whatever ends it, the same command goes on.
    """
    from ..config.problem_file import ProblemFile

    config, changes = changed_file(problem_file, settings, seed, None, draws, chains)
    given = {"problem_file": problem_file, "out": out, "methods": methods, "groups": groups, "settings": changes}
    with quietly():
        if isinstance(config, ProblemFile):
            _compared_methods(config, given, prints, checkpoint, restart)
        else:
            compared_experiments(config, given, prints, checkpoint, restart)


def _compared_methods(
    config: ProblemFile, given: dict[str, Any], prints: bool, checkpoint: bool, restart: bool
) -> None:
    """Tables and a page of the methods; ``given`` is what the command was."""
    from ..comparison.comparison import TABLES, compare as run_compare
    from ..config import problem_file as toml

    path: Path = given["problem_file"]
    names = toml.compared_methods(config) if given["methods"] is None else listed(given["methods"])
    chosen = toml.build_methods(names, config.method, config.loss)
    folder = given["out"] or path.parent / config.output.folder
    files = ("compare.html", *(f"compare-{name}.csv" for name in TABLES))
    with (
        prints_left_out(prints),
        outputs_in(folder, files, toml.input_files(config, path)) as outputs,
        ended_in_words(),
    ):
        where = checkpoint_at(folder / "compare.ckpt", checkpoint, restart, "compare", **given)
        problem, sampling = toml.build_problem(config, path.parent), config.sampling
        outputs.need(LEAST_PAGE)
        comparison = run_compare(
            problem,
            chosen,
            folds=config.compare.folds,
            draws=sampling.draws,
            chains=sampling.chains,
            seed=sampling.seed,
            warmup=sampling.warmup,
            fold_draws=config.compare.fold_draws,
            loo=config.compare.loo,
            groups=toml.held_out_groups(config, path.parent, given["groups"] or config.compare.groups),
            checkpoint=where,
        )
        for posterior in comparison.posteriors.values():
            posterior.record.data.attrs |= provenance(path, folder, given["settings"])
        written = _written(comparison, outputs, config.output.title or f"Comparison of methods for {path.name}")
        if where is not None and outputs.complete:
            where.path.unlink(missing_ok=True)
    say(f"\n{comparison}\n\nTables: {written['tables']}\nReport: {written['report']}")
    give(_document(comparison, written))
    outputs.conclude()


def _written(comparison: Comparison, outputs: OutputFolder, title: str) -> dict[str, str]:
    from ..comparison.comparison import write_tables

    return {
        "tables": str(outputs.written(lambda folder: ", ".join(map(str, write_tables(comparison, folder))))),
        "report": str(outputs.written(lambda folder: comparison.report(folder / "compare.html", title))),
    }


def _document(comparison: Comparison, files: dict[str, str]) -> dict[str, Any]:
    return {
        "parameters": comparison.summary().reset_index(),
        "scores": comparison.scores().reset_index(),
        "times": comparison.times().reset_index(),
        "failures": comparison.failures,
        "files": {"tables": files["tables"].split(", "), "report": files["report"]},
    }
