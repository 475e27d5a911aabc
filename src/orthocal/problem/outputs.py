"""Outputs without inputs: q numbers that a simulator f(theta) gives, each observed once, or in replicated rows.

They are q outcomes at a single point, so that the loss is a sum over the outputs, and each has a bias of its own:

    y_ik = f_k(theta) + b_k + e_ik,   theta* = argmin_t sum_k w_k (y_R,k - f_k(t))^2,   w_k = 1 / Var(e_k) by default

Noise whose correlations are given goes into the likelihood. The loss, and the units of the biases, know its variances
alone: an output counts by how precisely it is measured.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ..advice import NOISE_COV, Y_ERR
from ..arrays import Array, BoolArray, Names, as_floats, checked_names
from ..errors import InputError, SimulatorError
from ..execution.work.calls import Elsewhere
from ..execution.work.simulation import ByName
from .domain.domain import Domain, Points
from .noise.noise import Noise, NoiseSource, known_noise
from .simulator.emulator import EmulatorLike, check_columns
from .simulator.simulator_function import Function, HasGradient, NamedGradient, Simulator, own_step

#: f(theta), for outputs without inputs
OutputFunction: TypeAlias = Callable[[Array], Any]
#: the name of the input that there is not
NO_INPUT = "no_input"
#: fewer observations of an output say nothing about its noise
LEAST_REPLICATES = 3


class Outputs(NamedTuple):
    """What ``oc.Problem`` needs, from what the user gave without x."""

    x: Array
    y: Array
    simulator: Function
    noise: Noise
    loss_weight: ArrayLike
    names: tuple[str, ...]
    domain: Domain


class OnePoint(Points):
    """The point at which all outputs are."""

    def __init__(self, outputs: int) -> None:
        super().__init__(np.zeros((1, 1)))
        self._outputs = outputs

    def __repr__(self) -> str:
        return f"the {self._outputs} outputs"


class Prepared(Simulator):
    """A simulator that takes x and theta, whatever the user's takes."""


def outputs_alone(
    y: ArrayLike,
    simulator: Function | OutputFunction,
    noise_cov: object,
    y_err: ArrayLike | None,
    loss_weight: ArrayLike,
    outcome_names: Names,
    needless: Mapping[str, object],
) -> Outputs:
    """Check what was given without x; ``needless`` are the arguments that belong to inputs."""
    for name, value in needless.items():
        if value is not None:
            raise InputError(f"outputs without x take no {name}: leave it out, or give x")
    values = _rows(y)
    names = checked_names(outcome_names, values.shape[1], "outcome_names", "y", _labels(y))
    return Outputs(
        np.zeros((len(values), 1)),
        values,
        called_without_x(simulator, names),
        outputs_noise(values, names, noise_cov, y_err),
        _weight(loss_weight, names),
        names,
        OnePoint(len(names)),
    )


def _rows(y: ArrayLike) -> Array:
    values = as_floats(y, "y")
    if values.ndim > 2 or not values.size:
        raise InputError(
            f"y has shape {values.shape}: without x, give one number an output, (q,), or replicated rows, (r, q)"
        )
    return np.atleast_2d(values)


def _labels(y: object) -> object:
    """Where the names come from: the labels of a pandas Series, or the columns of a table."""
    if isinstance(y, pd.Series):
        return None if isinstance(y.index, pd.RangeIndex) else pd.DataFrame(columns=[str(label) for label in y.index])
    return y


def _by_name(given: object, names: tuple[str, ...], what: str) -> object:
    """Labelled numbers in the order of the outputs; what has no labels as it is."""
    if isinstance(given, Mapping):
        given = pd.Series(given)
    if not isinstance(given, pd.Series | pd.DataFrame):
        return given
    table = given if isinstance(given, pd.DataFrame) else given.to_frame().T
    labels = [str(label) for label in table.columns]
    if isinstance(table.columns, pd.RangeIndex) and set(labels) != set(names):
        return given.to_numpy()
    if set(labels) != set(names) or len(labels) != len(names):
        raise InputError(f"{what} has {', '.join(labels)}: give one for each of {', '.join(names)}")
    order = [labels.index(name) for name in names]
    # a covariance matrix has the outputs as its rows too
    own = [str(label) for label in table.index]
    rows = [own.index(name) for name in names] if set(own) == set(names) else slice(None)
    found = table.to_numpy()[rows][:, order]
    return found[0] if isinstance(given, pd.Series) else found


