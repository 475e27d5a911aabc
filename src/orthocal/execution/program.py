"""A simulator that is a program: its input file is written from a template, its output file is read."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

import numpy as np
import pandas as pd

from ..arrays import Array, as_floats
from ..errors import FileError, InputError, SimulatorError
from ..files.tables import read_text_table
from .work.processes import last_words, run_program, stop_programs
from .work.simulation import Chance, External

#: what a command or a template may name besides the parameters
PLACES = ("input", "output", "x", "folder", "run", "user")


class Program(External):
    """A program that computes f(x, theta); no shell is involved, and each run has a folder of its own.

    Parameters
    ----------
    command
        ``"mysim --fast {input} {output}"``, or a list of arguments. It is split first and filled in then, so that a
        value cannot become two arguments. ``{name}`` or ``{name:.6f}`` is a parameter; ``{input}``, ``{output}``,
        ``{x}`` and ``{folder}`` are the paths of the run's files; ``{run}`` is a name that no other run has, ``{user}``
        the user's number and group, ``1000:1000``; ``{seed}`` and ``{replicate}`` are whole numbers for a program with
        random numbers, unless parameters have these names. Other braces are left as they are.
    input_template
        A text file with such placeholders, which is written into the run's folder as ``{input}``. Without it
        ``{input}`` is a CSV file with the parameters' names and values.
    output
        The file that the program writes, relative to the run's folder; or ``"stdout"``. By its ending ``.npy``,
        ``.csv`` (with a header), else numbers separated by white space; one row a point of x.
    columns
        The outcomes' columns: names for CSV, numbers from 0 otherwise. Default: all, but a CSV's columns of inputs.
    files, link
        Files that the program needs, such as a script or a mesh: linked into the run's folder, or copied if ``link``
        is False.
    folder
        Where the runs' folders are made; default: the system's place for temporary files.
    keep
        Which of the runs' folders stay: ``"none"`` (default), ``"failed"`` or ``"all"``.
    base
        Where relative paths start; default: the current folder.
    stop
        A command that ends what the program has left running elsewhere, such as a container:
        ``"docker rm --force {run}"``. It is given after a run that was ended before its time.

    Examples
    --------
    >>> import sys
    >>> from pathlib import Path
    >>> import numpy as np, orthocal as oc
    >>> with Path("line.py").open("w") as script:
    ...     print("import sys", file=script)
    ...     print("slope, points = float(sys.argv[1]), list(open(sys.argv[2]))[1:]", file=script)
    ...     print("for x in points: print(slope * float(x))", file=script)
    >>> program = oc.Program([sys.executable, "line.py", "{slope}", "{x}"], output="stdout", files=["line.py"])
    >>> x, theta = np.array([0.0, 0.5, 1.0]), [[2.0], [3.0]]
    >>> runs = oc.campaign(program, theta, x, store="runs.db", parameter_names="slope", progress=False)
    >>> runs.output[..., 0]
    array([[0. , 1. , 2. ],
           [0. , 1.5, 3. ]])
    """

    def __init__(
        self,
        command: str | Sequence[str],
        input_template: str | Path | None = None,
        output: str = "output.csv",
        columns: Sequence[str | int] | str | int | None = None,
        files: Sequence[str | Path] = (),
        folder: str | Path | None = None,
        keep: Literal["none", "failed", "all"] = "none",
        base: str | Path = ".",
        link: bool = True,
        stop: str | Sequence[str] | None = None,
    ) -> None:
        start = Path(base).resolve()
        if keep not in ("none", "failed", "all"):
            raise InputError(f'keep={keep!r}: give "none", "failed" or "all"')
        if not output or Path(output).is_absolute() or ".." in Path(output).parts:
            raise InputError(f'output={output!r}: give a file name relative to the run\'s folder, or "stdout"')
        self.command = _arguments(command, "command", start)
        self.stop = () if stop is None else _arguments(stop, "stop", start)
        self.template, self.input_name = _template(None if input_template is None else start / input_template)
        self.output = output
        self.columns = [columns] if isinstance(columns, str | int) else None if columns is None else list(columns)
        self.files = tuple(_existing(start / file) for file in files)
        self._check_places()
        self.folder = None if folder is None else start / folder
        self.keep, self.link = keep, link
        self._chance = Chance()

    def seeded(self, chance: Chance) -> Program:
        """The same for one run, whose replicate and seed stand in the places of these names.

        Examples
        --------
        >>> import sys
        >>> import numpy as np, orthocal as oc
        >>> from orthocal.execution.work.simulation import Chance
        >>> program = oc.Program([sys.executable, "-c", "print({seed})"], output="stdout")
        >>> program.seeded(Chance(replicate=0, seed=12)).run(np.zeros((1, 1)), {}, ["x"])
        array([[12.]])
        """
        one = copy(self)
        one._chance = chance
        return one

    def _check_places(self) -> None:
        """No two of a run's files may have one name: what was there before must not be taken for the output."""
        ours = {self.input_name: "the input file", "x.csv": "the points x", "stderr.txt": "the standard error"}
        if self.output in ours:
            raise InputError(f"output={self.output!r} is the name of {ours[self.output]} of every run: choose another")
        top = Path(self._output(Path()).parts[0]).name
        taken = {**ours, "stdout.txt": "the standard output", top: "the output"}
        for file in self.files:
            if file.name in taken:
                raise InputError(
                    f"files: {file} would lie in the run's folder under the name of {taken[file.name]}: rename it, or "
                    "give another output"
                )
            taken[file.name] = "another of the files"

    @property
    def outcome_names(self) -> list[str] | None:
        """The outcomes' names, where ``columns`` are names of a CSV file's.

        Examples
        --------
        >>> import orthocal as oc
        >>> oc.Program("mysim {input}", columns=["v", "sigma"]).outcome_names
        ['v', 'sigma']
        """
        names = [one for one in self.columns or () if isinstance(one, str)]
        return names if names and len(names) == len(self.columns or ()) else None

    def check(self, names: Sequence[str], here: bool) -> None:
        """Whether the program can be run with these parameters; an error says what is missing.

        Parameters
        ----------
        names
            Of the parameters: each must be used.
        here
            Whether it is started on this machine, and so must be found.

        Examples
        --------
        >>> import orthocal as oc
        >>> oc.Program("mysim {mass} {output}").check(["mass", "drag"], here=False)
        Traceback (most recent call last):
            ...
        orthocal.errors.InputError: parameter 'drag' is not used: neither the command nor the template has
            {drag}
        """
        taken = [name for name in names if name in PLACES]
        if taken:
            raise InputError(f"parameter {taken[0]!r} has the name of a placeholder for a file: choose another")
        uses_all = self.template is None and any("{input}" in part for part in self.command)
        text = "\0".join([*self.command, self.template or ""])
        unused = [name for name in names if not re.search(_placeholder([name]), text)]
        if unused and not uses_all:
            raise InputError(
                f"parameter {unused[0]!r} is not used: neither the command nor the template has {{{unused[0]}}}"
                + (" (in quotes, because of the space)" if " " in unused[0] else "")
            )
        try:
            _filled(text, {**Chance()._asdict(), **dict.fromkeys(names, 1.0)})
        except ValueError as error:
            raise InputError(f"a placeholder has a format that does not suit a number: {error}") from None
        for command in (self.command, self.stop):
            if here and command and "{" not in command[0] and shutil.which(command[0]) is None:
                raise InputError(f"there is no program {command[0]!r} that can be started")

    def identity(self) -> tuple[str, str]:
        """The program's name, and a digest of all that decides what it computes.

        Examples
        --------
        >>> import orthocal as oc
        >>> name, digest = oc.Program("mysim {input}").identity()
        >>> name, len(digest)
        ('program mysim', 64)
        >>> digest == oc.Program("mysim --fast {input}").identity()[1]
        False
        """
        total = hashlib.sha256()
        for part in (*self.command, self.template or "", self.output, str(self.columns)):
            total.update(part.encode() + b"\0")
        own = [Path(self.command[0])] if Path(self.command[0]).is_file() else []
        for path in (*own, *self.files):
            if path.is_file():
                total.update(path.read_bytes())
        return f"program {Path(self.command[0]).name}", total.hexdigest()

    def run(
        self,
        x: Array,
        theta: dict[str, float],
        input_names: Sequence[str],
        timeout: float | None = None,
        label: str = "run",
        campaign: str = "",
    ) -> Array:
        """One run: (m,) or (m, k) numbers, or an error with the program's last words.

        Parameters
        ----------
        x
            Points (m, d).
        theta
            Name -> value of each parameter.
        input_names
            Of the columns of x.
        timeout
            Seconds after which the program is ended.
        label
            What the name of the run's folder begins with.
        campaign
            What the run belongs to, for ``end_runs``.

        Examples
        --------
        >>> import sys
        >>> import numpy as np, orthocal as oc
        >>> program = oc.Program([sys.executable, "-c", "print(2 * {a})"], output="stdout")
        >>> program.run(np.array([[0.5]]), {"a": 1.5}, ["x"])
        array([[3.]])
        """
        try:
            if self.folder is not None:
                self.folder.mkdir(parents=True, exist_ok=True)
            folder = Path(tempfile.mkdtemp(prefix=f"{label}-", dir=self.folder))
        except OSError as error:
            raise SimulatorError(f"cannot make a folder for the run: {error}") from None
        failed = True
        try:
            arguments, stop = self._prepared(folder, x, theta, input_names)
            run_program(arguments, stop, folder, timeout, campaign)
            output = _read(self._output(folder), self.columns, input_names, len(x), folder)
            failed = False
            return output
        except SimulatorError as error:
            raise SimulatorError(f"{error}{'' if self.keep == 'none' else f' (files: {folder})'}") from None
        finally:
            if self.keep == "none" or (self.keep == "failed" and not failed):
                shutil.rmtree(folder, ignore_errors=True)

    def end_runs(self, campaign: str) -> None:
        """End every run that this process has under way for a campaign, and start no more.

        Parameters
        ----------
        campaign
            As given to ``run``.

        Examples
        --------
        >>> import sys
        >>> import numpy as np, orthocal as oc
        >>> program = oc.Program([sys.executable, "-c", "import time; time.sleep({a})"], output="stdout")
        >>> program.end_runs("evening")
        >>> program.run(np.array([[0.5]]), {"a": 60.0}, ["x"], campaign="evening")
        Traceback (most recent call last):
            ...
        orthocal.errors.SimulatorError: the program was ended by signal 9 ...
        """
        stop_programs(campaign)

    def _output(self, folder: Path) -> Path:
        return folder / ("stdout.txt" if self.output == "stdout" else self.output)

    def _prepared(
        self, folder: Path, x: Array, theta: dict[str, float], input_names: Sequence[str]
    ) -> tuple[list[str], list[str]]:
        """The run's files in place, and the arguments, also of the command that stops it."""
        places = {
            "input": str(folder / self.input_name),
            "output": str(self._output(folder)),
            "x": str(folder / "x.csv"),
            "folder": str(folder),
            "run": f"{folder.name}-{uuid4().hex[:8]}",
            "user": f"{os.getuid()}:{os.getgid()}",
        }
        values: dict[str, str | float] = {**places, **self._chance._asdict(), **theta}
        pd.DataFrame(x, columns=list(input_names)).to_csv(places["x"], index=False)
        if self.template is None:
            pd.DataFrame([theta]).to_csv(places["input"], index=False)
        else:
            Path(places["input"]).write_text(_filled(self.template, values), encoding="utf-8")
        for file in self.files:
            _put(file, folder / file.name, self.link)
        Path(places["output"]).parent.mkdir(parents=True, exist_ok=True)
        return [_filled(part, values) for part in self.command], [_filled(part, values) for part in self.stop]


