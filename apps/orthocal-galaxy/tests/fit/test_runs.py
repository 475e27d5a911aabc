"""The runs of a fit: spread over the priors, then more where the posterior is; none is made twice."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import orthocal as oc
from orthocal.errors import FileError, IdentifiabilityError, InputError
from orthocal_galaxy.fit.data import mock_data
from orthocal_galaxy.fit.runs import make_runs
from orthocal_galaxy.galaxy_config import Sampling
from orthocal_galaxy.stages import Stages

THETA = np.array([8.2, 2.9, 0.15])


class Cheap:
    """A stand-in for the model of the mock galaxy, curved in theta, that counts its runs."""

    theta_0 = None

    def __init__(self):
        self.calls = 0

    def identity(self):
        return "Cheap", "0" * 64

    def __call__(self, x, theta):
        self.calls += 1
        u = (np.asarray(theta) - [8.0, 3.0, 0.2]) / [1.0, 1.0, 0.2]
        r = np.hypot(*x.T)
        v = 100 * x[:, 0] * (1 + 0.2 * u[1] + 0.2 * u[2] * r) + 20 * np.sin(u[0]) * x[:, 1]
        sigma = 200 + 40 * u[0] * np.exp(-r) + 20 * u[1] * r + 20 * np.sin(u[2]) * x[:, 1] ** 2
        h3 = 0.05 * (u[0] * x[:, 0] + u[1] * x[:, 1] + u[2] * x[:, 0] ** 3)
        return np.column_stack([v, sigma, h3, 0.05 * u[2] * r])


@pytest.fixture
def data(galaxy, monkeypatch):
    campaign = oc.campaign

    def in_threads(*args, jobs, **options):
        with ThreadPoolExecutor(1) as pool:
            return campaign(*args, executor=pool, **options)

    monkeypatch.setattr(oc, "campaign", in_threads)
    mock, model = mock_data(galaxy, 1), Cheap()
    noise = mock.kinematics.errors * np.random.default_rng(3).standard_normal(mock.kinematics.errors.shape)
    values = model(mock.x, THETA) + noise
    model.calls = 0
    return replace(mock, kinematics=replace(mock.kinematics, values=values), model=model, truth=None)


def make(data, folder, **settings):
    said = []
    return make_runs(data, Sampling(**settings), Stages(folder), said.append), said


@pytest.mark.slow
def test_more_runs_lie_where_the_posterior_is(data, tmp_path):
    runs, said = make(data, tmp_path, runs=24, refine=6)
    assert runs.s == data.model.calls == 30
    assert said == [
        "runs: 24, of which 0 are there",
        "runs: 6 more, where the emulator's error matters most to theta",
    ]
    width = [high - low for low, high in data.box.values()]
    away = np.abs((runs.theta - THETA) / width).max(axis=1)
    assert away[24:].max() < 0.1
    assert away[:24].mean() > 0.3
    again, said = make(data, tmp_path, runs=24, refine=6)
    assert said == ["runs: 30, of which 30 are there"]
    assert np.array_equal(again.theta, runs.theta)
    # more of both kinds keep all that are there
    more, _ = make(data, tmp_path, runs=26, refine=8)
    assert more.s == data.model.calls == 34
    assert np.array_equal(more.theta[26:32], runs.theta[24:])
    with pytest.raises(InputError, match="has more runs already: give --runs 26 or more"):
        make(data, tmp_path, runs=20, refine=8)


def test_none_are_added_where_none_are_wanted_or_possible(data, tmp_path, monkeypatch):
    assert make(data, tmp_path / "none", runs=8, refine=0)[0].s == 8

    def fails(*args, **options):
        raise IdentifiabilityError("collinear")

    monkeypatch.setattr(oc, "calibrate", fails)
    runs, said = make(data, tmp_path / "fails", runs=8, refine=2)
    assert runs.s == 8
    assert said[-1] == "  none: collinear"


@pytest.mark.slow
def test_a_damaged_list_is_refused(data, tmp_path):
    make(data, tmp_path, runs=24, refine=1)
    (tmp_path / "refined.json").write_text("[[")
    with pytest.raises(FileError, match=r"refined\.json is damaged: remove it"):
        make(data, tmp_path, runs=24, refine=1)
