"""A galaxy as a calibration problem: the orbit-superposition model of Schwarzschild (1979), and a mock galaxy."""

from .light import MultiGaussian, fit_light
from .mass import PARAMETERS, MassModel
from .mock import MockGalaxy, mock_galaxy, theta_star
from .model import OrbitModel
from .moments import MOMENTS, gauss_hermite, losvd
from .orbits import OrbitLibrary, OrbitSettings
from .sky import Bins, make_bins

__all__ = [
    "MOMENTS",
    "PARAMETERS",
    "Bins",
    "MassModel",
    "MockGalaxy",
    "MultiGaussian",
    "OrbitLibrary",
    "OrbitModel",
    "OrbitSettings",
    "fit_light",
    "gauss_hermite",
    "losvd",
    "make_bins",
    "mock_galaxy",
    "theta_star",
]
