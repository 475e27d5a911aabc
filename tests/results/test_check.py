"""The findings: each says what it is made for, and only then."""

import json

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from helpers import short
from orthocal.examples import MODEL1
from orthocal.pages.tables import summary_rows

GP = oc.bias.GP(0.5, 1.0, 0.5)
# by differences: where another test has imported JAX, it would trace this, and find a slope of 0 everywhere
ROUNDED = oc.Simulator(lambda x, t: np.round(t[0] * x[:, 0], 4), gradient="difference")


def calibrated(method=None, **changes):
    x, y = MODEL1.simulate(np.random.default_rng(1))
    options = {"noise_cov": 0.04, "domain": oc.Box(0, 1), "parameters": {"t": stats.norm(0, 10)}, **changes}
    options = {"simulator": lambda x, t: t[0] * x[:, 0], **options}
    return oc.calibrate(oc.Problem(x, y, **options), method or oc.methods.Projected(GP), draws=500, seed=1)


def topics(posterior, level):
    return {finding.topic for finding in posterior.check() if finding.level == level}


def test_a_sound_run_has_no_problem_and_no_note():
    posterior = calibrated()
    assert posterior.check().ok
    assert topics(posterior, "note") == set()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "sound"),
    [
        (oc.kernels.AdaptiveMetropolis(steps=1), False),
        (oc.kernels.HMC(trajectories=1, leapfrogs=1), False),
        (oc.kernels.AdaptiveMetropolis(), True),
        pytest.param(oc.kernels.HMC(), True, marks=pytest.mark.slow),
        (oc.kernels.Slice(), True),
    ],
    ids=repr,
)
def test_an_inexact_theta_step_is_a_problem(kernel, sound):
    """The paper's single random-walk step among them."""
    posterior = calibrated(oc.methods.Projected(GP, kernel=kernel))
    assert ("theta step" in topics(posterior, "problem")) != sound


