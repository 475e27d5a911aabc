"""The names of ``orthocal_galaxy``."""

from .binning import coarse_bins, pixel_map
from .dynamite import read_dynamite, read_dynamite_models
from .fit.fit import fit_galaxy
from .kinematics import Kinematics, PixelMap
from .light import MultiGaussian, fit_light
from .maps import map_figure
from .mass import PARAMETERS, MassModel
from .mock import MockGalaxy, mock_galaxy, theta_star
from .model import OrbitModel
from .moments import MOMENTS, gauss_hermite, losvd
from .orbits import OrbitLibrary, OrbitSettings
from .readers import read_atlas3d
from .sky import Bins, make_bins

__all__ = [
    "MOMENTS",
    "PARAMETERS",
    "Bins",
    "Kinematics",
    "MassModel",
    "MockGalaxy",
    "MultiGaussian",
    "OrbitLibrary",
    "OrbitModel",
    "OrbitSettings",
    "PixelMap",
    "coarse_bins",
    "fit_galaxy",
    "fit_light",
    "gauss_hermite",
    "losvd",
    "make_bins",
    "map_figure",
    "mock_galaxy",
    "pixel_map",
    "read_atlas3d",
    "read_dynamite",
    "read_dynamite_models",
    "theta_star",
]
