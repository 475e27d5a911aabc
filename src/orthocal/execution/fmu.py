"""A simulator that is an FMU, a model exported by Modelica, Simulink and other tools; x is time, or settings."""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from threading import RLock
from time import monotonic
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from ..arrays import Array, as_columns
from ..errors import InputError, NonFiniteError, shortened

# An FMU file: what it holds, its variables by name, and its contents, extracted once.

#: names of variables that a message lists
MOST_LISTED = 20
#: fmpy changes the folder of the process while it loads a library, and few FMUs may be used by two threads
LOCK = RLock()
KINDS = {"co-simulation": "CoSimulation", "model-exchange": "ModelExchange"}


class Need(NamedTuple):
    """What a variable must be, and what is said of one that is not."""

    met: Callable[[Any], bool]
    otherwise: str


class FMUFile:
    """What is known of an FMU before it is simulated.

    Parameters
    ----------
    path
        The file.
    folder
        Where another process has extracted it; looked for, and else done again.
    """

    def __init__(self, path: Path, folder: str | None = None) -> None:
        self.path = path
        self._description: Any = None
        self._folder = folder

    def __reduce__(self) -> tuple[type[FMUFile], tuple[Path, str]]:
        return FMUFile, (self.path, self.folder)

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def description(self) -> Any:
        """The model description of fmpy."""
        if self._description is None:
            fmpy = _fmpy()
            if not self.path.is_file():
                raise InputError(f"there is no FMU {self.path}")
            try:
                # its own mistakes are not the user's: what is needed of it is checked by name
                description = fmpy.read_model_description(str(self.path), validate=False)
                platforms = fmpy.supported_platforms(str(self.path))
            except Exception as error:  # whatever a damaged archive makes the readers raise
                raise InputError(f"{self.name} is no FMU that can be read: {error}") from None
            if fmpy.platform not in platforms:
                raise InputError(
                    f"{self.name} has no binaries for this platform, {fmpy.platform}: it has "
                    f"{' and '.join(platforms) or 'none at all'}; export it for {fmpy.platform}"
                )
            self._description = description
        return self._description

    @property
    def folder(self) -> str:
        """Where it is extracted: a temporary folder that goes with the process that made it."""
        with LOCK:
            if self._folder is None or not os.path.isfile(os.path.join(self._folder, "modelDescription.xml")):
                self._folder = _extracted(self.path)
            return self._folder

    def kind(self, wanted: str) -> str:
        """fmpy's word for how it is simulated."""
        there = [word for word, kind in KINDS.items() if _has(self.description, kind)]
        chosen = wanted if wanted != "auto" else next(iter(there), "")
        if chosen not in there:
            raise InputError(f"kind={wanted!r}: {self.name} is an FMU for {' and '.join(there) or 'neither kind'}")
        return KINDS[chosen]

    def check(self, names: Sequence[str], what: str, *needs: Need) -> None:
        """Whether there are these variables, and whether they suit."""
        variables = {str(one.name): one for one in self.description.modelVariables}
        for name in names:
            if name not in variables:
                suiting = [one for one, variable in variables.items() if all(need.met(variable) for need in needs)]
                near = get_close_matches(name, suiting, MOST_LISTED) if len(suiting) > MOST_LISTED else []
                listed = ", ".join((near or suiting)[:MOST_LISTED]) or "none of this kind"
                others = " and others" if len(suiting) > MOST_LISTED else ""
                raise InputError(f"{what}: {self.name} has no variable {name!r}; it has {listed}{others}")
            for need in needs:
                if not need.met(variables[name]):
                    raise InputError(f"{what}: the variable {name!r} of {self.name} {need.otherwise}")


def _is_real(variable: Any) -> bool:
    return variable.type in ("Real", "Float32", "Float64") and not variable.shape


def _is_number(variable: Any) -> bool:
    return variable.type not in ("String", "Binary", "Clock") and not variable.shape


def _can_be_set(variable: Any) -> bool:
    from fmpy.simulation import settable_in_initialization_mode, settable_in_instantiated

    return bool(settable_in_instantiated(variable) or settable_in_initialization_mode(variable)) or (
        # FMI 1 says it by a start value
        variable.start is not None and variable.initial is None and variable.causality in ("parameter", "internal")
    )


REAL = Need(_is_real, "is no real number")
NUMBER = Need(_is_number, "is no number")
SETTABLE = Need(_can_be_set, "is calculated by the model, and cannot be set")


def _fmpy() -> Any:
    try:
        import fmpy
    except ImportError:
        raise InputError("an FMU needs fmpy: install orthocal[fmpy]") from None
    return fmpy


