"""Files that were changed at random, for every loader: no traceback, no wait, no number that the file does not say."""

import pytest
from fuzz_inputs import changed_bytes, changed_text
from fuzz_loaders import LOADERS, fuzzed

from orthocal.errors import FileError

#: a file whose last bytes are lost is tried in a process of its own
FAST = {"netCDF posterior": 10, "netCDF runs": 10, "FITS kinematics": 10, "TOML problem": 20}
SEED = 1


def found(loader, cases, folder):
    if "Parquet" in loader.name:
        pytest.importorskip("pyarrow", reason="needs pyarrow, the extra parquet")
    tally = fuzzed(loader, range(cases), SEED, folder)
    return {"raised": tally.raised, "wrong": tally.wrong, "slow": tally.slow}


NOTHING = {"raised": [], "wrong": [], "slow": []}


@pytest.mark.parametrize("loader", LOADERS, ids=lambda one: one.name)
def test_some_changed_files(loader, tmp_path):
    assert found(loader, FAST.get(loader.name, 40), tmp_path) == NOTHING


@pytest.mark.slow
@pytest.mark.parametrize("loader", LOADERS, ids=lambda one: one.name)
def test_many_changed_files(loader, tmp_path):
    assert found(loader, 2000, tmp_path) == NOTHING


def test_the_fuzzer_notices(tmp_path):
    """A loader that guesses, one that raises and one that refuses everything."""
    by_name = {loader.name: loader for loader in LOADERS}
    field = by_name["CSV field data"]

    def guess(path):
        return {"x": [0.5] * 12}

    def stumble(path):
        if path.read_bytes() != good:
            raise KeyError("x")

    def refuse(path):
        if path.read_bytes() != good:
            raise FileError("no")

    good = field.write(tmp_path).read_bytes()
    tally = fuzzed(field._replace(read=guess), range(20), SEED, tmp_path)
    # what the fuzzer itself cannot read counts as raised
    assert len(tally.wrong) + len(tally.raised) >= 18
    assert len(tally.wrong) >= 15
    assert len(fuzzed(field._replace(read=stumble), range(20), SEED, tmp_path).raised) >= 18
    assert fuzzed(field._replace(read=refuse), range(20), SEED, tmp_path).refused >= 18


def test_cases_are_made_from_their_numbers():
    import numpy as np

    for change in (changed_bytes, changed_text):
        one, other = (change(b"x,y\n1,2\n" * 20, np.random.default_rng([1, 5])) for _ in range(2))
        assert one == other
