"""Campaigns of a simulator that takes many theta at a time."""

import numpy as np
import pytest

import orthocal as oc
from orthocal.errors import InputError, OrthocalWarning

X = np.linspace(0, 1, 6)
DESIGN = np.column_stack([np.linspace(1, 3, 7), np.linspace(0.5, 2, 7)])


class Batch:
    def __init__(self):
        self.sizes = []

    def __call__(self, x, theta):
        self.sizes.append(len(theta))
        if (theta[:, 0] == 2.0).any():
            raise FloatingPointError("lost its way")
        return theta[:, :1] * np.exp(-theta[:, 1:] * x)


def in_threes(simulator, **given):
    return oc.campaign(oc.Simulator(simulator, batched=3), DESIGN, X, progress=False, **given)


def test_runs_are_made_in_batches_and_each_is_kept(tmp_path):
    function = Batch()
    with pytest.warns(OrthocalWarning, match=r"1 of 7 runs failed; run 3: FloatingPointError: lost its way"):
        runs = in_threes(function, store=tmp_path / "runs.db", retries=0)
    expected = np.array([one[0] * np.exp(-one[1] * X) for one in DESIGN])
    expected[3] = np.nan
    np.testing.assert_array_equal(runs.theta, DESIGN)
    np.testing.assert_array_equal(runs.output[:, :, 0], expected)
    # the second batch is halved until the run that fails is alone
    assert function.sizes == [3, 3, 1, 2, 1]


def test_what_was_made_is_not_made_again(tmp_path):
    function = Batch()
    for count in (2, 3):
        design = DESIGN[:count]
        oc.campaign(oc.Simulator(function, batched=True), design, X, store=tmp_path / "runs.db", progress=False)
    assert function.sizes == [2, 1]


def test_a_wrong_shape_is_said(tmp_path):
    with pytest.raises(oc.errors.SimulatorError, match=r"all 7 runs failed; run 0: .* for 3 theta and 6 points"):
        in_threes(lambda x, theta: np.ones(6), store=tmp_path / "runs.db", retries=0)


@pytest.mark.parametrize("given", [{"jobs": 2}, {"timeout": 3.0}, {"cluster": "tcp://127.0.0.1:1"}])
def test_what_cannot_be_had_with_batches(tmp_path, given):
    with pytest.raises(InputError, match="leave executor, cluster, jobs and timeout out"):
        in_threes(Batch(), store=tmp_path / "runs.db", **given)


def test_a_simulator_brings_its_jobs(tmp_path, monkeypatch):
    started = []
    real = oc.runs.campaigns.ProcessWorkers
    monkeypatch.setattr(
        oc.runs.campaigns, "ProcessWorkers", lambda work, jobs: started.append(jobs) or real(work, jobs)
    )
    simulator = oc.Simulator(lambda x, theta: theta[0] * x, jobs=3)
    oc.campaign(simulator, DESIGN[:2], X, store=tmp_path / "runs.db", progress=False)
    assert started == [3]
