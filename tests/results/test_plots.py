"""posterior.plot_*: the figures of the report, one at a time, for any kind of problem; and what is said of them."""

import re

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from orthocal.errors import InputError
from orthocal.pages.page import picture
from orthocal.results.figures.figures import bias_drawing, fit_drawing, predictive_drawing, residuals_drawing
from orthocal.results.figures.parameters import pairs_panels, posterior_panels, posterior_seen, prior_density
from orthocal.results.predict.predictive_data import levels_of, replicated

QUICK = {"draws": 60, "chains": 2, "seed": 1, "progress": False}
GP = oc.methods.Joint(oc.bias.GP(1.5, 0.5, 0.5))


@pytest.fixture(scope="module")
def two_outcomes():
    """Two inputs, two outcomes with a missing cell, two parameters, units."""
    rng = np.random.default_rng(1)
    x = rng.random((30, 2))
    y = np.column_stack([2 * x[:, 0] + 1, x[:, 1] - 1]) + 0.1 * rng.standard_normal((30, 2))
    y[4, 1] = np.nan
    problem = oc.Problem(
        x,
        y,
        lambda x, t: np.column_stack([t[0] * x[:, 0] + 1, t[1] * x[:, 1] - 1]),
        {"a": stats.norm(0, 10), "b": stats.uniform(0.5, 1)},
        oc.Box(0, 1),
        noise_cov=[0.01, 0.04],
        outcome_names=("speed", "depth"),
        input_names=("u", "w"),
        units={"speed": "m/s", "u": "s", "a": "m/s²"},
    )
    return oc.calibrate(problem, GP, **QUICK)


def test_residuals_are_those_of_the_means(two_outcomes):
    record = two_outcomes.record
    figure = two_outcomes.plot_residuals()
    assert [axis.get_xlabel() for axis in figure.axes] == [
        "fitted speed [m/s]",
        "u [s]",
        "w",
        "fitted depth",
        "u [s]",
        "w",
    ]
    total = record.at_data("model") + record.at_data("bias")
    expected = (record.native_y - total.mean(axis=(0, 1))) / [0.1, 0.2]
    shown = figure.axes[4].collections[0].get_offsets()
    seen = ~np.isnan(record.native_y[:, 1])
    np.testing.assert_allclose(shown[:, 0], record.x[seen, 0])
    np.testing.assert_allclose(shown[:, 1], expected[seen, 1])
    (axis,) = two_outcomes.plot_residuals("depth", x="w").axes
    assert axis.get_ylabel() == "residual of depth [noise sd]"


def test_what_is_seen_is_what_is_said(two_outcomes):
    record = two_outcomes.record
    words = posterior_seen(record, 0)
    assert f"posterior mean {record.theta[:, :, 0].mean():.4g}" in words
    assert "the prior is far wider, 95 % from -19.5" in words
    assert "the prior is wider" in posterior_seen(record, 1) or "about as wide" in posterior_seen(record, 1)
    (panel,) = residuals_drawing(record, "speed", "w").panels
    left = (record.native_y[:, 0] - (record.at_data("model") + record.at_data("bias")).mean(axis=(0, 1))[:, 0]) / 0.1
    assert f"{np.sum(np.abs(left) < 1.96)} of 30 lie between" in panel.seen
    assert f"correlation {np.corrcoef(record.x[:, 1], left)[0, 1]:.2f}" in panel.seen
    (pair,) = pairs_panels(record).panels
    assert f"correlation {np.corrcoef(record.theta.reshape(-1, 2).T)[0, 1]:.2f}" in pair.seen


def test_several_inputs_against_fitted_values_or_along_one(two_outcomes):
    assert len(two_outcomes.plot_fit().axes) == 4
    left, right = two_outcomes.plot_fit("depth").axes
    assert left.get_xlabel().startswith("fitted depth (rms error")
    left, right = two_outcomes.plot_fit("speed", x="u").axes
    assert (left.get_xlabel(), right.get_ylabel()) == ("u [s]", "speed [m/s]")
    assert left.get_ylim() == right.get_ylim()
    np.testing.assert_allclose(left.collections[0].get_offsets()[:, 1], two_outcomes.record.native_y[:, 0])
    assert len(two_outcomes.plot_bias().axes) == 4
    (axis,) = two_outcomes.plot_bias("speed", "w").axes
    assert axis.get_ylabel() == "bias of speed [m/s]"


def test_the_predictive_check(two_outcomes):
    figure = two_outcomes.plot_predictive()
    assert len(figure.axes) == 4
    left, _ = two_outcomes.plot_predictive("depth").axes
    assert left.get_xlabel() == "depth"
    assert (
        "of 29 observations lie in their 95 % predictive intervals"
        in predictive_drawing(two_outcomes.record, "depth").panels[0].seen
    )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda one: one.plot_fit("hight"), "there is no outcome 'hight': there are speed, depth"),
        (lambda one: one.plot_bias(x="v"), "there is no input 'v': there are u, w"),
        (lambda one: one.plot_posterior(["c"]), "there is no parameter 'c': there are a, b"),
    ],
)
def test_unknown_names_are_refused(two_outcomes, call, words):
    with pytest.raises(InputError, match=words):
        call(two_outcomes)


def test_chosen_parameters(two_outcomes):
    (axis,) = two_outcomes.plot_posterior(["a"]).axes
    assert axis.get_title() == "a [m/s²]"
    assert "prior" in [line.get_label() for line in axis.lines]
    assert len(posterior_panels(two_outcomes.record).panels) == 2


