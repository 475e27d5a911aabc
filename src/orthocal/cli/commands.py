"""The command line: ``orthocal demo``, ``run``, ``compare``, ``report``, ``study``, ``galaxy`` and others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import ConfigError
from ..galaxy.command import galaxy
from ..studies.command import study
from .campaigns import simulate
from .checkpoints import Kept, Restart, began, checkpoint_at, ended_in_words
from .checks import Check, check, check_before
from .emulators import emulate
from .experiments import compared_experiments
from .fits import provenance
from .options import listed
from .outputs import LEAST_PAGE, Outputs, made_folder, outputs_in, result_size
from .planning import next_runs
from .predictions import predict
from .prints import Prints, prints_left_out
from .serving import serve

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..results.posterior import Posterior

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Bayesian calibration of computer models whose bias is unknown.",
)

app.command()(simulate)
app.command()(emulate)
app.command()(serve)
app.command()(study)
app.command()(predict)
app.command("next-runs")(next_runs)
app.command()(check)
app.add_typer(galaxy, name="galaxy")

Out = Annotated[Path | None, typer.Option("--out", help="Folder for the results.")]


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for the results.")] = Path("demo"),
    seed: Annotated[int, typer.Option(help="Seed of the data and of the draws.")] = 1,
) -> None:
    """Calibrate a built-in example in seconds."""
    from ..calibration import calibrate
    from ..examples import MODEL1
    from .demo import demo_problem, write_demo_files

    typer.echo(
        "Field data: 100 noisy points of y = 4x + x sin(5x). Simulator: f(x, theta) = theta x, which cannot bend."
    )
    problem = demo_problem(seed)
    posterior = calibrate(problem, seed=seed)
    posterior.data.attrs["title"] = "orthocal demo: a straight line for a curved process"
    posterior.data.attrs["problem_file"] = "problem.toml"
    folder = made_folder(out)
    write_demo_files(problem, folder)
    _finish(posterior, Outputs(folder), "fit")
    typer.echo(
        f"\nThe best theta in truth is {MODEL1.theta_star[0]:.4f}. Files to start from: {folder / 'problem.toml'}"
    )


@app.command()
def run(
    problem_file: Annotated[Path, typer.Argument(help="The problem as a TOML file.")],
    out: Out = None,
    prints: Prints = False,
    checkpoint: Kept = True,
    restart: Restart = False,
    only_check: Check = False,
) -> None:
    """Calibrate the problem that a TOML file describes.

    After a minute the work is kept in a checkpoint beside the results: whatever ends it, the same command goes on, and
    its results are those of a run that was not ended.
    """
    from ..calibration import calibrate
    from ..config.experiments_file import build_any, files_of, read_any_file
    from ..config.problem_file import build_method

    config = read_any_file(problem_file)
    if "/" in config.output.name or config.output.name in ("", ".", ".."):
        raise ConfigError(f"output.name {config.output.name!r}: give a file name without ending and without folders")
    method, sampling = build_method(config.method, config.loss), config.sampling
    if only_check:
        check_before(config, problem_file, prints)
    folder, name = out or problem_file.parent / config.output.folder, config.output.name
    with (
        prints_left_out(prints),
        outputs_in(folder, _result_names(name), files_of(config, problem_file)) as outputs,
        ended_in_words(),
    ):
        where = checkpoint_at(folder / f"{name}.ckpt", checkpoint, restart, "run", problem_file=problem_file, out=out)
        problem = build_any(config, problem_file)
        outputs.need(result_size(sampling.draws * sampling.chains, problem, sampling.keep_mb))
        posterior = calibrate(
            problem,
            method,
            draws=sampling.draws,
            chains=sampling.chains,
            seed=sampling.seed,
            warmup=sampling.warmup,
            checkpoint=where,
            keep_mb=sampling.keep_mb,
            emulator_draws=sampling.emulator_draws,
        )
        posterior.data.attrs["title"] = config.output.title or f"Calibration of {problem_file.name}"
        posterior.data.attrs |= provenance(problem_file, folder, [])
        written = _written(posterior, outputs, name)
        if where is not None and outputs.complete:
            where.path.unlink(missing_ok=True)
    _show(posterior, written, outputs)


@app.command()
def resume(
    checkpoint: Annotated[Path, typer.Argument(help="The checkpoint of what was ended, fit.ckpt or compare.ckpt.")],
) -> None:
    """Go on with what was ended: the command that began it, again."""
    command, options = began(checkpoint)
    again: Callable[..., None] = compare if command == "compare" else run
    again(**options)


@app.command()
def compare(
    problem_file: Annotated[Path, typer.Argument(help="The problem as a TOML file.")],
    out: Out = None,
    methods: Annotated[str | None, typer.Option(help="Names of methods, with commas. Default: the file's.")] = None,
    groups: Annotated[
        str | None, typer.Option(help="Column of the data that says which rows to hold out together.")
    ] = None,
    prints: Prints = False,
    checkpoint: Kept = True,
    restart: Restart = False,
) -> None:
    """Calibrate by several methods, and score how they predict observations that they have not seen.

    Of a file with several experiments: each alone, all together, and all but one.

    After a minute the work is kept in a checkpoint beside the results: whatever ends it, the same command goes on.
    """
    from ..comparison.comparison import compare as run_compare
    from ..comparison.page import TABLES, write_tables
    from ..config import problem_file as toml
    from ..config.experiments_file import read_any_file

    config = read_any_file(problem_file)
    given = {"problem_file": problem_file, "out": out, "methods": methods, "groups": groups}
    if not isinstance(config, toml.ProblemFile):
        return compared_experiments(config, given, prints, checkpoint, restart)
    names = toml.compared_methods(config) if methods is None else listed(methods)
    chosen = toml.build_methods(names, config.method, config.loss)
    folder = out or problem_file.parent / config.output.folder
    files = ("compare.html", *(f"compare-{name}.csv" for name in TABLES))
    title = config.output.title or f"Comparison of methods for {problem_file.name}"
    with (
        prints_left_out(prints),
        outputs_in(folder, files, toml.input_files(config, problem_file)) as outputs,
        ended_in_words(),
    ):
        where = checkpoint_at(folder / "compare.ckpt", checkpoint, restart, "compare", **given)
        problem, sampling = toml.build_problem(config, problem_file.parent), config.sampling
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
            groups=toml.held_out_groups(config, problem_file.parent, groups or config.compare.groups),
            checkpoint=where,
        )
        for posterior in comparison.posteriors.values():
            posterior.data.attrs["problem_file"] = problem_file.name
        tables = outputs.written(lambda folder: ", ".join(map(str, write_tables(comparison, folder))))
        page = outputs.written(lambda folder: comparison.report(folder / "compare.html", title))
        if where is not None and outputs.complete:
            where.path.unlink(missing_ok=True)
    typer.echo(f"\n{comparison}\n\nTables: {tables}\nReport: {page}")
    return outputs.conclude()


@app.command()
def report(
    fit: Annotated[Path, typer.Argument(help="A result file, fit.nc.")],
    out: Annotated[Path | None, typer.Option("--out", help="The page to write; default: beside the file.")] = None,
) -> None:
    """Write the report of a result file."""
    from ..results.loading import load

    page = out or fit.with_suffix(".html")
    if page.resolve() == fit.resolve():
        raise ConfigError(f"the report would replace the result file {fit}: give another --out")
    load(fit).report(page)
    typer.echo(f"Report: {page}")


def _version(wanted: bool) -> None:
    if wanted:
        from .. import __version__

        typer.echo(f"orthocal {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options of every command."""


def _result_names(name: str) -> tuple[str, str]:
    return f"{name}.nc", f"{name}.html"


def _finish(posterior: Posterior, outputs: Outputs, name: str) -> None:
    """Write result and report, then print: what is on disk outlasts a terminal that has gone."""
    _show(posterior, _written(posterior, outputs, name), outputs)


def _written(posterior: Posterior, outputs: Outputs, name: str) -> list[str]:
    """Lines that say where result and report are."""
    result, page = _result_names(name)
    return [
        f"Result: {outputs.written(lambda folder: posterior.save(folder / result))}",
        f"Report: {outputs.written(lambda folder: posterior.report(folder / page))}",
    ]


def _show(posterior: Posterior, written: list[str], outputs: Outputs) -> None:
    """Print the summary and the findings, and where the files are."""
    from ..pages.tables import summary_text

    typer.echo("\n" + summary_text(posterior.summary()) + "\n")
    typer.echo(str(posterior.check()) + "\n")
    typer.echo("\n".join(written))
    outputs.conclude()