def _put(file: Path, place: Path, link: bool) -> None:
    if link:
        place.symlink_to(file)
    elif file.is_dir():
        shutil.copytree(file, place)
    else:
        shutil.copy2(file, place)


def _arguments(command: str | Sequence[str], what: str, start: Path) -> tuple[str, ...]:
    try:
        parts = shlex.split(command) if isinstance(command, str) else [str(part) for part in command]
    except ValueError as error:
        raise InputError(f"{what} {command!r} cannot be split into arguments: {error}") from None
    if not parts:
        raise InputError(f'{what} is empty: give for instance "mysim {{input}} {{output}}"')
    if "/" in parts[0] and "{" not in parts[0]:
        # the program is started in the run's folder, where a relative path would mean another file
        parts[0] = str(start / parts[0])
    return tuple(parts)


def _placeholder(names: Sequence[str]) -> str:
    return r"\{(" + "|".join(re.escape(name) for name in names) + r")(?::([^{}]*))?\}"


def _filled(text: str, values: Mapping[str, str | float]) -> str:
    """The text with the values in their places, numbers with all their digits."""

    def value(found: re.Match[str]) -> str:
        given = values[found[1]]
        # numbers with all their digits; a seed is a whole one
        return (
            format(given, found[2]) if found[2] else str(given) if isinstance(given, str | int) else repr(float(given))
        )

    return re.sub(_placeholder(list(values)), value, text)


