"""Simulators of problem and campaign files that are no functions: models of servers."""

import numpy as np
import pytest
from serving import POINTS, Pretended, PretendedDecay, decay

import orthocal as oc
from orthocal.config.campaign_file import build_campaign, read_campaign_file
from orthocal.config.problem_file import build_problem, read_problem_file
from orthocal.errors import ConfigError, InputError

PARAMETERS = """
[parameters]
a = { distribution = "norm", loc = 2, scale = 1 }
b = { distribution = "uniform", loc = 0.1, scale = 4 }
"""
PROBLEM = """
[data]
file = "field.csv"
x = "x"
y = "y"
[domain]
file = "field.csv"
x = "x"
[noise]
cov = 0.01
[sampling]
starts = 2
[simulator.umbridge]
url = "{url}"
"""


@pytest.fixture
def folder(tmp_path):
    rows = [f"{x},{y}" for x, y in zip(POINTS, decay(POINTS, [2.0, 1.0]), strict=True)]
    (tmp_path / "field.csv").write_text("\n".join(["x,y", *rows]))
    return tmp_path


@pytest.fixture
def url():
    class Quick(PretendedDecay):
        pause = 0.0

    server = Pretended(Quick)
    yield f"http://127.0.0.1:{server.server_port}"
    server.go()


def problem(folder, text):
    (folder / "problem.toml").write_text(text + PARAMETERS)
    return build_problem(read_problem_file(folder / "problem.toml"), folder)


@pytest.mark.slow
def test_a_model_of_a_server_at_the_field_data(folder, url):
    found = problem(folder, PROBLEM.format(url=url))
    assert np.allclose(found.theta_tilde, [2, 1], atol=0.02)
    assert found.simulator.calls > 0


def test_further_settings_of_a_server(folder, url):
    more = 'model = "forward"\nconfig = { level = 2 }\noutputs = [0]\ntimeout = 5\nwait = 1\nretries = 0\neach = 2\n'
    (folder / "grid.csv").write_text("x\n" + "\n".join(map(str, POINTS)))
    found = problem(folder, PROBLEM.format(url=url) + more + 'points = "grid.csv"\n').simulator._function
    assert isinstance(found, oc.UMBridge)
    assert (found.config, found.outputs, found.timeout, found.width) == ({"level": 2}, [0], 5, 2)
    assert np.array_equal(found.points[:, 0], POINTS)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            '[simulator]\nfunction = "f.py:f"',
            "takes either a function to call, or runs to learn an emulator from",
        ),
        ("[simulator]\njobs = 2", "with umbridge has no jobs: its settings are in umbridge"),
        ('modle = "a"', "unknown key 'simulator.umbridge.modle'"),
        ('derivative = "exact"', "simulator.umbridge.derivative: input should be 'auto', 'jacobian'"),
        ("x_block = 0\nx_config = 'x'", "points, x_block and x_config each say where x is: give one of them"),
        ("each = 0", "each=0: give the calls that one server takes at a time"),
    ],
)
def test_what_does_not_fit(folder, url, more, message):
    text = PROBLEM.format(url=url)
    given = f"{more}\n{text}" if more.startswith("[") else text + more
    with pytest.raises((ConfigError, InputError), match=message):
        problem(folder, given)


CAMPAIGN = """
[design]
n = 4
[x]
file = "field.csv"
columns = "x"
[simulator]
{simulator}
"""


def campaign(folder, simulator):
    (folder / "campaign.toml").write_text(CAMPAIGN.format(simulator=simulator) + PARAMETERS)
    return build_campaign(read_campaign_file(folder / "campaign.toml"), folder)


def test_a_campaign_of_a_server(folder, url):
    runs = oc.campaign(**campaign(folder, f'umbridge = {{ url = ["{url}", "{url}"] }}'), progress=False)
    assert np.array_equal(runs.output[..., 0], [decay(POINTS, theta) for theta in runs.theta])


def test_a_campaign_has_one_simulator(folder, url):
    for given in ("", f'umbridge = {{ url = "{url}" }}\nfunction = "f.py:f"'):
        with pytest.raises(ConfigError, match="takes either a function to call, or umbridge, the model of a server"):
            campaign(folder, given)
