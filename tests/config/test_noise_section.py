"""[noise] of a problem file: errors that are correlated between rows."""

import numpy as np
import pytest

from orthocal.config.noise_section import NoiseSection, noise_of
from orthocal.errors import ConfigError


def test_a_covariance_from_a_file(tmp_path):
    matrix = np.array([[1.0, 0.25], [0.25, 2.0]])
    for separator in (",", ";", " "):
        np.savetxt(tmp_path / "cov.csv", matrix, delimiter=separator)
        np.testing.assert_array_equal(noise_of(NoiseSection(file="cov.csv"), False, tmp_path), matrix)


def test_errors_along_a_line(tmp_path):
    line = {"kind": "matern", "nu": 2.5, "column": "t", "length": 0.1, "share": 0.8, "groups": "rig"}
    found = noise_of(NoiseSection(**line, sd=0.2), False, tmp_path)
    shown = (found.kind, found.nu, found.column, found.length, found.share, found.groups, found.sd)
    assert shown == ("matern", 2.5, "t", 0.1, 0.8, "rig", 0.2)
    np.testing.assert_array_equal(
        noise_of(NoiseSection(**line, cov=[0.1, 0.2]), False, tmp_path).cov, [[0.1, 0], [0, 0.2]]
    )
    prior = {"distribution": "lognorm", "s": 0.5, "scale": 0.05}
    open_one = noise_of(NoiseSection(kind="ar1", share="estimate", prior=prior), True, tmp_path)
    assert (open_one.share, open_one.length, open_one.sd) == (None, None, None)
    assert open_one.prior.median() == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("section", "with_errors", "words"),
    [
        ({"length": 0.1}, False, 'length goes with kind = "ar1"'),
        ({"kind": "ar1", "varying": "x"}, False, "kind and varying"),
        ({"kind": "ar1", "cov": "sample"}, False, 'not with cov = "sample"'),
        ({"kind": "ar1", "sd": 0.1}, True, "both give the noise"),
        ({"file": "cov.csv", "cov": 0.1}, False, "nothing beside it"),
        ({"file": "nowhere.csv"}, False, "cannot be read"),
        ({"file": "words.csv"}, False, "without a header"),
    ],
)
def test_what_does_not_go_together(section, with_errors, words, tmp_path):
    (tmp_path / "words.csv").write_text("a,b\n1,2\n3,4\n")
    with pytest.raises(ConfigError, match=words):
        noise_of(NoiseSection(**section), with_errors, tmp_path)
