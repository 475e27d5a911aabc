"""Checkpoints that cannot be gone on from say why; a run that cannot be kept goes on."""

import sqlite3

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from orthocal.errors import FileError, InputError
from orthocal.execution.checkpoints import checkpoint_file, checkpoint_file as spending
from orthocal.execution.checkpoints.checkpoint_file import Checkpoint

X = np.linspace(0.0, 1.0, 8)
Y = 2 * X + np.array([0.1, -0.1] * 4)
SETTINGS = {"draws": 6, "warmup": 5, "chains": 2, "seed": 1, "progress": False}


def line(x, theta):
    return theta[0] * x


def problem(y=Y, f=line, prior=None, **given):
    return oc.Problem(X, y, f, {"a": prior or stats.norm(0, 5)}, noise_cov=given.pop("noise", 0.01), starts=1, **given)


def calibrated(path, own=None, method="none", **given):
    return oc.calibrate(own or problem(), method, **{**SETTINGS, "checkpoint": path, **given})


@pytest.fixture
def path(tmp_path):
    calibrated(tmp_path / "fit.ckpt")
    return tmp_path / "fit.ckpt"


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"own": problem(y=Y + 1)}, "the field data is another one"),
        ({"own": problem(f=lambda x, theta: theta[0] * x**2)}, "the simulator is another one"),
        ({"own": problem(prior=stats.norm(0, 6))}, "the parameters is another one"),
        ({"own": problem(noise=0.02)}, "the noise is another one"),
        ({"own": problem(domain=oc.Box(0, 2))}, "the domain is another one"),
        ({"method": "ko"}, "the method is another one"),
        ({"seed": 2}, "seed was 1 and is 2"),
        ({"warmup": 6}, "warmup was 5 and is 6"),
        ({"chains": 3}, "number of chains was 2 and is 3"),
    ],
)
def test_other_work_is_refused(path, changed, words):
    before = path.read_bytes()
    with pytest.raises(FileError, match=f"is a checkpoint of other work: {words}.*delete it to begin again") as refused:
        calibrated(path, **changed)
    assert path.read_bytes() == before
    # others may have it, also while the error with all its frames is held
    other = sqlite3.connect(path, timeout=0, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    other.close()
    del refused


def test_a_new_seed_is_kept(tmp_path):
    first = calibrated(tmp_path / "fit.ckpt", seed=None)
    again = calibrated(tmp_path / "fit.ckpt", seed=None)
    assert np.array_equal(first.theta, again.theta)
    assert first.record.seed == again.record.seed
    assert not np.array_equal(first.theta, calibrated(tmp_path / "other.ckpt", seed=None).theta)


@pytest.mark.parametrize("content", [b"x,y\n1,2\n", b"SQLite format 3\0" + b"\0" * 100])
def test_another_file_is_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "field.csv"
    path.write_bytes(content)
    with pytest.raises(FileError, match=r"field\.csv"):
        calibrated(path)
    assert path.read_bytes() == content


def test_a_run_that_was_ended_before_it_said_what_it_is_begins_again(tmp_path, path):
    (tmp_path / "empty.ckpt").touch()
    with sqlite3.connect(path) as connection:
        for table in ("work", "loop", "chunk"):
            connection.execute(f"DELETE FROM {table}")
    connection.close()
    assert np.array_equal(calibrated(path).theta, calibrated(tmp_path / "empty.ckpt").theta)


def test_a_checkpoint_of_the_first_version_is_refused_and_left_alone(path):
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 1")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(FileError, match=r"or one of another version: .*delete it to begin again"):
        calibrated(path)
    assert path.read_bytes() == before


def test_a_damaged_chunk_is_refused(path):
    with sqlite3.connect(path) as connection:
        ((draws,),) = connection.execute("SELECT draws FROM chunk").fetchall()
        connection.execute("UPDATE chunk SET draws = ?", (draws[:-1] + bytes([draws[-1] ^ 1]),))
    connection.close()
    with pytest.raises(FileError, match=r"is damaged, its digest does not fit: .*delete it to begin again"):
        calibrated(path)


def test_a_damaged_state_is_refused(path):
    with sqlite3.connect(path) as connection:
        ((state,),) = connection.execute("SELECT state FROM loop").fetchall()
        connection.execute("UPDATE loop SET state = ?", (state[:-1] + bytes([state[-1] ^ 1]),))
    connection.close()
    with pytest.raises(FileError, match=r"is damaged, its digest does not fit: .*delete it to begin again"):
        calibrated(path)


def test_lost_draws_are_noticed(path):
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM chunk")
    connection.close()
    with pytest.raises(FileError, match="draws are missing"):
        calibrated(path)


def test_two_runs_at_a_time_are_refused(path):
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(FileError, match="another program works on"):
            calibrated(path)
    finally:
        other.close()


def test_a_state_that_cannot_be_written_ends_the_checkpoint_not_the_run(tmp_path):
    class Odd:
        pass

    class Sampler:
        takes_noise_scale = False

        def __init__(self, setting):
            self._count = len(setting.x) + len(setting.nodes)

        def draw(self, rngs, state, residual, noise_scale=None):
            return Odd(), np.stack([0.1 * rng.standard_normal(self._count) for rng in rngs])

        def record(self, state):
            return {}

        def predict(self, rng, records, x_new):
            raise NotImplementedError

        def findings(self):
            return {}

        def settings(self):
            return {"kind": "odd"}

    class Prior:
        def prepare(self, setting):
            return Sampler(setting)

        def describe(self):
            return {"kind": "odd"}

    method = oc.methods.Projected(Prior())
    with pytest.warns(
        oc.OrthocalWarning, match="no more is kept in the checkpoint .* its state holds an object of"
    ) as said:
        kept = calibrated(tmp_path / "fit.ckpt", method=method)
    assert sum("no more is kept" in str(one.message) for one in said) == 1
    whole = calibrated(None, method=method)
    assert np.array_equal(kept.theta, whole.theta)
    # what cannot be gone on from begins again
    assert np.array_equal(calibrated(None, method=method, draws=4).extend(2).theta, whole.theta)


def test_slow_calls_are_not_made_again(tmp_path, monkeypatch):
    """The search, the projection and all else that is no chain: what a call gave is known to the second run."""
    monkeypatch.setattr(checkpoint_file, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(checkpoint_file, "BYTES_A_SECOND", np.inf)
    monkeypatch.setattr(checkpoint_file, "EVERY", 0.0)
    monkeypatch.setattr(spending, "SHARE", 1e9)
    made = []

    def counted(x, theta):
        made.append(theta.copy())
        return theta[0] * x

    whole = calibrated(tmp_path / "fit.ckpt", problem(f=counted), "gp")
    first = len(made)
    again = calibrated(tmp_path / "fit.ckpt", problem(f=counted), "gp")
    assert np.array_equal(whole.theta, again.theta)
    # three looks at the simulator and the first call of all, which finds out what it takes
    assert first > 20
    assert len(made) - first <= 5


def test_no_file_is_made_before_its_time(tmp_path):
    calibrated(Checkpoint(tmp_path / "fit.ckpt", after=60.0))
    assert not list(tmp_path.iterdir())


def test_a_loaded_posterior_says_how_to_have_more_draws(tmp_path):
    calibrated(None).save(tmp_path / "fit.nc")
    loaded = oc.load(tmp_path / "fit.nc")
    with pytest.raises(InputError, match=r"draws=10, chains=2, seed=1, warmup=5\) gives its draws and 4 more"):
        loaded.extend(4)
    with pytest.raises(InputError, match="draws=0"):
        loaded.extend(0)
