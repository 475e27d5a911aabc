"""The orbit-superposition model of a galaxy as a simulator (Schwarzschild 1979)."""

from __future__ import annotations

import hashlib
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree

from orthocal.applications import Array, IntArray, as_columns, as_floats
from orthocal.errors import InputError, SimulatorError

from .light import MultiGaussian
from .mass import MassModel, checked_theta
from .moments import gauss_hermite
from .orbits import Library, OrbitLibrary, OrbitSettings
from .sky import Bins
from .weights import fit_weights, kinematic_rows, light_rows, together

#: how strongly weights are drawn to equal ones, unless another number is given
RIDGE = 100.0


class OrbitModel:
    """f(x, theta): v, sigma [km/s], h3, h4 in the bins x of an oblate galaxy, (nbin, 4).

    theta = (log10 M_BH [Msun], stellar M/L [Msun / Lsun], dark-matter fraction within the half-light radius).

    All orbits are followed in the potential at theta and added with their weights. With ``mode="frozen"`` the weights
    are those fitted to the kinematics at ``theta_0``: f is a fixed function of theta. With ``mode="refit"`` they are
    fitted to the kinematics at every theta, as is common for such models: then f itself depends on the data, which a
    calibration with the same data does not know of. The same orbits, times and azimuths are taken at every theta, so
    that f is smooth in theta.

    Parameters
    ----------
    light, bins
        The galaxy's light and the bins.
    kinematics, errors
        Observed v, sigma, h3, h4 and their standard deviations, (nbin, 4): what the weights are fitted to.
    distance, inclination, position_angle
        Mpc, degrees, degrees (see ``sky``).
    theta_0
        Where the weights are fitted, for ``mode="frozen"``.
    mode
        ``"frozen"`` or ``"refit"``.
    settings
        ``"full"``, ``"small"`` or an ``OrbitSettings``.
    halo_radius
        Scale radius of the halo, kpc.
    half_light_radius
        Arcsec; default: that of ``light``.
    ridge
        How strongly the weights are drawn to equal ones; the more, the less of the kinematics' noise they copy.
    radii
        Smallest and largest radius of a circular orbit, arcsec; default: from the Gaussians of the light.
    """

    def __init__(
        self,
        light: MultiGaussian,
        bins: Bins,
        kinematics: ArrayLike,
        errors: ArrayLike,
        *,
        distance: float,
        inclination: float,
        position_angle: float = 0.0,
        theta_0: ArrayLike | None = None,
        mode: Literal["frozen", "refit"] = "frozen",
        settings: OrbitSettings | Literal["full", "small"] = "full",
        halo_radius: float = 20.0,
        half_light_radius: float | None = None,
        ridge: float = RIDGE,
        radii: tuple[float, float] | None = None,
    ) -> None:
        if mode not in ("frozen", "refit"):
            raise InputError(f'mode={mode!r}: give "frozen" or "refit"')
        if mode == "frozen" and theta_0 is None:
            raise InputError('mode="frozen" fits the weights at one theta: give theta_0, or mode="refit"')
        self.mode = mode
        self.theta_0 = None if theta_0 is None else np.array(checked_theta(theta_0))
        self.bins = bins
        self.kinematics, self.errors = _checked_kinematics(kinematics, errors, len(bins))
        self.settings = OrbitSettings.preset(settings) if isinstance(settings, str) else settings
        self.ridge = ridge
        self.mass = MassModel(light, distance, inclination, halo_radius, half_light_radius)
        self.orbits = OrbitLibrary(light, bins, inclination, position_angle, self.settings, radii)
        self._weights: Array | None = None
        self._digest = _digest(
            *(light.surface_brightness, light.sd, light.axis_ratio, light.mass_factors),
            *(bins.bin_map, bins.start, bins.centres, self.kinematics, self.errors),
            repr((bins.pixel, bins.psf_sd, distance, inclination, position_angle, mode, self.settings)),
            repr((None if self.theta_0 is None else self.theta_0.tolist(), halo_radius, half_light_radius)),
            repr((ridge, radii)),
        )

    @property
    def x(self) -> Array:
        """The bins' centres in [-1, 1]^2, (nbin, 2)."""
        return self.bins.x

    @property
    def weights(self) -> Array:
        """The frozen weights, (2 n,): of the n cells, then of their reversed copies."""
        if self.theta_0 is None:
            raise InputError('there are no frozen weights: mode="refit" fits them at every theta')
        if self._weights is None:
            self._weights = self.fit(self.orbits.run(self.mass.gravity(self.theta_0)))
        return self._weights

    def fit(self, library: Library) -> Array:
        """The weights (2 n,) for which a library agrees best with light and kinematics."""
        rows = kinematic_rows(self.orbits, library, self.kinematics, self.errors)
        return fit_weights(together(light_rows(self.orbits, library), rows), self.ridge)

    def __call__(self, x: ArrayLike, theta: ArrayLike) -> Array:
        """v, sigma, h3, h4 at the bins ``x`` (m, 2), in arcsec or scaled as ``self.x``: (m, 4).

        NaN where the model fails; an error where ``x`` are no bins or ``theta`` is not possible.
        """
        rows = self._rows(x)
        checked_theta(theta)
        try:
            light = self.losvds(theta)
        except SimulatorError:
            return np.full((len(rows), 4), np.nan)
        return gauss_hermite(light, self.settings.velocity, self.settings.channel**2 / 6)[rows]

    def losvds(self, theta: ArrayLike) -> Array:
        """Light in bins and velocity channels, (nbin, nv), as a share of the galaxy's."""
        gravity = self.mass.gravity(theta)
        if self.mode == "frozen":
            return self.orbits.superpose(gravity, self.weights)
        library = self.orbits.run(gravity)
        weights, n = self.fit(library), len(library.seen)
        forward, backward = (np.tensordot(part, library.seen, 1) for part in (weights[:n], weights[n:]))
        return np.asarray(forward + backward[:, ::-1])

    def identity(self) -> tuple[str, str]:
        """A name, and a digest of all that the output depends on, by which ``oc.campaign`` knows the model."""
        return f"OrbitModel ({self.mode}, {len(self.bins)} bins)", self._digest

    def __getstate__(self) -> dict[str, Any]:
        # fitted before the model goes to other processes: each of them would fit again
        if self.mode == "frozen":
            _ = self.weights
        return self.__dict__.copy()

    def _rows(self, x: ArrayLike) -> IntArray:
        """Which bins the rows of ``x`` are."""
        given = as_columns(x, "x")
        if given.shape[1] == 2 and np.isfinite(given).all():
            for centres in (self.bins.x, self.bins.centres):
                distance, rows = cKDTree(centres).query(given)
                if (distance <= 1e-6 * np.abs(centres).max()).all():
                    return np.asarray(rows, dtype=np.intp)
        raise InputError(
            f"x of shape {given.shape} are not bins of this model: give rows of model.x (scaled) or of "
            "model.bins.centres (arcsec)"
        )


def _checked_kinematics(kinematics: ArrayLike, errors: ArrayLike, nbin: int) -> tuple[Array, Array]:
    values, sds = as_floats(kinematics, "kinematics"), as_floats(errors, "errors")
    for name, array in (("kinematics", values), ("errors", sds)):
        if array.shape != (nbin, 4):
            raise InputError(f"{name} has shape {array.shape} for {nbin} bins: give v, sigma, h3, h4, ({nbin}, 4)")
        if not np.isfinite(array).all():
            row = int(np.flatnonzero(~np.isfinite(array).all(axis=1))[0])
            raise InputError(f"{name} has NaN or infinity in bin {row}: leave this bin out of the bin map")
    if (sds <= 0).any():
        raise InputError(
            f"errors must be above 0, and bin {int(np.flatnonzero((sds <= 0).any(axis=1))[0])} has another"
        )
    if (values[:, 1] <= 0).any():
        raise InputError(f"sigma must be above 0, and bin {int(np.argmin(values[:, 1]))} has another")
    return values, sds


def _digest(*parts: Array | IntArray | str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() if isinstance(part, str) else np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()