def _has(description: Any, kind: str) -> bool:
    return getattr(description, kind[0].lower() + kind[1:]) is not None


_folders: dict[tuple[str, int, int], tuple[int, str]] = {}


def _extracted(path: Path) -> str:
    """A folder with the contents of an FMU, the same one for all that use it in this process."""
    found = path.stat()
    key = (str(path), found.st_mtime_ns, found.st_size)
    owner, folder = _folders.get(key, (0, ""))
    if owner == os.getpid() and os.path.isdir(folder):
        return folder
    folder = tempfile.mkdtemp(prefix="orthocal-fmu-")
    try:
        with zipfile.ZipFile(path) as archive:
            # names that would leave the folder are brought back into it by zipfile
            archive.extractall(folder)
    except Exception as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise InputError(f"{path.name} cannot be extracted: {error}") from None
    _folders[key] = os.getpid(), folder
    atexit.register(_remove, os.getpid(), folder)
    return folder


def _remove(owner: int, folder: str) -> None:
    # a copy of the process must leave it to the original
    if owner == os.getpid():
        shutil.rmtree(folder, ignore_errors=True)


#: the input that is not a variable, but when the outputs are read
TIME = "time"
#: parts of the simulated time at which outputs are recorded, where the FMU does not say
PARTS = 500
#: relative tolerance of the solver: a looser one shows in differences
TOLERANCE = 1e-8


@dataclass(frozen=True)
class _Experiment:
    """How long is simulated and how; ``step`` lies between two recorded outputs."""

    start: float
    stop: float
    step: float
    tolerance: float
    kind: str
    solver: str
    timeout: float | None


