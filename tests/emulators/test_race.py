"""Emulators in a race: held out in parts, dropped where they are clearly worse, whatever the number of threads."""

import numpy as np
import pytest
from emulator_cases import Nearest

import orthocal as oc
from orthocal.emulators.race import clearly_worse, split
from orthocal.errors import InputError

X = np.linspace(0, 1, 6)


class Linear:
    """Least squares."""

    def fit(self, inputs, target):
        basis = np.column_stack([np.ones(len(inputs)), inputs])
        self.coefficients = np.linalg.lstsq(basis, target, rcond=None)[0]
        return self

    def predict(self, inputs):
        return np.column_stack([np.ones(len(inputs)), inputs]) @ self.coefficients


class Mean:
    def fit(self, inputs, target):
        self.value = target.mean()
        return self

    def predict(self, inputs):
        return np.full(len(inputs), self.value)


def runs(s=60, replicates=1, sd=0.0, seed=0):
    rng = np.random.default_rng(seed)
    theta = np.repeat(rng.random((s, 2)), replicates, axis=0)
    output = theta[:, :1] * X + 2 * theta[:, 1:] + sd * rng.standard_normal((len(theta), 1))
    return oc.RunTable(theta, output, X)


EMULATORS = {"mean": Mean(), "linear": Linear(), "nearest": Nearest()}


def test_what_is_clearly_worse_is_dropped_and_the_best_is_the_same():
    whole = oc.compare_emulators(runs(), EMULATORS, progress=False)
    race = oc.compare_emulators(runs(), EMULATORS, progress=False, race=True)
    assert race.ranking.index[0] == whole.ranking.index[0] == "linear"
    assert set(race.dropped) == {"mean", "nearest"}
    assert race.dropped["mean"] == "after 12 held-out theta, at 12 of which linear was better"
    assert "mean was dropped after 12 held-out theta" in str(race)
    # until so many were held out that its error is known: four of five parts
    assert race.held_out == 48
    assert race.table.loc["linear", "relative_rmse"].max() < 1e-8


@pytest.mark.parametrize("race", [False, True])
def test_the_number_of_threads_changes_nothing(race):
    noisy = runs(40, sd=0.5)
    tables = [
        oc.compare_emulators(noisy, EMULATORS, progress=False, race=race, jobs=jobs).table["relative_rmse"].to_numpy()
        for jobs in (1, 3)
    ]
    assert tables[0].tobytes() == tables[1].tobytes()
    with pytest.raises(InputError, match="jobs=0"):
        oc.compare_emulators(noisy, EMULATORS, jobs=0)


def test_what_is_as_good_stays_in_the_race():
    two = {"one": Linear(), "other": Linear(), "nearest": Nearest()}
    race = oc.compare_emulators(runs(50, sd=0.3), two, progress=False, race=True)
    assert "one" not in race.dropped
    assert "other" not in race.dropped
    assert race.held_out == 50


def test_a_difference_by_chance_is_none():
    """Errors that differ by noise alone: at a level of 1 % more than 6 of 200 have a probability of .5 %."""
    rng = np.random.default_rng(0)
    dropped = sum(clearly_worse(*np.abs(rng.standard_normal((2, 12)))) for _ in range(200))
    assert dropped <= 6
    assert clearly_worse(np.full(4, 2.0), np.full(4, 1.0))
    assert not clearly_worse(np.full(3, 2.0), np.full(3, 1.0)), "three say nothing"
    # typically worse, and better together: the rms counts
    assert not clearly_worse(np.full(12, 1.0), np.array([0.1] * 11 + [9.0]))


def test_replicates_are_held_out_together():
    table = runs(12, replicates=4)
    shuffled = table.subset(np.random.default_rng(1).permutation(48))
    parts = split(shuffled, 4, 0)
    assert sorted(np.concatenate(parts)) == list(range(48))
    for part in parts:
        inside = {tuple(one) for one in shuffled.theta[part]}
        assert len(part) == 4 * len(inside)
    with pytest.raises(InputError, match="number of distinct theta of the runs, 12"):
        split(shuffled, 13, 0)


def test_held_out_replicates_are_averaged():
    """Of a perfect mean function, what is left is the noise of the mean of nine, not of a run."""
    sd, many = 0.5, runs(60, replicates=9, sd=0.5, seed=3)
    compared = oc.compare_emulators(many, {"linear": Linear(), "mean": Mean()}, progress=False)
    rmse = compared.choice.rmse["y"]
    # the sd of an rms of 60 values is .09 of it; linear least squares of 480 runs adds little
    assert rmse == pytest.approx(sd / 3, rel=0.3)


def test_coverage_of_replicates_counts_their_scatter():
    many = runs(25, replicates=4, sd=0.4, seed=4)
    compared = oc.compare_emulators(many, ["gp"], folds=5, progress=False)
    assert 0.8 <= compared.table.loc[("gp", "y"), "coverage"] <= 1.0


def test_a_choice_says_how_it_was_made():
    compared = oc.compare_emulators(runs(20), {"gp": "gp", "mean": Mean()}, progress=False, race=True)
    choice = compared.choice
    assert list(choice.errors) == ["gp", "mean"]
    assert choice.sentence.startswith("gp, the best at 20 held-out runs: its rms error is ")
    assert choice.sentence.endswith("when it was dropped)")
    assert choice.rmse["y"] == pytest.approx(choice.errors["gp"] * compared.spread[0])
