"""Eight curves of one metal as eight experiments, from a CSV file to a page; their source is in docs/real-problems.md.

The data are read from a folder beside the repository, and the test is skipped where it is not there.
"""

import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import orthocal as oc
from orthocal.cli.commands import app
from real_problems import DATA

pytestmark = [
    pytest.mark.slow,
    # said where the machine is busy: it goes by the clock
    pytest.mark.filterwarnings("ignore:.*calls of the simulator"),
    pytest.mark.skipif(not DATA.is_dir(), reason="needs the folder of public data sets beside the repository"),
]
EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "aluminium"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("aluminium") / "example"
    shutil.copytree(EXAMPLE, folder)
    shutil.copy(DATA / "al5083.csv", folder)
    return folder


def done(*command):
    result = CliRunner().invoke(app, [str(part) for part in command])
    assert result.exit_code == 0, result.output
    return result.output


def test_from_a_table_to_a_page(folder):
    """theta is what one problem of all curves gives (docs/real-problems.md), to what other nodes make of it."""
    done("run", folder / "problem.toml", "--out", folder / "fit")
    posterior = oc.load(next((folder / "fit").glob("*.nc")))
    assert len(posterior.experiments) == 8
    found = {name: posterior.theta[..., j] for j, name in enumerate(posterior.parameter_names)}
    for name, expected, most in (("A", 229.7, 8.0), ("C", 0.0119, 0.0005), ("m", 0.854, 0.02)):
        assert abs(found[name].mean() - expected) < most, name
    assert 1.0 < found["A"].std() < 6.0
    assert posterior.data["sample_stats"]["orthogonality_error"].max() < 1e-5
    # m has no effect on cold curves, and these are no reason to refuse the others
    assert np.isfinite(found["m"]).all()
    page = next((folder / "fit").glob("*.html")).read_text(encoding="utf-8")
    for number in range(8):
        assert f"{number}: data and fit" in page
