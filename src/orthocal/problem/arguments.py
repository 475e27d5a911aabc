"""What a user gives a Problem, checked and made ready."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..advice import NOISE_COV, UNKNOWN_NOISE, Advice
from ..arrays import Array, as_columns, as_floats, checked_names, is_positive_definite, is_symmetric
from ..errors import InputError
from .data.field_data import FieldData
from .noise.kinds import AskedNoise, CorrelatedNoise, GroupNoise, PartlyGiven, given_noise, is_unknown
from .noise.noise import Noise, known_noise, noise_from_errors
from .prior.parameters import Parameters
from .simulator.emulator import EmulatorLike


def checked_noise(
    noise_cov: ArrayLike | Noise | AskedNoise, y_err: ArrayLike | None, data: FieldData
) -> Noise | AskedNoise | PartlyGiven | str:
    """The noise where it is given, or how to find it."""
    observed = data.observed
    if isinstance(noise_cov, CorrelatedNoise):
        return given_noise(noise_cov, y_err, data)
    if y_err is not None:
        if not isinstance(noise_cov, str) or noise_cov not in ("unknown", "estimate"):
            raise InputError(NOISE_COV + " and y_err both give the noise: leave one of them out")
        return noise_from_errors(y_err, observed)
    if isinstance(noise_cov, Noise | AskedNoise):
        return noise_cov
    if isinstance(noise_cov, str):
        if noise_cov == "by-group":
            return GroupNoise()
        # the word of version 0.2
        noise_cov = "unknown" if noise_cov == "sample" else noise_cov
        if noise_cov not in ("unknown", "estimate"):
            raise InputError(NOISE_COV + f'={noise_cov!r}: give the variance, "unknown", "by-group" or "estimate"')
        return noise_cov
    return known_noise(noise_cov, observed)


def known_beside(emulator_error: bool, noise_cov: Any) -> Any:
    """An error that is given comes to a noise that is given, or estimated."""
    return "estimate" if emulator_error and isinstance(noise_cov, str) and is_unknown(noise_cov) else noise_cov


def transformed_errors(y_err: ArrayLike | None, data: FieldData) -> ArrayLike | None:
    """T'(y_i) y_err: errors of y on the transformed scale, to first order."""
    if y_err is None or not data.transforms:
        return y_err
    # in the user's own numbers first
    noise_from_errors(y_err, data.observed)
    slope = data.transforms.slope(data.native_y)
    endless = np.argwhere(np.isinf(slope))
    if len(endless):
        row, k = endless[0]
        label = data.transforms.labels(data.outcome_names)[k]
        raise InputError(
            f"{data.outcome_names[k]} is {data.native_y[row, k]:g} in row {row}, where y_err has no counterpart on the "
            f"scale of {label}: give " + NOISE_COV + " on that scale instead, 0.25 for counts"
        )
    return slope * (as_floats(y_err, "y_err") if np.ndim(y_err) == 0 else as_columns(y_err, "y_err"))


def check_emulator(emulator: EmulatorLike | None, names: tuple[str, ...], emulator_error: bool, noise_cov: Any) -> None:
    """An emulator knows the order of its parameters, and whether it has a variance."""
    known = names if emulator is None else emulator.parameter_names
    # runs whose names are those that nobody gave have their parameters in the order of the priors
    unnamed = known == checked_names(None, len(known), "parameter_names", "theta")
    if known != names and (len(known) != len(names) or set(known) & set(names) or not unnamed):
        same = set(known) == set(names)
        cure = " in this order, or take runs.ordered([...])" if same else " by these names, or name the runs' as these"
        raise InputError(
            f"the runs of the emulator have the parameters {', '.join(known)}: give priors for these,{cure}, "
            f"not for {', '.join(names)}"
        )
    if not emulator_error:
        return
    if emulator is None or not emulator.has_variance:
        raise InputError("emulator_error needs an emulator with a variance as the simulator, for instance 'gp'")
    if is_unknown(noise_cov):
        raise InputError(
            "emulator_error needs noise that is known or estimated, not "
            + UNKNOWN_NOISE
            + " or "
            + Advice("GroupNoise", "groups in [noise]")
        )


def checked_weight(weight: ArrayLike, q: int) -> Array | str:
    if isinstance(weight, str):
        if weight not in ("noise-precision", "identity"):
            raise InputError(f'loss_weight={weight!r}: give "noise-precision", "identity" or a ({q}, {q}) matrix')
        return weight
    matrix = np.atleast_2d(as_floats(weight, "loss_weight"))
    if matrix.shape != (q, q):
        raise InputError(f"y has {q} outcomes but loss_weight has shape {matrix.shape}: give a ({q}, {q}) matrix")
    if not np.isfinite(matrix).all() or not is_symmetric(matrix) or not is_positive_definite(matrix):
        raise InputError("loss_weight is not symmetric and positive definite")
    return matrix


def checked_starts(starts: ArrayLike, parameters: Parameters) -> Array:
    """The starts of the search, (s, p)."""
    if isinstance(starts, int | np.integer):
        if starts < 1:
            raise InputError(f"starts={starts}: the search needs at least one start")
        return parameters.starts(int(starts))
    points = np.atleast_2d(as_floats(starts, "starts"))
    if points.ndim != 2 or points.shape[1] != parameters.p or not len(points):
        raise InputError(f"starts has shape {points.shape}: give a number, or one column a parameter ({parameters.p})")
    if not parameters.inside(points).all():
        raise InputError("a start of the search lies outside the support of the priors, or of the constraint")
    return points


def checked_units(units: Mapping[str, str] | None, data: FieldData, parameters: Parameters) -> dict[str, str]:
    """Name -> unit of inputs, outcomes and parameters; they are shown, and change nothing."""
    known = (*(() if data.without_inputs else data.input_names), *data.outcome_names, *parameters.names)
    found = dict(units or {})
    for name, unit in found.items():
        if name not in known:
            raise InputError(f"units has {name!r}: give names of inputs, outcomes or parameters, {', '.join(known)}")
        if not isinstance(unit, str) or not unit.strip():
            raise InputError(f'units: that of {name!r} is {unit!r}, give a text like "m/s", or leave it out')
    return {name: unit.strip() for name, unit in found.items()}
