"""Errors and warnings: each says what was given, what was expected and what to do."""

from __future__ import annotations

from pathlib import Path
from traceback import extract_tb

__all__ = [
    "ConfigError",
    "FileError",
    "IdentifiabilityError",
    "InputError",
    "NonFiniteError",
    "OrthocalError",
    "OrthocalWarning",
    "SimulatorError",
    "WriteError",
]

#: for messages that end a program which has more to do
KEPT = "what had finished is kept: the same command goes on from there"


#: letters of a message
MOST_LETTERS = 4000


class OrthocalError(Exception):
    """Base of every error that orthocal raises on purpose: catch it to catch them all.

    Examples
    --------
    >>> import orthocal as oc
    >>> try:
    ...     oc.Box(1, 0)
    ... except oc.OrthocalError as error:
    ...     print(f"{type(error).__name__}: {error}")
    InputError: Box(1, 0) is empty: every upper bound must exceed its lower bound
    """

    def __str__(self) -> str:
        # a file may have names of any length, and half characters, which no terminal takes; messages quote them
        text = super().__str__().encode("utf-8", "backslashreplace").decode()
        half = MOST_LETTERS // 2
        return text if len(text) <= MOST_LETTERS else f"{text[:half]} ... {text[-half:]}"


class InputError(OrthocalError, ValueError):
    """What the user gave does not fit: shapes, names, values, settings.

    Examples
    --------
    >>> import orthocal as oc
    >>> oc.bias.GP(sd=-1)
    Traceback (most recent call last):
        ...
    orthocal.errors.InputError: sd=-1: the prior sd of the bias is a positive number, or None
    >>> issubclass(oc.errors.InputError, ValueError)
    True
    """


class ConfigError(InputError):
    """A problem file (TOML) that cannot be used.

    Examples
    --------
    >>> from pathlib import Path
    >>> from orthocal.config.problem_file import read_problem_file
    >>> _ = Path("problem.toml").write_text("[data")
    >>> read_problem_file("problem.toml")
    Traceback (most recent call last):
        ...
    orthocal.errors.ConfigError: problem.toml is not valid TOML: ...
    """


class SimulatorError(OrthocalError, RuntimeError):
    """The simulator raised, or returned something that is not its outcomes.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> from scipy import stats
    >>> x = np.linspace(0, 1, 10)
    >>> problem = oc.Problem(x, x, lambda x, theta: theta, {"a": stats.norm(0, 1)}, noise_cov=0.01)
    >>> problem.theta_tilde
    Traceback (most recent call last):
        ...
    orthocal.errors.SimulatorError: the simulator returned an array of shape (1,) for 10 points:
        expected (10,) or (10, 1)
    """


class NonFiniteError(SimulatorError):
    """The simulator or its gradient failed for a theta, it raised or gave NaN or infinity, where a value is needed.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> from scipy import stats
    >>> x = np.linspace(0, 1, 10)
    >>> def fails(x, theta):
    ...     return np.full(10, np.nan)
    >>> problem = oc.Problem(x, x, fails, {"a": stats.norm(0, 1)}, noise_cov=0.01)
    >>> problem.theta_tilde
    Traceback (most recent call last):
        ...
    orthocal.errors.NonFiniteError: the simulator returned NaN or infinity at a = ...: restrict the priors to
        where it works, or fix it there
    """


class IdentifiabilityError(OrthocalError, ValueError):
    """The data and the simulator cannot tell the parameters apart.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> from scipy import stats
    >>> x = np.linspace(0, 1, 10)
    >>> two = {"a": stats.norm(0, 1), "b": stats.norm(0, 1)}
    >>> problem = oc.Problem(x, x, lambda x, theta: (theta[0] + theta[1]) * x, two, noise_cov=0.01)
    >>> problem.sensitivity
    Traceback (most recent call last):
        ...
    orthocal.errors.IdentifiabilityError: the sensitivities of the parameters 'a', 'b' are collinear at
        the best fit: the simulator answers to a combination of them only. Fix one of them, calibrate
        the combination, or take the joint projection, method="gp", which leaves the others to their priors
    """


class FileError(OrthocalError, ValueError):
    """A file is not a result of orthocal, or is damaged.

    Examples
    --------
    >>> from pathlib import Path
    >>> import orthocal as oc
    >>> _ = Path("fit.nc").write_text("no results")
    >>> oc.load("fit.nc")
    Traceback (most recent call last):
        ...
    orthocal.errors.FileError: fit.nc is not a netCDF file, or it is damaged (its first bytes are
        others)
    """


class WriteError(OrthocalError, OSError):
    """A file cannot be written: the disk is full, or the folder may not be written to. Nothing in memory is lost.

    Examples
    --------
    >>> from orthocal.files import whole_file
    >>> with whole_file("runs.csv"):
    ...     raise OSError(28, "No space left on device")
    Traceback (most recent call last):
        ...
    orthocal.errors.WriteError: cannot write runs.csv: No space left on device; make room, or give
        another folder
    """


class OrthocalWarning(UserWarning):
    """A run went through, but the user should know something about it.

    Examples
    --------
    >>> import warnings
    >>> import orthocal as oc
    >>> theta = [[-1.0], [1.0], [2.0], [4.0]]
    >>> def root(x, theta):
    ...     return [float(theta[0]) ** 0.5 * one for one in x]
    >>> many = oc.Simulator(lambda x, theta: [root(x, one) for one in theta], batched=True)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", oc.OrthocalWarning)
    ...     oc.campaign(many, theta, [1.0, 2.0], store="runs.db", progress=False)
    Traceback (most recent call last):
        ...
    orthocal.errors.OrthocalWarning: 1 of 4 runs failed; run 0: the simulator returned ndarray: expected
        an array of real numbers (all in runs.db; retry=True or --retry runs them again)
    """


def shortened(text: str, most: int = 300) -> str:
    """For messages that quote what a file holds."""
    return text if len(text) <= most else f"{text[:most]}..."


def where_raised(error: BaseException) -> str:
    """The file and the line that an error comes from."""
    place = extract_tb(error.__traceback__)[-1]
    return f"{Path(place.filename).name}, line {place.lineno}"