def _weight(weight: ArrayLike, names: tuple[str, ...]) -> ArrayLike:
    if isinstance(weight, str):
        return weight
    values = as_floats(_by_name(weight, names, "loss_weight"), "loss_weight")  # type: ignore[arg-type]
    return np.diag(values) if values.shape == (len(names),) else values


def outputs_noise(y: Array, names: tuple[str, ...], noise_cov: object, y_err: ArrayLike | None) -> Noise:
    """The noise of outputs (r, q): given, or the scatter of replicated rows."""
    observed = ~np.isnan(y)
    if y_err is not None:
        if not isinstance(noise_cov, str) or noise_cov not in ("unknown", "estimate"):
            raise InputError(NOISE_COV + " and y_err both give the noise: leave one of them out")
        return _from_errors(_by_name(y_err, names, "y_err"), names, observed)
    if isinstance(noise_cov, Noise):
        return noise_cov
    if isinstance(noise_cov, str) and noise_cov in ("unknown", "estimate"):
        return _from_replicates(y, names)
    if isinstance(noise_cov, str) or not (
        np.isscalar(noise_cov) or isinstance(noise_cov, Mapping | Sequence | _ARRAYS)
    ):
        raise InputError(
            NOISE_COV + f"={noise_cov!r}: outputs without x take noise that is known, a variance, one an output or a "
            f"({len(names)}, {len(names)}) matrix, or nothing where rows are replicated"
        )
    given = known_noise(_by_name(noise_cov, names, "noise_cov"), np.ones_like(observed))  # type: ignore[arg-type]
    return _with_own_scales(given, observed)


_ARRAYS = np.ndarray | pd.Series | pd.DataFrame


def _with_own_scales(noise: Noise, observed: BoolArray) -> Noise:
    """The noise with variances alone as what defines whitened coordinates; correlations stay in the likelihood."""
    variances = np.diag(np.diag(noise.cov))
    by_point = noise.by_point
    if by_point is None and not np.array_equal(noise.cov, variances):
        by_point = np.broadcast_to(noise.cov, (len(observed), *noise.cov.shape)).copy()
    return replace(noise, cov=variances, observed=observed, by_point=by_point)


def _from_errors(y_err: object, names: tuple[str, ...], observed: BoolArray) -> Noise:
    errors = as_floats(y_err, "y_err")  # type: ignore[arg-type]
    if errors.shape not in ((), (len(names),), observed.shape):
        raise InputError(
            f"y_err has shape {errors.shape}: give one standard deviation an output, ({len(names)},), or one for every "
            f"cell of y, {observed.shape}"
        )
    sd = np.broadcast_to(errors, observed.shape)
    wrong = ~(np.isfinite(sd) & (sd > 0))
    if wrong.any():
        row, k = np.argwhere(wrong)[0]
        raise InputError(
            f"y_err of {names[k]!r} is {sd[row, k]:g}: an error must be positive and finite, also where the output is "
            "missing, because it says how much the output counts"
        )
    cov = np.diag(np.exp(2 * np.log(sd).mean(axis=0)))
    by_point = None if (sd == sd[0]).all() else np.einsum("ik,kl->ikl", sd**2, np.eye(len(names)))
    return Noise(cov, observed, NoiseSource.KNOWN, by_point)


def _from_replicates(y: Array, names: tuple[str, ...]) -> Noise:
    """The variance of each output between its replicates: without x, a scatter around the mean is nothing but noise."""
    observed = ~np.isnan(y)
    for name, values in zip(names, y.T, strict=True):
        seen = values[~np.isnan(values)]
        if len(seen) < LEAST_REPLICATES:
            raise InputError(
                f"{name!r} has {len(seen)} observation{'s' * (len(seen) != 1)}, and from fewer than {LEAST_REPLICATES} "
                "its noise cannot be told from its bias: give "
                + NOISE_COV
                + " (variances) or "
                + Y_ERR
                + " (standard deviations), or "
                "replicated rows of y"
            )
        if np.ptp(seen) == 0:
            raise InputError(
                f"all observations of {name!r} are {seen[0]:g}: there is no scatter, give " + NOISE_COV + " or " + Y_ERR
            )
    freedom = tuple(float(count - 1) for count in observed.sum(axis=0))
    return Noise(np.diag(np.nanvar(y, axis=0, ddof=1)), observed, NoiseSource.ESTIMATED, freedom=freedom)


