"""FMUs as simulators: x is time or settings, parameters by name, and what is said of those that cannot be used."""

import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fmu_models import build_decay, build_spring, without
from scipy import stats

import orthocal as oc
from orthocal.cli import main
from orthocal.errors import InputError, NonFiniteError

pytest.importorskip("fmpy", reason="needs fmpy, the extra fmpy")
pytest.importorskip("pythonfmu", reason="pythonfmu builds the FMUs of the tests, in the extra test")

TIMES = np.linspace(0, 2, 9)
THETA = np.array([4.0, 0.5])


def spring(t, theta, start=1.0, force=0.0):
    k, c = theta
    rest, decay = force / k, c / 2
    w = np.sqrt(k - decay**2)
    return rest + (start - rest) * np.exp(-decay * t) * (np.cos(w * t) + decay / w * np.sin(w * t))


@pytest.fixture(scope="module")
def fmu(tmp_path_factory):
    return build_spring(tmp_path_factory.mktemp("spring"))


@pytest.fixture(scope="module")
def decay(tmp_path_factory):
    pytest.importorskip("pythonfmu3", reason="pythonfmu3 builds an FMU of the tests, in the extra test")
    return build_decay(tmp_path_factory.mktemp("decay"))


def test_x_is_time(fmu):
    model = oc.FMU(fmu, ["k", "c"], ["x", "v"])
    found = model(TIMES, THETA)
    assert np.allclose(found[:, 0], spring(TIMES, THETA), rtol=1e-12)
    assert found.shape == (9, 2)
    # between two steps of .01 the outputs are interpolated: h^2 |x''| / 8
    between = model(TIMES[:-1] + 0.005, THETA)[:, 0]
    assert 1e-6 < np.max(np.abs(between - spring(TIMES[:-1] + 0.005, THETA))) < 0.01**2 * 4 / 8
    # it does not know what it was asked before
    assert np.array_equal(model(TIMES, THETA), found)


def test_x_is_settings(fmu):
    """One simulation for each combination, read at the end or at the times that are asked for."""
    settings = np.array([[1.0, 0.0], [2.0, 0.0], [1.0, 3.0], [1.0, 0.0]])
    at_end = oc.FMU(fmu, ["k", "c"], "x", ["start", "load.force"])
    expected = [spring(2.0, THETA, *row) for row in settings]
    assert np.allclose(at_end(settings, THETA)[:, 0], expected, rtol=1e-12)
    timed = oc.FMU(fmu, ["k", "c"], ["x", "steps"], {"t": "time", "s": "start"}, stop=1.5, fixed={"load.force": 1.0})
    rows = np.array([[0.5, 1.0], [1.5, 2.0], [1.0, 1.0]])
    found = timed(rows, THETA)
    assert np.allclose(found[:, 0], [spring(t, THETA, s, 1.0) for t, s in rows], rtol=1e-12)
    assert found[1, 1] == 150


def test_outputs_without_inputs(fmu):
    model = oc.FMU(fmu, ["k", "c"], ["x", "v"])
    assert np.array_equal(model(THETA), model(np.array([2.0]), THETA)[0])


def test_model_exchange(decay):
    model = oc.FMU(decay, ["k"], "x", stop=2)
    # the solver's tolerance, and the interpolation between 500 steps
    assert np.allclose(model(TIMES, np.array([1.5]))[:, 0], np.exp(-1.5 * TIMES), atol=5e-7)
    assert model._experiment.kind == "ModelExchange"


def test_parameters_are_matched_by_name(fmu):
    model = oc.FMU(fmu, {"damping": "c", "stiffness": "k"}, "x")
    priors = {"stiffness": stats.norm(4, 1), "damping": stats.uniform(0.1, 1)}
    y = spring(TIMES, THETA)
    problem = oc.Problem(TIMES, y, model, priors, domain=oc.Box(0, 2, 4), noise_cov=0.01, starts=1)
    assert np.allclose(problem.simulator.evaluate(TIMES[:, None], THETA)[:, 0], y)
    assert problem.simulator._differences.step == 1e-3
    wrapped = oc.Problem(TIMES, y, oc.Simulator(model, jobs=2), priors, noise_cov=0.01)
    assert np.allclose(wrapped.simulator.evaluate(TIMES[:, None], THETA)[:, 0], y)
    assert wrapped.simulator._differences.step == 1e-3
    with pytest.raises(
        InputError, match=r"Spring.fmu has the parameters damping, stiffness, and the problem has k, damp"
    ):
        oc.Problem(TIMES, y, model, {"k": priors["stiffness"], "damping": priors["damping"]})
    outputs = oc.Problem(
        None, [0.5, 0.1], oc.FMU(fmu, {"damping": "c", "stiffness": "k"}, ["x", "v"]), priors, noise_cov=0.1
    )
    assert np.allclose(outputs.simulator.evaluate(np.zeros((1, 1)), THETA)[0, 0], spring(2.0, THETA))


