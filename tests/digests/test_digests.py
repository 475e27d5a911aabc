"""No number changes by accident: the digests of everything that is computed, against the recorded ones.

A change that is meant is recorded anew (``python tests/digests/cases.py --write``), and its commit says what changed
and why. Bits depend on the machine and on the libraries, so elsewhere the test is skipped.
"""

import json
import re

import cases
import pytest

RECORDED = json.loads(cases.RECORDED.read_text())
CASES = cases.all_cases()
#: every prior, method, kernel and emulator on its smallest problem; the others are run by `make test-slow`
FAST = re.compile("one (?!finite)|emulator .* common")


def test_every_case_is_recorded():
    assert set(CASES) == set(RECORDED["digests"])


@pytest.mark.skipif(
    cases.fingerprint() != RECORDED["fingerprint"],
    reason=f"recorded with {RECORDED['fingerprint']}: bits differ elsewhere",
)
@pytest.mark.parametrize(
    "name", [name if FAST.match(name) else pytest.param(name, marks=pytest.mark.slow) for name in CASES]
)
def test_the_numbers_are_those_that_were_recorded(name):
    assert cases.quietly(CASES[name]) == RECORDED["digests"][name]


def test_a_digest_sees_the_last_bit():
    array = cases.np.linspace(0, 1, 7)
    changed = array.copy()
    changed[3] = cases.np.nextafter(changed[3], 1)
    assert cases.digest({"a": array}) != cases.digest({"a": changed})
    assert cases.digest({"a": array}) != cases.digest({"b": array})
