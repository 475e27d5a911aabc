"""Regression by the compiled samplers of the bias priors: chains that sample the noise, too, a target each."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import chi2

from ..arrays import Array
from ..errors import InputError
from ..progress import announced, progress_bar
from ..regression.compiled import CompiledSampler, Record

#: the noise variance has an inverse chi-square prior with these degrees of freedom ...
NOISE_FREEDOM = 3.0
#: ... and this quantile of the noise sd comes from the residuals of a linear fit (Chipman, George, McCulloch 2010)
NOISE_QUANTILE = 0.9
#: the noise sd stays above this, for targets of sd 1: what is left of a deterministic simulator may become small, but
#: weights beyond 10^6 would only keep the chains from moving
LEAST_NOISE_SD = 1e-3
#: steps of a progress bar
BLOCKS = 100


def noise_prior(inputs: Array, target: Array, share: float = 1.0) -> float:
    """The scale of the noise variance's prior: the quantile above is ``share`` times a linear fit's residual sd."""
    basis = np.hstack([np.ones((len(inputs), 1)), inputs])
    coefficients = np.linalg.lstsq(basis, target, rcond=None)[0]
    var = max(float(np.mean((target - basis @ coefficients) ** 2)), LEAST_NOISE_SD**2)
    return share**2 * var * float(chi2.ppf(1 - NOISE_QUANTILE, NOISE_FREEDOM)) / NOISE_FREEDOM


class Chain:
    """One chain of a regression target = function + N(0, noise variance), and its kept draws.

    ``keeps`` says of an update whether its draw is kept; ``refine`` is one more update of the state before that, which
    must not change the fit.

    Attributes
    ----------
    records
        What the sampler records of each kept draw.
    noise_vars
        The noise variance at each of them.
    """

    def __init__(
        self,
        sampler: CompiledSampler,
        rng: np.random.Generator,
        target: Array,
        prior_var: float,
        keeps: Callable[[int], bool],
        refine: Callable[[np.random.Generator, Any], None] | None = None,
    ) -> None:
        self.sampler, self.rng, self._refine = sampler, rng, refine
        self._target, self._prior_var, self._keeps = np.ascontiguousarray(target), prior_var, keeps
        self._state = sampler.empty()
        self._done = 0
        self._noise_var = max(float(target.var()), LEAST_NOISE_SD**2)
        self.records: list[Record] = []
        self.noise_vars: list[float] = []

    def advance(self, updates: int) -> None:
        """Make some updates, the noise after each."""
        n = len(self._target)
        for _ in range(updates):
            self.sampler.update(self.rng, self._state, self._target, False, self._noise_var)
            left = self._target - self._state.fit[:n]
            squares = NOISE_FREEDOM * self._prior_var + float(left @ left)
            self._noise_var = max(squares / self.rng.chisquare(NOISE_FREEDOM + n), LEAST_NOISE_SD**2)
            if self._keeps(self._done):
                if self._refine is not None:
                    self._refine(self.rng, self._state)
                self.records.append(self.sampler.one_record(self._state))
                self.noise_vars.append(self._noise_var)
            self._done += 1


class Sampled(NamedTuple):
    """The chains of all targets, None for one that is constant, and the means that were taken away before, (r,).

    ``pure_var`` (r,) is the variance of replicates about their means, None where no inputs repeat.
    """

    chains: list[Chain | None]
    offset: Array
    pure_var: Array | None = None

    @property
    def noise_var(self) -> Array:
        """Posterior mean of each target's noise variance, (r,)."""
        return np.array([0.0 if chain is None else np.mean(chain.noise_vars) for chain in self.chains])

    @property
    def error_var(self) -> Array:
        """What the noise adds to the error of the mean, (r,): what the functions leave, but for the replicates' own."""
        return self.noise_var if self.pure_var is None else np.maximum(self.noise_var - self.pure_var, 0.0)

    @property
    def records(self) -> list[list[Record]]:
        """What the samplers recorded, of each target."""
        return [[] if chain is None else chain.records for chain in self.chains]


class SampledFunctions:
    """A base of what chains have learnt: how many draws there are, and the noise of the r targets.

    Attributes
    ----------
    kept
        Number of draws.
    noise_var
        Posterior mean of each target's noise variance, (r,).
    scatter_known
        Whether there were replicates that differ.
    """

    def __init__(self, kept: int, sampled: Sampled) -> None:
        self.kept, self.offset, self.noise_var = kept, sampled.offset, sampled.noise_var
        self._pure_var, self._error_var = sampled.pure_var, sampled.error_var
        self.scatter_known = sampled.pure_var is not None

    def scatter_var(self, inputs: Array) -> Array:
        """Variance of a single run's targets about their mean function, (M, r): the same everywhere."""
        return np.tile(np.zeros_like(self.noise_var) if self._pure_var is None else self._pure_var, (len(inputs), 1))


def sample_targets(
    targets: Array, seed: int, updates: int, start: Callable[[np.random.Generator, Array], Chain]
) -> Sampled:
    """Make all updates of a chain for each target; ``start`` makes one for a target of mean 0, (N,)."""
    # column by column, so that no sum depends on how many targets there are
    offset = np.array([np.ascontiguousarray(target).mean() for target in targets.T])
    rngs = [np.random.default_rng(own) for own in np.random.SeedSequence(seed).spawn(targets.shape[1])]
    chains = [
        # a constant target has nothing to learn
        None if float(np.ptp(target)) < 1e-9 else start(rng, target)
        for target, rng in zip((targets - offset).T, rngs, strict=True)
    ]
    run_chains([chain for chain in chains if chain is not None], updates)
    return Sampled(chains, offset)


def run_chains(chains: Sequence[Chain], updates: int) -> None:
    """Make all updates of all chains, in threads where there are several."""
    if not chains:
        return
    with announced(f"compiling {chains[0].sampler.title} for its first use, some seconds, once"):
        chains[0].advance(1)
    ahead = {id(chains[0]): 1}
    ends = np.linspace(0, updates, min(BLOCKS, updates) + 1).round().astype(int)
    with ThreadPoolExecutor(min(len(chains), os.cpu_count() or 1)) as pool:
        for start, end in progress_bar(list(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)), "emulator"):
            tasks = [pool.submit(chain.advance, end - start - ahead.pop(id(chain), 0)) for chain in chains]
            for task in tasks:
                task.result()


def keeps_from(burn: int, thin: int) -> Callable[[int], bool]:
    """Whether a chain keeps the draw of an update: every ``thin``-th after the first ``burn``."""
    return lambda update: update >= burn and (update - burn) % thin == thin - 1


def check_whole(title: str, least: dict[str, tuple[object, int]]) -> None:
    """Refuse settings that are not whole numbers of at least so much: name -> value, least."""
    for name, (value, lowest) in least.items():
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < lowest:
            raise InputError(f"{title} has {name}={value!r}: give a whole number of at least {lowest}")


def check_rows(inputs: Array, targets: Array) -> None:
    """Refuse inputs (N, k) and targets (N, r) that do not go together."""
    if inputs.ndim != 2 or targets.ndim != 2 or len(inputs) != len(targets) or not len(inputs):
        raise InputError(
            f"inputs {inputs.shape} and targets {targets.shape} do not go together: give (N, k) and (N, r), N > 0"
        )
