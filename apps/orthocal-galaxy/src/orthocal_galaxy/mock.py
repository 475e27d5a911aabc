"""A galaxy of our own with a known truth: a fast rotator with a disc, at 16 Mpc.

Its mass-to-light ratio falls from the centre to the outskirts, which the model does not know: the model has a bias, and
the best theta is not the true one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import least_squares
from scipy.stats import qmc

from orthocal.applications import Array, as_floats, one_blas_thread
from orthocal.errors import InputError, NonFiniteError

from .light import MultiGaussian
from .mass import PARAMETERS, MassModel
from .model import OrbitModel
from .moments import gauss_hermite
from .orbits import OrbitLibrary, OrbitSettings
from .sky import Bins, make_bins
from .weights import fit_weights, light_rows

DISTANCE, INCLINATION, HALO_RADIUS = 16.0, 75.0, 15.0
PEAKS = (50000.0, 20000.0, 5500.0, 1500.0, 620.0, 150.0)
SDS = (0.4, 1.1, 3.0, 7.0, 14.0, 28.0)
AXIS_RATIOS = (0.85, 0.8, 0.7, 0.5, 0.36, 0.35)
#: M/L of each Gaussian of the truth, before it is scaled to a mean of one over the light
MASS_FACTORS = (1.18, 1.13, 1.06, 0.98, 0.9, 0.84)
FIELD, PIXEL, PSF_SD = (18.0, 11.0), 0.5, 0.3
THETA_TRUE = (8.7, 3.0, 0.2)
#: where the model's weights are fitted, to data with errors of this share of the others', and how strongly each is
#: drawn to the others: noise that they would copy is no model error, and couples with the curvature of f
THETA_0, REFERENCE_ERRORS, REFERENCE_RIDGE = (8.6, 2.9, 0.22), 0.3, 6.0
PRIOR_BOX = {"log10_mbh": (6.5, 9.3), "ml": (1.5, 4.5), "f_dm": (0.0, 0.5)}

Box = Mapping[str, tuple[float, float]]


@dataclass(frozen=True, eq=False)
class MockGalaxy:
    """The truth, noisy data and the model.

    ``truth`` and ``errors`` are (nbin, 4): v, sigma, h3, h4 without noise, and the noise's standard deviations.
    ``prior_box`` has the range of each parameter. ``light`` is the model's; the truth has ``mass_factors`` besides.
    """

    light: MultiGaussian
    mass_factors: Array
    bins: Bins
    truth: Array
    errors: Array
    theta_true: Array
    prior_box: dict[str, tuple[float, float]]
    model: OrbitModel

    @property
    def x(self) -> Array:
        """The bins' centres in [-1, 1]^2, (nbin, 2)."""
        return self.bins.x

    @property
    def noise_var(self) -> Array:
        """Variance of the noise of each outcome, the mean over the bins, (4,)."""
        return np.asarray((self.errors**2).mean(axis=0))

    def noisy(self, rng: np.random.Generator) -> Array:
        """A data set, (nbin, 4)."""
        return np.asarray(self.truth + self.errors * rng.standard_normal(self.truth.shape))


def mock_galaxy(
    settings: OrbitSettings | Literal["full", "small"] = "full",
    nbin: int = 105,
    *,
    theta_true: ArrayLike = THETA_TRUE,
    theta_0: ArrayLike = THETA_0,
    mode: Literal["frozen", "refit"] = "frozen",
    seed: int = 16,
) -> MockGalaxy:
    """The mock galaxy, seen in ``nbin`` bins, with a model of it.

    The truth's orbits have another seed and finer cells than the model's. Their weights reproduce the light; each cell
    runs forward and backward in shares that depend on L_z and latitude, more rotation where L_z is large.

    Parameters
    ----------
    settings
        Of the model: ``"full"``, ``"small"`` or an ``OrbitSettings``.
    nbin
        Number of bins.
    theta_true, theta_0
        The truth, and where the model's weights are fitted, to a deeper data set of this ``seed``.
    mode
        Of the model.
    seed
        Of the bins and of that data set.
    """
    chosen = OrbitSettings.preset(settings) if isinstance(settings, str) else settings
    # one BLAS thread: sums in another order would make another model, and runs that are kept would not be its own
    with one_blas_thread():
        return _mock_galaxy(chosen, nbin, theta_true, theta_0, mode, seed)