class FMU:
    """f(x, theta) of an FMU: theta are start values of its variables, outcomes are variables that are read.

    Parameters
    ----------
    path
        The file.
    parameters
        Name of a parameter of the problem -> name of a variable; or the variables' names, if the problem's parameters
        have these.
    outputs
        Names of the variables that are the outcomes.
    inputs
        What the columns of x are: names of variables, ``"time"`` for when the outputs are read, or column -> name.
        Default: one column, time. There is one simulation for each combination of the other columns; without time the
        outputs are read at the end.
    start, stop
        Of the simulated time; default: what the FMU says.
    step
        Between two times at which outputs are recorded, and at which a co-simulation is given a step; in between they
        are interpolated, linearly. Default: what the FMU says, or a 500th of the time.
    fixed
        Name -> value of further variables.
    kind
        ``"co-simulation"``, ``"model-exchange"``, or ``"auto"`` (default), the first that it has.
    solver, tolerance
        Of model exchange: ``"CVode"`` (default) or ``"Euler"``; the relative tolerance, which co-simulation gets too.
    timeout
        Seconds after which a simulation has failed, looked at between its steps.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> spring = oc.FMU("spring.fmu", ["k", "c"], ["x", "v"])  # doctest: +SKIP
    >>> spring  # doctest: +SKIP
    <FMU spring.fmu: x, v of k, c>
    >>> spring(np.array([0.0, 1.0, 2.0]), np.array([4.0, 0.5]))[:, 0].round(2)  # doctest: +SKIP
    array([ 1.  , -0.22, -0.47])
    """

    #: solvers leave some noise, so differences need a longer step than usual
    gradient = "difference"
    difference_step = 1e-3

    def __init__(
        self,
        path: str | Path,
        parameters: Mapping[str, str] | Sequence[str],
        outputs: str | Sequence[str],
        inputs: Mapping[str, str] | Sequence[str] | str = TIME,
        *,
        start: float | None = None,
        stop: float | None = None,
        step: float | None = None,
        fixed: Mapping[str, float] | None = None,
        kind: Literal["auto", "co-simulation", "model-exchange"] = "auto",
        solver: Literal["CVode", "Euler"] = "CVode",
        tolerance: float = TOLERANCE,
        timeout: float | None = None,
    ) -> None:
        if kind not in ("auto", *KINDS):
            raise InputError(f'kind={kind!r}: give "auto", "co-simulation" or "model-exchange"')
        if solver not in ("CVode", "Euler"):
            raise InputError(f'solver={solver!r}: give "CVode" or "Euler"')
        self.parameters = _by_name(parameters)
        self.inputs = _by_name(inputs)
        self.outputs = [outputs] if isinstance(outputs, str) else [str(one) for one in outputs]
        self.fixed = {str(name): float(value) for name, value in (fixed or {}).items()}
        self._file = FMUFile(Path(path).resolve())
        self._check_variables()
        self._experiment = _experiment(self._file, start, stop, step, kind, solver, tolerance, timeout)

    def _check_variables(self) -> None:
        if not self.parameters or not self.outputs:
            raise InputError("parameters and outputs: give at least one variable each")
        settings = [one for one in self.inputs.values() if one != TIME]
        self._file.check(list(self.parameters.values()), "parameters", REAL, SETTABLE)
        self._file.check(settings, "inputs", NUMBER, SETTABLE)
        self._file.check(list(self.fixed), "fixed", NUMBER, SETTABLE)
        self._file.check(self.outputs, "outputs", NUMBER)
        every = [*self.parameters.values(), *settings, *self.fixed]
        twice = [one for one in every if every.count(one) > 1]
        if twice:
            raise InputError(f"the variable {twice[0]!r} is named twice among parameters, inputs and fixed")

    def __repr__(self) -> str:
        return f"<FMU {self._file.name}: {', '.join(self.outputs)} of {', '.join(self.parameters.values())}>"

    def for_parameters(self, names: Sequence[str]) -> Self:
        """The same with its parameters in the order of these names.

        Parameters
        ----------
        names
            All of them; others are an error.

        Examples
        --------
        >>> import orthocal as oc
        >>> spring = oc.FMU("spring.fmu", ["k", "c"], "x")  # doctest: +SKIP
        >>> list(spring.for_parameters(["c", "k"]).parameters)  # doctest: +SKIP
        ['c', 'k']
        """
        if set(names) != set(self.parameters) or len(names) != len(self.parameters):
            raise InputError(
                f"{self._file.name} has the parameters {', '.join(self.parameters)}, and the problem has "
                f"{', '.join(names)}: give parameters={{name of the problem: variable of the FMU, ...}}"
            )
        return self._with(parameters={name: self.parameters[name] for name in names})

    def for_inputs(self, names: Sequence[str]) -> Self:
        """The same with the columns of x in the order of these names; time alone takes any name.

        Parameters
        ----------
        names
            All of them; others are an error.

        Examples
        --------
        >>> import orthocal as oc
        >>> spring = oc.FMU("spring.fmu", ["k", "c"], "x", inputs=["start", "time"])  # doctest: +SKIP
        >>> list(spring.for_inputs(["time", "start"]).inputs)  # doctest: +SKIP
        ['time', 'start']
        """
        if list(self.inputs.values()) == [TIME] and len(names) == 1:
            return self
        if set(names) != set(self.inputs) or len(names) != len(self.inputs):
            raise InputError(
                f"{self._file.name} has the inputs {', '.join(self.inputs)}, and x has {', '.join(names)}: give "
                "inputs={column of x: variable of the FMU, ...}"
            )
        return self._with(inputs={name: self.inputs[name] for name in names})

    def _with(self, **changed: dict[str, str]) -> Self:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__ | changed)
        return other

    def identity(self) -> tuple[str, str]:
        """Its name, and a digest of the file and of how it is simulated.

        Examples
        --------
        >>> import orthocal as oc
        >>> name, digest = oc.FMU("spring.fmu", ["k", "c"], "x").identity()  # doctest: +SKIP
        >>> name, len(digest)  # doctest: +SKIP
        ('FMU spring.fmu', 64)
        """
        total = hashlib.sha256(self._file.path.read_bytes())
        named = sorted(self.parameters.items()), sorted(self.inputs.items()), self.outputs, sorted(self.fixed.items())
        total.update(repr((named, replace(self._experiment, timeout=None))).encode())
        return f"FMU {self._file.name}", total.hexdigest()

    def __call__(self, *given: Array) -> Array:
        """f(x, theta), (m, q); f(theta), (q,), of outputs without inputs, at the end."""
        if len(given) not in (1, 2):
            raise TypeError(f"f(x, theta) or f(theta), not {len(given)} arguments")
        theta = np.asarray(given[-1], dtype=np.float64)
        if theta.shape != (len(self.parameters),):
            raise InputError(f"theta has {theta.size} values, {self._file.name} has {len(self.parameters)} parameters")
        values = self.fixed | dict(zip(self.parameters.values(), theta.tolist(), strict=True))
        if len(given) == 1:
            return np.array(self._simulated(values)[1][-1])
        x = as_columns(given[0], "x")
        if x.shape[1] != len(self.inputs):
            raise InputError(f"x has {x.shape[1]} columns for the inputs {', '.join(self.inputs)} of {self._file.name}")
        return self._at(x, values)

    def _at(self, x: Array, values: dict[str, float]) -> Array:
        """The outcomes at the rows of x, (m, q): one simulation for all that differ in time alone."""
        names = list(self.inputs.values())
        settings = [j for j, name in enumerate(names) if name != TIME]
        timed = names.index(TIME) if TIME in names else None
        times = np.full(len(x), self._experiment.stop) if timed is None else x[:, timed]
        self._check_times(times)
        output = np.empty((len(x), len(self.outputs)))
        rows, place = np.unique(x[:, settings], axis=0, return_inverse=True)
        for number, row in enumerate(rows):
            own = place.ravel() == number
            setting = {names[j]: float(value) for j, value in zip(settings, row, strict=True)}
            recorded, outcomes = self._simulated(values | setting)
            for k, column in enumerate(outcomes.T):
                output[own, k] = np.interp(times[own], recorded, column)
        return output

    def _check_times(self, times: Array) -> None:
        start, stop = self._experiment.start, self._experiment.stop
        # a time that was computed may lie beside the end by rounding
        beyond = 1e-9 * (stop - start)
        outside = (times < start - beyond) | (times > stop + beyond)
        if outside.any():
            raise InputError(
                f"x has the time {times[outside][0]:g}, and {self._file.name} is simulated from {start:g} to {stop:g}: "
                "give another start= or stop="
            )

    def _simulated(self, values: dict[str, float]) -> tuple[Array, Array]:
        """The recorded times and the outcomes then, (t,) and (t, q)."""
        from fmpy import simulate_fmu

        how, said, began = self._experiment, list[str](), monotonic()
        try:
            with LOCK:
                result = simulate_fmu(
                    self._file.folder,
                    validate=False,
                    start_time=how.start,
                    stop_time=how.stop,
                    output_interval=how.step,
                    solver=how.solver,
                    relative_tolerance=how.tolerance,
                    fmi_type=how.kind,
                    start_values=values,
                    output=self.outputs,
                    timeout=how.timeout,
                    logger=lambda *given: said.append(_message(given[-1])),
                    model_description=self._file.description,
                    remote_platform=None,
                )
        except Exception as error:  # fmpy raises plain exceptions of all kinds
            raise self._failed(f"failed: {error}", values, said) from None
        times = np.asarray(result[TIME], dtype=np.float64)
        if times[-1] < how.stop - 0.5 * how.step:
            slow = how.timeout is not None and monotonic() - began > how.timeout
            why = f" (time-out, {how.timeout:g} s)" if slow else ""
            raise self._failed(f"ended at time {times[-1]:g}, before {how.stop:g}{why}", values, said)
        outcomes = np.column_stack([np.asarray(result[name], dtype=np.float64) for name in self.outputs])
        wrong = np.argwhere(~np.isfinite(outcomes))
        if len(wrong):
            row, k = wrong[0]
            raise self._failed(f"diverged: {self.outputs[k]} is not finite from time {times[row]:g} on", values, said)
        return times, outcomes

    def _failed(self, how: str, values: dict[str, float], said: list[str]) -> NonFiniteError:
        given = ", ".join(f"{name} = {value:g}" for name, value in values.items())
        words = f": {shortened(' '.join(said[-3:]))}" if said else ""
        return NonFiniteError(f"{self._file.name} {how}, with {given}{words}")


