"""``orthocal serve``: a posterior as UM-Bridge models, asked by the protocol's own client and by ours."""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import orthocal as oc
from orthocal.cli.serving import served_models
from orthocal.errors import InputError, SimulatorError
from orthocal.files.netcdf import write_netcdf
from orthocal.results.callable_posterior import CallablePosterior

umbridge = pytest.importorskip("umbridge", reason="needs umbridge, the extra umbridge")


def line(x, theta):
    return theta[0] * x + theta[1]


@pytest.fixture(scope="module")
def posterior():
    from scipy import stats

    x = np.linspace(0, 1, 12)
    y = 2 * x + 0.3 * np.sin(6 * x) + 0.05 * np.random.default_rng(1).standard_normal(12)
    priors = {"a": stats.norm(0, 10), "b": stats.norm(0, 10)}
    problem = oc.Problem(x, y, line, priors, domain=oc.Box(0, 1, 8), noise_cov=0.0025, starts=2)
    method = oc.methods.Joint(oc.bias.GP(sd=0.5, lengthscale=0.3))
    return oc.calibrate(problem, method, draws=10, chains=2, seed=1, progress=False)


def test_a_draw_is_that_of_predict(posterior):
    served, x = CallablePosterior(posterior), np.array([[0.05], [0.55]])
    assert (served.d, served.q, served.p, served.draws, served.anywhere) == (1, 1, 2, 20, True)
    for draw in (3, 17):
        chain, place = divmod(draw, 10)
        model, bias, mean = (served.values(name, x, draw) for name in ("model", "bias", "mean"))
        assert np.array_equal(served.theta(draw), posterior.theta[chain, place])
        assert np.allclose(model[:, 0], line(x[:, 0], posterior.theta[chain, place]))
        assert np.allclose(mean, model + bias)
        assert np.array_equal(served.values("mean", x, draw), mean)
        assert not np.array_equal(served.values("observation", x, draw, seed=2), served.values("observation", x, draw))
    # at the data the bias is that of the posterior
    at = CallablePosterior(posterior).values("bias", posterior.record.x, 4)
    assert np.allclose(at, posterior.predict()["bias"].values[0, 4], atol=1e-6)


def test_a_summary_is_that_of_the_draws(posterior):
    x = np.array([[0.5]])
    found = [CallablePosterior(posterior).values("mean", x, draw)[0, 0] for draw in range(20)]
    mean, sd, lower, upper = (one[0, 0] for one in CallablePosterior(posterior).summary("mean", x, 10))
    # the bias between the data is drawn anew in each of them
    assert abs(mean - np.mean(found)) < 0.1 * np.ptp(found) + 0.02
    assert lower < mean < upper
    assert 0 < sd < 0.2
    for quantity, draws in (("means", 10), ("mean", 0), ("mean", True)):
        with pytest.raises(InputError, match=r"of='means': give one of|draws="):
            CallablePosterior(posterior).summary(quantity, x, draws)


def test_what_a_file_knows_without_its_simulator(posterior, tmp_path):
    # without the curves of the report, which take a second
    loaded = oc.load(write_netcdf(posterior.data, tmp_path / "fit.nc"))
    served, x = CallablePosterior(loaded), loaded.record.x
    assert not served.anywhere
    assert np.array_equal(served.values("mean", x[[3, 0]], 12), loaded.predict()["mean"].values[1, 2][[3, 0]])
    with pytest.raises(
        InputError, match=r"x = 0\.51 is none of the data points, and a result file holds no simulator: giv"
    ):
        served.values("bias", np.array([[0.51]]), 0)
    for draw in (-1, 20, 0.5, np.nan):
        with pytest.raises(InputError, match="give the number of a draw, from 0 to 19"):
            served.theta(draw)