def _mock_galaxy(
    chosen: OrbitSettings,
    nbin: int,
    theta_true: ArrayLike,
    theta_0: ArrayLike,
    mode: Literal["frozen", "refit"],
    seed: int,
) -> MockGalaxy:
    light = MultiGaussian(np.array(PEAKS), np.array(SDS), np.array(AXIS_RATIOS))
    factors = np.array(MASS_FACTORS) / (light.shares @ np.array(MASS_FACTORS))
    bins = make_bins(nbin, light, FIELD, PIXEL, PSF_SD, seed)
    true_light = replace(light, mass_factor=factors)
    truth = _true_maps(true_light, bins, theta_true, _finer(chosen))
    errors = _errors(bins)
    deeper = REFERENCE_ERRORS * errors
    reference = truth + deeper * np.random.default_rng([seed, 1]).standard_normal(truth.shape)
    model = OrbitModel(
        light,
        bins,
        reference,
        deeper,
        distance=DISTANCE,
        inclination=INCLINATION,
        theta_0=theta_0,
        mode=mode,
        settings=chosen,
        halo_radius=HALO_RADIUS,
        # of the weights of all cells and of their reversed copies
        ridge=REFERENCE_RIDGE * 2 * chosen.cells,
    )
    return MockGalaxy(light, factors, bins, truth, errors, as_floats(theta_true, "theta_true"), dict(PRIOR_BOX), model)


def _finer(settings: OrbitSettings) -> OrbitSettings:
    return replace(
        settings,
        energies=settings.energies * 4 // 3,
        momenta=settings.momenta + 2,
        latitudes=settings.latitudes + 1,
        seed=settings.seed + 1000,
    )


def _true_maps(light: MultiGaussian, bins: Bins, theta: ArrayLike, settings: OrbitSettings) -> Array:
    mass = MassModel(light, DISTANCE, INCLINATION, HALO_RADIUS)
    orbits = OrbitLibrary(light, bins, INCLINATION, 0.0, settings)
    library = orbits.run(mass.gravity(theta))
    weights = fit_weights(light_rows(orbits, library), 20.0)
    start = orbits.starts.reshape(settings.cells, -1, 3).mean(axis=1)
    # cold, rotating orbits near the plane; a hot, slowly turning bulge
    forward = 0.5 + 0.45 * start[:, 1] ** 0.5 * (1 - 0.7 * start[:, 2] ** 2)
    seen = np.tensordot(weights * forward, library.seen, 1)
    back = np.tensordot(weights * (1 - forward), library.seen, 1)
    return gauss_hermite(seen + back[:, ::-1], settings.velocity, settings.channel**2 / 6)


def _errors(bins: Bins) -> Array:
    """The same in all bins, as spectra are binned to equal quality: 5 km/s for v, a little more for sigma."""
    return np.tile([5.0, 5.5, 0.02, 0.02], (len(bins), 1))


class MapModel(Protocol):
    """What ``theta_star`` needs of a model."""

    @property
    def x(self) -> Array:
        """The bins, (nbin, 2)."""

    @property
    def theta_0(self) -> Array | None:
        """Where to start, if there is such a place."""

    def __call__(self, x: Array, theta: Array) -> Array:
        """v, sigma, h3, h4 at the bins, (nbin, 4)."""


class ThetaStar(NamedTuple):
    """Where the loss is least.

    ``theta`` (3,) and its ``loss``; the minima (theta, loss) that the starts led to, best first, of which theta is a
    refinement; ``curvature`` (3, 3), half of the loss's second derivatives at theta (Gauss-Newton).
    """

    theta: Array
    loss: float
    minima: list[tuple[Array, float]]
    curvature: Array


