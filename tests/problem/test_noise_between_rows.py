"""What a user may give as noise that is correlated between rows, and what is done with it before any draw."""

import numpy as np
import pytest
from scipy import sparse, stats

import orthocal as oc
from helpers import short
from orthocal.errors import InputError

N = 12
X = np.linspace(0, 1, N)
PRIOR = {"a": stats.norm(0, 10)}
RHO = np.exp(-np.abs(X[:, None] - X) / 0.2)
DENSE = 0.04 * (0.7 * RHO + 0.3 * np.eye(N))


def problem_of(noise_cov, x=X, y=None, **changes):
    rng = np.random.default_rng(0)
    y = 2 * X + 0.1 * rng.standard_normal(N) if y is None else y
    settings = {"domain": oc.Box(0, 1), "input_names": "t", **changes}
    if np.ndim(x) == 2:
        settings |= {"domain": oc.Box([0, 0], [1, 1]), "input_names": ("t", "s")}
    return oc.Problem(x, y, lambda x, t: t[0] * np.ravel(x)[: len(x)], PRIOR, noise_cov=noise_cov, **settings)


def covariance(problem):
    """R of one outcome, from what the problem knows."""
    noise = problem.noise
    var = np.full(problem.data.n, noise.cov[0, 0]) if noise.by_point is None else noise.by_point[:, 0, 0]
    return noise.rows.matrix * np.sqrt(np.outer(var, var))


def test_the_same_covariance_in_several_forms():
    line = oc.CorrelatedNoise("t", length=0.2, share=0.7, sd=0.2)
    for given in (
        DENSE,
        DENSE.tolist(),
        sparse.csr_array(DENSE),
        line,
        oc.CorrelatedNoise(X, length=0.2, share=0.7, sd=0.2),
    ):
        np.testing.assert_allclose(covariance(problem_of(given)), DENSE, rtol=1e-12)
    errors = problem_of(oc.CorrelatedNoise("t", length=0.2, share=0.7), y_err=np.linspace(0.1, 0.3, N))
    own = np.sqrt(np.diag(covariance(errors)))
    np.testing.assert_allclose(own, np.linspace(0.1, 0.3, N))
    np.testing.assert_allclose(covariance(errors) / np.outer(own, own), DENSE / 0.04)


