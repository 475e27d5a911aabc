"""The noise of a problem file."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ..errors import ConfigError
from ..problem.noise.kinds import Along, CorrelatedNoise, GroupNoise, LowRankNoise, VaryingNoise
from ..sections import Section
from .priors import priors_of

#: keys of errors along a line
LINE = ("column", "length", "share", "sd", "nu", "prior")


class NoiseSection(Section):
    """The noise; ``rank``, ``groups`` and ``varying`` are kinds of it, and ``sample`` goes with ``groups``.

    ``file`` is a table of the covariance of all rows; ``kind`` and what follows are errors along a line, whose series
    are the ``groups``.
    """

    cov: float | list[float] | list[list[float]] | Literal["unknown", "estimate", "by-group", "sample"] = "unknown"
    rank: int | None = None
    groups: str | None = None
    sample: bool | None = None
    varying: Along | None = None
    file: str | None = None
    kind: Literal["ar1", "matern"] | None = None
    column: str | None = None
    length: float | None = None
    share: float | Literal["estimate"] | None = None
    sd: float | list[float] | None = None
    nu: float | None = None
    prior: dict[str, Any] | None = None


def noise_of(noise: NoiseSection, with_errors: bool, folder: Path) -> Any:
    """The noise as the file gives it; errors in columns of the data, ``with_errors``, come by themselves."""
    if noise.kind is not None:
        return _along_a_line(noise, with_errors)
    if with_errors and noise != NoiseSection():
        raise ConfigError("data.y_err and [noise] both give the noise: leave one of them out")
    alone = [name for name in LINE if getattr(noise, name) is not None]
    if alone:
        raise ConfigError(f'noise.{alone[0]} goes with kind = "ar1" or "matern"')
    if noise.file is not None:
        return _covariance(noise, folder)
    kinds: dict[str, Callable[[Any], Any]] = {
        "rank": LowRankNoise,
        "groups": partial(GroupNoise, sample=noise.sample is not False),
        "varying": VaryingNoise,
    }
    asked = [name for name in kinds if getattr(noise, name) is not None]
    if noise.sample is not None and asked != ["groups"]:
        raise ConfigError("noise.sample goes with noise.groups: leave it out")
    if not asked:
        return noise.cov
    if len(asked) > 1:
        raise ConfigError(f"[noise] has {' and '.join(asked)}: give one of them")
    if noise.cov not in ("unknown", "estimate"):
        raise ConfigError(f"noise.{asked[0]} goes without cov: leave one of them out")
    return kinds[asked[0]](getattr(noise, asked[0]))


def _along_a_line(noise: NoiseSection, with_errors: bool) -> CorrelatedNoise:
    others = [name for name in ("rank", "varying", "file") if getattr(noise, name) is not None]
    others += ["sample"] if noise.sample is not None else []
    if others:
        raise ConfigError(f"[noise] has kind and {' and '.join(others)}: give one of them")
    if isinstance(noise.cov, str) and noise.cov not in ("unknown", "estimate"):
        raise ConfigError(
            f'noise.kind goes with sd, with numbers in cov, or with neither, not with cov = "{noise.cov}"'
        )
    if with_errors and (noise.sd is not None or not isinstance(noise.cov, str)):
        raise ConfigError("data.y_err and [noise] both give the noise: leave one of them out")
    settings: dict[str, Any] = {name: getattr(noise, name) for name in LINE if getattr(noise, name) is not None}
    if noise.prior is not None:
        settings["prior"] = priors_of({"length": noise.prior})["length"]
    if noise.share == "estimate":
        settings["share"] = None
    cov = None if isinstance(noise.cov, str) else np.asarray(noise.cov, dtype=float)
    if cov is not None:
        settings["cov"] = np.diag(cov) if cov.ndim == 1 else cov
    return CorrelatedNoise(kind=noise.kind or "ar1", groups=noise.groups, **settings)


def _covariance(noise: NoiseSection, folder: Path) -> Any:
    """Numbers in rows, separated by commas, semicolons or blanks, without a header."""
    if noise != NoiseSection(file=noise.file):
        raise ConfigError("[noise] with a file takes nothing beside it: the table is the covariance of all rows")
    path = folder / str(noise.file)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"noise.file: {path.name} cannot be read: {error}") from None
    rows = [line.replace(",", " ").replace(";", " ").split() for line in text.splitlines() if line.strip()]
    try:
        return np.array([[float(cell) for cell in row] for row in rows])
    except ValueError:
        raise ConfigError(
            f"noise.file: {path.name} is no table of numbers with as many in each row: give the covariance of all "
            "rows, without a header"
        ) from None
