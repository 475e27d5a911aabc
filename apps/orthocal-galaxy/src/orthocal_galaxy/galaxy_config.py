"""The settings of a fit: options of the command line, or a TOML file with the same names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator

import orthocal as oc
from orthocal.applications import Section, checked_sections, read_toml
from orthocal.errors import ConfigError

from .mass import PARAMETERS
from .model import RIDGE

METHODS = ("gp", "bart", "ogp")
#: ranges of the priors where none are given: wide enough for most early-type galaxies
BOX = {"log10_mbh": (6.0, 10.0), "ml": (1.0, 8.0), "f_dm": (0.0, 0.5)}
#: files that are named relative to the TOML file
_PATHS = ("kinematics", "light", "table", "bin_map", "out")


class Sampling(Section):
    """What every fit has."""

    out: str = "galaxy"
    runs: int = Field(default=400, ge=4)
    refine: int = Field(default=60, ge=0, le=400)
    jobs: int | None = Field(default=None, ge=1)
    seed: int = Field(default=1, ge=0)
    methods: list[str] = Field(default=list(METHODS), min_length=1)
    emulator: str = "gp"
    compare: list[str] | None = None
    emulator_error: bool = False
    draws: int = Field(default=1000, ge=4)
    chains: int = Field(default=4, ge=1)
    warmup: int = Field(default=200, ge=0)
    held_out: int = Field(default=20, ge=0)
    redo: bool = False

    @property
    def chains_and_draws(self) -> dict[str, Any]:
        """What ``oc.calibrate`` is given."""
        return {"draws": self.draws, "chains": self.chains, "warmup": self.warmup, "seed": self.seed}

    @property
    def compared(self) -> list[str]:
        """The emulators to compare: those that were named, all where the best is wanted, or the one that is used."""
        if self.compare is not None and (self.compare or self.emulator != "auto"):
            return self.compare
        return list(oc.emulators.EMULATORS) if self.emulator == "auto" else [self.emulator]

    @field_validator("methods", "compare", mode="before")
    @classmethod
    def _list(cls, value: object) -> object:
        if value == "none":
            return []
        return [one.strip() for one in value.split(",") if one.strip()] if isinstance(value, str) else value

    @field_validator("emulator", "compare")
    @classmethod
    def _emulators(cls, value: str | list[str] | None) -> str | list[str] | None:
        known = [*oc.emulators.EMULATORS, "auto"] if isinstance(value, str) else list(oc.emulators.EMULATORS)
        for one in [value] if isinstance(value, str) else value or []:
            if one not in known:
                raise ValueError(f"there is no emulator {one!r}: they are {', '.join(known)}")
        return value

    @field_validator("methods")
    @classmethod
    def _known(cls, value: list[str]) -> list[str]:
        for one in value:
            oc.methods.method_by_name(one)
        return list(dict.fromkeys(value))


class GalaxyFile(Sampling):
    """A galaxy that was observed: the kinematics and how to model them, or a table of runs."""

    title: str | None = None
    kinematics: str | None = None
    format: Literal["atlas3d", "dynamite"] = "atlas3d"
    light: str | None = None
    distance: float | None = Field(default=None, gt=0)
    inclination: float | None = Field(default=None, gt=0, le=90)
    position_angle: float | None = None
    luminosity: float | None = Field(default=None, gt=0)
    psf: float | None = Field(default=None, gt=0)
    half_light_radius: float | None = Field(default=None, gt=0)
    halo_radius: float = Field(default=20.0, gt=0)
    bins: int = Field(default=105, ge=4)
    orbits: Literal["full", "small"] = "full"
    mode: Literal["frozen", "refit"] = "frozen"
    theta0: list[float] | None = None
    ridge: float = Field(default=RIDGE, gt=0)
    priors: dict[str, tuple[float, float]] = Field(default_factory=dict)
    table: str | None = None
    bin_map: str | None = None

    @field_validator("theta0", mode="before")
    @classmethod
    def _numbers(cls, value: object) -> object:
        return value.split(",") if isinstance(value, str) else value

    @field_validator("priors", mode="before")
    @classmethod
    def _ranges(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        ranges = {}
        for part in value.split(","):
            name, equals, ends = part.partition("=")
            low, colon, high = ends.partition(":")
            if not equals or not colon:
                raise ValueError(f"{part!r}: give name=low:high, with commas between parameters")
            ranges[name.strip()] = (low, high)
        return ranges

    @field_validator("priors")
    @classmethod
    def _parameters(cls, value: dict[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
        unknown = [name for name in value if name not in PARAMETERS]
        if unknown:
            raise ValueError(f"there is no parameter {', '.join(unknown)}: they are {', '.join(PARAMETERS)}")
        return value

    @property
    def box(self) -> dict[str, tuple[float, float]]:
        """The range of every parameter."""
        return {**BOX, **self.priors}

    def needed(self, name: str) -> Any:
        """A setting that must be given."""
        value = getattr(self, name)
        if value is None:
            raise ConfigError(f"--{name.replace('_', '-')} is missing: a fit to kinematics needs it")
        return value


def settings_from(file: Path | None, options: Mapping[str, Any]) -> GalaxyFile:
    """The settings of a TOML file, which given options overrule."""
    content: dict[str, Any] = {}
    if file is not None:
        content = read_toml(file)
        for name in _PATHS:
            if isinstance(content.get(name), str):
                content[name] = str(file.parent / content[name])
    content |= {
        name: str(value) if isinstance(value, Path) else value for name, value in options.items() if value is not None
    }
    return checked_sections(GalaxyFile, content, "options" if file is None else str(file))
