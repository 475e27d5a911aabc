"""Does a prior on the bias keep the contract of ``orthocal.bias.base``?"""

from __future__ import annotations

import copy
import json

import numpy as np
from scipy.stats import ks_2samp

from ..arrays import Array
from ..bias import BiasPrior, BiasSampler, Setting
from ..bias.base import scales_noise
from .base import check_clauses, require

#: a true prior fails one of the two tests of distributions with this probability, for the seeds at hand
FALSE_ALARM = 1e-4
CHAINS = 3


def check_bias_prior(prior: BiasPrior, n: int = 25, d: int = 2, sweeps: int = 400, seed: int = 0) -> list[str]:
    """Check that a prior on the bias keeps the contract of ``orthocal.bias.base``; the clauses that were checked.

    Parameters
    ----------
    prior
        The prior.
    n, d
        Size of the made-up data set.
    sweeps
        Draws for the checks of distributions; more for a prior that mixes slowly.
    seed
        Of the made-up data.

    Raises
    ------
    ContractError
        At the first clause that is not kept.

    Examples
    --------
    >>> import orthocal as oc
    >>> from orthocal.testing import check_bias_prior
    >>> clauses = check_bias_prior(oc.bias.GP(nu=2.5), sweeps=100)
    >>> clauses[:3]
    ['shapes', 'joint consistency', 'determinism']
    """
    rng = np.random.default_rng(seed)
    x = rng.random((n, d))
    # some nodes are data points: one function must give one value there
    nodes = np.vstack([rng.random((4, d)), x[:3]])
    residual = 3 * np.sin(6 * x[:, 0]) + rng.standard_normal(n)
    setting = Setting(x, nodes, np.ones(d), np.ones(n), residual, np.ones((n, 1)), 1.0)
    return check_clauses(_BiasCheck(prior, setting, sweeps, seed))


class _BiasCheck:
    def __init__(self, prior: BiasPrior, setting: Setting, sweeps: int, seed: int) -> None:
        self._prior, self._setting, self._sweeps, self._seed = prior, setting, sweeps, seed
        self._sampler = prior.prepare(setting)
        self._residual = np.tile(setting.residual, (CHAINS, 1))

    def shapes(self) -> None:
        _, values = self._sampler.draw(self._rngs(0), None, self._residual)
        expected = (CHAINS, len(self._setting.x) + len(self._setting.nodes))
        require(values.shape == expected, f"draw returned shape {values.shape}, expected (chains, n + m) = {expected}")
        require(bool(np.isfinite(values).all()), "draw returned NaN or infinity")

    def joint_consistency(self) -> None:
        _, values = self._sampler.draw(self._rngs(0), None, self._residual)
        gap = float(np.abs(values[:, :3] - values[:, -3:]).max())
        size = float(np.abs(values).max())
        require(
            gap <= 1e-6 * max(size, 1e-300), f"one point has two values, as data and as node, that differ by {gap:.2g}"
        )

    def determinism(self) -> None:
        first, again, other = (self._run(self._sampler, seed, self._residual, 3)[-1] for seed in (0, 0, 1))
        require(np.array_equal(first, again), "the same generators gave different draws")
        require(not np.array_equal(first, other), "different generators gave the same draws")

    def state_can_be_restored(self) -> None:
        rngs = self._rngs(0)
        state, _ = self._sampler.draw(rngs, None, self._residual)
        saved, saved_rngs = copy.deepcopy(state), copy.deepcopy(rngs)
        for _ in range(5):
            state, first = self._sampler.draw(rngs, state, -self._residual)
            saved, again = self._sampler.draw(saved_rngs, saved, -self._residual)
        require(np.array_equal(first, again), "a saved state and generator did not go on in the same way")

    def residual_changes_are_honoured(self) -> None:
        rngs, state = self._rngs(0), None
        means = []
        for sign in (1, -1):
            draws = []
            for _ in range(self._sweeps):
                state, values = self._sampler.draw(rngs, state, sign * self._residual)
                draws.append(values)
            means.append(np.mean(draws[self._sweeps // 2 :], axis=(0, 1))[: len(self._setting.x)])
        for mean, sign in zip(means, (1, -1), strict=True):
            fit = float(np.corrcoef(mean, sign * self._setting.residual)[0, 1])
            require(fit > 0.5, f"the draws do not follow the residual they are given (correlation {fit:.2f})")

    def without_data_the_residual_does_not_matter(self) -> None:
        flat = self._prior.prepare(self._setting._replace(noise_var=np.full(len(self._setting.x), 1e12)))
        self._require_deaf(flat, "noise")

    def a_noise_scale_is_honoured(self) -> None:
        """Only of samplers that say so: an enormous scale takes the data away."""
        if scales_noise(self._sampler):
            self._require_deaf(self._sampler, "noise scale", 1e12)

    def _require_deaf(self, sampler: BiasSampler, what: str, noise_scale: float | None = None) -> None:
        """The draws must not depend on the residual."""
        samples = []
        for seed, scale in ((0, 0.0), (1, 5.0)):
            values = np.stack(self._run(sampler, seed, scale * self._residual, self._sweeps, noise_scale))
            # the size of the function in each tenth draw: nearly independent, and blind to its sign
            samples.append(np.abs(values[self._sweeps // 4 :: 10]).mean(axis=-1).ravel())
        p = float(ks_2samp(*samples).pvalue)
        require(p > FALSE_ALARM, f"with an enormous {what} the draws still depend on the residual (p = {p:.1g})")

    def predictions_continue_the_draws(self) -> None:
        state, values = self._sampler.draw(self._rngs(0), None, self._residual)
        points = np.vstack([self._setting.x, self._setting.nodes])
        predicted = self._sampler.predict(np.random.default_rng(0), self._sampler.record(state), points)
        gap = float(np.abs(predicted - values).max())
        size = float(np.abs(values).max())
        require(gap <= 1e-4 * size, f"predictions at known points differ from the draw by {gap:.2g}")

    def settings_can_be_stored(self) -> None:
        for name, stored in (("describe", self._prior.describe()), ("settings", self._sampler.settings())):
            require(json.loads(json.dumps(stored)) == stored, f"{name}() does not survive JSON")

    def _run(
        self, sampler: BiasSampler, seed: int, residual: Array, draws: int, scale: float | None = None
    ) -> list[Array]:
        rngs, state, kept = self._rngs(seed), None, []
        given = {} if scale is None else {"noise_scale": np.full(CHAINS, scale)}
        for _ in range(draws):
            state, values = sampler.draw(rngs, state, residual, **given)
            kept.append(np.array(values))
        return kept

    def _rngs(self, seed: int) -> list[np.random.Generator]:
        return [np.random.default_rng(one) for one in np.random.SeedSequence([self._seed, seed]).spawn(CHAINS)]
