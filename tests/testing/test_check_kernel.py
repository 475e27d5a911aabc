"""Negative controls: a theta kernel that breaks one clause of the contract is noticed, and the clause is named."""

import numpy as np
import pytest

from orthocal import kernels
from orthocal.kernels.base import StepInfo
from orthocal.testing import ContractError, check_kernel


class Careless(kernels.Laplace):
    """Every proposal is accepted, from a normal distribution that is too wide."""

    def step(self, rngs, tuning, state, target):
        noise = np.array([rng.standard_normal(state.theta.shape[1]) for rng in rngs])
        moved = target.base.state(target.base.parameters.clipped(state.theta + 0.5 * noise, 1e-9))
        return moved, StepInfo(np.ones(len(rngs)), target.log_density(moved))


class Stale(kernels.AdaptiveMetropolis):
    """The data of its first step are kept."""

    def step(self, rngs, tuning, state, target):
        kept = self.__dict__.setdefault("kept", {})
        offset = kept.setdefault((len(rngs), target.noise_precision is None, *target.offset.shape), target.offset)
        new, info = super().step(rngs, tuning, state, target._replace(offset=offset))
        return new, info._replace(log_density=target.log_density(new))


class Lazy(kernels.Laplace):
    """Moves, but in a hundredth of its steps only."""

    def step(self, rngs, tuning, state, target):
        new, info = super().step(rngs, tuning, state, target)
        moves = np.array([rng.random() < 0.01 for rng in rngs])
        if len(rngs) < 10:
            moves[:] = True
        kept = type(state)(
            *(np.where(moves.reshape(-1, *[1] * (a.ndim - 1)), a, b) for a, b in zip(new, state, strict=True))
        )
        return kept, StepInfo(info.acceptance, target.log_density(kept))


class Wide(kernels.Laplace):
    """Proposals that leave the support are moved to its bound, where they are accepted as they are."""

    def step(self, rngs, tuning, state, target):
        new, info = super().step(rngs, tuning, state, target)
        if np.isfinite(target.base.parameters.lower).all():
            new = new._replace(theta=new.theta - 1.0)
        return new, info


class Global(kernels.Laplace):
    def step(self, rngs, tuning, state, target):
        return super().step([np.random.default_rng() for _ in rngs], tuning, state, target)


class InPlace(kernels.Laplace):
    def step(self, rngs, tuning, state, target):
        new, info = super().step(rngs, tuning, state, target)
        state.theta[:] = new.theta
        return new, info


class Hidden(kernels.Laplace):
    """A counter that no state holds."""

    def step(self, rngs, tuning, state, target):
        count = self.__dict__["count"] = self.__dict__.get("count", 0) + 1
        new, info = super().step(rngs, tuning, state, target)
        return (new, info) if len(rngs) != 3 or count % 3 else super().step(rngs, tuning, new, target)


class Unfinished(kernels.Laplace):
    """The log density is that of the state before."""

    def step(self, rngs, tuning, state, target):
        new, info = super().step(rngs, tuning, state, target)
        return new, info._replace(log_density=target.log_density(state))


class Filled(kernels.Laplace):
    """Missing cells count."""

    def step(self, rngs, tuning, state, target):
        shift = 1e-3 * target.offset.sum(axis=(1, 2))[:, None]
        new, info = super().step(rngs, tuning, state, target)
        new = target.base.state(new.theta + shift)
        return new, info._replace(log_density=target.log_density(new))


class Unstorable(kernels.Laplace):
    def describe(self):
        return {"kind": (1, 2)}


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (Unfinished(), "log_density is not that of the new state"),
        (InPlace(), "changed the theta it was given in place"),
        (Global(), "same generators gave different draws"),
        (Hidden(), "different draws|did not go on in the same way"),
        (Wide(), "outside of the prior's support"),
        (Filled(), "missing cell changes the draws"),
        (Careless(), "do not stay draws from it|where the simulator fails"),
        (Stale(), "do not follow the last ones"),
        (Lazy(), "4 steps from four sds away are no draws"),
        (Unstorable(), "JSON"),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "step") else None,
)
def test_a_broken_kernel_is_noticed(kernel, message):
    with pytest.raises(ContractError, match=message):
        check_kernel(kernel)
