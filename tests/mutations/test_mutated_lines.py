"""The mutations are tried by ``make test-mutations``; here: each still applies, and names tests that are there."""

import re
from collections import Counter
from pathlib import Path

import pytest
from mutated_lines import MUTATIONS

ROOT = Path(__file__).parents[2]


def test_there_are_many_and_each_has_a_name_of_its_own():
    assert len(MUTATIONS) >= 60
    assert not [name for name, count in Counter(one.name for one in MUTATIONS).items() if count > 1]


@pytest.mark.skipif(not (ROOT / "src").is_dir(), reason="the sources are not beside the tests")
def test_every_mutation_applies_and_names_tests_that_are_there():
    """Who changes a line of the table, or a test's name, changes the table with it."""
    texts = {path: (ROOT / path).read_text(encoding="utf-8") for path in {one.file for one in MUTATIONS}}
    for one in MUTATIONS:
        assert texts[one.file].count(one.old) == 1, f"{one.name}: {one.old!r} is not there once"
        assert one.old != one.new
        for test in one.tests:
            file, _, name = test.partition("::")
            text = (ROOT / file).read_text(encoding="utf-8")
            assert not name or re.search(rf"(def|class) {name}\b", text), f"there is no test {test}"
