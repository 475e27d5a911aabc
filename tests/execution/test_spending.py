"""What writing a checkpoint takes stays within its share of the run, by a clock that the tests set."""

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from orthocal.execution.checkpoints import checkpoint_file, checkpoint_file as spending
from orthocal.execution.checkpoints.checkpoint_file import Budget, Checkpoint, CheckpointFile, _File, kept_in


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(spending, "monotonic", made)
    monkeypatch.setattr(checkpoint_file, "monotonic", made)
    return made


#: bytes a second of the disk below, where a draw has a kilobyte in place of a megabyte
DISK = 500_000


@pytest.fixture
def disk(monkeypatch, clock):
    """All sizes a thousandth of what they are, and writing that takes its time; the seconds that it took."""
    for module, name in ((spending, "FREE"), (spending, "EACH"), (spending, "FIRST_BYTES"), (checkpoint_file, "ROW")):
        monkeypatch.setattr(module, name, getattr(module, name) // 1000)
    taken, plain = [], _File.write

    def write(self, statements):
        statements = list(statements)
        size = sum(len(one) for _, values in statements for one in values if isinstance(one, bytearray))
        taken.append(size / DISK)
        clock.now += size / DISK
        plain(self, statements)

    monkeypatch.setattr(_File, "write", write)
    return taken


def loop(file, clock, draws, seconds):
    """A chain whose state is the number of its iterations, each of ``seconds``; where it began."""
    number, standing = file.begun()
    done, kept = (0, []) if standing is None else (standing.iteration, standing.draws)
    if standing is not None:
        assert standing.state == done == len(kept)
        assert [one[0] for one in kept] == list(range(done))
    for iteration in range(done, draws):
        clock.now += seconds
        kept.append(np.full(128, float(iteration)))
        file.offered(number, iteration + 1, lambda here=iteration: here + 1, kept)
    file.ended(number, draws, lambda: draws, kept)
    return done


def test_a_budget_is_a_share_of_the_time(clock):
    budget = Budget()
    # before anything is written, a disk is taken for one of so many bytes a second
    rate = spending.FIRST_BYTES / spending.FIRST_SECONDS
    assert not budget.allows(10_000_000)
    clock.now = 1.001 * 10_000_000 / rate / spending.SHARE
    assert not budget.allows(10_000_000)
    assert budget.allows(10_000_000 - spending.EACH)


def test_a_budget_is_spent(clock):
    budget = Budget()
    clock.now = 100.0
    with budget.spent(10_000_000):
        clock.now += 1.9
    # a little is left, and the disk was slow
    assert budget.allows(100_000)
    assert not budget.allows(2_000_000)
    clock.now = 1000.0
    assert budget.allows(50_000_000)
    assert not budget.allows(200_000_000)


def test_the_first_bytes_are_written_in_any_case(clock):
    budget, count = Budget(), 0
    while budget.allows(1000):
        with budget.spent(1000):
            clock.now += 10.0 if count == 0 else 0.0
        count += 1
    assert 5 < count <= spending.FREE // spending.EACH


def test_draws_that_are_made_faster_than_written_are_kept_in_part(tmp_path, clock, disk):
    """Forty draws a second, which take .08 s to write: a quarter of them is within a fiftieth of the time."""
    with kept_in(Checkpoint(tmp_path / "fit.ckpt"), dict, 1, True) as file:
        loop(file, clock, 2000, 0.025)
    assert sum(disk) <= 0.021 * clock.now
    with kept_in(Checkpoint(tmp_path / "fit.ckpt"), dict, 1, True) as file:
        done = loop(file, clock, 2000, 0.025)
    assert 400 < done < 600


def test_an_interrupt_keeps_what_the_budget_had_no_room_for(tmp_path, clock, disk):
    """The same draws: Ctrl-C after 1900 of them leaves all but those of the last second."""

    def interrupted(path):
        with kept_in(Checkpoint(path), dict, 1, True) as file:
            file.ended = lambda *given: None
            loop(file, clock, 1900, 0.025)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="keeps the first 18"):
        interrupted(tmp_path / "fit.ckpt")
    with kept_in(Checkpoint(tmp_path / "fit.ckpt"), dict, 1, True) as file:
        assert 1850 < loop(file, clock, 2000, 0.025) <= 1900


@pytest.mark.parametrize("after", [False, True])
def test_an_interrupt_may_come_while_something_is_written(tmp_path, clock, monkeypatch, after):
    """Before anything is in the file, or when all is and nobody knows it yet."""
    plain, path = _File.write, tmp_path / "fit.ckpt"

    def write(self, statements):
        monkeypatch.setattr(_File, "write", plain)
        if after:
            plain(self, statements)
        raise KeyboardInterrupt

    def interrupted():
        with kept_in(Checkpoint(path), dict, 1, True) as file:
            monkeypatch.setattr(_File, "write", write)
            loop(file, clock, 50, 1.0)

    with pytest.raises(KeyboardInterrupt, match="keeps the first"):
        interrupted()
    with kept_in(Checkpoint(path), dict, 1, True) as file:
        assert loop(file, clock, 50, 1.0) > 0


