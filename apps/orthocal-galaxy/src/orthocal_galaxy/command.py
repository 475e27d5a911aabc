"""The commands ``orthocal galaxy mock`` and ``orthocal galaxy fit``."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from orthocal.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from .fit.data import GalaxyData
    from .galaxy_config import Sampling
    from .stages import Stages

#: said where a fit is interrupted
KEPT = "what had finished is kept: the same command goes on from there"

galaxy = typer.Typer(no_args_is_help=True, help="Calibrate an orbit-superposition (Schwarzschild) model of a galaxy.")

#: what differs between the mock galaxy of a demonstration and the one of --full
SMALL = {"runs": 54, "refine": 10, "draws": 200, "warmup": 100, "held_out": 20}
FULL = {"runs": 400, "refine": 60, "draws": 1000, "warmup": 200, "held_out": 20}
SMALL_BINS, FULL_BINS = 60, 105


def _options_of_every_fit(
    runs: Annotated[int | None, typer.Option(help="Runs of the model, spread over the priors.")] = None,
    refine: Annotated[int | None, typer.Option(help="More runs, around the posterior of all outcomes.")] = None,
    jobs: Annotated[int | None, typer.Option(help="Runs at a time. Default: number of cores.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of data or bins, design and draws. Default: 1.")] = None,
    methods: Annotated[str | None, typer.Option(help="Names, with commas. Default: gp,bart,ogp.")] = None,
    emulator: Annotated[str | None, typer.Option(help="Name, or auto: the best. Default: gp.")] = None,
    compare: Annotated[str | None, typer.Option(help="Emulators to compare, with commas, or none.")] = None,
    emulator_error: Annotated[
        bool, typer.Option("--emulator-error", help="Add the emulator's variance to the noise.")
    ] = False,
    draws: Annotated[int | None, typer.Option(help="Kept draws of each chain.")] = None,
    chains: Annotated[int | None, typer.Option(help="Chains. Default: 4.")] = None,
    held_out: Annotated[int | None, typer.Option(help="Bins to predict; at most a fifth. Default: 20.")] = None,
    redo: Annotated[bool, typer.Option("--redo", help="Make anew what was made with other settings.")] = False,
) -> None: ...


def _fitting(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the options of every fit after its own; it gets them as keywords."""
    own, more = (inspect.signature(one, eval_str=True) for one in (command, _options_of_every_fit))
    named = [one for one in own.parameters.values() if one.kind is not one.VAR_KEYWORD]
    vars(command)["__signature__"] = own.replace(parameters=[*named, *more.parameters.values()])
    return command


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """Options that were given; False was not, and a file may say otherwise."""
    return {name: value for name, value in options.items() if value is not None and value is not False}


@galaxy.command()
@_fitting
def mock(
    full: Annotated[bool, typer.Option("--full", help="105 bins, all orbits, 460 runs.")] = False,
    out: Annotated[Path, typer.Option("--out", help="Folder for the results.")] = Path("galaxy-mock"),
    bins: Annotated[int | None, typer.Option(help="Number of bins. Default: 60, with --full 105.")] = None,
    mode: Annotated[Literal["frozen", "refit"], typer.Option(help="Weights of the orbits.")] = "frozen",
    **shared: Any,
) -> None:
    """Calibrate a mock galaxy whose truth is known.

    A fit that was ended goes on where it stopped: give the same command.
    """
    from orthocal.applications import checked_sections

    from .fit.data import mock_data
    from .galaxy_config import Sampling
    from .mock import mock_galaxy

    content = {**(FULL if full else SMALL), **_given(shared), "out": str(out)}
    settings = checked_sections(Sampling, content, "options")
    nbin = bins or (FULL_BINS if full else SMALL_BINS)
    if nbin < 4:
        raise ConfigError(f"--bins {nbin}: give at least 4")

    def data(_: Stages) -> GalaxyData:
        typer.echo(f"mock galaxy in {nbin} bins")
        return mock_data(mock_galaxy("full" if full else "small", nbin, mode=mode), settings.seed)

    _fit(settings, data)


