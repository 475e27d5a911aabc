"""Campaigns of random simulators: each theta several times, with seeds that are the run's own."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

import orthocal as oc
from orthocal.cli import main
from orthocal.errors import InputError, OrthocalWarning
from orthocal.execution.work.simulation import Chance
from orthocal.runs.store import CampaignPlan, Identity, RunStore, _chance

X = np.array([0.0, 0.5, 1.0])
DESIGN = pd.DataFrame({"g": [1.0, 2.0, -0.0]})


class Noisy:
    """f = g + noise, which remembers its seeds."""

    def __init__(self):
        self.seen = []

    def __call__(self, x, theta, seed, replicate=-1):
        self.seen.append((float(theta[0]), replicate, seed))
        return theta[0] + np.random.default_rng(seed).normal(size=len(x))


def campaign(f, folder, design=DESIGN, threads=2, **settings):
    with ThreadPoolExecutor(threads) as pool:
        return oc.campaign(f, design, X, executor=pool, store=folder / "runs.db", progress=False, **settings)


def test_each_theta_is_run_several_times_with_seeds_of_its_own(tmp_path):
    f = Noisy()
    # of several threads the one that began a run later may note it sooner
    runs = campaign(f, tmp_path, replicates=3, threads=1)
    assert runs.theta[:, 0].tolist() == [1, 1, 1, 2, 2, 2, 0, 0, 0]
    assert sorted({(theta, replicate) for theta, replicate, _ in f.seen}) == [
        (g, r) for g in (0, 1, 2) for r in range(3)
    ]
    assert len({seed for *_, seed in f.seen}) == 9
    # the whole design is run once before any of it is repeated
    assert {replicate for _, replicate, _ in f.seen[:3]} == {0}
    assert np.ptp(runs.output[:3], axis=0).min() > 0


def test_more_replicates_and_a_larger_design_add_to_the_store(tmp_path):
    """With the seeds that the runs would have had from the start."""
    f = Noisy()
    first = campaign(f, tmp_path, design=DESIGN[:2])
    assert f.seen[0][1] == -1, "without replicates a default stays as it is"
    more = campaign(f, tmp_path, replicates=3)
    assert len(f.seen) == 9
    np.testing.assert_array_equal(more.output[[0, 3]], first.output)
    (tmp_path / "other").mkdir()
    whole = campaign(Noisy(), tmp_path / "other", replicates=3)
    np.testing.assert_array_equal(more.output, whole.output)
    with pytest.raises(InputError, match="has more replicates, 3 at a theta, than this campaign"):
        campaign(f, tmp_path, replicates=2)


def test_a_seed_depends_on_theta_and_replicate_alone():
    """Recorded: runs of an old store must not be repeated with other seeds."""

    def chance(theta, copy):
        plan = CampaignPlan(np.full((copy + 1, 1), theta), np.zeros((1, 1)), ("g",), ("x",), Identity("f", ""))
        return _chance(*plan.keys[copy])

    assert chance(1.5, 2) == Chance(2, 742019190)
    assert chance(0.0, 0) == chance(-0.0, 0)


def test_a_seed_with_a_default_is_given_only_to_replicates(tmp_path):
    def f(x, theta, seed=None):
        return theta[0] + 0 * x if seed is None else theta[0] + np.random.default_rng(seed).normal(size=len(x))

    assert campaign(f, tmp_path).output[:, :, 0].tolist() == [[1] * 3, [2] * 3, [0] * 3]
    again = campaign(f, tmp_path, replicates=2)
    assert again.output[0, :, 0].tolist() == [1] * 3
    assert again.output[1, 0, 0] != 1


def test_replicates_that_agree_are_pointed_out(tmp_path):
    with pytest.warns(OrthocalWarning, match="agree to the last digit"):
        campaign(lambda x, theta: theta[0] * x, tmp_path, replicates=2)


@pytest.mark.parametrize("replicates", [0, True, 1.5])
def test_refused(tmp_path, replicates):
    with pytest.raises(InputError, match="replicates"):
        campaign(Noisy(), tmp_path, replicates=replicates)


PROGRAM = f"""
[program]
command = "{sys.executable} -I -S sim.py {{g}} {{seed}} {{replicate:03d}}"
output = "stdout"
files = ["sim.py"]
[parameters]
g = {{ distribution = "uniform", loc = 0, scale = 1 }}
[design]
kind = "grid"
n = 2
replicates = 2
[x]
file = "x.csv"
columns = ["x"]
[run]
jobs = 1
"""


def test_a_program_gets_seed_and_replicate(tmp_path, monkeypatch, capsys):
    (tmp_path / "sim.py").write_text("import sys\nprint(sys.argv[1], sys.argv[2], int(sys.argv[3] == '001'))\n")
    (tmp_path / "x.csv").write_text("x\n0\n1\n2\n")
    (tmp_path / "campaign.toml").write_text(PROGRAM)
    for words in (["--status"], [], ["--status"]):
        monkeypatch.setattr("sys.argv", ["orthocal", "simulate", str(tmp_path / "campaign.toml"), *words])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("done 0, failed 0, missing 4")
    assert said[-1].startswith("done 4, failed 0, missing 0")
    with RunStore(tmp_path / "runs.db") as store:
        g, seed, second = store.table().output[:, :, 0].T
    assert g.tolist() == [0, 0, 1, 1]
    assert second.tolist() == [0, 1, 0, 1]
    assert len(set(seed)) == 4
