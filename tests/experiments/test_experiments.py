"""oc.Experiments: what is shared, what is private, what is refused; one experiment, files, pages."""

import numpy as np
import pytest
from scipy import stats

import orthocal as oc


def f(x, theta):
    return theta[0] * x + theta[1]


def problem(n=12, offset=0.5, seed=1, priors=None, **given):
    rng = np.random.default_rng(seed)
    x = np.linspace(0, 1, n)
    y = 2 * x + offset + 0.3 * np.sin(4 * x) + 0.1 * rng.standard_normal(n)
    priors = {"a": stats.norm(0, 10), "offset": stats.norm(0, 5)} if priors is None else priors
    return oc.Problem(x, y, f, priors, oc.Box(0, 1, nodes=15), **{"noise_cov": 0.01, "starts": 2, **given})


GP = oc.methods.Joint(oc.bias.GP(sd=1.0, lengthscale=0.5))


def calibrated(experiments, method=GP, **given):
    return oc.calibrate(experiments, method, **{"draws": 50, "chains": 2, "seed": 3, "progress": False, **given})


@pytest.fixture(scope="module")
def two():
    return oc.Experiments({"rig A": problem(), "rig B": problem(20, -1.0, 2)}, private=["offset"])


@pytest.fixture(scope="module")
def posterior(two):
    return calibrated(two)


def test_each_experiment_says_how_well_its_bias_was_integrated():
    """In two inputs trees are integrated cell by cell: one problem says so, and so does each of several."""
    x = np.random.default_rng(1).random((25, 2))

    def plane(x, theta):
        return theta[0] * x[:, 0] + theta[1] * x[:, 1]

    slopes = {"a": stats.norm(0, 10), "b": stats.norm(0, 10)}
    rigs = {
        name: oc.Problem(x, size * x.sum(axis=1) + x[:, 0] ** 2, plane, slopes, oc.Box(0, 1), noise_cov=0.01, starts=2)
        for name, size in (("rig A", 1.0), ("rig B", 1.2))
    }
    settings = {"method": oc.methods.Joint(oc.bias.BART(trees=10)), "draws": 10, "chains": 1, "warmup": 5}
    words = "integrals of the bias are exact, cell by cell between the cuts of its trees"
    one, several = (calibrated(given, **settings).check() for given in (rigs["rig A"], oc.Experiments(rigs)))
    assert [finding.topic for finding in one if finding.message == words] == ["quadrature"]
    topics = ["rig A: quadrature", "rig B: quadrature"]
    assert [finding.topic for finding in several if finding.message == words] == topics


def test_each_experiment_is_judged_as_one_problem_is():
    """Errors that go together are found in that experiment which has them."""
    rng, n = np.random.default_rng(2), 100
    errors = np.zeros(n)
    for row in range(1, n):
        errors[row] = 0.9 * errors[row - 1] + 0.13 * rng.standard_normal()
    x = np.linspace(0, 1, n)
    slopes = {"a": stats.norm(0, 10), "offset": stats.norm(0, 5)}
    wrong = oc.Problem(x, 2 * x + errors, f, slopes, oc.Box(0, 1, nodes=15), noise_cov=0.09, starts=2)
    found = calibrated(oc.Experiments({"rig A": wrong, "rig B": problem(30)})).check()
    assert "rig A: correlated errors" in [finding.topic for finding in found]
    assert "rig B: correlated errors" not in [finding.topic for finding in found]


def test_names_and_columns(two):
    assert two.parameters.names == ("a", "offset[rig A]", "offset[rig B]")
    assert two.shared == ("a",)
    np.testing.assert_array_equal(two.theta_of("rig B", np.array([1.0, 2.0, 3.0])), [1.0, 3.0])


def test_the_best_fit_is_that_of_all(two):
    """Least squares of both with all weights alike, written down."""
    A, B = two["rig A"], two["rig B"]
    rows, values = [], []
    for number, one in enumerate((A, B)):
        scale = np.sqrt(one.volumes)[:, None]
        rows.append(scale * np.stack([one.data.x[:, 0], *(np.full(one.data.n, k == number) for k in range(2))], axis=1))
        values.append(scale[:, 0] * one.data.y[:, 0])
    expected = np.linalg.lstsq(np.vstack(rows), np.concatenate(values), rcond=None)[0]
    np.testing.assert_allclose(two.theta_tilde, expected, rtol=1e-4)


