"""Every theta kernel through one suite: the law it leaves invariant, bounds, generators, failing simulators.

False alarms: |z| > 4.5 has probability 7e-6 a comparison, Kolmogorov–Smirnov tests alarm below p = 1e-4; seeds are
fixed, so a pass stays a pass.
"""

import numpy as np
import pytest
from scipy import stats
from threadpoolctl import threadpool_limits

from orthocal import kernels
from orthocal.errors import InputError, NonFiniteError
from orthocal.kernels.base import Conditional, ThetaModel
from orthocal.problem.prior.parameters import Parameters
from orthocal.testing import check_kernel

# the laws of the costly ones are for the slow tests; the contract, and the exact tests, are for all
ALL = [
    kernels.Laplace(),
    *(
        pytest.param(kernel, marks=pytest.mark.slow)
        for kernel in (kernels.AdaptiveMetropolis(), kernels.Slice(), kernels.HMC())
    ),
]
CHAINS = 4


class Target:
    """A conditional density with a chosen simulator (theta (p,) -> (n,)) and a record of where it was called."""

    def __init__(self, priors, simulate, offset, noise_sd):
        self.called: list[np.ndarray] = []
        self.parameters = Parameters(priors)
        offset = np.asarray(offset, dtype=float)

        def one(theta):
            self.called.append(theta.copy())
            return np.asarray(simulate(theta), dtype=float)

        def gradient(theta):
            h = 1e-6 * self.parameters.spread
            columns = []
            for j in range(self.parameters.p):
                step = np.zeros(self.parameters.p)
                step[j] = h[j]
                columns.append((simulate(theta + step) - simulate(theta - step)) / (2 * h[j]))
            return np.stack(columns, axis=-1)[:, None, :]

        precision = np.full((len(offset), 1), noise_sd**-2.0)
        batch = lambda theta: np.stack([one(row)[:, None] for row in theta])  # noqa: E731
        self.model = ThetaModel(self.parameters, batch, gradient, precision)
        self.conditional = Conditional(self.model, np.tile(offset[None, :, None], (CHAINS, 1, 1)))

    def run(self, kernel, start, draws=600, seed=0):
        """Draws (draws, chains, p) after a tuned warm-up; the target stays the same."""
        rngs = [np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(CHAINS)]
        tuning = kernel.tune(self.model, np.asarray(start, dtype=float))
        state = self.model.state(np.tile(np.asarray(start, dtype=float), (CHAINS, 1)))
        kept = []
        for _ in range(4):
            window = []
            for _ in range(25):
                state, info = kernel.step(rngs, tuning, state, self.conditional)
                window.append((state.theta, info.acceptance))
            tuning = kernel.adapt(tuning, self.model, *(np.stack(part) for part in zip(*window, strict=True)))
        for _ in range(draws):
            state, info = kernel.step(rngs, tuning, state, self.conditional)
            np.testing.assert_allclose(info.log_density, self.conditional.log_density(state))
            kept.append(state.theta)
        return np.stack(kept)

    def exact(self, grid):
        """Mean and sd of a one-parameter target by a fine grid."""
        state = self.model.state(grid[:, None])
        log_density = Conditional(self.model, np.tile(self.conditional.offset[:1], (len(grid), 1, 1))).log_density(
            state
        )
        weight = np.exp(log_density - log_density.max())
        weight /= weight.sum()
        mean = weight @ grid
        return mean, np.sqrt(weight @ (grid - mean) ** 2)


def z_of_mean_and_sd(draws, mean, sd):
    """z with the effective sample size of arviz-stats."""
    from arviz_stats.base import array_stats

    values = draws[:, :, 0].T
    effective = min(float(array_stats.ess(values, method=kind)) for kind in ("mean", "sd"))
    kurtosis = stats.kurtosis(values.ravel(), fisher=False)
    return (
        (values.mean() - mean) / (sd / np.sqrt(effective)),
        (values.std() - sd) / (sd * np.sqrt((kurtosis - 1) / 4 / effective)),
    )


