"""Delayed acceptance: many steps on the simulator's expansion propose, one call of the simulator decides.

With p(theta) the density and e(theta) that of the expansion, steps that leave e invariant and could as well be gone
backwards lead from theta to theta'. It is accepted with probability

    min(1, p(theta') e(theta) / (p(theta) e(theta')))

so p is left invariant, however good or bad the expansion is (Christen and Fox 2005).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from ...arrays import Array, BoolArray
from ...errors import NonFiniteError
from ...kernels import Laplace
from ...kernels.base import Conditional, Extra, Rngs, StepInfo, ThetaModel, ThetaState, accept, at_middle, normals
from ...kernels.laplace import LaplaceTuning, linearised, slice_directions
from ...kernels.slice import swept
from ..joint.expansion import Expansion, expanded, with_room

#: how often a random-walk step of the density itself takes the place: it leaves where the expansion is far too small
WALKS = 0.05
#: the steps on the expansion
INNER = Laplace(most_steps=8)
#: how many of them show how many a proposal needs, and how often they are tried
PILOT_STEPS, PILOTS = 25, 4
#: with a smaller share of accepted proposals the expansion is made anew
GOOD = 0.9


class ExtraAtNodes(Extra, Protocol):
    """What comes to the density, where it depends on the simulator's gradients at the nodes."""

    def expanded(self, nodes: Expansion) -> Extra:
        """The same for the expansion of f at the nodes, as vectors (k,)."""


class Near(NamedTuple):
    """The model of the simulator's expansion, which costs no call, and the expansion of the values at the nodes.

    ``whole`` is that of the model's outcomes and of these values, from which both are made.
    """

    model: ThetaModel
    nodes: Expansion
    whole: Expansion

    def target(self, of: Conditional) -> Conditional:
        """That of the expansion."""
        return of._replace(base=self.model, extra=cast(ExtraAtNodes, of.extra).expanded(self.nodes))


class DelayedTuning(NamedTuple):
    """The expansion and its proposals; ``spread`` (p,) and ``root`` (p, p) are those of theta, roughly."""

    near: Near
    inner: LaplaceTuning
    spread: Array
    root: Array

    @property
    def steps(self) -> int:
        return self.inner.steps


