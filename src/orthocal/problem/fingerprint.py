"""Which problem it is, part by part: what is kept of one must not be taken for another's."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from ..errors import OrthocalError

if TYPE_CHECKING:
    from .problem import Problem

#: theta at which the priors are looked at, and at how many of these the simulator is called
PROBES, CALLS = 8, 2


def fingerprint(problem: Problem) -> dict[str, str]:
    """Name of a part -> digest; the simulator is known by what it returns at the data for two theta.

    Nothing here needs the best fit, whose search may be long.
    """
    data, parameters, noise = problem.data, problem.parameters, problem._own_noise
    theta = parameters.starts(PROBES)
    groups = None if data.groups is None else (data.groups.labels, data.groups.codes.tolist())
    names: tuple[object, ...] = (data.input_names, data.outcome_names, groups, data.transforms.names)
    if data.labels:
        names = (*names, data.labels.written())
    errors = [np.array([]) if one is None else one for one in (noise.by_point, noise.groups, problem._x_err)]
    # of noise that is independent the digest is what it always was
    errors += [] if noise.rows is None else [noise.rows.matrix]
    prior = [theta, parameters.log_prior(theta), parameters.lower, parameters.upper]
    calls = [_called(problem, one) for one in theta[:CALLS]]
    # what gives something else each time cannot be known again
    varies = not np.array_equal(calls[0], _called(problem, theta[0]), equal_nan=True)
    return {
        "field data": digest(data.x, data.y, str(names)),
        "parameters": digest(*prior, str(parameters.names)),
        "simulator": "varies" if varies else digest(*calls),
        "domain": digest(problem.rule.nodes, problem.rule.weights),
        "noise": digest(noise.cov, *errors, f"{noise.source} {problem.emulator_error}"),
        "loss weight": digest(problem.weight),
        "starts": digest(problem._starts),
    }


def _called(problem: Problem, theta: Array) -> Array:
    """f(x, theta), nothing where it fails; a look does not count as a call."""
    simulator = problem.simulator
    counted = simulator.calls, simulator.seconds, simulator.failures, simulator.failure
    try:
        return simulator.evaluate(problem.data.x, theta)
    except OrthocalError:
        return np.array([])
    finally:
        simulator.calls, simulator.seconds, simulator.failures, simulator.failure = counted


def digest(*parts: NDArray[Any] | str) -> str:
    """Of arrays and words, shorter than they are."""
    total = hashlib.blake2b(digest_size=16)
    for part in parts:
        total.update(part.encode() if isinstance(part, str) else f"{part.shape}".encode())
        if not isinstance(part, str):
            total.update(np.ascontiguousarray(part, dtype=np.float64).tobytes())
    return f"#{total.hexdigest()}"
