"""All commands in their groups, and those about a calibration: ``demo``, ``check``, ``run`` and ``resume``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import ConfigError
from .campaigns import next_runs, simulate
from .comparisons import compare
from .documents import Json, Prints, Quiet, found_document, give, prints_left_out, quietly, say
from .emulators import emulate
from .entry_points import Commands
from .fits import is_fit, provenance
from .outputs import (
    Chains,
    Draws,
    Method,
    Out,
    OutputFolder,
    ProblemFileName,
    Seed,
    Settings,
    changed_file,
    made_folder,
    outputs_in,
    result_size,
)
from .predictions import predict
from .results import Kept, Restart, began, calibrated, checkpoint_at, ended_in_words, result_names, show_fit, write_fit
from .serving import serve
from .starting import init

if TYPE_CHECKING:
    from ..config.experiments_file import ExperimentsFile
    from ..config.problem_file import ProblemFile
    from ..findings import Findings

EXAMPLES = """Examples:

orthocal init && orthocal run problem.toml

orthocal predict fit.nc new.csv --out predictions.csv

orthocal run problem.toml --method pgp --draws 2000 --set noise.cov=0.04 --json"""
BEGIN, CALIBRATE, RESULT, SLOW = "Begin", "Calibrate", "Use a result", "Slow simulators"

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Bayesian calibration of computer models whose bias is unknown.",
    epilog=EXAMPLES,
)

Check = Annotated[
    bool,
    typer.Option("--check", help="Say what a run would cost and what speaks against it, for few calls, and end."),
]


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
    posterior.record.data.attrs["title"] = "orthocal demo: a straight line for a curved process"
    posterior.record.data.attrs["problem_file"] = "problem.toml"
    folder = made_folder(out)
    write_demo_files(problem, folder)
    outputs = OutputFolder(folder)
    show_fit(posterior, write_fit(posterior, outputs, "fit"))
    outputs.conclude()
    say(f"\nThe best theta in truth is {MODEL1.theta_star[0]:.4f}. Files to start from: {folder / 'problem.toml'}")


def check(
    file: Annotated[Path, typer.Argument(help="A problem file, or a result file, fit.nc.", show_default=False)],
    prints: Prints = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say what speaks against a problem before its run, or against a result.

    Of a problem file: what a run would cost, and what is wrong with it, for few calls of the simulator. Of a result
    file: its findings. The exit code is 1 where there is a problem.
    """
    if is_fit(file):
        from ..results.files.loading import load

        conclude_check(load(file).check())
    from ..config.experiments_file import read_any_file

    check_before(read_any_file(file), file, prints)


def check_before(config: ProblemFile | ExperimentsFile, path: Path, prints: bool) -> None:
    """Look at the problem of a file, and end."""
    from ..config.experiments_file import build_any
    from ..progress import progress_shown

    with quietly(), progress_shown(True), prints_left_out(prints):
        problem, sampling = build_any(config, path), config.sampling
        found = problem.check(config.method.name, sampling.draws, sampling.chains, sampling.warmup).in_files()
    conclude_check(found)


def conclude_check(found: Findings) -> None:
    """Say what was found, and end: an error where there is a problem."""
    say(str(found))
    give({"ok": found.ok, "findings": found_document(found)})
    raise typer.Exit(0 if found else 1)


def run(
    problem_file: ProblemFileName,
    out: Out = None,
    seed: Seed = None,
    method: Method = None,
    draws: Draws = None,
    chains: Chains = None,
    settings: Settings = None,
    prints: Prints = False,
    checkpoint: Kept = True,
    restart: Restart = False,
    only_check: Check = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Calibrate the problem that a TOML file describes.

    Options put other settings in the place of the file's, which the result remembers. After a minute the work is kept
    in a checkpoint beside the results: whatever ends it, the same command goes on, and its results are those of a run
    that was not ended.
    """
    from ..config.experiments_file import build_any, files_of
    from ..config.problem_file import build_method

    config, changes = changed_file(problem_file, settings, seed, method, draws, chains)
    if "/" in config.output.name or config.output.name in ("", ".", ".."):
        raise ConfigError(f"output.name {config.output.name!r}: give a file name without ending and without folders")
    chosen, sampling = build_method(config.method, config.loss), config.sampling
    if only_check:
        check_before(config, problem_file, prints)
    folder, name = out or problem_file.parent / config.output.folder, config.output.name
    with (
        quietly(),
        prints_left_out(prints),
        outputs_in(folder, result_names(name), files_of(config, problem_file)) as outputs,
        ended_in_words(),
    ):
        origin = {"problem_file": problem_file, "out": out, "settings": changes}
        where = checkpoint_at(folder / f"{name}.ckpt", checkpoint, restart, "run", **origin)
        problem = build_any(config, problem_file)
        outputs.need(result_size(sampling.draws * sampling.chains, problem, sampling.keep_mb))
        posterior = calibrated(problem, chosen, sampling, where)
        posterior.record.data.attrs["title"] = config.output.title or f"Calibration of {problem_file.name}"
        posterior.record.data.attrs |= provenance(problem_file, folder, changes)
        files = write_fit(posterior, outputs, name)
        if where is not None and outputs.complete:
            where.path.unlink(missing_ok=True)
    show_fit(posterior, files)
    outputs.conclude()


def resume(
    checkpoint: Annotated[Path, typer.Argument(help="The checkpoint of what was ended, fit.ckpt or compare.ckpt.")],
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Go on with what was ended: the command that began it, again."""
    command, options = began(checkpoint)
    again: Callable[..., None] = compare if command == "compare" else run
    again(**options)


def report(
    fit: Annotated[Path, typer.Argument(help="A result file, fit.nc.")],
    out: Annotated[Path | None, typer.Option("--out", help="The page to write; default: beside the file.")] = None,
) -> None:
    """Write the report of a result file."""
    from ..results.files.loading import load

    page = out or fit.with_suffix(".html")
    if page.resolve() == fit.resolve():
        raise ConfigError(f"the report would replace the result file {fit}: give another --out")
    load(fit).report(page)
    typer.echo(f"Report: {page}")


GROUPS: dict[str, dict[str, Callable[..., None]]] = {
    BEGIN: {"init": init, "demo": demo},
    CALIBRATE: {"check": check, "run": run, "resume": resume, "compare": compare},
    RESULT: {"predict": predict, "report": report, "serve": serve},
    SLOW: {"simulate": simulate, "emulate": emulate, "next-runs": next_runs},
}
for panel, commands in GROUPS.items():
    for name, command in commands.items():
        app.command(name, rich_help_panel=panel)(command)


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
