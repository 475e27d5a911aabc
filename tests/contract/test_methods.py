"""Every method through one suite: the same problem in, the same posterior out, and what is refused in which words."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from threadpoolctl import threadpool_info, threadpool_limits

import orthocal as oc
from helpers import two_outcomes, with_holes
from orthocal.errors import IdentifiabilityError, InputError, SimulatorError
from orthocal.examples import MODEL1, TWO_OUTCOMES
from orthocal.testing import check_method

#: every name that a method has
NAMES = (
    "gp",
    "bart",
    "softbart",
    "bmars",
    "bnn",
    "pgp",
    "pbart",
    "psoftbart",
    "pbmars",
    "pbnn",
    "ko",
    "ogp",
    "sgasp",
    "pcal",
    "none",
)
METHODS = {name: oc.methods.method_by_name(name) for name in NAMES} | {
    # small ones: the suite is about the methods
    "bnn": oc.methods.Joint(oc.bias.BNN(hidden=5, leapfrogs=4)),
    "pbnn": oc.methods.Projected(oc.bias.BNN(hidden=5, leapfrogs=4)),
    "softbart": oc.methods.Joint(oc.bias.SoftBART(trees=10)),
    "psoftbart": oc.methods.Projected(oc.bias.SoftBART(trees=10)),
    "finite": oc.methods.Projected(projection="finite"),
    "finite bart": oc.methods.Projected(oc.bias.BART(trees=10), "finite"),
    "cut": oc.methods.Projected(feedback=False),
    "slice": oc.methods.Projected(oc.bias.GP(1.5, 1.0, 0.5), kernel=oc.kernels.Slice(sweeps=1)),
    "ko given": oc.methods.KO(1.5, 1.0, 0.5),
}
#: those that are not projected
OTHERS = ("ko", "ko given", "ogp", "sgasp", "pcal", "none")
RUN = {"draws": 10, "warmup": 25, "chains": 2, "seed": 1, "progress": False}


def test_the_list_is_complete():
    with pytest.raises(InputError) as raised:
        oc.methods.method_by_name("nonsense")
    assert set(str(raised.value).split("choose one of ")[1].split(", ")) == set(NAMES)


def problem(**changes):
    return MODEL1.problem(*MODEL1.simulate(np.random.default_rng(0), 30), starts=4, **changes)


def values(posterior):
    return {"theta": posterior.theta, **{name: posterior.data[name][name].values for name in ("model", "bias")}}


@pytest.fixture(scope="module", params=METHODS)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def method(name):
    return METHODS[name]


@pytest.fixture(scope="module")
def posterior(method):
    with threadpool_limits(1, "blas"), pytest.MonkeyPatch.context() as patch:
        patch.setattr("orthocal.regression.compiled.THREADED_COST", 10**12)
        return oc.calibrate(problem(), method, **RUN)


class TestEveryMethod:
    def test_the_contract_is_kept(self, method):
        assert len(check_method(method, draws=4, warmup=10)) == 9

    def test_the_posterior_is_whole(self, posterior, name, method, tmp_path):
        assert posterior.theta.shape == (2, 10, 1)
        assert set(posterior.data.children) >= {"posterior", "sample_stats", "observed_data", "constant_data", "prior"}
        assert set(posterior.data["posterior"].data_vars) == {"theta"}
        assert np.isfinite(posterior.summary().to_numpy()).all()
        assert len(list(posterior.check()))
        assert json.loads(posterior.data.attrs["method"]) == method.describe()
        # the page of the projected methods has tests of its own
        if name in OTHERS:
            assert "Data and fit" in posterior.report(tmp_path / "fit.html").read_text(encoding="utf-8")

    def test_threads_do_not_change_the_draws(self, posterior, method, monkeypatch):
        """Two of BLAS, and one for each chain, where ``posterior`` was drawn with one."""
        monkeypatch.setattr("orthocal.regression.compiled.THREADED_COST", 0)
        with threadpool_limits(2, "blas"):
            assert {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"} == {2}
            again = oc.calibrate(problem(), method, **RUN)
        for name, drawn in values(posterior).items():
            np.testing.assert_array_equal(values(again)[name], drawn, err_msg=name)

    def test_two_outcomes_with_missing_cells_also_from_a_file(self, name, method, tmp_path):
        """A posterior from a file predicts exactly as the one that was saved."""
        x, y = two_outcomes(n=25)
        y = with_holes(y)
        posterior = oc.calibrate(TWO_OUTCOMES.problem(x, y, starts=4), method, **RUN)
        assert np.isfinite(posterior.theta).all()
        np.testing.assert_array_equal(posterior.record.native_y, y)
        new = np.array([[0.123], [0.77]])
        predicted = posterior.predict(new)
        assert predicted["mean"].shape == (2, 10, 2, 2)
        simulator = oc.Simulator(TWO_OUTCOMES.simulator, TWO_OUTCOMES.gradient)
        loaded = oc.load(posterior.save(tmp_path / "fit.nc"), simulator)
        assert loaded.predict(new).equals(predicted)
        assert loaded.predict().equals(posterior.predict())
        assert loaded.summary().equals(posterior.summary())
        assert str(loaded.check()) == str(posterior.check())


@pytest.mark.parametrize("name", OTHERS)
def test_the_noise_can_be_sampled(name):
    """The projected methods sample it too: see the bias priors."""
    drawn = oc.calibrate(problem(noise_cov="sample"), METHODS[name], **RUN).data["posterior"]["noise_cov"].values
    assert drawn.shape == (2, 10, 1, 1)
    assert (np.ptp(drawn, axis=1) > 0).all()


@pytest.mark.parametrize("name", ["ko", "ko given", "ogp", "sgasp", "none"])
def test_the_theta_kernel_can_be_chosen(name):
    method = replace(METHODS[name], kernel=oc.kernels.Slice(sweeps=1))
    posterior = oc.calibrate(problem(), method, **RUN)
    assert json.loads(posterior.data.attrs["method"])["kernel"] == {"kind": "slice", "sweeps": 1}
    assert (np.ptp(posterior.theta, axis=1) > 0).all()
    with pytest.raises(InputError, match="give a theta kernel"):
        replace(METHODS[name], kernel="slice")


#: what is wrong: simulator and number of parameters, the error, its words, and those that do not mind
BAD = {
    "collinear parameters": (
        lambda x, t: (t[0] + 2 * t[1]) * x[:, 0],
        IdentifiabilityError,
        "'a', 'b' are collinear",
        # the joint projection leaves what cannot be determined to its prior
        (
            "ko",
            "ko given",
            "sgasp",
            "none",
            *(name for name, one in METHODS.items() if isinstance(one, oc.methods.Joint)),
        ),
    ),
    "a parameter of no effect": (
        lambda x, t: t[0] * x[:, 0] + 0 * t[1],
        IdentifiabilityError,
        "'b' has no effect",
        ("ko", "ko given", "sgasp", "none"),
    ),
    "NaN": (lambda x, t: np.full(len(x), np.nan), SimulatorError, "returned NaN or infinity at a = ", ()),
    "an exception": (
        lambda x, t: 1 / 0,
        SimulatorError,
        r"raised ZeroDivisionError at a = .*division by zero \(test_methods.py, line \d+\)",
        (),
    ),
    "a wrong shape": (lambda x, t: np.zeros(3), SimulatorError, r"shape \(3,\) for 20 points", ()),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_simulator_is_named_in_one_line(name, method, case):
    simulator, error, message, content = BAD[case]
    x = np.linspace(0, 1, 20)[:, None]
    parameters = {"a": stats.norm(0, 10), "b": stats.norm(0, 10)}
    problem = oc.Problem(x, np.sin(x[:, 0]), simulator, parameters, oc.Box(0, 1), noise_cov=0.01, starts=4)
    if name in content:
        assert np.isfinite(oc.calibrate(problem, method, **RUN).theta).all()
        return
    with pytest.raises(error, match=message) as raised:
        oc.calibrate(problem, method, **RUN)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "limit"), [*((one, "INTEGRATED") for one in ("ko", "ogp", "sgasp", "pcal")), ("ko given", "CELLS")]
)
def test_too_many_cells_are_refused_with_advice(name, limit, monkeypatch):
    monkeypatch.setattr(f"orthocal.methods.rivals.marginal.MOST_{limit}", 29)
    with pytest.raises(InputError, match="at most 29; use a projected method"):
        oc.calibrate(problem(), METHODS[name], **RUN)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        *((kind, {"nu": 2}, "nu=2") for kind in ("KO", "OGP", "SGaSP", "PCAL")),
        *((kind, {"sd": -1.0}, "sd=-1.0: .* positive") for kind in ("KO", "OGP", "SGaSP", "PCAL")),
        *((kind, {"lengthscale": 0.0}, "lengthscale=0.0: .* positive") for kind in ("KO", "OGP", "SGaSP", "PCAL")),
        *(("SGaSP", {"scale": scale}, "lambda") for scale in (0.0, -1.0, np.inf)),
        ("Projected", {"bias": "gp"}, "bias='gp': give a prior"),
        ("Projected", {"projection": "half"}, 'projection=\'half\': give "functional" or "finite"'),
        ("Projected", {"kernel": "laplace"}, "kernel='laplace': give a theta kernel"),
    ],
)
def test_bad_settings_are_refused(kind, options, message):
    with pytest.raises(InputError, match=message):
        getattr(oc.methods, kind)(**options)