def _template(path: Path | None) -> tuple[str | None, str]:
    """A template's text, and the name of the file that is made from it."""
    if path is None:
        return None, "parameters.csv"
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot read the template {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"the template {path} is not a text file in UTF-8") from None
    return text, path.stem if path.suffix in (".template", ".tmpl") else path.name


def _existing(path: Path) -> Path:
    if not path.exists():
        raise InputError(f"there is no file {path}, which the program needs")
    return path


def _npy(path: Path) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except Exception as error:  # whatever a damaged header makes NumPy's reader raise
        raise SimulatorError(f"{path.name} cannot be read: {error}") from None


def _read(path: Path, columns: list[str | int] | None, input_names: Sequence[str], m: int, folder: Path) -> Array:
    """The outcomes of an output file, (m, k)."""
    if not path.is_file():
        raise SimulatorError(f"the program did not write {path.name}{last_words(folder)}")
    try:
        if path.suffix == ".npy":
            table: Any = _npy(path)
        elif path.suffix == ".csv":
            cells = read_text_table(path, file=path.name)
            chosen = [one for one in cells.names if one not in input_names] if columns is None else columns
            return np.stack([cells.numbers(str(one)) for one in chosen], axis=-1)
        else:
            table = np.loadtxt(path, ndmin=2)
            # all numbers on one line
            table = table.T if table.shape[0] == 1 and m > 1 else table
        output = as_floats(table, path.name)
        if columns is None:
            return output
        return output.reshape(len(output), -1)[:, [int(one) for one in columns]]
    except FileError as error:
        raise SimulatorError(str(error)) from None
    except (OSError, ValueError, IndexError, KeyError, TypeError) as error:
        raise SimulatorError(f"{path.name} cannot be read: {error}") from None