def test_outputs_without_inputs():
    from scipy import stats

    problem = oc.Problem(
        None, [1.0, 2.0, 2.9], lambda t: t[0] * np.arange(1.0, 4), {"a": stats.norm(0, 3)}, noise_cov=0.01
    )
    posterior = oc.calibrate(problem, "none", draws=5, chains=1, seed=1, progress=False)
    models = {one.name: one for one in served_models(posterior)}
    assert models["model"].get_input_sizes({}) == [1]
    assert models["model"].get_output_sizes({}) == [3]
    assert models["summary"].get_input_sizes({}) == []
    assert np.allclose(models["model"]([[2.0]], {})[0], posterior.theta[0, 2] * np.arange(1.0, 4))
    assert len(models["summary"]([], {})) == 4


PROBLEM = """
[data]
file = "field.csv"
x = "x"
y = "y"
[simulator]
function = "simulator.py:line"
[parameters]
a = { distribution = "norm", loc = 0, scale = 10 }
b = { distribution = "norm", loc = 0, scale = 10 }
"""


@pytest.fixture
def folder(posterior, tmp_path):
    write_netcdf(posterior.data, tmp_path / "fit.nc")
    x, y = posterior.record.x[:, 0], posterior.record.y[:, 0]
    (tmp_path / "field.csv").write_text("x,y\n" + "\n".join(f"{a},{b}" for a, b in zip(x, y, strict=True)))
    (tmp_path / "simulator.py").write_text("def line(x, theta):\n    return theta[0] * x[:, 0] + theta[1]\n")
    (tmp_path / "problem.toml").write_text(PROBLEM)
    return tmp_path


def started(folder, *words):
    """The process, and its address."""
    environment = {**os.environ, "PYTHONPATH": str(Path(oc.__file__).parents[1])}
    command = [sys.executable, "-m", "orthocal.cli", "serve", str(folder / "fit.nc"), *words]
    command[1:3] = ["-c", "from orthocal.cli import main; main()"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said = process.stdout.readline()
    assert "(Ctrl-C ends it)" in said, process.communicate()[1]
    return process, re.search(r"http://\S+", said)[0]


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_served_over_http(folder, posterior, number, code):
    process, url = started(folder, "--port", "0", "--problem", str(folder / "problem.toml"))
    try:
        assert umbridge.supported_models(url) == ["model", "bias", "mean", "observation", "summary", "parameters"]
        loaded, x = oc.load(folder / "fit.nc", line), np.array([0.05, 0.55])
        theirs = umbridge.HTTPModel(url, "mean")
        config = {"points": 2}
        assert theirs.get_input_sizes(config) == [2, 1]
        expected = CallablePosterior(loaded).values("mean", x[:, None], 13)[:, 0]
        assert np.allclose(theirs([x.tolist(), [13]], config)[0], expected, rtol=1e-12)
        # ours: x is the first block, the draw is theta
        ours = oc.UMBridge(url, "mean", x_block=0, config=config)
        assert np.allclose(ours(x, np.array([13.0]))[:, 0], expected, rtol=1e-12)
        assert np.allclose(oc.UMBridge(url, "parameters")(np.array([13.0])), posterior.theta[1, 3])
        with pytest.raises(SimulatorError, match="says InvalidInput: draw=20: give the number of a draw, from 0 to 19"):
            ours(x, np.array([20.0]))
        with pytest.raises(SimulatorError, match="says InvalidInput: points=0: give the number of points x in a call"):
            oc.UMBridge(url, "mean", x_block=0, config={"points": 0})(x, np.array([1.0]))
        port = int(url.rpartition(":")[2])
        listening = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        addresses = {row[1] for row in listening if row[1].endswith(f":{port:04X}") and row[3] == "0A"}
        assert addresses == {f"0100007F:{port:04X}"}, "this computer alone can ask"
    finally:
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert err.strip() == "error: the server has ended"


@pytest.mark.slow
def test_a_port_that_is_taken(folder):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        command = [sys.executable, "-c", "from orthocal.cli import main; main()", "serve", str(folder / "fit.nc")]
        environment = {**os.environ, "PYTHONPATH": str(Path(oc.__file__).parents[1])}
        command += ["--port", str(other.getsockname()[1])]
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "note: values at the data points alone, without the simulator: give --problem" in run.stderr
    assert re.search(r"error: cannot listen on 127\.0\.0\.1:\d+: .*; give another --port", run.stderr)
