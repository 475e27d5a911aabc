"""A part of the study of ``benchmarks/findings.py``: findings are silent where nothing is wrong, and speak where it is.

The seeds are the study's, so that its table says what is to be expected.
"""

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from finding_cases import SILENT, SPEAKING
from findings import WORDS, fitted

FITS = 4


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SILENT)
def test_nothing_is_wrong(name):
    """At most one of four fits has a problem: with 3 % each, two have one in half a per cent of such tests."""
    fits = [fitted(SILENT[name], f"silent {name}", number)["found"] for number in range(FITS)]
    assert sum(any(one.startswith("problem|") for one in found) for found in fits) <= 1
    assert not any(one.startswith("error|") for found in fits for one in found)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SPEAKING)
def test_something_is_wrong(name):
    """At least one of four fits says so; most findings do in all."""
    fits = [fitted(SPEAKING[name], f"speaking {name}", number)["found"] for number in range(FITS)]
    assert any(re.search(WORDS[name], one.split("|", 1)[1], re.DOTALL) for found in fits for one in found)