def called_without_x(simulator: Function | OutputFunction, names: tuple[str, ...]) -> Function:
    """The user's f(theta) as a function of x and theta, which the rest of the library calls; an emulator is one."""
    if isinstance(simulator, Prepared | EmulatorLike):
        check_columns(simulator, (), names)
        return simulator
    given = simulator if isinstance(simulator, Simulator) else None
    own: object = simulator if given is None else given.function
    gradient: object = simulator.gradient if isinstance(simulator, HasGradient) else "auto"
    _check_arguments(own)
    function = _repeated(cast(OutputFunction, own), names, given is not None and bool(given.batched))
    settings: dict[str, Any] = {"step": own_step(own)}
    if given is not None:
        settings = {"step": given.step, "jobs": given.jobs, "batched": given.batched, "timeout": given.timeout}
    if callable(gradient):
        return Prepared(function, _Repeated(gradient, None), **settings)
    return Prepared(function, cast(NamedGradient, gradient if isinstance(gradient, str) else "auto"), **settings)


def _repeated(function: OutputFunction, names: tuple[str, ...], batched: bool) -> Function:
    if batched:
        return _RepeatedBatch(function)
    return (_RepeatedElsewhere if isinstance(function, Elsewhere) else _Repeated)(function, names)


def _check_arguments(function: object) -> None:
    if not callable(function):
        raise InputError(f"the simulator is {type(function).__name__}: give a function f(theta)")
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        # some compiled functions do not say
        return
    positional = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    needed = [one.name for one in positional if one.default is one.empty]
    if len(needed) > 1:
        raise InputError(
            f"without x the simulator is called as f(theta), with one array of all parameters, but it takes "
            f"{', '.join(needed)}: give lambda theta: ..., or x"
        )


@dataclass(frozen=True)
class _Repeated:
    """f(theta) as a function of x too: the same outputs, or their gradient, at each of the points.

    ``names`` bring outputs with labels into the order of the data.
    """

    function: OutputFunction
    names: tuple[str, ...] | None

    def __call__(self, x: Array, theta: Array) -> Any:
        output = self.function(theta)
        if type(output).__module__.startswith("jax"):
            values, zeros = output, np.zeros((len(x), *[1] * output.ndim))
            return zeros + values[None]
        return np.repeat(self._values(output)[None], len(x), axis=0)

    def for_parameters(self, names: Sequence[str]) -> _Repeated:
        """Of a function that knows its parameters by name."""
        if not isinstance(self.function, ByName):
            return self
        return replace(self, function=cast(OutputFunction, self.function.for_parameters(names)))

    def _values(self, output: object) -> Array:
        if self.names is None:
            return np.asarray(output)
        if isinstance(output, pd.Series) and not isinstance(output.index, pd.RangeIndex):
            output = dict(zip(map(str, output.index), output.to_numpy(), strict=True))
        # by hand: a table of pandas for each of thousands of calls would take longer than many simulators
        if isinstance(output, Mapping) and set(output) == set(self.names):
            output = [output[name] for name in self.names]
        values = np.asarray(_by_name(output, self.names, "the simulator's output"))
        if values.shape in ((), (1, len(self.names)), (len(self.names), 1)):
            values = values.reshape(-1)
        if values.shape != (len(self.names),):
            raise SimulatorError(
                f"the simulator returned an array of shape {values.shape} for {len(self.names)} outputs: f(theta) must "
                f"return ({len(self.names)},)"
            )
        return values


class _RepeatedElsewhere(_Repeated):
    """The same for a function whose work is done elsewhere."""

    @property
    def at_a_time(self) -> int:
        assert isinstance(self.function, Elsewhere)
        return self.function.at_a_time

    def end_calls(self) -> None:
        getattr(self.function, "end_calls", lambda: None)()


@dataclass(frozen=True)
class _RepeatedBatch:
    """f(theta) for theta (c, p) as a function of x too: the same outputs at each of the points, (c, m, q)."""

    function: OutputFunction

    def __call__(self, x: Array, theta: Array) -> Any:
        output = self.function(theta)
        if np.ndim(output) != 2 or len(output) != len(theta):
            raise SimulatorError(
                f"the simulator returned an array of shape {np.shape(output)} for {len(theta)} theta: with batched, "
                f"f(theta) must return ({len(theta)}, q)"
            )
        return output[:, None] + np.zeros((1, len(x), 1))
