"""What several commands do with their options."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ..config.experiments_file import ExperimentsFile
    from ..config.problem_file import ProblemFile

#: methods by name, for completion: the families themselves take a second to load, and a test compares them
METHOD_NAMES = (
    *("gp", "bart", "softbart", "bmars", "bnn", "pgp", "pbart", "psoftbart", "pbmars", "pbnn"),
    *("ko", "ogp", "sgasp", "pcal", "none"),
)


def _methods(incomplete: str) -> list[str]:
    return [name for name in METHOD_NAMES if name.startswith(incomplete)]


def _method_lists(incomplete: str) -> list[str]:
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in _methods(last)]


def _problem_files(incomplete: str) -> list[str]:
    """Folders as well, on the way to a file."""
    base = Path(incomplete)
    folder = base if incomplete.endswith("/") else base.parent
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return []
    shown = [f"{one}/" if one.is_dir() else str(one) for one in entries if one.is_dir() or one.suffix == ".toml"]
    return [one for one in shown if one.startswith(incomplete) and not Path(one).name.startswith(".")]


ProblemFileName = Annotated[
    Path, typer.Argument(help="The problem as a TOML file.", autocompletion=_problem_files, show_default=False)
]
Out = Annotated[Path | None, typer.Option("--out", help="Folder for the results.")]
Seed = Annotated[int | None, typer.Option("--seed", help="sampling.seed: the same seed gives the same draws.")]
Method = Annotated[
    str | None,
    typer.Option("--method", help="method.name, with its own defaults: gp, pgp, none, ...", autocompletion=_methods),
]
Methods = Annotated[
    str | None,
    typer.Option(help="Names of methods, with commas. Default: the file's.", autocompletion=_method_lists),
]
Draws = Annotated[int | None, typer.Option("--draws", help="sampling.draws: kept draws a chain.")]
Chains = Annotated[int | None, typer.Option("--chains", help="sampling.chains.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Another setting of the file, noise.cov=0.04; as often as needed."),
]


def listed(names: str) -> list[str]:
    """Names with commas between them."""
    return [name.strip() for name in names.split(",") if name.strip()]


def changed_file(
    path: Path,
    settings: list[str] | None,
    seed: int | None = None,
    method: str | None = None,
    draws: int | None = None,
    chains: int | None = None,
) -> tuple[ProblemFile | ExperimentsFile, list[str]]:
    """A problem file with what a command changes, and the changes, each ``key=value``; --set comes last."""
    from ..config.changes import method_change
    from ..config.experiments_file import read_any_file
    from ..sections import read_toml

    named = {"sampling.seed": seed, "sampling.draws": draws, "sampling.chains": chains}
    changes = [f"{key}={json.dumps(value)}" for key, value in named.items() if value is not None]
    if method is not None:
        changes.append(method_change(read_toml(path), method))
    changes += settings or []
    return read_any_file(path, changes), changes
