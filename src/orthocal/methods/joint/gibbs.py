"""A Markov chain for any prior of the bias: beta | b, a Gaussian of dimension p, and b | beta."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...arrays import Array, IntArray
from ...bias.base import SAMPLERS, BiasSampler
from ...bias.outcomes import DrawnNoise, OutcomesBias, OutcomesState, the_sized
from ...errors import IdentifiabilityError, InputError
from ...kernels.warmup import Stepper, run_chains
from ...problem.noise.noise import NoiseSource
from ...problem.problem import Problem
from ...regression.linear_part import Others
from ..base import Plan
from ..chain_noise import ChainNoise, NoiseState
from ..fine_nodes import Integrals, of_outcome
from ..sampled_noise import LatentNoise, NoiseDraws
from ..stored_draws import stacked_records
from .regress import RANK, Linear, Regressed, by_chain, with_prior

# What one outcome says about beta with its Gaussian-process bias integrated out, for noise of any size.
#
#     B = G'S^-1 G,   pull = G'S^-1 z,   S = L L' + (t W)^-1
#
# With W^1/2 L = U diag(s) V', S^-1 = t W^1/2 (I - U diag(t s² / (1 + t s²)) U') W^1/2: one decomposition serves all
# sizes t of the noise's precision.

#: data beyond which the decomposition, which costs their number cubed, is not made
MOST_INTEGRATED = 2_000


class BiasIntegrated(NamedTuple):
    """W^1/2 (n,), its product with G (n, p), U (n, r) and s² (r,)."""

    root_weight: Array
    sloped: Array
    left: Array
    squares: Array

    @classmethod
    def of(cls, root: Array, G: Array, weight: Array) -> BiasIntegrated:
        """From L (n, r) and G (n, p) at the data, and W (n,)."""
        root_weight = np.sqrt(weight)
        left, sizes, _ = np.linalg.svd(root_weight[:, None] * root, full_matrices=False)
        return cls(root_weight, root_weight[:, None] * G, left, sizes**2)

    def information(self, z: Array, scale: Array) -> tuple[Array, Array]:
        """B (c, p, p) and pull (c, p), for z (c, n) and t (c,)."""
        white = z * self.root_weight
        taken = scale[:, None] * self.squares / (1 + scale[:, None] * self.squares)
        turned = self.left.T @ self.sloped
        B = self.sloped.T @ self.sloped - np.einsum("rp,cr,rk->cpk", turned, taken, turned)
        pull = white @ self.sloped - ((white @ self.left) * taken) @ turned
        return np.asarray(scale[:, None, None] * B), np.asarray(scale[:, None] * pull)


def check_identifiable(problem: Problem, linear: Linear) -> None:
    """Refuse data that do not determine beta."""
    p = linear.at_data.shape[2]
    seen = linear.at_data[problem.data.observed.any(axis=1)].reshape(-1, p)
    if np.linalg.matrix_rank(seen / np.linalg.norm(seen, axis=0), tol=RANK) < p:
        raise IdentifiabilityError(
            f"the data do not determine the {problem.parameters.p} parameters, there are too few distinct points: give "
            'more data, fix some parameters, or take a Gaussian process, "gp", which can leave them to their priors'
        )


def gibbs_draws(
    problem: Problem, plan: Plan, bias: OutcomesBias, linear: Linear, integrals: Integrals | None = None
) -> Regressed:
    """A Markov chain for any prior: beta | b, a Gaussian of dimension p, and b | beta, one update of its sampler.

    ``integrals`` says what the nodes of ``bias`` are, if they are not the problem's.
    """
    check_identifiable(problem, linear)
    run = Gibbs(problem, plan, bias, linear, integrals)
    return run.finished(run_chains(run, plan.warmup, plan.draws, plan.rngs))


class GibbsDraw(NamedTuple):
    """b at data and nodes (c, n + m, q), beta (c, p), the noise's covariance if drawn, and what predictions need.

    ``missed`` (c, q) is what the square of b has beyond the nodes. Where b at the data is made again, it is left out,
    and ``square`` (c,) is that of what is left of them. ``sizes`` (c, q) are those of the bias, where they are drawn.
    """

    values: Array
    beta: Array
    noise: Array | None
    records: dict[str, Array]
    missed: Array | None
    square: Array | None
    sizes: Array | None


class Gibbs(Stepper[GibbsDraw]):
    """The chains of one problem: b | beta, beta | b and, where it is sampled, the noise, or its correlated part.

    Several problems with one beta have steps of their own in between: ``complete``, ``draw_bias``, ``information``,
    ``draw_noise``.
    """

    changing = ("beta", "_state", "_noise_state", "_correlated", "_bias.traces")

    def __init__(
        self, problem: Problem, plan: Plan, bias: OutcomesBias, linear: Linear, integrals: Integrals | None
    ) -> None:
        self._problem, self._plan, self._bias, self._linear = problem, plan, bias, linear
        self._integrals = integrals
        self._residual = problem.whiten(problem.complete_y - problem.fit)
        # where not all draws have room at the data, those of our priors are made again from what predictions need
        ours = not bias.gaussian and all(str(one.settings().get("kind")) in SAMPLERS for one in bias.samplers)
        self._again = ours and plan.kept(problem.unmerged.data.y.size) is not None
        noise = problem.noise
        self._noise = ChainNoise(problem) if noise.source is NoiseSource.UNKNOWN else None
        if self._noise is not None and noise.groups is not None and not bias.sized:
            raise InputError(
                "GroupNoise(sample=True) with a prior of the bias that is not one of bart, softbart, bmars and bnn, or "
                "with many outcomes: leave sample out, or take one of these"
            )
        self._latent, chains = None if noise.rows is None else LatentNoise(noise), len(plan.rngs)
        self._correlated = None if self._latent is None else self._latent.start(chains)
        self._noise_state: NoiseState | None = None if self._noise is None else self._noise.start(chains)
        self.beta: Array = np.zeros((chains, linear.at_data.shape[2]))
        self._state: OutcomesState | None = None

    def step(self) -> tuple[Array, ...]:
        self.complete()
        self.draw_bias()
        self.beta = drawn_beta(*self.information(), self._plan.rngs)
        self.draw_noise()
        return ()

    def complete(self) -> None:
        """What is missing of the data, given all else, where the noise is sampled."""
        linear = self._fitted()
        self._whole = np.broadcast_to(self._residual, linear.shape)
        if self._noise is not None and self._noise_state is not None:
            before = linear if self._state is None else linear + self._state.bias
            self._whole = before + self._noise.completed(self._plan.rngs, self._whole - before, self._noise_state)

    def draw_bias(self) -> None:
        """b | beta, one update of its sampler."""
        left = self._whole - self._fitted()
        left = left if self._correlated is None else left - self._correlated
        self._state, self._values = self._bias.draw(self._plan.rngs, self._state, left, self._rows)

    @property
    def _rows(self) -> DrawnNoise | None:
        """What rows say, where the noise is drawn."""
        return None if self._noise is None or self._noise_state is None else self._noise.of_rows(self._noise_state)

    @property
    def exact(self) -> bool:
        """Whether b | beta is drawn at once, so that beta may be drawn with b integrated out."""
        data = self._problem.data
        alone = self._latent is None and self._problem.noise.groups is None
        return self._bias.gaussian and data.q == 1 and alone and data.n <= MOST_INTEGRATED

    def information_without_bias(self) -> tuple[Array, Array]:
        """G'S^-1 G and G'S^-1 z, S = K + P^-1: beta ~ N(B^-1 pull, B^-1) with b integrated out."""
        scale = np.ones(len(self._whole)) if self._noise_scale is None else 1 / self._noise_scale
        return self._integrated.information(self._whole[:, :, 0], scale)

    @property
    def given_functions(self) -> bool:
        """Whether beta may be drawn with the coefficients of b integrated out, given the functions that b is made of.

        The coefficients are to be drawn anew then, before anything else is.
        """
        if self._latent is not None or (self._noise is not None and self._problem.data.q > 1):
            return False
        return self._bias.linear_samplers is not None

    def information_given_functions(self) -> tuple[Array, Array]:
        """As ``information``, with the coefficients of b integrated out."""
        assert self._state is not None
        return self._bias.information(self._state, self._linear.at_data, self._whole, self._noise_scale)

    def move_functions(self, precision: Array, pull: Array) -> None:
        """Other functions of b, with beta, of which this is known elsewhere, and all coefficients integrated out."""
        assert self._state is not None
        others = Others(self._linear.at_data, precision, pull)
        self._bias.move_functions(self._plan.rngs, self._state, others, self._whole, self._noise_scale)

    def draw_coefficients(self) -> None:
        """Those of b given beta, and given its functions."""
        assert self._state is not None
        left = self._whole - self._fitted()
        self._state, self._values = self._bias.draw_coefficients(self._plan.rngs, self._state, left, self._noise_scale)

    @property
    def _noise_scale(self) -> Array | None:
        """That of one outcome, (c,), where it is sampled."""
        return None if self._noise_state is None else self._noise_state.cov[:, 0, 0]

    @cached_property
    def _integrated(self) -> BiasIntegrated:
        own = 1 / self._problem.noise.variances[:, 0]
        root, G = self._bias.prior_root()[: self._problem.data.n, 0], self._linear.at_data[:, 0]
        return BiasIntegrated.of(root, G, own)

    def information(self) -> tuple[Array, Array]:
        """G'P G (c, p, p) and G'P (z - b) (c, p): beta | b ~ N(B^-1 pull, B^-1), for flat beta.

        P is that of the whole noise: its correlated part is integrated out.
        """
        assert self._state is not None
        left, G = self._whole - self._state.bias, self._linear.at_data
        if self._latent is not None:
            image = self._problem.noise.weighed(G)
            gram = np.einsum("nkp,nkr->pr", G, image)
            return np.tile(gram, (len(left), 1, 1)), np.einsum("nkp,cnk->cp", image, left)
        rows = self._problem.noise.precision[None] if self._rows is None else self._rows.precision
        weighted = np.einsum(
            "cnkl,nlp->cnkp", np.broadcast_to(rows, (len(left), *self._problem.noise.precision.shape)), G
        )
        return np.einsum("nkp,cnkr->cpr", G, weighted), np.einsum("cnkp,cnk->cp", weighted, left)

    def draw_noise(self) -> None:
        """The noise given all else, where it is sampled, or its part that is correlated between rows."""
        if self._latent is not None and self._state is not None:
            left = self._whole - self._fitted() - self._state.bias
            self._correlated = self._latent.draw(self._plan.rngs, left)
        if self._noise is None or self._noise_state is None or self._state is None:
            return
        left, before = self._whole - self._fitted(), self._noise_state.sd
        self._noise_state, self._state = self._noise.drawn(
            self._plan.rngs, self._noise_state, self._bias, self._state, left
        )
        if self._bias.in_noise_units:
            self._values = self._values * (self._noise_state.sd / before)[:, None]

    def _fitted(self) -> Array:
        """G beta at the data, (c, n, q)."""
        return np.asarray(np.einsum("nkp,cp->cnk", self._linear.at_data, self.beta))

    def adapt(self, *window: Array) -> None:
        """There is nothing to tune: the samplers of the bias tune themselves."""

    def kept(self) -> GibbsDraw:
        assert self._state is not None
        records, missed, square = self._bias.records(self._state), None, None
        sizes = self._bias.sizes(self._state) if self._bias.sized else None
        noise = None if self._noise is None or self._noise_state is None else self._noise.covariance(self._noise_state)
        at_data, at_nodes = np.split(self._values, [self._problem.data.n], axis=1)
        if self._integrals is not None:
            at_nodes, missed = self._integrals.at_nodes(at_nodes, records)
        if self._again:
            left = self._residual - np.einsum("nkp,cp->cnk", self._linear.at_data, self.beta) - at_data
            square = self._problem.noise.squares(left)
            at_data = at_data[:, :0]
        values = np.concatenate([at_data, at_nodes], axis=1)
        return GibbsDraw(values, self.beta, noise, records, missed, square, sizes)

    def finished(self, kept: list[GibbsDraw]) -> Regressed:
        """The draws with theta's prior."""
        return with_prior(self._linear, self.free(kept), self._plan.rngs)

    def free(self, kept: list[GibbsDraw]) -> Regressed:
        """The draws with a flat prior of theta."""
        values, beta, noise, each, missed, square, sizes = zip(*kept, strict=True)
        records = {name: np.stack(part, axis=1) for name, part in stacked_records(list(each)).items()}
        drawn = None
        if self._noise is not None:
            drawn = NoiseDraws(self._problem.noise).precision(np.stack(noise, axis=1))
        stats = size_stats(self._bias.samplers, np.stack(sizes, axis=1)) if self._bias.sized else {}
        shown = self._linear._replace(at_data=self._linear.at_data[:0]) if self._again else self._linear
        free = Regressed.of(
            shown, np.stack(values, axis=1), np.stack(beta, axis=1), records, self._bias.samplers, stats, drawn
        )
        if self._again:
            free = free._replace(at_data=self._made_again(free))
        if self._again and self._noise is None:
            free = free._replace(square=by_chain(np.stack(square, axis=1)))
        if self._integrals is not None:
            free = free._replace(missed_square=by_chain(np.stack(missed, axis=1)))
        return free

    def _made_again(self, free: Regressed) -> Callable[[IntArray], Array]:
        """G beta + b at the data, from what predictions need of the draws."""
        x, G, rng = self._problem.data.x, self._linear.at_data, np.random.default_rng(0)

        def at_data(rows: IntArray) -> Array:
            records = {name: values[rows] for name, values in free.records.items()}
            drawn = [one.predict(rng, of_outcome(records, k), x) for k, one in enumerate(free.samplers)]
            return np.asarray(np.einsum("nkp,sp->snk", G, free.beta[rows]) + np.stack(drawn, axis=-1))

        return at_data


def size_stats(samplers: Sequence[BiasSampler], sizes: Array) -> dict[str, Array]:
    """The sizes of the bias (c, s, q) by name, in the outcomes' units; the samplers keep what they find about them."""
    found = {}
    for k, sampler in enumerate(samplers):
        own = found[f"sd_{k}"] = sizes[:, :, k] / float(sampler.settings()["unit"])
        the_sized(sampler).summarise(own)
    return found


def drawn_beta(B: Array, pull: Array, rngs: list[np.random.Generator]) -> Array:
    """beta ~ N(B^-1 pull, B^-1), (c, p)."""
    lower = np.linalg.cholesky(B)
    normal = np.array([rng.standard_normal(B.shape[1]) for rng in rngs])
    half = np.linalg.solve(lower, pull[..., None])[..., 0]
    return np.asarray(np.linalg.solve(lower.swapaxes(1, 2), (half + normal)[..., None])[..., 0])