def _by_name(given: Mapping[str, str] | Sequence[str] | str) -> dict[str, str]:
    if isinstance(given, Mapping):
        return {str(name): str(variable) for name, variable in given.items()}
    names = [given] if isinstance(given, str) else [str(one) for one in given]
    if len(set(names)) != len(names):
        raise InputError(f"a variable is named twice: {', '.join(names)}")
    return {name: name for name in names}


def _experiment(
    file: FMUFile,
    start: float | None,
    stop: float | None,
    step: float | None,
    kind: str,
    solver: str,
    tolerance: float,
    timeout: float | None,
) -> _Experiment:
    own: Any = file.description.defaultExperiment
    said = {name: getattr(own, name, None) for name in ("startTime", "stopTime", "stepSize")}
    begin = float(said["startTime"] or 0.0) if start is None else float(start)
    last = said["stopTime"] if stop is None else stop
    if last is None:
        raise InputError(f"{file.name} does not say how long to simulate: give stop=")
    end = float(last)
    if not begin < end:
        raise InputError(f"start={begin:g} and stop={end:g}: give a stop after the start")
    between = float(said["stepSize"] or (end - begin) / PARTS) if step is None else float(step)
    if not 0 < between <= end - begin:
        raise InputError(f"step={between:g}: give a part of the time from {begin:g} to {end:g}")
    if not 0 < tolerance < 1:
        raise InputError(f"tolerance={tolerance!r}: give a number between 0 and 1")
    if timeout is not None and not timeout > 0:
        raise InputError(f"timeout={timeout!r}: give seconds, or None")
    return _Experiment(begin, end, between, float(tolerance), file.kind(kind), solver, timeout)


def _message(given: object) -> str:
    return given.decode(errors="replace") if isinstance(given, bytes) else str(given)