class Delayed:
    """The theta step for a density with ``extra``: one call and one gradient a proposal.

    Parameters
    ----------
    values, gradient
        f at the nodes as vectors, theta (s, p) -> (s, k), NaN where the simulator fails, and theta (p,) -> (k, p).
    typical
        A density for one chain, on whose expansion the proposals are tried.
    spread
        That of theta, roughly, (p,).
    """

    def __init__(
        self,
        values: Callable[[Array], Array],
        gradient: Callable[[Array], Array],
        typical: Conditional,
        spread: Array,
    ) -> None:
        self._values, self._slopes, self._typical, self._spread = values, gradient, typical, spread

    def tune(self, model: ThetaModel, pivot: Array) -> DelayedTuning:
        return self._anew(model, pivot, np.tile(pivot, (4, 1)), self._spread)

    def adapt(self, tuning: DelayedTuning, model: ThetaModel, thetas: Array, acceptance: Array) -> DelayedTuning:
        if acceptance.mean() > GOOD:
            return tuning
        sd = thetas.reshape(-1, thetas.shape[-1]).std(axis=0)
        spread = np.where(sd > 0, sd, tuning.spread)
        try:
            return at_middle(lambda pivot: self._anew(model, pivot, thetas[-1], spread), model.parameters, thetas)
        except NonFiniteError:
            return tuning

    def _anew(self, model: ThetaModel, pivot: Array, starts: Array, spread: Array) -> DelayedTuning:
        return self._tuned(self._expanded(model, pivot, spread), pivot, starts, spread)

    def step(
        self, rngs: Rngs, tuning: DelayedTuning, state: ThetaState, target: Conditional
    ) -> tuple[ThetaState, StepInfo]:
        density = target.log_density(state)
        if rngs[0].random() < WALKS:
            p = state.theta.shape[1]
            theta = state.theta + normals(rngs, p) @ tuning.root.T * (2.4 / np.sqrt(p))
            correction = np.zeros(len(rngs))
        else:
            near = tuning.near.target(target)
            start = near.base.state(state.theta)
            theta, reached = _gone(rngs, tuning.inner, start, near)
            correction = near.log_density(start) - reached
        # a chain that stays is known already
        away = np.any(theta != state.theta, axis=1)
        proposal = _moved(target.base, state, theta, away)
        proposed = target.log_density(proposal)
        state, density, moved = accept(rngs, state, density, proposal, proposed, proposed - density + correction)
        return state, StepInfo(np.where(moved & away, 1.0, 0.0), density)

    def describe(self) -> dict[str, Any]:
        return {"kind": "delayed"}

    def plain(self, tuning: DelayedTuning) -> tuple[Expansion, LaplaceTuning, Array, Array]:
        """The tuning without its functions."""
        return tuning.near.whole, tuning.inner, tuning.spread, tuning.root

    def with_functions(self, plain: tuple[Expansion, LaplaceTuning, Array, Array], model: ThetaModel) -> DelayedTuning:
        return DelayedTuning(self._near(model, plain[0]), *plain[1:])

    def _expanded(self, model: ThetaModel, near: Array, spread: Array) -> Near:
        """The expansion where there is room around ``near``; there itself, where the simulator fails in that room."""
        roomy, reach = with_room(model.parameters, near, spread)
        for origin in (roomy, near):
            with suppress(NonFiniteError):
                gradients = [model.gradient(origin)[0], self._slopes(origin)]
                found = expanded(
                    lambda theta: np.hstack([model.simulate(theta)[:, 0], self._values(theta)]),
                    np.vstack(gradients),
                    model.parameters,
                    origin,
                    reach,
                )
                if np.isfinite(found.value).all() and np.isfinite(found.basis).all():
                    return self._near(model, found)
        raise NonFiniteError(f"the simulator fails around {model.parameters.support.describe(near)}")

    def _near(self, model: ThetaModel, found: Expansion) -> Near:
        """The expansion as a model."""
        r = model.precision.shape[1]
        # the model's outcomes and the gradients at the nodes have no use for each other's rows
        own, nodes = (
            replace(found, value=found.value[part], basis=found.basis[part]) for part in (np.s_[:r], np.s_[r:])
        )
        expanded_model = model._replace(
            simulate=lambda theta: own.at((theta - own.origin) / own.scale)[:, None],
            gradient=lambda theta: (own.basis @ jacobian(own, theta[None])[0])[None],
        )
        return Near(expanded_model, nodes, found)

    def _tuned(self, near: Near, pivot: Array, starts: Array, spread: Array) -> DelayedTuning:
        """With proposals for the expansion's density, tried on it."""
        # what is tried costs no call; no draw depends on these generators otherwise
        rngs = [np.random.default_rng(c) for c in range(len(starts))]
        model, target = near.model, near.target(self._typical.part([0] * len(starts)))
        inner = _independent(linearised(model, pivot, 2))
        state = model.state(model.parameters.clipped(starts, 1e-9))
        for _ in range(PILOTS):
            thetas, rates = [], []
            for _ in range(PILOT_STEPS):
                state, info = INNER.step(rngs, inner, state, target)
                thetas.append(state.theta)
                rates.append(info.tuned)
            inner = _independent(INNER.adapt(inner, model, np.array(thetas), np.array(rates)))
        return DelayedTuning(near, inner, spread, inner.root)


def _independent(inner: LaplaceTuning) -> LaplaceTuning:
    """Independent proposals alone, which could as well be gone backwards."""
    return inner._replace(refinements=0, walk=0.0)


def jacobian(near: Expansion, theta: Array) -> Array:
    """J at theta (c, p), (c, r, p), with basis J the gradient of the expansion."""
    return np.asarray(near.jacobian((theta - near.origin) / near.scale) / near.scale)


def _gone(rngs: Rngs, inner: LaplaceTuning, start: ThetaState, near: Conditional) -> tuple[Array, Array]:
    """Where the steps on the expansion lead to, (c, p), and its log density, (c,).

    Slice sampling, where it is needed, comes before the proposals and in the opposite order after them: so the whole
    could as well be gone backwards.
    """
    along = slice_directions(inner)
    before = swept(rngs, start, near, along, inner.sweeps)[0] if inner.sweeps else start
    end, info = INNER.step(rngs, inner._replace(sweeps=0), before, near)
    if not inner.sweeps:
        return end.theta, info.log_density
    end, density = swept(rngs, end, near, along[::-1], inner.sweeps)
    return end.theta, density


def _moved(model: ThetaModel, state: ThetaState, theta: Array, away: BoolArray) -> ThetaState:
    """The state at theta (c, p), of which only those ``away`` (c,) are new."""
    if not away.any():
        return state
    found = model.state(theta[away])
    parts = [part.copy() for part in state]
    for part, new in zip(parts, found, strict=True):
        part[away] = new
    return ThetaState(*parts)