def test_the_prior_is_a_density_up_to_its_bounds(two_outcomes):
    """b is uniform between 0.5 and 1.5: 1 inside, also near the ends, and 0 outside."""
    grid = np.array([0.3, 0.51, 0.75, 1.0, 1.49, 1.7])
    np.testing.assert_allclose(prior_density(two_outcomes.record, 1, grid), [0, 1, 1, 1, 1, 0], atol=0.05)
    whole = np.linspace(-60, 60, 4001)
    density = prior_density(two_outcomes.record, 0, whole)
    assert np.trapezoid(density, whole) == pytest.approx(1, abs=1e-3)


def test_replicated_data_have_mean_and_noise_of_the_fit(two_outcomes):
    """400 are asked for, 120 draws are there: means within 5 sds of their error, sds within 30 %; always the same."""
    record = two_outcomes.record
    rows = np.arange(30)
    drawn = replicated(record, rows)
    assert drawn.shape == (120, 30, 2)
    np.testing.assert_array_equal(replicated(record, rows[5:9]), drawn[:, 5:9])
    total = (record.at_data("model") + record.at_data("bias")).reshape(120, 30, 2)
    spread = np.sqrt(total.var(axis=0) + np.array([0.01, 0.04]))
    assert (np.abs(drawn.mean(axis=0) - total.mean(axis=0)) < 5 * spread / np.sqrt(120)).all()
    np.testing.assert_allclose(drawn.std(axis=0), spread, rtol=0.3)


def test_places_in_predictions():
    drawn = np.tile(np.arange(10.0)[:, None], 3)
    np.testing.assert_array_equal(levels_of(np.array([-1.0, 4.5, np.nan]), drawn), [0, 0.5, np.nan])


def test_one_input_outputs_and_experiments(model1_posterior):
    left, right = model1_posterior.plot_fit().axes
    assert left.get_ylim() == right.get_ylim()
    assert len(model1_posterior.plot_bias().axes) == 1
    words = fit_drawing(model1_posterior.record).panels[1].seen
    assert words.startswith("y along x, model + bias: its posterior mean goes from")
    assert "95 % band excludes zero" in bias_drawing(model1_posterior.record).panels[0].seen


def test_outputs_without_inputs():
    problem = oc.Problem(
        None, [1.0, 2.1, 2.9], lambda t: t[0] * np.array([1, 2, 3]), {"a": stats.norm(0, 5)}, y_err=0.1
    )
    posterior = oc.calibrate(problem, **QUICK)
    for figure in (
        posterior.plot_fit(),
        posterior.plot_bias(),
        posterior.plot_residuals(),
        posterior.plot_predictive(),
    ):
        (axis,) = figure.axes
        assert len(axis.get_yticklabels()) == 3
        assert axis.get_xlabel().endswith("[noise sd]")
    # a colour that is no variable would be the same on dark pages
    for drawing in (fit_drawing, bias_drawing, residuals_drawing, predictive_drawing):
        shown = picture("a", "b", drawing(posterior.record))
        assert not re.findall(r"(?:fill|stroke):#\w+", shown.svg + "".join(entry.swatch for entry in shown.key))
    with pytest.raises(InputError, match="the outputs have no inputs, leave x out"):
        posterior.plot_bias(x="t")


def test_experiments_say_whose_fit_is_drawn():
    x = np.linspace(0, 1, 12)
    made = {
        name: oc.Problem(
            x, 2 * x, lambda x, t: t[0] * x, {"a": stats.norm(0, 5)}, noise_cov=0.01, starts=2, units={"a": "m"}
        )
        for name in ("rig A", "rig B")
    }
    posterior = oc.calibrate(oc.Experiments(made), GP, **QUICK)
    with pytest.raises(InputError, match=r"say of which experiment: posterior\['rig A'\].plot_fit"):
        posterior.plot_residuals()
    assert len(posterior["rig B"].plot_residuals().axes) == 2
    assert posterior.plot_posterior().axes[0].get_title() == "a [m]"


def test_pages_have_units(two_outcomes, tmp_path):
    loaded = oc.load(two_outcomes.save(tmp_path / "fit.nc"))
    page = loaded.report(tmp_path / "fit.html").read_text(encoding="utf-8")
    assert '<td class="name">a [m/s²]</td>' in page
    assert ">observed speed [m/s]</text>" in page


@pytest.mark.parametrize(
    ("units", "words"),
    [
        ({"speed": "m"}, "units has 'speed': give names of inputs, outcomes or parameters, x, y, a"),
        ({"x": 3}, "that of 'x' is 3, give a text"),
        ({"x": " "}, "that of 'x' is ' ', give a text"),
    ],
)
def test_units_that_are_refused(units, words):
    x = np.linspace(0, 1, 5)
    with pytest.raises(InputError, match=words):
        oc.Problem(x, x, lambda x, t: t[0] * x, {"a": stats.norm(0, 1)}, units=units)


def test_parts_of_a_problem_keep_the_units():
    x = np.linspace(0, 1, 12)
    y = np.column_stack([x, 2 * x])
    made = oc.Problem(
        x,
        y,
        lambda x, t: np.column_stack([t[0] * x, 2 * t[0] * x]),
        {"a": stats.norm(0, 1)},
        noise_cov=0.01,
        outcome_names=("p", "q"),
        units={"q": "Pa"},
    )
    assert made.outcome(1).units == made.subset(np.arange(8)).units == {"q": "Pa"}