def test_draws_are_those_of_each_experiment(two, posterior):
    """theta of an experiment is its part of theta, and f + b* is the real process."""
    own = posterior["rig B"]
    np.testing.assert_array_equal(own.theta, posterior.theta[:, :, [0, 2]])
    model = np.stack([f(two["rig B"].data.x[:, 0], one) for one in own.theta.reshape(-1, 2)])
    np.testing.assert_allclose(own.record.at_data("model").reshape(model.shape), model, rtol=1e-12)
    assert posterior.data["sample_stats"]["orthogonality_error"].max() < 1e-8


def test_predictions_go_through_the_draws_at_the_data(posterior):
    own = posterior["rig A"]
    there = own.predict(own.record.x, warn=False)
    np.testing.assert_allclose(there["bias"].values, own.record.at_data("bias"), atol=1e-6)


def test_one_experiment_is_its_problem_bit_for_bit():
    alone = problem()
    for method in (GP, "bart", "bmars"):
        expected = calibrated(alone, method)
        found = calibrated(oc.Experiments({"rig A": alone}, private=["offset"]), method)
        assert found.parameter_names == ("a", "offset[rig A]")
        np.testing.assert_array_equal(found.theta, expected.theta)
        np.testing.assert_array_equal(found["rig A"].record.at_data("bias"), expected.record.at_data("bias"))
        assert str(found.check())


@pytest.mark.slow
def test_more_draws_are_those_of_a_longer_run(two, posterior):
    np.testing.assert_array_equal(posterior.extend(10).theta, calibrated(two, draws=60).theta)
    by_chain = calibrated(two, "bart", draws=20, warmup=10)
    np.testing.assert_array_equal(
        by_chain.extend(5).theta[:, :20], calibrated(two, "bart", draws=25, warmup=10).theta[:, :20]
    )


@pytest.mark.slow
def test_a_file_holds_all(posterior, tmp_path):
    loaded = oc.load(posterior.save(tmp_path / "fit.nc"), {"rig A": f})
    assert loaded.summary().equals(posterior.summary())
    assert str(loaded.check()) == str(posterior.check())
    x = np.array([0.25, 0.6])
    np.testing.assert_allclose(loaded["rig A"].predict(x)["mean"], posterior["rig A"].predict(x)["mean"], rtol=1e-8)
    with pytest.raises(oc.errors.InputError, match="holds no simulator"):
        loaded["rig B"].predict(x)
    with pytest.raises(oc.errors.InputError, match="no experiment rig C in the file"):
        oc.load(tmp_path / "fit.nc", {"rig C": f})


@pytest.mark.slow
def test_the_page_has_every_experiment(posterior, tmp_path):
    page = posterior.report(tmp_path / "fit.html").read_text(encoding="utf-8")
    for words in ("rig A: data and fit", "rig B: bias", "offset[rig B]", "each experiment counting alike"):
        assert words in page


def test_findings_name_the_experiment(posterior):
    topics = {finding.topic for finding in posterior.check()}
    assert {"orthogonality", "best fit", "rig A: noise", "rig B: bias"} <= topics
    assert "rig A: orthogonality" not in topics


def test_a_checkpoint_goes_on(two, tmp_path):
    calibrated(two, "bart", draws=10, warmup=5, checkpoint=tmp_path / "fit.ckpt")
    again = calibrated(two, "bart", draws=15, warmup=5, checkpoint=tmp_path / "fit.ckpt")
    np.testing.assert_array_equal(again.theta, calibrated(two, "bart", draws=15, warmup=5).theta)
    other = oc.Experiments({"rig A": two["rig A"], "rig B": problem(20, -1.1, 2)}, private=["offset"])
    with pytest.raises(oc.errors.OrthocalError, match="field data of rig B"):
        calibrated(other, "bart", draws=15, warmup=5, checkpoint=tmp_path / "fit.ckpt")


