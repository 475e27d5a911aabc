"""A simulator that is an FMU, a model exported by Modelica, Simulink and other tools; x is time, or settings."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any, Literal, Self

import numpy as np

from ..arrays import Array, as_columns
from ..errors import InputError, NonFiniteError, shortened
from .fmu_file import KINDS, LOCK, NUMBER, REAL, SETTABLE, FMUFile

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