def test_draws_that_take_long_are_kept_to_the_last(tmp_path, clock, disk):
    with kept_in(Checkpoint(tmp_path / "fit.ckpt"), dict, 1, True) as file:
        loop(file, clock, 300, 0.2)
        # in rows of a few
        rows = file._file.rows("SELECT length(draws) FROM chunk")
        before = len(disk)
        assert max(size for (size,) in rows) < 1.2 * checkpoint_file.ROW
    assert sum(disk) <= 0.02 * clock.now
    with kept_in(Checkpoint(tmp_path / "fit.ckpt"), dict, 1, True) as file:
        assert loop(file, clock, 300, 0.2) == 300
    # what is there is not written again
    assert len(disk) == before


def test_one_writing_of_much_is_cut_into_rows(tmp_path, clock, disk):
    clock.now = 1000.0
    with kept_in(Checkpoint(tmp_path / "fit.ckpt"), dict, 1, True) as file:
        clock.now = 2000.0
        number, _ = file.begun()
        file.ended(number, 50, lambda: 50, [np.full(128, float(one)) for one in range(50)])
        rows = file._file.rows("SELECT start, length(draws) FROM chunk ORDER BY start")
    assert [start for start, _ in rows] == list(range(0, 50, checkpoint_file.ROW // 1024))
    assert max(size for _, size in rows) < 1.2 * checkpoint_file.ROW


def test_the_budget_is_that_of_all_loops_together(tmp_path, clock, disk):
    """A hundred fits of a second, none of which could be written on its own."""
    with kept_in(Checkpoint(tmp_path / "fit.ckpt"), dict, 1, True) as file:
        for _ in range(100):
            loop(file, clock, 20, 0.05)
        # after a fit that took long there is enough for all that follow
        clock.now += 500.0
        for _ in range(20):
            loop(file, clock, 20, 0.05)
    assert sum(disk) <= 0.021 * clock.now
    with kept_in(Checkpoint(tmp_path / "fit.ckpt"), dict, 1, True) as file:
        done = [loop(file, clock, 20, 0.05) for _ in range(120)]
    assert done[100:] == [20] * 20
    assert 0 in done[:100]
    assert 20 in done[:100]


def test_a_loop_that_goes_on_leaves_the_calls_after_it(tmp_path, clock):
    """Those of the second loop are known, though the first one is gone through again."""
    x, theta = np.ones((3, 1)), np.ones(1)
    for again in (False, True):
        with kept_in(Checkpoint(tmp_path / "fit.ckpt"), dict, 1, True) as file:
            loop(file, clock, 5, 0.1)
            assert (file.known("f", x, theta) is not None) == again
            clock.now += 10.0
            file.record("f", x, theta, np.ones(3), 1.0)
            if not again:
                # in a loop, what led to its state is forgotten
                number, _ = file.begun()
                file.record("f", x, 2 * theta, np.ones(3), 1.0)
                file.ended(number, 2, lambda: 2, [])
            assert file.known("f", x, 2 * theta) is None


def test_places_of_a_loop_that_failed_are_not_written_for_the_next(tmp_path, clock, disk):
    with kept_in(Checkpoint(tmp_path / "fit.ckpt"), dict, 1, True) as file:
        number, _ = file.begun()
        draws = [np.full(128, -1.0)] * 100
        for iteration in range(90, 100):
            clock.now += 1.0
            file.offered(number, iteration, lambda: -1, draws[:iteration])
        loop(file, clock, 2000, 0.025)
    with kept_in(Checkpoint(tmp_path / "fit.ckpt"), dict, 1, True) as file:
        file.begun()
        assert loop(file, clock, 2000, 0.025) > 100


@pytest.mark.parametrize("method", ["none", "bart"])
def test_a_run_whose_end_was_not_written_goes_on_bit_for_bit(tmp_path, monkeypatch, method):
    x = np.linspace(0.0, 1.0, 12)
    y = 2 * x + 0.1 * np.cos(40 * x)
    own = oc.Problem(x, y, lambda x, theta: theta[0] * x, {"a": stats.norm(0, 5)}, noise_cov=0.01, starts=1)
    path, offers = tmp_path / "fit.ckpt", []

    def calibrated(checkpoint):
        method_of = {"bart": oc.methods.Joint(oc.bias.BART(trees=5))}.get(method, method)
        return oc.calibrate(
            own, method_of, draws=40, warmup=30, chains=2, seed=3, progress=False, checkpoint=checkpoint
        )

    def offered(self, loop, iteration, state, draws):
        offers.append(iteration)
        self._keep(loop, iteration, state, draws)

    whole = calibrated(None).theta
    monkeypatch.setattr(CheckpointFile, "offered", offered)
    with monkeypatch.context() as patch:
        patch.setattr(Budget, "allows", lambda self, size: len(offers) <= 50)
        first = calibrated(path)
    assert np.array_equal(first.theta, whole)
    assert offers == list(range(1, 71))
    offers.clear()
    monkeypatch.setattr(Budget, "allows", lambda self, size: True)
    assert np.array_equal(calibrated(path).theta, whole)
    assert offers == list(range(51, 71))
    # and now it is there to its end
    offers.clear()
    assert np.array_equal(calibrated(path).theta, whole)
    assert not offers
