"""The commands ``orthocal galaxy mock`` and ``orthocal galaxy fit``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ..errors import KEPT, ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from .fit import GalaxyFit

galaxy = typer.Typer(no_args_is_help=True, help="Calibrate an orbit-superposition (Schwarzschild) model of a galaxy.")

#: what differs between the mock galaxy of a demonstration and the one of --full
SMALL: dict[str, Any] = {"runs": 54, "refine": 10, "draws": 200, "warmup": 100, "held_out": 20}
FULL: dict[str, Any] = {"runs": 400, "refine": 60, "draws": 1000, "warmup": 200, "held_out": 20}
SMALL_BINS, FULL_BINS = 60, 105

Runs = Annotated[int | None, typer.Option(help="Runs of the model, spread over the priors.")]
Refine = Annotated[int | None, typer.Option(help="More runs, around the posterior of all outcomes.")]
Jobs = Annotated[int | None, typer.Option(help="Runs at a time. Default: number of cores.")]
Seed = Annotated[int | None, typer.Option(help="Seed of data or bins, design and draws. Default: 1.")]
Methods = Annotated[str | None, typer.Option(help="Names, with commas. Default: pgp,pbart,ogp.")]
EmulatorName = Annotated[str | None, typer.Option("--emulator", help="Name, or auto: the best. Default: gp.")]
Compare = Annotated[str | None, typer.Option("--compare", help="Emulators to compare, with commas, or none.")]
EmulatorError = Annotated[bool, typer.Option("--emulator-error", help="Add the emulator's variance to the noise.")]
Draws = Annotated[int | None, typer.Option(help="Kept draws of each chain.")]
Chains = Annotated[int | None, typer.Option(help="Chains. Default: 4.")]
HeldOut = Annotated[int | None, typer.Option("--held-out", help="Bins to predict; at most a fifth. Default: 20.")]
Redo = Annotated[bool, typer.Option("--redo", help="Make anew what was made with other settings.")]


@galaxy.command()
def mock(
    full: Annotated[bool, typer.Option("--full", help="105 bins, all orbits, 460 runs.")] = False,
    out: Annotated[Path, typer.Option("--out", help="Folder for the results.")] = Path("galaxy-mock"),
    runs: Runs = None,
    refine: Refine = None,
    bins: Annotated[int | None, typer.Option(help="Number of bins. Default: 60, with --full 105.")] = None,
    jobs: Jobs = None,
    seed: Seed = None,
    mode: Annotated[Literal["frozen", "refit"], typer.Option(help="Weights of the orbits.")] = "frozen",
    methods: Methods = None,
    emulator: EmulatorName = None,
    compare: Compare = None,
    emulator_error: EmulatorError = False,
    draws: Draws = None,
    chains: Chains = None,
    held_out: HeldOut = None,
    redo: Redo = False,
) -> None:
    """Calibrate a mock galaxy whose truth is known.

    A fit that was ended goes on where it stopped: give the same command.
    """
    given = dict(locals())

    from ..sections import checked_sections
    from . import mock_galaxy
    from .fit_data import mock_data
    from .galaxy_config import Sampling

    named = {name: value for name, value in given.items() if name in Sampling.model_fields and value is not None}
    settings = checked_sections(Sampling, {**(FULL if full else SMALL), **named, "out": str(out)}, "options")
    nbin = bins or (FULL_BINS if full else SMALL_BINS)
    if nbin < 4:
        raise ConfigError(f"--bins {nbin}: give at least 4")

    def data(say: Callable[[str], None], _: Any) -> Any:
        say(f"mock galaxy in {nbin} bins")
        return mock_data(mock_galaxy("full" if full else "small", nbin, mode=mode), settings.seed)

    _fit(settings, data)


@galaxy.command()
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
    runs: Runs = None,
    refine: Refine = None,
    theta0: Annotated[str | None, typer.Option(help="Where weights are fitted: log10_mbh,ml,f_dm.")] = None,
    mode: Annotated[Literal["frozen", "refit"] | None, typer.Option(help="Weights. Default: frozen.")] = None,
    ridge: Annotated[float | None, typer.Option(help="Draws weights to equal ones. Default: 100.")] = None,
    priors: Annotated[str | None, typer.Option(help="log10_mbh=6:10,ml=1:8,f_dm=0:0.5 is the default.")] = None,
    table: Annotated[Path | None, typer.Option(help="Existing runs, .npz, .nc or .csv, instead of the model.")] = None,
    bin_map: Annotated[Path | None, typer.Option(help="Pixels of the bins of such a table, .npz.")] = None,
    title: Annotated[str | None, typer.Option(help="Of the report.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Folder for the results. Default: galaxy.")] = None,
    jobs: Jobs = None,
    seed: Seed = None,
    methods: Methods = None,
    emulator: EmulatorName = None,
    compare: Compare = None,
    emulator_error: EmulatorError = False,
    draws: Draws = None,
    chains: Chains = None,
    held_out: HeldOut = None,
    redo: Redo = False,
) -> None:
    """Calibrate a model of an observed galaxy, or an existing table of its runs.

    A fit that was ended goes on where it stopped: give the same command.
    """
    given = dict(locals())
    given.pop("config_file")
    # False is not given: a file may say otherwise
    given |= {"redo": redo or None, "emulator_error": emulator_error or None}

    from .fit_data import table_data
    from .fit_prepare import prepared_data
    from .galaxy_config import settings_from

    settings = settings_from(config_file, given)
    if settings.kinematics is None and settings.table is None:
        raise ConfigError("nothing to fit: give --kinematics, a table of kinematics, or --table, a table of runs")

    def data(say: Callable[[str], None], stages: Any) -> Any:
        if settings.kinematics is None:
            return table_data(settings.needed("table"), settings.bin_map, settings.priors, settings.title)
        return prepared_data(settings, stages, say)

    _fit(settings, data)


def _fit(settings: Any, data: Callable[[Callable[[str], None], Any], Any]) -> None:
    """Run the stages, print the tables and write the pages."""
    from threadpoolctl import threadpool_limits

    from ..pages.tables import grid_text
    from .fit import fit_galaxy
    from .fit_page import write_all
    from .fit_tables import grids, remarks
    from .stages import Stages

    stages = Stages(settings.out, settings.redo)
    try:
        # one BLAS thread: with another number of them the last digits, and so the stages, would not be the same
        with threadpool_limits(limits=1, user_api="blas"):
            result: GalaxyFit = fit_galaxy(data(typer.echo, stages), settings, stages, typer.echo)
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
