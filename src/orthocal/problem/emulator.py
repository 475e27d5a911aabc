"""What a problem needs of an emulator: it takes the simulator's place, and knows where it learnt."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from ..arrays import Array, BoolArray


@runtime_checkable
class EmulatorLike(Protocol):
    """f_hat(x, theta) with a gradient, learnt from runs: those of ``oc.emulate`` are, and a user's own may be."""

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Of the runs, in the order of theta."""

    @property
    def has_variance(self) -> bool:
        """Whether ``variance`` can be called."""

    def __call__(self, x: Array, theta: Array) -> Array:
        """f_hat at points x (m, d) and theta (p,), (m, q)."""

    def gradient(self, x: Array, theta: Array) -> Array:
        """df_hat/dtheta, (m, q, p)."""

    def variance(self, x: Array, theta: Array) -> Array:
        """Variance of the emulator's error, (m, q)."""

    def outside(self, theta: Array) -> BoolArray:
        """Which of theta (c, p) lie outside of the runs."""
