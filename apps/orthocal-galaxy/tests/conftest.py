"""A small galaxy that the tests share; nobody changes it."""

from __future__ import annotations

import numpy as np
import pytest

from orthocal_galaxy import Bins, MockGalaxy, MultiGaussian, OrbitSettings, mock_galaxy

#: fewer orbits than any preset has: what is tested here does not need more
FEW = OrbitSettings(energies=10, momenta=4, latitudes=3, samples=600, velocities=61)


@pytest.fixture(scope="session")
def few() -> OrbitSettings:
    return FEW


@pytest.fixture(scope="session")
def light() -> MultiGaussian:
    return MultiGaussian(np.array([20000.0, 3000.0, 500.0]), np.array([0.5, 3.0, 12.0]), np.array([0.8, 0.7, 0.4]))


@pytest.fixture(scope="session")
def ring_bins() -> Bins:
    """Rings of 1 arcsec around the centre, to 8 arcsec, in pixels of 0.1 arcsec."""
    axis = (np.arange(-80, 80) + 0.5) * 0.1
    ring = np.floor(np.hypot(axis[:, None], axis)).astype(int)
    centres = np.column_stack([np.arange(8) + 0.5, np.zeros(8)])
    return Bins(np.where(ring < 8, ring, -1), np.array([axis[0], axis[0]]), 0.1, 0.1, centres)


@pytest.fixture(scope="session")
def galaxy() -> MockGalaxy:
    return mock_galaxy(FEW, nbin=40)