def test_outcomes_and_inputs_may_differ():
    """Two outcomes with correlated noise and a missing cell, and two inputs, beside one of each."""
    rng = np.random.default_rng(5)
    x = rng.uniform(0, 1, (15, 2))
    y = np.stack([x[:, 0] * 2, x[:, 1] + 1], axis=1) + 0.1 * rng.standard_normal((15, 2))
    y[3, 1] = np.nan

    def g(x, theta):
        return np.stack([theta[0] * x[:, 0], x[:, 1] + theta[1]], axis=1)

    priors = {"a": stats.norm(0, 10), "b": stats.norm(0, 5)}
    cov = 0.01 * np.array([[1.0, 0.5], [0.5, 1.0]])
    wide = oc.Problem(x, y, g, priors, oc.Box(0, 1, nodes=5), noise_cov=cov, starts=2)
    found = calibrated(oc.Experiments({"rig A": problem(), "rig W": wide}))
    assert found.parameter_names == ("a", "offset", "b")
    assert abs(found.theta[..., 0].mean() - 2.0) < 0.5
    assert found["rig W"].record.at_data("bias").shape == (2, 50, 15, 2)
    assert found.bias_size().index.tolist() == [("rig A", "y"), ("rig W", "y1"), ("rig W", "y2")]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"private": ["offst"]}, "private parameter 'offst': no experiment has it, the parameters are a, offset"),
        ({"private": "offset"}, "give a list of names"),
        ({"private": {"offset": 3}}, "give oc.Pooled"),
        ({"weights": "points"}, "weights='points'"),
        ({"weights": {"rig A": 1.0}}, "give one for each of rig A, rig B"),
        ({"weights": {"rig A": 1.0, "rig B": 0.0}}, "positive weight"),
    ],
)
def test_bad_choices(changes, words):
    with pytest.raises(oc.errors.InputError, match=words.replace("[", r"\[")):
        oc.Experiments({"rig A": problem(), "rig B": problem(seed=2)}, **changes)


def test_bad_problems():
    with pytest.raises(oc.errors.InputError, match="give the experiments as a dictionary"):
        oc.Experiments([problem()])
    with pytest.raises(oc.errors.InputError, match=r"'rig A' is int: give an oc\.Problem"):
        oc.Experiments({"rig A": 3})
    with pytest.raises(oc.errors.InputError, match="give a printable text"):
        oc.Experiments({"rig [A]": problem()})
    with pytest.raises(oc.errors.InputError, match="there is no experiment 'x'"):
        _ = oc.Experiments({"rig A": problem()})["x"]


def test_two_priors_for_one_shared_name():
    other = problem(priors={"a": stats.norm(0, 9), "offset": stats.norm(0, 5)})
    with pytest.raises(oc.errors.InputError, match="shared parameter a has two priors, in the experiments 'A' and 'B'"):
        oc.Experiments({"A": problem(), "B": other})
    assert oc.Experiments({"A": problem(), "B": other}, private=["a"]).parameters.p == 3
    with pytest.raises(oc.errors.InputError, match="pooled parameter a has two priors"):
        oc.Experiments({"A": problem(), "B": other}, private={"a": oc.Pooled()})


def test_outcomes_of_the_same_name_and_other_units():
    first, second = problem(outcome_names="force [N]"), problem(outcome_names="force [kN]")
    with pytest.raises(oc.errors.InputError, match="'force' has the unit 'N' in experiment 'A' and 'kN' in 'B'"):
        oc.Experiments({"A": first, "B": second})


def test_joint_priors_are_shared_or_private_as_a_whole():
    both = {("a", "offset"): stats.multivariate_normal([0, 0], [[9.0, 1.0], [1.0, 4.0]])}
    joint = {"A": problem(priors=both), "B": problem(seed=2, priors=both)}
    assert oc.Experiments(joint).parameters.names == ("a", "offset")
    assert oc.Experiments(joint, private=["a", "offset"]).parameters.names == ("a[A]", "offset[A]", "a[B]", "offset[B]")
    with pytest.raises(oc.errors.InputError, match="has private and shared parameters"):
        oc.Experiments(joint, private=["a"])
    with pytest.raises(oc.errors.InputError, match="a joint prior in one experiment and another in the next"):
        oc.Experiments({"A": joint["A"], "B": problem()})


def test_constraints_of_all_hold():
    limited = {"A": problem(constraint="a + offset < 3"), "B": problem(seed=2)}
    experiments = oc.Experiments(limited, private=["offset"])
    inside = experiments.parameters.inside(np.array([[1.0, 1.0, 5.0], [1.0, 2.5, 0.0]]))
    assert inside.tolist() == [True, False]