def test_gradients_by_differences(fmu, decay):
    x, theta = TIMES[1:], np.array([1.5])
    problem = oc.Problem(
        x, np.exp(-1.5 * x), oc.FMU(decay, ["k"], "x", stop=2), {"k": stats.norm(1.5, 0.5)}, noise_cov=1
    )
    found = problem.simulator.gradient(x[:, None], theta)[:, 0, 0]
    assert np.allclose(found, -x * np.exp(-1.5 * x), atol=2e-5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"parameters": ["kk"]}, "parameters: Spring.fmu has no variable 'kk'; it has k, c, start, load.force"),
        ({"outputs": "z"}, "outputs: Spring.fmu has no variable 'z'; it has k, c, start, load.force, x, v, steps"),
        ({"outputs": "words"}, "outputs: the variable 'words' of Spring.fmu is no number"),
        ({"parameters": ["v"]}, "the variable 'v' of Spring.fmu is calculated by the model, and cannot be set"),
        ({"parameters": ["steps"]}, "the variable 'steps' of Spring.fmu is no real number"),
        ({"inputs": "c"}, "the variable 'c' is named twice among parameters, inputs and fixed"),
        ({"parameters": ["k", "k"]}, "a variable is named twice: k, k"),
        ({"fixed": {"m": 1}}, "fixed: Spring.fmu has no variable 'm'"),
        ({"kind": "model-exchange"}, "kind='model-exchange': Spring.fmu is an FMU for co-simulation"),
        ({"kind": "exact"}, "kind='exact': give \"auto\""),
        ({"solver": "RK4"}, "solver='RK4': give"),
        ({"stop": 0}, "start=0 and stop=0: give a stop after the start"),
        ({"step": 3}, "step=3: give a part of the time from 0 to 2"),
        ({"tolerance": 0}, "tolerance=0: give a number between 0 and 1"),
        ({"timeout": -1}, "timeout=-1: give seconds, or None"),
        ({"outputs": []}, "parameters and outputs: give at least one variable each"),
    ],
)
def test_what_does_not_fit_is_one_sentence(fmu, settings, message):
    with pytest.raises(InputError, match=message):
        oc.FMU(fmu, **{"parameters": ["k", "c"], "outputs": "x", **settings})


def test_calls_that_do_not_fit(fmu, decay):
    model = oc.FMU(fmu, ["k", "c"], "x")
    with pytest.raises(
        InputError, match=r"x has the time 3, and Spring.fmu is simulated from 0 to 2: give another start="
    ):
        model(np.array([1.0, 3.0]), THETA)
    with pytest.raises(InputError, match=r"theta has 1 values, Spring.fmu has 2 parameters"):
        model(TIMES, THETA[:1])
    with pytest.raises(InputError, match=r"x has 2 columns for the inputs time of Spring.fmu"):
        model(np.ones((3, 2)), THETA)
    with pytest.raises(InputError, match=r"Spring.fmu has the inputs t, s, and x has t, u: give inputs="):
        oc.FMU(fmu, ["k"], "x", {"t": "time", "s": "start"}).for_inputs(["t", "u"])
    with pytest.raises(InputError, match=r"Decay.fmu does not say how long to simulate: give stop="):
        oc.FMU(decay, ["k"], "x")


def test_another_platform_and_no_fmu_at_all(fmu, tmp_path):
    elsewhere = without(fmu, "linux64", "windows.fmu")
    with pytest.raises(
        InputError, match=r"windows.fmu has no binaries for this platform, \w+: it has win64; export it for"
    ):
        oc.FMU(elsewhere, ["k"], "x")
    with pytest.raises(InputError, match=r"there is no FMU .*nothing.fmu"):
        oc.FMU(tmp_path / "nothing.fmu", ["k"], "x")
    (tmp_path / "text.fmu").write_text("no archive")
    with pytest.raises(InputError, match=r"text.fmu is no FMU that can be read: "):
        oc.FMU(tmp_path / "text.fmu", ["k"], "x")


def test_a_diverging_run_and_one_that_gives_up(fmu):
    model = oc.FMU(fmu, ["k", "c"], ["v", "x"])
    with pytest.raises(
        NonFiniteError, match=r"Spring.fmu diverged: v is not finite from time 0\.01 on, with k = -1, c = 0\.5"
    ):
        model(TIMES, np.array([-1.0, 0.5]))
    with pytest.raises(NonFiniteError, match=r"Spring.fmu ended at time 0, before 2, with k = 2e\+06, c = 0\.5"):
        model(TIMES, np.array([2e6, 0.5]))
    # and the next one is as if nothing had happened
    assert np.allclose(model(TIMES, THETA)[:, 1], spring(TIMES, THETA), rtol=1e-12)