@pytest.mark.parametrize(
    ("changes", "level", "topic"),
    [
        ({"noise_cov": 0.4}, "problem", "noise"),
        ({"noise_cov": 0.002, "method": oc.methods.Projected(oc.bias.GP(2.5, 1.0, 1.0))}, "problem", "noise"),
        ({"noise_cov": "estimate"}, "note", "noise"),
        ({"parameters": {"t": stats.uniform(0, 3)}}, "problem", "best fit"),
        ({"parameters": {"t": stats.norm(3.5, 0.03)}}, "note", "information"),
        ({"noise_cov": 1e-6, "method": "none"}, "problem", "best fit"),
        ({"domain": None}, "note", "domain"),
        ({"domain": oc.Box(0, 1, nodes=2), "simulator": lambda x, t: t[0] * x[:, 0] ** 4}, "problem", "quadrature"),
        ({"simulator": ROUNDED}, "problem", "gradient"),
        (
            {"simulator": oc.Simulator(lambda x, t: t[0] * x[:, 0], gradient=lambda x, t: 1.2 * x)},
            "problem",
            "gradient",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_what_is_wrong_is_found(changes, level, topic):
    assert topic in topics(calibrated(**changes), level)


def test_a_parameter_that_the_prior_holds_is_named():
    """x and x + x^2 / 50 are told apart by hardly anything: least squares runs away, the best fit does not."""
    x, y = MODEL1.simulate(np.random.default_rng(1))
    simulator = lambda x, t: t[0] * x[:, 0] + t[1] * (x[:, 0] + x[:, 0] ** 2 / 50)  # noqa: E731
    priors = {"a": stats.norm(1.5, 0.5), "b": stats.norm(1.5, 0.5)}
    problem = oc.Problem(x, y, simulator, priors, oc.Box(0, 1), noise_cov=0.04)
    posterior = oc.calibrate(problem, draws=100, seed=1, progress=False)
    held = [finding.message for finding in posterior.check() if "without the priors" in finding.message]
    assert len(held) == 1
    assert "prior sds from the best fit" in held[0]
    assert np.abs(posterior.theta.mean(axis=(0, 1)) - 1.5).max() < 1.0


@pytest.mark.parametrize(
    ("noise_cov", "settled"), [(0.04, True), (4e-8, False)], ids=["a sound run", "noise 1000 times too small"]
)
@pytest.mark.slow
def test_a_network_that_has_not_settled_is_a_problem(noise_cov, settled):
    posterior = calibrated(oc.methods.Projected(oc.bias.BNN(hidden=10)), noise_cov=noise_cov)
    found = [finding for finding in posterior.check() if finding.topic == "bias prior"]
    assert [finding.level for finding in found] == ([] if settled else ["problem"])
    assert all("the chains have" in one.message and "noise_cov" in one.advice for one in found)


@pytest.mark.parametrize(
    ("changes", "level", "word"),
    [
        ({"hmc_step": 1e-18}, "problem", "hardly moved"),
        ({"hmc_acceptance": 0.01}, "problem", "hardly moved"),
        ({"density_rhat": 3.0}, "problem", "not settled"),
        ({"density_rhat": 1.3}, "note", "not quite settled"),
        ({}, None, None),
    ],
)
def test_what_hamiltonian_steps_report(model1_posterior, changes, level, word):
    """One chain that stands still has an R-hat of 1: the steps tell."""
    posterior = oc.Posterior(model1_posterior.data.copy())
    notes = json.loads(posterior.data.attrs["notes"])
    notes["bias"] = [{"density_rhat": 1.0, "hmc_step": 0.1, "hmc_acceptance": 0.8, **changes}]
    posterior.data.attrs["notes"] = json.dumps(notes)
    posterior.data.attrs["samplers"] = json.dumps([{"kind": "bnn"}])
    found = [finding for finding in posterior.check() if finding.topic == "bias prior"]
    assert [finding.level for finding in found] == ([level] if level else [])
    assert all(word in finding.message for finding in found)


def test_constant_draws_are_not_fine(model1_posterior):
    frozen = oc.Posterior(model1_posterior.data.copy(deep=True))
    frozen.data["posterior"]["theta"][:] = 1.0
    assert "mixing" in topics(frozen, "problem")
    row = frozen.summary().loc["theta"]
    assert (row["ess_bulk"], row["ess_tail"], row["r_hat"]) == (0, 0, np.inf)
    assert summary_rows(frozen.summary())[0]["ess"] == "0"


def test_one_chain_that_stands_still_is_a_problem(model1_posterior):
    """Its own value may lie in the middle of the others, where R-hat alone could miss it."""
    half = oc.Posterior(model1_posterior.data.copy(deep=True))
    half.data["posterior"]["theta"][1] = float(model1_posterior.theta.mean())
    found = [finding for finding in half.check() if finding.topic == "mixing"]
    assert {finding.level for finding in found} == {"problem"}
    assert "theta (1 of 4 chains)" in found[0].message
    assert half.summary().loc["theta", "ess_bulk"] == 0


def test_one_of_two_parameters_that_stands_still_is_a_problem():
    x = np.linspace(0, 1, 20)
    y = 2 * x + 0.1 * np.random.default_rng(0).standard_normal(20)
    priors = {"a": stats.norm(0, 10), "b": stats.norm(0, 10)}
    problem = oc.Problem(x, y, lambda x, t: t[0] * x[:, 0] + t[1], priors, oc.Box(0, 1), noise_cov=0.01, starts=2)
    posterior = short(problem, "none", draws=500)
    posterior.data["posterior"]["b"][:] = 0.25
    partly = oc.Posterior(posterior.data)
    message = next(one.message for one in partly.check() if one.topic == "mixing" and one.level == "problem")
    assert message == "chains that never moved: b (2 of 2 chains)"
    table = partly.summary()
    assert table.loc["b", "ess_bulk"] == 0 < table.loc["a", "ess_bulk"]


def test_findings_are_false_where_there_is_a_problem(model1_posterior):
    assert model1_posterior.check()
    broken = oc.Posterior(model1_posterior.data.copy(deep=True))
    broken.data["sample_stats"]["orthogonality_error"][:] = 1.0
    with pytest.raises(AssertionError):
        assert broken.check()
    assert len(broken.check()) > 5


def test_an_unknown_memory_of_theta_is_not_called_perfect():
    x, y = MODEL1.simulate(np.random.default_rng(1))
    posterior = oc.calibrate(MODEL1.problem(x, y), "pgp", draws=4, chains=2, seed=1)
    assert posterior.record.run_facts.theta_memory is None
    (finding,) = [one for one in posterior.check() if one.topic == "theta step"]
    assert finding.level == "note"
    assert "too few to tell" in finding.message


def test_a_best_fit_that_has_not_come_to_its_end_is_a_problem(monkeypatch):
    """A search with so few evaluations that no descent can finish."""
    from orthocal.problem.search import minima

    def bent(x, t):
        return np.concatenate([30 * (t[1] - t[0] ** 2) * x[:10], 1 - t[0] * x[10:]])

    def calibrated():
        x = np.linspace(0, 1, 20)
        y = bent(x, [2.0, 4.5]) + 0.1 * np.random.default_rng(0).standard_normal(20)
        priors = {"a": stats.uniform(-20, 40), "b": stats.uniform(-300, 600)}
        problem = oc.Problem(x, y, bent, priors, oc.Points(x), noise_cov=0.01, starts=2)
        return problem, oc.calibrate(problem, "none", draws=20, warmup=25, chains=2, seed=1, progress=False)

    def said(posterior):
        return [one for one in posterior.check().problems if "ran out of evaluations" in one.message]

    problem, posterior = calibrated()
    assert problem.minima[0].finished
    assert not said(posterior)
    for name, few in (("ROUGH", (2, 1e-12)), ("FINE", (3, 1e-15)), ("CONTINUED", 0)):
        monkeypatch.setattr(minima, name, few)
    problem, posterior = calibrated()
    assert not problem.minima[0].finished
    assert said(posterior)


def from_the_first_row(x, theta):
    """An equation in time that starts where the rows do, a common slip."""
    return theta[0] * (x[:, 0] - x[0, 0])


def step_by_step(x, theta):
    """Heated from row to row: coarse where there are few."""
    order = np.argsort(x[:, 0])
    return theta[0] * np.cumsum(np.diff(x[order, 0], prepend=0) * np.exp(x[order, 0]))[np.argsort(order)]


def for_the_data_alone(x, theta):
    return theta[0] * np.linspace(0, 1, 30)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (from_the_first_row, "change by up to"),
        (step_by_step, "change by up to"),
        (for_the_data_alone, "fail where half of the rows"),
    ],
)
def test_a_simulator_that_is_not_a_function_of_x_is_a_problem(function, words):
    x = np.linspace(0.1, 1, 30)
    y = 2 * x + 0.01 * np.random.default_rng(1).standard_normal(30)
    problem = oc.Problem(x, y, oc.Simulator(function, "difference"), {"a": stats.norm(0, 5)}, noise_cov=1e-4)
    found = oc.calibrate(problem, "none", draws=50, chains=2, seed=1, progress=False).check()
    (one,) = (finding for finding in found.problems if finding.topic == "simulator")
    assert words in one.message
    assert "row by row" in one.advice


def test_sampled_noise_is_what_a_misfit_is_compared_with():
    """Without a bias the noise grows to what the simulator misses, however small the estimate is."""
    x = np.linspace(0, 1, 30)
    y = 10 * np.sin(6 * x) + 0.01 * np.random.default_rng(0).standard_normal(30)
    problem = oc.Problem(
        x, y, lambda x, t: t[0] * x, {"a": stats.norm(0, 5)}, oc.Box(0, 1, nodes=10), "sample", starts=2
    )
    assert problem.misfit > 10_000
    posterior = short(problem, "none", draws=100)
    assert posterior.record.run_facts.misfit < 3
    assert "misses the data by" not in str(posterior.check())


def test_noise_that_is_twice_too_large_is_found_with_30_rows():
    rng = np.random.default_rng(4)
    x = np.linspace(0, 1, 30)
    for sd, wrong in ((0.05, True), (0.1, False)):
        y = 2 * x + sd * rng.standard_normal(30)
        problem = oc.Problem(
            x, y, lambda x, t: t[0] * x, {"a": stats.norm(0, 5)}, oc.Box(0, 1, nodes=10), 0.01, starts=2
        )
        found = [
            one
            for one in short(problem, "none", draws=30).check().problems
            if "noise_cov may be too large" in one.advice
        ]
        assert bool(found) == wrong


@pytest.mark.parametrize(
    ("factors", "words"),
    [
        ((1.4, 1.0), "a 1.40, b 1.00. Intervals are too short for a"),
        ((0.7, 1.0), "a 0.70, b 1.00. Intervals are too long for a"),
        ((0.7, 1.8), "a 0.70, b 1.80. Intervals are too short for b and too long for a"),
    ],
)
def test_what_curvature_does_has_a_sign(factors, words):
    x = np.linspace(0, 1, 20)
    priors = {"a": stats.norm(0, 10), "b": stats.norm(0, 10)}
    problem = oc.Problem(x, 2 * x, lambda x, t: t[0] * x + t[1], priors, oc.Box(0, 1, nodes=10), 0.01, starts=2)
    posterior = short(problem, "none", draws=10)
    notes = json.loads(posterior.data.attrs["notes"])
    posterior.data.attrs["notes"] = json.dumps({**notes, "curvature_factors": factors})
    (found,) = [one for one in posterior.check() if one.topic == "curvature"]
    assert found.message.endswith(words)
