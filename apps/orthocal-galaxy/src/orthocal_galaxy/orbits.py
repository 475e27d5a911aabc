"""The orbit library: which orbits there are, and what they leave on the sky.

A cell of the library is an interval of energies (by the radius of the circular orbit, in equal steps of its
logarithm), of L_z / L_circular and of latitudes of the start on the zero-velocity curve. In each cell several orbits,
the dithers, are followed for some periods and averaged. Every cell has a copy that runs the other way round.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from orthocal.applications import Array, announced
from orthocal.errors import InputError, SimulatorError

from .light import MultiGaussian
from .mass import Gravity
from .orbit_kernels import launch, library, superpose, trace
from .sky import Bins, Cells, SkyGrid, aperture_light, cell_light, sky_grid


@dataclass(frozen=True)
class OrbitSettings:
    """How many orbits, and how they are followed; ``OrbitSettings.preset("full")`` or ``"small"``.

    Parameters
    ----------
    energies, momenta, latitudes
        Number of cells in energy, L_z and latitude.
    dithers
        Orbits a cell along each of the three.
    periods
        How long an orbit is followed, in periods of the circular orbit. After more of them, phases answer more strongly
        to theta and the output is rougher; the dithers fill the cells better.
    samples
        How often an orbit is seen.
    tolerance
        Relative error of a step of the integration.
    velocities, max_velocity
        Number of velocity channels, and the end of the last one, km/s.
    seed
        Shifts the starts, the times and the azimuths; nothing else is random.
    """

    energies: int = 20
    momenta: int = 7
    latitudes: int = 6
    dithers: int = 2
    periods: float = 6.0
    samples: int = 4000
    tolerance: float = 5e-6
    velocities: int = 81
    max_velocity: float = 1000.0
    seed: int = 1

    def __post_init__(self) -> None:
        for name in ("energies", "momenta", "latitudes", "dithers", "samples"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise InputError(f"{name}={value!r}: give a whole number, at least 1")
        if not isinstance(self.velocities, int | np.integer) or self.velocities < 11:
            raise InputError(f"velocities={self.velocities!r}: give at least 11 channels")
        if not (self.periods > 0 and 0 < self.tolerance <= 1e-2 and 0 < self.max_velocity < np.inf):
            raise InputError("periods and max_velocity must be positive, and tolerance between 0 and 0.01")

    @classmethod
    def preset(cls, name: Literal["full", "small"]) -> OrbitSettings:
        """``"full"``: 840 cells of 8 orbits. ``"small"``: 240 cells, for demonstrations and tests."""
        if name == "full":
            return cls()
        if name == "small":
            return cls(energies=12, momenta=5, latitudes=4, velocities=61)
        raise InputError(f'settings={name!r}: give "full", "small" or an OrbitSettings')

    @property
    def cells(self) -> int:
        """Number of cells, without the reversed copies."""
        return self.energies * self.momenta * self.latitudes

    @property
    def channel(self) -> float:
        """Width of a velocity channel, km/s."""
        return 2 * self.max_velocity / self.velocities

    @property
    def velocity(self) -> Array:
        """Middles of the velocity channels, km/s, (nv,)."""
        return np.asarray(-self.max_velocity + (np.arange(self.velocities) + 0.5) * self.channel)

    @property
    def places(self) -> Array:
        """Where the orbits are in the unit cube of (energy, L_z, latitude), (cells dithers^3, 3)."""
        counts = [self.energies, self.momenta, self.latitudes]
        cell = np.stack(np.meshgrid(*map(np.arange, counts), indexing="ij"), -1).reshape(-1, 1, 3)
        inner = np.stack(np.meshgrid(*[np.arange(self.dithers)] * 3, indexing="ij"), -1).reshape(1, -1, 3)
        # in the middle of its share of the cell, but for a shift that is common to all orbits
        shift = 0.5 + 0.5 * (self._shifts[:3] - 0.5)
        return np.asarray(((cell + (inner + shift) / self.dithers) / counts).reshape(-1, 3))

    @property
    def times(self) -> Array:
        """When orbits are seen, in periods, (samples,): denser in the middle, for means that converge faster."""
        place = (np.arange(self.samples) + self._shifts[3]) / self.samples
        # quantiles of the density 1 - cos(2 pi t)
        grid = np.linspace(0, 1, 2001)
        return np.asarray(self.periods * np.interp(place, grid - np.sin(2 * np.pi * grid) / (2 * np.pi), grid))

    @property
    def turn(self) -> float:
        """The first azimuth, in turns."""
        return float(self._shifts[4])

    @property
    def _shifts(self) -> Array:
        return np.random.default_rng(self.seed).random(5)


class Library(NamedTuple):
    """What the orbit cells leave.

    ``seen`` (n, nbin, nv) is the share of a cell's time in each bin and velocity channel, ``inside`` (n, radii, angles)
    in each meridional cell, ``drift`` (n,) the worst relative change of an orbit's energy.
    """

    seen: Array
    inside: Array
    drift: Array


class OrbitLibrary:
    """Orbits of a galaxy on its bins: all that does not depend on theta.

    Parameters
    ----------
    light, bins
        The galaxy's light and the bins it is seen in.
    inclination, position_angle
        Degrees, see ``sky``.
    settings
        Numbers of orbits and the like.
    radii
        Smallest and largest radius of a circular orbit, arcsec; default: from the Gaussians of the light.
    """

    def __init__(
        self,
        light: MultiGaussian,
        bins: Bins,
        inclination: float,
        position_angle: float = 0.0,
        settings: OrbitSettings | None = None,
        radii: tuple[float, float] | None = None,
    ) -> None:
        self.settings = settings or OrbitSettings()
        light.intrinsic_axis_ratio(inclination)
        self.radii = (0.3 * light.sd.min(), 1.7 * light.sd.max()) if radii is None else radii
        if not 0 < self.radii[0] < self.radii[1] < np.inf:
            raise InputError(f"radii={radii!r}: give the smallest and the largest radius in arcsec")
        self.nbin = len(bins)
        self.grid: SkyGrid = sky_grid(bins, position_angle)
        self._matrices = self.grid.matrices(self.nbin)
        sine, cosine = np.sin(np.radians(inclination)), np.cos(np.radians(inclination))
        velocity = (-self.settings.max_velocity, self.settings.channel, self.settings.turn)
        self._view = np.array([sine, cosine, self.grid.bend, self.grid.steps, *velocity])
        low = np.log(5 * self.radii[0])
        self.cells = Cells(low, (np.log(self.radii[1]) - low) / 12, 12, 6)
        self.aperture_light = aperture_light(light, bins, position_angle)
        self.cell_light = cell_light(light, inclination, self.cells)
        self.starts = self._starts()
        self._times = self.settings.times

    def _starts(self) -> Array:
        """Circular radius, L_z / L_circular and latitude / highest latitude of every orbit, (n dithers, 3)."""
        places = self.settings.places
        low, high = np.log(self.radii)
        # neither L_z = 0 nor circular orbits: an orbit must have room
        return np.column_stack([np.exp(low + places[:, 0] * (high - low)), 0.01 + 0.985 * places[:, 1], places[:, 2]])

    def launch(self, gravity: Gravity) -> Array:
        """Where the orbits start: R, z, L_z, period, energy, (n dithers, 5)."""
        with _compiling(launch.signatures):
            # orbits of the same energy and L_z next to each other, and then back in their order
            order = np.lexsort(self.starts.T[[2, 1, 0]])
            orbits = np.empty((len(order), 5))
            orbits[order] = launch(np.ascontiguousarray(self.starts[order]), *gravity)
            return orbits

    def run(self, gravity: Gravity) -> Library:
        """Every cell by itself."""
        settings, grid = self.settings, self.grid
        orbits = self.launch(gravity)
        with _compiling(library.signatures):
            seen, inside, drift, _ = library(
                orbits,
                settings.dithers**3,
                self._times,
                settings.tolerance,
                *gravity,
                self._view,
                grid.nodes,
                grid.starts,
                grid.columns,
                grid.ahead,
                grid.behind,
                self.nbin,
                settings.velocities,
                np.array(self.cells, dtype=float),
            )
        _refuse_lost(float(drift.max()))
        return Library(seen, inside, drift)

    def superpose(self, gravity: Gravity, weights: Array) -> Array:
        """Light in bins and channels, (nbin, nv), of all cells with ``weights`` (2 n,), the reversed copies' last."""
        settings = self.settings
        forward, backward = np.array(weights, dtype=float).reshape(2, settings.cells)
        orbits = self.launch(gravity)
        with _compiling(superpose.signatures):
            sky, drift = superpose(
                orbits,
                settings.dithers**3,
                self._times,
                settings.tolerance,
                *gravity,
                self._view,
                self.grid.nodes,
                settings.velocities,
                forward,
                backward,
            )
        _refuse_lost(drift)
        ahead, behind = self._matrices
        return np.asarray(ahead @ sky + behind @ sky[:, ::-1])

    def trace(self, gravity: Gravity, number: int, times: Array) -> tuple[Array, float]:
        """R, z, v_R, v_z of one orbit at ``times`` in periods, (n, 4), and the worst relative drift of its energy."""
        path, drift = trace(self.launch(gravity)[number], times, self.settings.tolerance, *gravity)
        return path, float(drift)


def _compiling(signatures: Sequence[object]) -> AbstractContextManager[None]:
    """Say so where the first call of a kernel, which has no signatures yet, compiles it."""
    if signatures:
        return nullcontext()
    return announced("compiling the orbits for their first use, some seconds, once")


def _refuse_lost(drift: float) -> None:
    if not np.isfinite(drift):
        raise SimulatorError("an orbit could not be followed: it needs too many steps in this potential")
