"""A prior of the user's own in a file: its draws are there, its code is not, and comes back by ``oc.load(bias=)``."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from orthocal.errors import FileError, InputError

EXAMPLE = Path(__file__).parents[2] / "docs" / "skeletons" / "bias_prior.py"
specification = importlib.util.spec_from_file_location("fourier_prior_in_a_file", EXAMPLE)
fourier_prior = importlib.util.module_from_spec(specification)
specification.loader.exec_module(fourier_prior)


def line(x, theta):
    return np.column_stack([theta[0] * x, theta[0] * x**2])


@pytest.fixture(scope="module", params=["functional", "finite"])
def posterior(request):
    rng = np.random.default_rng(1)
    x = rng.random(25)
    y = line(x, [2.0]) + np.sin(5 * x)[:, None] + 0.1 * rng.standard_normal((25, 2))
    y[3, 0] = np.nan
    problem = oc.Problem(
        x, y, line, {"slope": stats.norm(0, 10)}, domain=oc.Box(0, 1), noise_cov=[[0.01, 0.003], [0.003, 0.01]]
    )
    method = oc.methods.Projected(fourier_prior.FourierFeatures(features=30), projection=request.param)
    return oc.calibrate(problem, method, draws=20, chains=2, seed=1)


def test_it_predicts_as_the_run_does(posterior, tmp_path):
    path = posterior.save(tmp_path / "fit.nc")
    loaded = oc.load(path, simulator=line, bias=fourier_prior.FourierFeatures(features=30))
    x_new = np.linspace(0, 1, 7)
    for name in ("model", "bias", "mean", "observation"):
        np.testing.assert_array_equal(loaded.predict(x_new)[name], posterior.predict(x_new)[name])


def test_without_the_prior_it_is_asked_for(posterior, tmp_path):
    loaded = oc.load(posterior.save(tmp_path / "fit.nc"), simulator=line)
    with pytest.raises(FileError, match=r"oc.load\(path, simulator=f, bias=MyPrior\(\)\)"):
        loaded.predict([0.5])


def test_another_prior_is_refused(posterior, tmp_path):
    path = posterior.save(tmp_path / "fit.nc")
    for other in (fourier_prior.FourierFeatures(features=31), oc.bias.GP()):
        with pytest.raises(FileError, match="give it as it was"):
            oc.load(path, simulator=line, bias=other).predict([0.5])
    for wrong in ("fourier", fourier_prior.FourierFeatures):
        with pytest.raises(InputError, match=r"for instance MyPrior\(\)"):
            oc.load(path, simulator=line, bias=wrong)