@galaxy.command()
@_fitting
def fit(
    config_file: Annotated[Path | None, typer.Argument(help="Settings as a TOML file: the options' names.")] = None,
    kinematics: Annotated[Path | None, typer.Option(help="Table of the kinematics.")] = None,
    format: Annotated[Literal["atlas3d", "dynamite"] | None, typer.Option(help="Of it. Default: atlas3d.")] = None,
    light: Annotated[Path | None, typer.Option(help="CSV of Gaussians. Default: fitted to the flux.")] = None,
    distance: Annotated[float | None, typer.Option(help="Mpc.")] = None,
    inclination: Annotated[float | None, typer.Option(help="Degrees; 90 is edge-on.")] = None,
    position_angle: Annotated[float | None, typer.Option(help="Of the major axis, degrees from north to east.")] = None,
    luminosity: Annotated[float | None, typer.Option(help="Of the galaxy, Lsun.")] = None,
    psf: Annotated[float | None, typer.Option(help="Sd of the point-spread function, arcsec.")] = None,
    half_light_radius: Annotated[float | None, typer.Option(help="Arcsec. Default: that of the Gaussians.")] = None,
    halo_radius: Annotated[float | None, typer.Option(help="Scale radius of the halo, kpc. Default: 20.")] = None,
    bins: Annotated[int | None, typer.Option(help="Number of larger bins. Default: 105.")] = None,
    orbits: Annotated[Literal["full", "small"] | None, typer.Option(help="Size of the library. Default: full.")] = None,
    theta0: Annotated[str | None, typer.Option(help="Where weights are fitted: log10_mbh,ml,f_dm.")] = None,
    mode: Annotated[Literal["frozen", "refit"] | None, typer.Option(help="Weights. Default: frozen.")] = None,
    ridge: Annotated[float | None, typer.Option(help="Draws weights to equal ones. Default: 100.")] = None,
    priors: Annotated[str | None, typer.Option(help="log10_mbh=6:10,ml=1:8,f_dm=0:0.5 is the default.")] = None,
    table: Annotated[Path | None, typer.Option(help="Existing runs, .npz, .nc or .csv, instead of the model.")] = None,
    bin_map: Annotated[Path | None, typer.Option(help="Pixels of the bins of such a table, .npz.")] = None,
    title: Annotated[str | None, typer.Option(help="Of the report.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Folder for the results. Default: galaxy.")] = None,
    **shared: Any,
) -> None:
    """Calibrate a model of an observed galaxy, or an existing table of its runs.

    A fit that was ended goes on where it stopped: give the same command.
    """
    own = {name: value for name, value in locals().items() if name not in ("config_file", "shared")}

    from .fit.data import table_data
    from .fit.prepare import prepared_data
    from .galaxy_config import settings_from

    settings = settings_from(config_file, _given({**own, **shared}))
    if settings.kinematics is None and settings.table is None:
        raise ConfigError("nothing to fit: give --kinematics, a table of kinematics, or --table, a table of runs")

    def data(stages: Stages) -> GalaxyData:
        if settings.kinematics is None:
            return table_data(settings.needed("table"), settings.bin_map, settings.priors, settings.title)
        return prepared_data(settings, stages, typer.echo)

    _fit(settings, data)


def _fit(settings: Sampling, data: Callable[[Stages], GalaxyData]) -> None:
    """Run the stages, print the tables and write the pages."""
    from orthocal.applications import grid_text, one_blas_thread

    from .fit.fit import fit_galaxy
    from .fit.page import write_all
    from .fit.tables import grids, remarks
    from .stages import Stages

    stages = Stages(settings.out, settings.redo)
    try:
        # one BLAS thread: with another number of them the last digits, and so the stages, would not be the same
        with one_blas_thread():
            result = fit_galaxy(data(stages), settings, stages, typer.echo)
        page = write_all(result, stages.folder)
    except KeyboardInterrupt:
        typer.echo(f"error: interrupted; {KEPT}", err=True)
        raise typer.Exit(130) from None
    for grid in grids(result):
        typer.echo("\n" + grid_text(grid))
    typer.echo("\n" + "\n".join(f"- {one}" for one in remarks(result)))
    typer.echo(f"\nTables: {stages.folder}/joint.csv, univariate.csv, report.md\nReport: {page}")
    if result.failures:
        typer.echo(f"error: {len(result.failures)} of the fits failed, see above", err=True)
        raise typer.Exit(1)
