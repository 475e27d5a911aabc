"""The files to copy for a new bias prior, theta kernel, method or emulator keep their contracts, and calibrate."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import orthocal as oc
from orthocal.examples import MODEL1
from orthocal.testing import check_bias_prior, check_emulator, check_kernel, check_method

FOLDER = Path(__file__).parents[2] / "docs" / "skeletons"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the skeletons are not beside the tests")


def skeleton(name):
    specification = importlib.util.spec_from_file_location(f"skeleton_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("check", "name", "member"),
    [
        (check_bias_prior, "bias_prior", "FourierFeatures"),
        (check_kernel, "theta_kernel", "RandomWalk"),
        (check_method, "method", "BestFit"),
        (check_emulator, "emulator", "Quadratic"),
    ],
)
def test_a_skeleton_keeps_the_contract_of_its_family(check, name, member):
    assert check(getattr(skeleton(name), member)())


@pytest.fixture(scope="module")
def problem():
    return MODEL1.problem(*MODEL1.simulate(np.random.default_rng(1)))


def test_the_bias_prior_and_the_kernel_calibrate(problem):
    prior, kernel = skeleton("bias_prior").FourierFeatures(), skeleton("theta_kernel").RandomWalk()
    for method in (oc.methods.Joint(bias=prior), oc.methods.Projected(bias=prior, kernel=kernel)):
        summary = oc.calibrate(problem, method, draws=100, chains=2, seed=1, progress=False).summary()
        assert abs(summary["mean"].item() - MODEL1.theta_star[0]) < 4 * summary["sd"].item()


def test_the_method_has_the_exact_law_of_a_linear_simulator(problem):
    """The posterior without a bias is Gaussian; 1000 draws know its mean to .03 sds, its sd to 2 %."""
    x, y = problem.data.x[:, 0], problem.data.y[:, 0]
    precision = x @ x / MODEL1.noise_sd**2 + 0.01
    mean, sd = x @ y / MODEL1.noise_sd**2 / precision, precision**-0.5
    draws = oc.calibrate(problem, skeleton("method").BestFit(), draws=250, seed=1, progress=False).theta
    assert abs(draws.mean() - mean) < 0.15 * sd
    assert draws.std() == pytest.approx(sd, rel=0.1)


def test_the_emulator_calibrates():
    theta, x = np.linspace(1, 3, 30)[:, None], np.linspace(0, 1, 10)
    runs = oc.RunTable(theta, np.exp(-theta * x), x, parameter_names=["rate"])
    emulator = oc.emulate(runs, skeleton("emulator").Quadratic(), progress=False)
    assert emulator([0.5], [2.2]) == pytest.approx(np.exp(-1.1), abs=0.01)