def test_other_methods_and_predictions_of_nothing(two, posterior):
    with pytest.raises(oc.errors.InputError, match="by the joint projection, not by 'ko'"):
        calibrated(two, "ko")
    with pytest.raises(oc.errors.InputError, match=r"posterior\['rig A'\].predict"):
        posterior.predict(np.array([0.5]))
    with pytest.raises(oc.errors.InputError, match="there is no experiment 'rig C'"):
        posterior["rig C"]


def test_methods_are_compared_on_one_of_them(two):
    with pytest.raises(oc.errors.InputError, match=r"give one of them, experiments\['rig A'\], or take oc.compare_exp"):
        oc.compare(two)


def test_a_look_before_the_run(two):
    """What each problem says, by its name, and that no more was looked at."""
    found = two.check(draws=50)
    topics = [one.topic for one in found]
    assert found.ok
    assert {f"{name}, best fit" for name in two.names} < set(topics)
    assert "experiments" in topics
    assert len(found) == 1 + sum(len(two[name].check(draws=50)) for name in two.names)


def test_a_private_value_that_nothing_determines():
    """An experiment whose simulator does not answer to its private parameter is refused by name."""

    def blind(x, theta):
        return theta[0] * x + 0.0 * theta[1]

    x = np.linspace(0, 1, 12)
    priors = {"a": stats.norm(0, 10), "offset": stats.norm(0, 5)}
    other = oc.Problem(x, 2 * x, blind, priors, oc.Box(0, 1, nodes=15), noise_cov=0.01, starts=2)
    with pytest.raises(oc.errors.OrthocalError, match=r"offset\[B\]"):
        calibrated(oc.Experiments({"A": problem(), "B": other}, private=["offset"]))


def test_simulators_that_take_many_theta_give_the_same_draws(two):
    def many(x, theta):
        return theta[:, :1] * x + theta[:, 1:]

    calls = []

    def counted(x, theta):
        calls.append(len(theta))
        return many(x, theta)

    problems = {"rig A": problem(), "rig B": problem(20, -1.0, 2)}
    for name, one in problems.items():
        given = (one.data.x[:, 0], one.data.y[:, 0], oc.Simulator(counted, batched=True), one.parameters.given)
        problems[name] = oc.Problem(*given, oc.Box(0, 1, nodes=15), noise_cov=0.01, starts=2)
    found = calibrated(oc.Experiments(problems, private=["offset"]))
    np.testing.assert_allclose(found.theta, calibrated(two).theta, rtol=1e-9)
    assert max(calls) >= 50


def test_a_bias_that_one_experiment_could_call_theta_is_seen_by_all():
    """Two lines of other slopes through the origin: each is a simulator without bias, both together are not."""
    rng = np.random.default_rng(4)
    x = np.linspace(0, 1, 25)
    problems = {
        name: oc.Problem(
            x,
            slope * x + 0.05 * rng.standard_normal(25),
            lambda x, theta: theta[0] * x,
            {"a": stats.norm(0, 10)},
            oc.Box(0, 1, nodes=15),
            noise_cov=0.0025,
            starts=2,
        )
        for name, slope in (("A", 2.0), ("B", 3.0))
    }
    alone = [calibrated(one, "gp").record.run_facts.bias[0]["sd"] for one in problems.values()]
    found = calibrated(oc.Experiments(problems), "gp", draws=500)
    together = [one.record.run_facts.bias[0]["sd"] for one in found.experiments.values()]
    assert max(alone) < 0.05
    assert min(together) > 0.15
    # the mean of the two slopes, to what the noise makes of it
    assert abs(found.theta.mean() - 2.5) < 4 * found.theta.std() < 0.2


def test_a_picture_of_an_experiment_whose_name_is_a_number():
    """Ids of its parts begin with the title, and references to them are those ids."""
    from matplotlib.figure import Figure

    from orthocal.pages.page import inline_svg

    figure = Figure()
    figure.subplots().plot([0, 1])
    svg = inline_svg(figure, "0-data-and-fit")
    assert 'href="#0-data-and-fit-' in svg
    assert 'id="0-data-and-fit-' in svg
