import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from helpers import short

RNG = np.random.default_rng(2)
X = np.sort(RNG.uniform(0, 4, 40))
PRIORS = {"a": stats.norm(10, 10), "k": stats.norm(1, 1)}
EXACT = {"a": stats.norm(0, 10)}


def decay(x, theta):
    return theta[0] * np.exp(-theta[1] * x)


def level(x, theta):
    return np.full(len(x), theta[0])


def found(y, simulator=decay, priors=PRIORS, topic="predictions", **options):
    """The findings of a topic, as text; None where there is none."""
    options = {"noise_cov": "estimate", "domain": oc.Box(0, 4), "starts": 4, **options}
    posterior = short(oc.Problem(X, y, simulator, priors, **options), "none", draws=40)
    lines = [str(one) for one in posterior.check() if one.topic == topic]
    return lines[0] if lines else None


def share_of(text, words):
    """The percentage before the words."""
    return float(text.split(f"% are {words}")[0].split()[-1])


@pytest.fixture(scope="module")
def counts():
    return RNG.poisson(decay(X, [12, 1.0])).astype(float)


def test_counts(counts):
    words = found(counts, noise_cov=4.0)
    assert "every observed y is a whole number" in words
    assert 'transform="sqrt"' in words
    # by hand, at the best fit
    problem = oc.Problem(X, counts, decay, PRIORS, oc.Box(0, 4), 4.0, starts=4)
    by_hand = 100 * stats.norm.cdf(-problem.fit / 2).mean()
    assert share_of(words, "negative") == pytest.approx(by_hand, abs=1.0)
    assert by_hand > 10


def test_positive_quantities():
    y = decay(X, [12, 1.0]) * np.exp(0.3 * RNG.standard_normal(40))
    words = found(y)
    assert "every observed y is positive" in words
    assert 'transform="log" or "sqrt"' in words
    assert found(y, transform="log") is None
    assert found(np.append(y[:-1], np.nan)) is not None


def test_noise_of_its_own_at_every_point():
    y = decay(X, [12, 1.0]) * np.exp(0.3 * RNG.standard_normal(40))
    assert found(y, y_err=0.3 * y) is None
    assert found(y, y_err=np.full(40, 2.0) + 0.01 * X) is not None


def test_a_share_of_sampled_noise():
    y = decay(X, [12, 1.0]) * np.exp(0.3 * RNG.standard_normal(40))
    problem = oc.Problem(X, y, decay, PRIORS, oc.Box(0, 4), "sample", starts=4)
    assert "predictions" in str(short(problem, "pgp", draws=20).check())


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_positive_data_far_from_zero_are_quiet(unit):
    y = unit * (50 + 3 * RNG.standard_normal(40))
    assert found(y, level, {"a": stats.norm(0, 100 * unit)}) is None


def test_an_outcome_with_negative_values_is_quiet():
    y = RNG.standard_normal(40)
    assert (y < 0).any()
    assert found(y, level, EXACT) is None


def test_few_data_near_zero_may_be_positive_by_chance():
    """Three sds above zero at most points, one at three: all are positive in more than half of such data sets."""
    y = np.full(40, 3.0) + np.resize([0.5, -0.5], 40)
    y[:3] = 0.9, 1.0, 1.1

    def steps(x, theta):
        return theta[0] * np.where(x < X[3], 1.0, 3.0)

    assert found(y, steps, EXACT, noise_cov=1.0) is None
    # counts are never negative
    assert "a whole number" in found(np.round(y), steps, EXACT, noise_cov=1.0)


def test_shares():
    y = 1 / (1 + np.exp(-(X - 1 + 1.0 * RNG.standard_normal(40))))
    words = found(y, level, EXACT, noise_cov=0.3)
    assert "every observed y is between 0 and 1" in words
    assert share_of(words, "above 1") > 5
    assert share_of(words, "negative") > 5
    assert 'transform="logit"' in words


def test_zeros_and_ones():
    words = found((RNG.random(40) < 0.5).astype(float), level, EXACT)
    assert "take shares of groups" in words


def test_errors_in_x():
    y = 2 * X + 0.1 * RNG.standard_normal(40)
    line = {"simulator": lambda x, t: t[0] * x, "priors": EXACT, "topic": "errors in x", "noise_cov": 0.01}
    assert found(y, **line) is None
    small = found(y, **line, x_err=0.05)
    assert small.startswith("[fine]")
    assert "make up 50% of the noise variance" in small
    large = found(y, **line, x_err=0.4)
    assert large.startswith("[note]")
    assert "if x was measured with them, a is off by about" in large


def test_errors_in_x_beside_a_curved_simulator():
    y = np.sin(8 * X)
    words = found(y, lambda x, t: t[0] * np.sin(8 * x), EXACT, "errors in x", noise_cov=1e-4, x_err=0.1)
    assert words.startswith("[problem]")
    assert "the simulator's curvature over them moves a by" in words


def test_the_report_names_errors_in_x():
    from orthocal.results.report.report import settings_of

    problem = oc.Problem(X, 2 * X, lambda x, t: t[0] * x, EXACT, oc.Box(0, 4), 0.01, starts=2, x_err=0.05)
    settings = dict(settings_of(short(problem, "none", draws=20).record))
    assert settings["errors of x"] == "typical standard deviation 0.05"