def test_blocks_and_series_are_independent_of_each_other():
    series = np.repeat([0, 1], N // 2)
    whole = DENSE * (series[:, None] == series)
    half = N // 2
    blocks = [whole[:half, :half], whole[half:, half:]]
    line = {"length": 0.2, "share": 0.7, "sd": 0.2}
    for problem in (
        problem_of(blocks),
        problem_of(np.stack(blocks)),
        problem_of(oc.CorrelatedNoise("t", groups=series, **line)),
        problem_of(oc.CorrelatedNoise("t", **line), groups=series),
        problem_of(oc.CorrelatedNoise("t", groups="s", **line), x=np.column_stack([X, series])),
    ):
        np.testing.assert_allclose(covariance(problem), whole, rtol=1e-12)
    # a series of one observation is one that is independent of all others
    single = np.array([0] * (N - 1) + [1])
    assert not covariance(problem_of(oc.CorrelatedNoise("t", groups=single, **line)))[-1, :-1].any()


def test_kinds_of_correlation():
    distance = np.abs(X[:, None] - X)
    for nu, r in ((1.5, np.sqrt(3) * distance / 0.2), (2.5, np.sqrt(5) * distance / 0.2)):
        factor = 1 + r if nu == 1.5 else 1 + r + r**2 / 3
        problem = problem_of(oc.CorrelatedNoise("t", "matern", length=0.2, share=0.7, sd=0.2, nu=nu))
        expected = 0.04 * (0.7 * factor * np.exp(-r) + 0.3 * np.eye(N))
        np.testing.assert_allclose(covariance(problem), expected, rtol=1e-10)


def test_a_diagonal_covariance_is_independent_noise():
    diagonal = np.diag(np.linspace(0.01, 0.05, N))
    given, errors = problem_of(diagonal), problem_of("estimate", y_err=np.sqrt(np.diag(diagonal)))
    assert given.noise.rows is None
    np.testing.assert_allclose(given.noise.by_point, errors.noise.by_point)


def test_rows_that_are_kept_keep_their_covariance():
    problem = problem_of(DENSE)
    rows = np.array([1, 2, 5, 9])
    np.testing.assert_allclose(covariance(problem.subset(rows)), DENSE[np.ix_(rows, rows)], rtol=1e-12)
    y = 2 * X
    y[3] = np.nan
    holes = DENSE.copy()
    holes[3] = holes[:, 3] = np.nan
    known = problem_of(holes, y=y).noise
    expected = np.zeros((N, N))
    seen = np.arange(N) != 3
    expected[np.ix_(seen, seen)] = np.linalg.inv(DENSE[np.ix_(seen, seen)])
    found = known.joint_precision[:, 0, :, 0] * known.whitener[0, 0] ** 2
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


def test_rows_with_the_same_x_are_not_merged():
    x = np.repeat(X[: N // 2], 2)
    noise = oc.CorrelatedNoise("t", length=0.2, sd=0.2, groups=np.tile([0, 1], N // 2))
    assert problem_of(noise, x=x, y=2 * x).merged.rows is None
    assert problem_of(0.04, x=x, y=2 * x).merged.rows is not None


def test_errors_of_x_are_independent_beside_it():
    problem = problem_of(DENSE, x_err=0.05)
    added = (problem.theta_tilde[0] * 0.05) ** 2
    np.testing.assert_allclose(covariance(problem), DENSE + added * np.eye(N), rtol=1e-4)


def test_the_weight_of_the_loss_is_that_of_single_rows():
    assert problem_of(DENSE).weight == pytest.approx(1 / 0.04)
    assert problem_of(DENSE).theta_tilde == pytest.approx(problem_of(0.04).theta_tilde)


LINE = {"length": 0.2, "sd": 0.2}
TWO = np.column_stack([2 * X, X])


@pytest.mark.parametrize(
    ("noise_cov", "changes", "words"),
    [
        (DENSE - 0.05 * np.eye(N), {}, "variance -0.01 in row 0"),
        (DENSE - 0.039 * np.eye(N), {}, "not positive definite"),
        (DENSE[:5, :5], {}, "5 x 5 but y has 12 rows"),
        (np.triu(DENSE), {}, "not symmetric"),
        (np.full((N, N), np.nan), {}, "not finite in row 0"),
        ([DENSE[:4, :4], DENSE[4:7, 4:7]], {}, "orders 4, 3, 7 in all, but y has 12 rows"),
        ([DENSE[:4, :4], DENSE[4:, 4:8]], {}, "block 1 of noise_cov is 8 x 4"),
        (DENSE, {"y": TWO}, "between rows, but y has 2 outcomes"),
        (oc.CorrelatedNoise("time", **LINE), {}, "no such input; give one of t"),
        (oc.CorrelatedNoise(**LINE), {"x": np.column_stack([X, X])}, "x has t, s: name the one"),
        (oc.CorrelatedNoise([0.0, 1.0], **LINE), {}, r"shape \(2,\) but y has 12 rows"),
        (oc.CorrelatedNoise("t", groups="rig", **LINE), {}, "no groups 'rig'"),
        (oc.CorrelatedNoise(np.zeros(N), **LINE), {}, "rows 0 and 1 have the same position in the same series"),
        (oc.CorrelatedNoise("t", "matern", length=50.0, sd=0.2, nu=2.5), {}, "all but equal"),
        (oc.CorrelatedNoise("t", length=0.2, sd=[0.1, 0.2]), {}, r"shape \(2,\): give a positive number"),
        (oc.CorrelatedNoise("t", length=0.2, cov=np.eye(2)), {}, r"give a \(1, 1\) matrix"),
        (oc.CorrelatedNoise("t", **LINE), {"y_err": 0.1}, "leave the others out"),
        (
            oc.CorrelatedNoise("t", length=0.2),
            {"y": TWO, "y_err": np.column_stack([X + 1, X + 2])},
            "one outcome at a time",
        ),
    ],
)
def test_what_cannot_be_a_covariance_is_said_in_a_sentence(noise_cov, changes, words):
    with pytest.raises(InputError, match=words):
        _ = problem_of(noise_cov, **changes).noise


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"kind": "ar2"}, '"ar1" or "matern"'),
        ({"nu": 0.5}, "1.5 or 2.5"),
        ({"length": -1}, "positive number"),
        ({"share": 1.5}, "at most 1"),
        ({"share": 0.0}, "above 0"),
        ({"sd": 0.1, "cov": 0.1}, "leave one of them out"),
        ({"length": 0.1, "prior": stats.lognorm(1)}, "length=None"),
        ({"prior": 0.3}, "scipy.stats"),
    ],
)
def test_settings_out_of_range(settings, words):
    with pytest.raises(InputError, match=words):
        oc.CorrelatedNoise("t", **settings)


def test_methods_that_cannot_take_it_say_so():
    problem = problem_of(oc.CorrelatedNoise("t", length=200.0, sd=0.2))
    with pytest.raises(InputError, match="share"):
        short(problem, "bart")
    with pytest.raises(InputError, match='form="dense"'):
        short(problem, oc.methods.Joint(oc.bias.GP(form="large")))


def replicated(seed, count=8, n=30):
    """Series at the same x: errors with length .1, share .8 and sd .2, beside a curve that is rough."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 1, n)
    R = 0.04 * (0.8 * np.exp(-np.abs(t[:, None] - t) / 0.1) + 0.2 * np.eye(n))
    rough = np.cumsum(rng.standard_normal(n)) / np.sqrt(n)
    y = np.concatenate([rough + np.linalg.cholesky(R) @ rng.standard_normal(n) for _ in range(count)])
    return np.tile(t, count), y, np.repeat(np.arange(count), n)


def test_series_at_the_same_x_say_how_errors_go_together():
    """Relative errors of the estimates are about .15 here; a factor of 2 is five of them."""
    x, y, series = replicated(0)
    noise = problem_of(oc.CorrelatedNoise("t", share=None), x=x, y=y, groups=series).noise
    kernel = noise.rows.kernel
    assert 0.05 < kernel.length < 0.2
    assert 0.6 < kernel.share < 0.95
    assert 0.1 < np.sqrt(noise.cov[0, 0]) < 0.3
    assert "series at the same x" in noise.remarks[0].message
    # what is given stays
    given = problem_of(oc.CorrelatedNoise("t", length=0.1, sd=0.2, share=None), x=x, y=y, groups=series).noise
    assert given.cov[0, 0] == pytest.approx(0.04)
    assert given.rows.kernel.length == 0.1


def test_one_series_needs_a_length_or_its_prior():
    x, y, _ = replicated(1, count=1, n=60)
    with pytest.raises(InputError, match="cannot tell correlated errors from a rough bias"):
        _ = problem_of(oc.CorrelatedNoise("t", sd=0.2), x=x, y=y).noise
    prior = stats.lognorm(0.3, scale=0.03)
    noise = problem_of(oc.CorrelatedNoise("t", prior=prior), x=x, y=y).noise
    assert prior.ppf(0.001) < noise.rows.kernel.length < prior.ppf(0.999)
    assert "cannot be told apart" in noise.remarks[0].message
    with pytest.raises(InputError, match="no density at positive lengths"):
        _ = problem_of(oc.CorrelatedNoise("t", prior=stats.norm(-5, 0.1)), x=x, y=y).noise


def test_what_cannot_be_estimated():
    lines = oc.CorrelatedNoise("t", length=0.1, groups=np.arange(N))
    with pytest.raises(InputError, match="no series has two observations"):
        _ = problem_of(lines).noise
    with pytest.raises(InputError, match="2 outcomes is not estimated"):
        _ = problem_of(oc.CorrelatedNoise("t", length=0.1), y=TWO).noise
