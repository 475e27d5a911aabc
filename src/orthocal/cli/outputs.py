"""Where results go: made and tried before hours of work, written before anything is printed."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from ..errors import ConfigError, WriteError

if TYPE_CHECKING:
    from ..config.experiments_file import ExperimentsFile
    from ..config.problem_file import ProblemFile
    from ..experiments import Experiments
    from ..problem.problem import Problem


Result = TypeVar("Result")

#: bytes of a page with its pictures, at least
LEAST_PAGE = 300_000


class OutputFolder:
    """A folder that results can be written to. What it has no room for goes to a temporary one.

    ``complete`` says whether all is in its place.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self.complete = folder, True
        self._elsewhere: Path | None = None

    def need(self, least: int) -> None:
        """An error where the disk has no room for so many bytes."""
        free = shutil.disk_usage(self._folder).free
        if free < least:
            raise ConfigError(
                f"the disk of {self._folder} has {free / 1e6:.1f} MB left, and the results need at least "
                f"{least / 1e6:.1f} MB: make room, take fewer draws, or give another folder by --out"
            )

    def written(self, writer: Callable[[Path], Result]) -> Result | str:
        """What ``writer`` does with the folder, or with a temporary one; words where neither can be written."""
        try:
            return writer(self._folder)
        except WriteError as error:
            typer.echo(f"error: {error}", err=True)
            self.complete = False
        try:
            self._elsewhere = self._elsewhere or Path(tempfile.mkdtemp(prefix="orthocal-"))
            return writer(self._elsewhere)
        except OSError as error:
            return f"not written, nor elsewhere: {_why(error)}"

    def conclude(self) -> None:
        """End with an error where something is not in its place."""
        if not self.complete:
            raise typer.Exit(1)


@contextmanager
def outputs_in(folder: Path, names: Iterable[str], inputs: Iterable[Path]) -> Iterator[OutputFolder]:
    """The folder, made where it does not exist and tried; where the work fails, what was made for it goes again.

    Parameters
    ----------
    names
        Of the files that will be written.
    inputs
        Files that must not be among them.
    """
    absent = [one for one in (folder, *folder.parents) if not one.exists()]
    made_folder(folder)
    try:
        for name in names:
            _check_name(folder / name, inputs)
        _try_to_write(folder)
        yield OutputFolder(folder)
    except BaseException:
        for one in absent:
            # a folder that has something in it stays
            with suppress(OSError):
                one.rmdir()
        raise


def result_size(draws: int, problem: Problem | Experiments, keep_mb: float) -> int:
    """Bytes of theta of so many draws, and of model and bias at the data as far as kept: the least of a result.

    What a prior keeps of its bias is not known before.
    """
    from ..experiments import Experiments

    if isinstance(problem, Experiments):
        return sum(result_size(draws, one, keep_mb) for one in problem.problems.values())
    rows = 1 if problem.data.without_inputs else problem.data.n
    at_data = min(16 * draws * rows * problem.data.q, int(1e6 * keep_mb))
    return 8 * draws * problem.parameters.p + at_data


def made_folder(path: Path) -> Path:
    """The folder for results, made where it does not exist."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot make the folder {str(path)!r}: {_why(error)}") from None
    return path


def refuse_inputs(path: Path, inputs: Iterable[Path]) -> None:
    """An error where a table would replace a file that is read, or cannot be written at all."""
    _check_name(path, inputs)
    if not path.parent.is_dir():
        raise ConfigError(f"cannot write {path}: the folder {path.parent} does not exist")


def _check_name(path: Path, inputs: Iterable[Path]) -> None:
    try:
        path.lstat()
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot write {str(path)!r}: {_why(error)}") from None
    if path.is_dir():
        raise ConfigError(f"cannot write {path}: it is a folder; give another output.name, or --out")
    for one in inputs:
        if path.exists() and one.exists() and path.samefile(one):
            raise ConfigError(f"the results would replace {one}, which is read: give another output.name, or --out")


def _try_to_write(folder: Path) -> None:
    try:
        with tempfile.TemporaryDirectory(prefix=".writing-", dir=folder) as draft:
            (Path(draft) / "draft").write_bytes(bytes(4096))
    except OSError as error:
        raise ConfigError(f"cannot write to the folder {folder}: {_why(error)}") from None


def _why(error: OSError | ValueError) -> str:
    return getattr(error, "strerror", None) or str(error)


# What several commands do with their options.

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
    from ..config.experiments_file import method_change, read_any_file
    from ..sections import read_toml

    named = {"sampling.seed": seed, "sampling.draws": draws, "sampling.chains": chains}
    changes = [f"{key}={json.dumps(value)}" for key, value in named.items() if value is not None]
    if method is not None:
        changes.append(method_change(read_toml(path), method))
    changes += settings or []
    return read_any_file(path, changes), changes
