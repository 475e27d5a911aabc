"""The commands ``orthocal simulate`` and ``next-runs``: runs of a simulator, and where to run it next."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import KEPT, ConfigError
from .documents import Json, Prints, Quiet, document_asked, give, prints_left_out, quietly, say
from .fits import Experiment, Problem, fit_of, made_from
from .outputs import refuse_inputs

if TYPE_CHECKING:
    import pandas as pd

    from ..runs.store import Status

#: failed runs that are listed one by one
MOST_LISTED = 10


def simulate(
    campaign_file: Annotated[Path, typer.Argument(help="The campaign as a TOML file.")],
    status: Annotated[bool, typer.Option("--status", help="Say how far it is, and run nothing.")] = False,
    retry: Annotated[bool, typer.Option("--retry", help="Try failed runs once more.")] = False,
    export: Annotated[Path | None, typer.Option(help="Write the runs to a .nc or .csv file.")] = None,
    jobs: Annotated[int | None, typer.Option(help="Runs at a time. Default: the file's, or the cores.")] = None,
    cluster: Annotated[str | None, typer.Option(help="Address of a Dask scheduler. Default: the file's.")] = None,
    accept_changed: Annotated[
        bool, typer.Option("--accept-changed", help="Go on though the simulator's code has changed.")
    ] = False,
    prints: Prints = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run the simulator at every point of a design.

    A campaign that was ended goes on where it stopped: give the same command. Each run is kept as soon as it has
    finished. With --status, --export writes what is there so far.
    """
    from ..config.campaign_file import build_campaign, read_campaign_file

    if export is not None and export.suffix.lower() not in (".nc", ".csv"):
        raise ConfigError(f"--export {export}: give a name that ends in .nc or .csv")
    config = read_campaign_file(campaign_file)
    settings = build_campaign(config, campaign_file.parent)
    if jobs is not None or cluster is not None:
        # what is given here replaces both: one of them alone decides where the runs are made
        settings.update(jobs=jobs, cluster=cluster)
    if not status:
        with quietly(), prints_left_out(prints):
            _run(settings, retry, accept_changed)
    _conclude(settings, export, show=status)


def _run(settings: dict[str, Any], retry: bool, accept_changed: bool) -> None:
    import warnings

    from ..errors import OrthocalWarning, SimulatorError
    from ..runs.campaigns import campaign

    try:
        with warnings.catch_warnings():
            # failed runs are listed below
            warnings.filterwarnings("ignore", r"\d+ of \d+ runs failed", OrthocalWarning)
            campaign(**settings, retry=retry, accept_changed=accept_changed)
    except SimulatorError:
        # all runs failed: the list below says it
        return
    except KeyboardInterrupt:
        typer.echo(f"error: interrupted; {KEPT}", err=True)
        raise typer.Exit(130) from None


def _conclude(settings: dict[str, Any], export: Path | None, show: bool) -> None:
    """Print how far the campaign is, and write the table; failed runs are an error of a campaign, not of --status."""
    from ..runs.campaigns import campaign_outcome_names
    from ..runs.store import RunStore

    planned = len(settings["design"]) * settings["replicates"]
    if show and not settings["store"].is_file():
        say(f"done 0, failed 0, missing {planned}: nothing has been run yet")
        give({"done": 0, "failed": 0, "missing": planned, "errors": [], "files": {}})
        return
    with RunStore(settings["store"]) as store:
        status = store.status()
        # the design may have grown since the store was last written
        found = status._replace(missing=max(0, planned - status.done - status.failed))
        say(_in_words(found))
        files: dict[str, Path] = {"store": settings["store"]}
        if export is not None and not found.done:
            typer.echo("no run has gone well yet: nothing is exported", err=True)
        elif export is not None:
            names = campaign_outcome_names(settings["simulator"], settings["outcome_names"])
            files["runs"] = store.table(names, settings["units"]).save(export)
            say(f"Runs: {files['runs']}")
    errors = [{"run": number, "error": error} for number, error in found.errors]
    give({**found._asdict(), "errors": errors, "files": files})
    _list_failures(found, settings["store"], show)


def _list_failures(found: Status, store: Path, show: bool) -> None:
    """Failed runs one by one; of a campaign, and not of --status, they are an error."""
    if not found.failed:
        return
    for number, error in found.errors[:MOST_LISTED]:
        typer.echo(f"  run {number}: {_one_line(error)}", err=not show or document_asked())
    if found.failed > MOST_LISTED:
        typer.echo(f"  and {found.failed - MOST_LISTED} more, in {store}", err=not show or document_asked())
    if not show:
        typer.echo("error: some runs failed; try them again with --retry", err=True)
        raise typer.Exit(1)


def _one_line(error: str) -> str:
    """How an error begins and ends: a program's last words are at its end."""
    words = " ".join(error.split())
    return words if len(words) <= 300 else f"{words[:120]} ... {words[-160:]}"


def _in_words(found: Status) -> str:
    seconds = "" if found.mean_seconds is None else f"; {found.mean_seconds:.3g} s a run"
    return f"done {found.done}, failed {found.failed}, missing {found.missing}{seconds}"


def next_runs(
    file: Annotated[
        Path, typer.Argument(help="A result file, fit.nc, or the problem file that made one.", show_default=False)
    ],
    number: Annotated[int, typer.Option("--number", "-n", help="Of runs.")] = 8,
    out: Annotated[
        Path | None, typer.Option("--out", help="The table to write. Default: next-runs.csv beside the result.")
    ] = None,
    append: Annotated[bool, typer.Option("--append", help="Put them below the rows that the table has.")] = False,
    problem: Problem = None,
    experiment: Experiment = None,
    seed: Annotated[int, typer.Option(help="Of the candidates.")] = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Choose the next runs of a simulator that an emulator stands for.

    They are the values of the parameters whose runs reduce most what the emulator adds to their uncertainty. The table
    has a column a parameter: give it to a campaign, more = "next-runs.csv" in its [design], or run them by hand and add
    the results to the table of runs.
    """
    from ..config.problem_file import problem_runs
    from ..refinement import next_runs as chosen_runs

    fit = fit_of(file)
    target = out or fit.with_name("next-runs.csv")
    before = _before(target, append)
    with quietly():
        made = made_from(fit, problem or (None if fit == file else file), experiment, simulator=False)
        if made.config.simulator.runs is None:
            raise ConfigError(
                f"{fit} calls its simulator itself, and needs no runs: next-runs is for problems with runs in "
                "[simulator]"
            )
        refuse_inputs(target, [file, fit, made.folder / made.config.simulator.runs])
        runs = problem_runs(made.config, made.folder)
        table = chosen_runs(made.posterior, runs, number, seed, progress=True)
    _save(target, before, table)
    say(f"Next runs: {target} ({len(table)} rows)")
    give({"file": target, "runs": table})


def _before(target: Path, append: bool) -> list[str] | None:
    """The lines of the table that is there, to append to."""
    if not target.exists():
        return None
    if not append:
        raise ConfigError(f"{target} is there already: --append adds to it, --out writes another")
    from ..files.tables import text_lines

    return text_lines(target).read().splitlines()


def _save(target: Path, before: list[str] | None, table: pd.DataFrame) -> None:
    from ..files import whole_file

    header, *rows = table.to_csv(index=False).splitlines()
    if before and before[0] != header:
        raise ConfigError(f"{target} has the columns {before[0]}, and the next runs have {header}: give another --out")
    with whole_file(target) as draft:
        draft.write_text("\n".join([*(before or [header]), *rows]) + "\n", encoding="utf-8")