@pytest.mark.parametrize("kernel", ALL, ids=lambda kernel: type(kernel).__name__)
class TestEveryKernel:
    def test_curved_conditional_with_a_skew_prior(self, kernel):
        x = np.linspace(0, 1, 20)
        target = Target({"rate": stats.gamma(2.0, scale=2.0)}, lambda t: np.exp(-t[0] * x), np.exp(-3 * x) + 0.1, 0.3)
        draws = target.run(kernel, [2.0])
        z = z_of_mean_and_sd(draws, *target.exact(np.linspace(1e-3, 40, 40_000)))
        assert np.max(np.abs(z)) < 4.5

    def test_mass_at_a_bound(self, kernel):
        target = Target({"t": stats.uniform(0, 1)}, lambda t: t[0] * np.ones(4), np.full(4, -0.2), 0.4)
        draws = target.run(kernel, [0.5])
        assert draws.min() > 0
        assert draws.max() < 1
        assert min(float(theta[0]) for theta in target.called) > 0
        assert max(float(theta[0]) for theta in target.called) < 1
        z = z_of_mean_and_sd(draws, *target.exact(np.linspace(1e-6, 1 - 1e-6, 40_000)))
        assert np.max(np.abs(z)) < 4.5

    def test_correlated_parameters(self, kernel):
        """A linear target: exact Gaussian law, correlation -0.95."""
        x = np.linspace(0, 1, 10)
        G = np.column_stack([np.ones(10), x])
        priors = {"a": stats.norm(0, 3), "b": stats.norm(0, 3)}
        target = Target(priors, lambda t: G @ t, 1 + 2 * x, 0.5)
        draws = target.run(kernel, [0.0, 0.0])
        cov = np.linalg.inv(G.T @ G / 0.25 + np.eye(2) / 9)
        mean = cov @ G.T @ (1 + 2 * x) / 0.25
        for j in range(2):
            z = z_of_mean_and_sd(draws[:, :, j : j + 1], mean[j], np.sqrt(cov[j, j]))
            assert np.max(np.abs(z)) < 4.5
        exact = cov[0, 1] / np.sqrt(cov[0, 0] * cov[1, 1])
        assert np.corrcoef(draws.reshape(-1, 2).T)[0, 1] == pytest.approx(exact, abs=0.02)

    @pytest.mark.parametrize(
        "prior", [stats.norm(1, 2), stats.uniform(-1, 3), stats.beta(2, 5)], ids=["norm", "uniform", "beta"]
    )
    def test_without_data_the_draws_follow_the_prior(self, kernel, prior):
        target = Target({"t": prior}, lambda t: t[0] * np.ones(3), np.zeros(3), 1e6)
        draws = target.run(kernel, [float(prior.median())], draws=400)
        # thinned, so that the test's assumption of independence holds
        assert stats.kstest(draws[::4].ravel(), prior.cdf).pvalue > 1e-4

    def test_a_simulator_that_fails_somewhere_counts_as_impossible_there(self, kernel):
        def simulate(t):
            return np.full(5, np.nan) if t[0] > 0.5 else t[0] * np.ones(5)

        target = Target({"t": stats.norm(0, 10)}, simulate, np.zeros(5), 1.0)
        draws = target.run(kernel, [0.0], draws=500)
        assert draws.max() <= 0.5
        assert draws.std() > 0.2


EVERY = {type(kernel).__name__: kernel for kernel in (getattr(one, "values", [one])[0] for one in ALL)}


def test_the_list_is_complete():
    """A kernel is a class of ``oc.kernels`` with a step; HMC is there too, though its distributions are slow tests."""
    offered = {name for name, one in vars(kernels).items() if isinstance(one, type) and hasattr(one, "step")}
    assert set(EVERY) == offered - {"Kernel"}


@pytest.mark.parametrize("name", EVERY)
def test_the_contract_is_kept(name):
    """Shapes, seeds, a saved state, bounds, failures, missing cells of correlated outcomes, known Gaussian laws."""
    assert len(check_kernel(EVERY[name], chains=100)) == 10


@pytest.mark.parametrize("name", EVERY)
def test_threads_do_not_change_the_draws(name):
    """Under ``calibrate`` there is one BLAS thread; here there are two, and matrices too small to be split."""
    target = Target({"t": stats.norm(0, 1)}, lambda t: np.sin(t[0]) * np.ones(4), np.full(4, 0.3), 0.5)
    draws = []
    for threads in (1, 2):
        with threadpool_limits(threads, "blas"):
            draws.append(target.run(EVERY[name], [0.1], draws=5))
    np.testing.assert_array_equal(*draws)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("Laplace", {"steps": 0}, "at least one inner step"),
        ("Laplace", {"most_steps": 0}, "at least one inner step"),
        ("AdaptiveMetropolis", {"steps": 0}, "steps=0: .* at least one inner step"),
        ("Slice", {"sweeps": 0}, "sweeps=0: .* at least one sweep"),
        ("HMC", {"trajectories": 0}, "at least one trajectory"),
        ("HMC", {"leapfrogs": 0}, "at least one leapfrog step"),
    ],
)
def test_bad_settings_are_refused(kind, options, message):
    with pytest.raises(InputError, match=message):
        getattr(kernels, kind)(**options)