def test_a_slow_run_has_a_time_out(fmu):
    with pytest.raises(NonFiniteError, match=r"ended at time .*, before 2 \(time-out, 1e-06 s\), with k = 4"):
        oc.FMU(fmu, ["k", "c"], "x", timeout=1e-6)(TIMES, THETA)


def test_it_goes_to_other_processes_by_its_path(fmu):
    model = oc.FMU(fmu, ["k", "c"], "x")
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again(TIMES, THETA), model(TIMES, THETA))
    # the contents are there already
    assert again._file.folder == model._file.folder
    assert again.identity() == model.identity()
    assert oc.FMU(fmu, ["k", "c"], "v").identity() != model.identity()
    assert oc.FMU(fmu, ["k", "c"], "x", step=0.1).identity() != model.identity()


EXTRACTED = """
import sys, tempfile
from pathlib import Path
import numpy as np
import orthocal as oc
for _ in range(2):
    oc.FMU(sys.argv[1], ["k"], "x")(np.array([1.0]), np.array([4.0]))
print(len(list(Path(tempfile.gettempdir()).glob("orthocal-fmu-*"))))
"""


@pytest.mark.slow
def test_it_is_extracted_once_and_nothing_is_left(fmu, tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", EXTRACTED, str(fmu)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["1"]
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_campaign_in_processes(fmu, tmp_path):
    design = pd.DataFrame({"c": [0.5, 0.4, 0.3], "k": [4.0, 5.0, 6.0]})
    before = set(Path(tempfile.gettempdir()).glob("orthocal-fmu-*"))
    model = oc.FMU(fmu, {"k": "k", "c": "c"}, ["x", "v"])
    runs = oc.campaign(model, design, TIMES, store=tmp_path / "runs.db", jobs=2, progress=False)
    assert np.allclose(runs.output[..., 0], [spring(TIMES, (row.k, row.c)) for row in design.itertuples()], rtol=1e-12)
    assert len(set(Path(tempfile.gettempdir()).glob("orthocal-fmu-*")) - before) <= 1


PROBLEM = """
[data]
file = "field.csv"
x = "t"
y = "height"

[simulator.fmu]
file = "Spring.fmu"
parameters = { stiffness = "k", damping = "c" }
outputs = "x"
stop = 2
step = 0.05

[parameters]
damping = { distribution = "uniform", loc = 0.05, scale = 1 }
stiffness = { distribution = "norm", loc = 5, scale = 2 }

[noise]
cov = 0.0001

[sampling]
draws = 60
chains = 2
seed = 1
starts = 2
"""


@pytest.fixture
def folder(fmu, tmp_path):
    (tmp_path / "Spring.fmu").write_bytes(fmu.read_bytes())
    rng = np.random.default_rng(2)
    t = np.linspace(0.1, 2, 20)
    y = spring(t, THETA) + 0.01 * rng.standard_normal(20)
    pd.DataFrame({"t": t, "height": y}).to_csv(tmp_path / "field.csv", index=False)
    (tmp_path / "problem.toml").write_text(PROBLEM)
    return tmp_path


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*an emulator, a cheap stand-in")
def test_calibrated_from_a_file(folder, monkeypatch, capfd):
    monkeypatch.setattr(sys, "argv", ["orthocal", "run", str(folder / "problem.toml")])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capfd.readouterr()
    assert not ended.value.code, said.err
    posterior = oc.load(folder / "fit.nc")
    summary = posterior.summary()
    for name, truth in (("damping", 0.5), ("stiffness", 4.0)):
        row = summary.loc[name]
        # the truth lies within 4 sds of a posterior that learns much more than the prior knew
        assert abs(row["mean"] - truth) < 4 * row["sd"], f"{name}: {row['mean']} ± {row['sd']}"
        assert row["sd"] < 0.1


def test_a_problem_of_a_file(folder):
    from orthocal.config.problem_file import build_problem, input_files, read_problem_file

    config = read_problem_file(folder / "problem.toml")
    problem = build_problem(config, folder)
    assert np.allclose(problem.simulator.evaluate(np.array([[1.0]]), THETA[::-1])[0, 0], spring(1.0, THETA))
    assert folder / "Spring.fmu" in input_files(config, folder / "problem.toml")


def test_a_campaign_of_a_file(folder):
    from orthocal.config.campaign_file import build_campaign, read_campaign_file

    parts = PROBLEM.split("[simulator.fmu]")[1].split("[noise]")[0]
    text = f'[simulator.fmu]{parts}[design]\nn = 2\n[x]\nfile = "field.csv"\ncolumns = "t"\n'
    (folder / "campaign.toml").write_text(text)
    built = build_campaign(read_campaign_file(folder / "campaign.toml"), folder)
    assert list(built["design"].columns) == ["damping", "stiffness"]
    assert list(built["simulator"].parameters) == ["damping", "stiffness"]