def theta_star(
    model: MapModel,
    truth: ArrayLike,
    errors: ArrayLike,
    box: Box | None = None,
    *,
    weights: ArrayLike | None = None,
    starts: int | ArrayLike = 3,
    step: float = 0.04,
    seed: int = 1,
) -> ThetaStar:
    """argmin_theta sum_b weight_b sum_k (truth_bk - f_bk(theta))^2 / errors_k^2 over the box.

    Gauss-Newton with wide differences from several starts; in the end f is taken as a quadratic function of theta,
    fitted to runs around the best of them, which the last roughness of the orbits does not move.

    Parameters
    ----------
    model
        The simulator.
    truth
        (nbin, 4), without noise.
    errors
        Standard deviations of the noise, (4,) or (nbin, 4).
    box
        Name -> (low, high) of each parameter; default: that of the mock galaxy.
    weights
        Of the bins, (nbin,), scaled to a sum of one; default: equal.
    starts
        Number of starts: ``theta_0`` or the middle of the box, and random points; or the starts themselves, (s, 3), for
        instance the minimum that an emulator of many runs has.
    step
        Of the differences, as a share of the box, and half the size of the region around the best.
    """
    box = PRIOR_BOX if box is None else box
    if set(box) != set(PARAMETERS):
        raise InputError(f"box has {', '.join(box)}: give (low, high) for each of {', '.join(PARAMETERS)}")
    low, high = np.array([box[name] for name in PARAMETERS], dtype=float).T
    target, sds = as_floats(truth, "truth"), as_floats(errors, "errors")
    share = np.ones(len(target)) if weights is None else as_floats(weights, "weights")
    scale = np.sqrt(share / share.sum())[:, None] / sds

    def residual(unit: Array) -> Array:
        difference = (model(model.x, low + unit * (high - low)) - target) * scale
        if not np.isfinite(difference).all():
            raise NonFiniteError(f"the model fails at theta={low + unit * (high - low)}: give a smaller box")
        return np.asarray(difference.ravel())

    slopes = partial(_slopes, residual, step)
    if isinstance(starts, int | np.integer):
        centre = np.full(3, 0.5) if model.theta_0 is None else np.clip((model.theta_0 - low) / (high - low), 0.05, 0.95)
        begin = np.vstack([centre, 0.15 + 0.7 * np.random.default_rng(seed).random((starts - 1, 3))])
    else:
        begin = np.clip((np.atleast_2d(as_floats(starts, "starts")) - low) / (high - low), 0.01, 0.99)
    fits = [least_squares(residual, start, slopes, bounds=(0, 1), ftol=1e-3, xtol=1e-3, max_nfev=12) for start in begin]
    fits.sort(key=lambda fit: float(fit.cost))
    minima = [(low + fit.x * (high - low), 2 * float(fit.cost)) for fit in fits]
    unit, loss, curvature = _refined(residual, fits[0].x, step)
    return ThetaStar(low + unit * (high - low), loss, minima, curvature / np.outer(high - low, high - low))


def _slopes(residual: Callable[[Array], Array], step: float, unit: Array) -> Array:
    """Central differences of the residual over ``step`` to either side, shorter where the box ends, (m, 3)."""
    ends = [np.clip(unit + side * step * np.eye(3), 0, 1) for side in (-1, 1)]
    widths = np.diagonal(ends[1] - ends[0])
    return np.stack([residual(b) - residual(a) for a, b in zip(*ends, strict=True)], axis=1) / widths


def _refined(residual: Callable[[Array], Array], centre: Array, step: float) -> tuple[Array, float, Array]:
    """The minimum of |residual|^2 with the residual a quadratic function fitted to 32 runs around ``centre``."""
    corner = np.clip(centre - step, 0, 1 - 2 * step)
    points = corner + 2 * step * qmc.Sobol(3, scramble=False).random_base2(5)
    values = np.stack([residual(point) for point in points])
    coefficients = np.linalg.lstsq(_quadratic((points - centre) / step), values, rcond=None)[0]

    def smooth(offset: Array) -> Array:
        return np.asarray(_quadratic(offset[None])[0] @ coefficients)

    bounds = ((corner - centre) / step - 0.5, (corner - centre) / step + 2.5)
    inside = (np.maximum(bounds[0], -centre / step), np.minimum(bounds[1], (1 - centre) / step))
    best = least_squares(smooth, np.zeros(3), bounds=inside)
    slopes = np.asarray(best.jac) / step
    return centre + step * best.x, 2 * float(best.cost), slopes.T @ slopes


def _quadratic(offset: Array) -> Array:
    """1, u_j and u_j u_k, j <= k: (n, 10)."""
    pairs = [offset[:, j] * offset[:, k] for j in range(3) for k in range(j, 3)]
    return np.column_stack([np.ones(len(offset)), offset, *pairs])