def test_the_suite_notices_a_wrong_kernel():
    """Negative control: proposals that are always accepted do not leave the target invariant."""

    class Careless(kernels.Laplace):
        def step(self, rngs, tuning, state, target):
            moved = target.base.state(tuning.centre + np.array([rng.standard_normal(1) for rng in rngs]))
            return moved, kernels.base.StepInfo(np.ones(CHAINS), target.log_density(moved))

    target = Target({"t": stats.norm(0, 10)}, lambda t: t[0] * np.ones(4), np.full(4, 0.3), 0.5)
    mean, sd = target.exact(np.linspace(-5, 5, 20_000))
    z = z_of_mean_and_sd(target.run(Careless(), [0.1]), mean, sd)
    assert np.max(np.abs(z)) > 10


def test_laplace_is_exact_for_a_linear_simulator():
    target = Target({"t": stats.norm(0, 10)}, lambda t: t[0] * np.arange(1.0, 5.0), np.ones(4), 0.5)
    kernel = kernels.Laplace()
    tuning = kernel.tune(target.model, np.array([0.0]))
    rngs = [np.random.default_rng(s) for s in range(CHAINS)]
    state = target.model.state(np.full((CHAINS, 1), 2.0))
    for _ in range(200):
        state, info = kernel.step(rngs, tuning, state, target.conditional)
        assert np.all(info.acceptance == 1.0)


def test_laplace_refines_where_the_linearisation_is_poor():
    """The conditional's mode lies far from the pivot of the linearisation and the simulator is curved."""
    x = np.linspace(0, 1, 50)
    target = Target({"t": stats.uniform(0, 10)}, lambda t: np.exp(-t[0] * x), np.exp(-6 * x), 0.01)
    kernel = kernels.Laplace()
    tuning = kernel.tune(target.model, np.array([1.0]))
    for _ in range(3):
        tuning = kernel.adapt(tuning, target.model, np.full((5, CHAINS, 1), 1.0), np.full((5, CHAINS), 0.1))
    assert tuning.refinements == 3
    rngs = [np.random.default_rng(s) for s in range(CHAINS)]
    state = target.model.state(np.full((CHAINS, 1), 6.0))
    accepted = []
    for _ in range(100):
        state, info = kernel.step(rngs, tuning, state, target.conditional)
        accepted.append(info.acceptance)
    assert np.mean(accepted) > 0.3


@pytest.mark.slow
def test_slice_sampling_is_reversible_where_the_bracket_is_far_too_short():
    """A flat target from its own law: the share in the outer fifth stays 0.2 to within 4.5 standard errors."""
    target = Target({"t": stats.uniform(0, 1)}, lambda t: 0 * t[0] * np.ones(1), np.zeros(1), 1.0)
    tuning = kernels.slice.SliceTuning(np.array([[0.005]]))
    rng = np.random.default_rng(0)
    chains = 2000
    state = target.model.state(rng.random((chains, 1)))
    conditional = Conditional(target.model, np.zeros((chains, 1, 1)))
    rngs = [np.random.default_rng(s) for s in np.random.SeedSequence(1).spawn(chains)]
    state, _ = kernels.Slice(sweeps=2).step(rngs, tuning, state, conditional)
    share = np.mean(np.abs(state.theta - 0.5) > 0.4)
    assert abs(share - 0.2) < 4.5 * np.sqrt(0.2 * 0.8 / chains)


def test_hmc_goes_on_where_the_gradient_fails():
    target = Target({"t": stats.norm(0, 10)}, lambda t: t[0] * np.ones(4), np.full(4, 0.3), 0.5)
    calls = []

    def failing(theta):
        calls.append(theta)
        if theta[0] > 0.4:
            raise NonFiniteError("no gradient here")
        return np.ones((4, 1, 1))

    target.model = target.model._replace(gradient=failing)
    target.conditional = target.conditional._replace(base=target.model)
    draws = target.run(kernels.HMC(), [0.1], draws=600)
    assert max(theta[0] for theta in calls) > 0.4
    z = z_of_mean_and_sd(draws, *target.exact(np.linspace(-5, 5, 20_000)))
    assert np.max(np.abs(z)) < 4.5
