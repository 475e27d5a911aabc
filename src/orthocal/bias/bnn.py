"""A Bayesian neural network as the prior on the bias (Neal 1996)."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..advice import NOISE_COV, RUN_LONGER
from ..arrays import Array
from ..errors import InputError
from ..findings import Finding
from .base import ChainwiseSampler, ListedPrior, Setting, listed

# What all chains of a neural network share: their weights, and the algebra of its last layer.


class Network(NamedTuple):
    """The weights of all chains in units of their prior sds, and the chains' step sizes.

    Attributes
    ----------
    hidden
        Weights into the hidden units, (c, q), in the order of ``BNNSampler.shapes``.
    output
        Weights into the output, (c, hidden + 1), the intercept last.
    step
        Largest step of a trajectory, (c,): set in the first draw and fixed from then on.
    """

    hidden: Array
    output: Array
    step: Array


def ridge(columns: Array) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of G = I + F'F."""
    # where a trajectory has left the numbers, its density is NaN by the weights themselves: here it must only not fail
    values, vectors = np.linalg.eigh(np.nan_to_num(columns.swapaxes(1, 2) @ columns))
    # rounding can make F'F indefinite if the prior is much wider than the noise; G is at least I
    return 1 + np.maximum(values, 0.0), vectors


def normals(rngs: list[np.random.Generator], size: int) -> Array:
    """Standard normals, a row (size,) from each chain's generator."""
    return np.stack([rng.standard_normal(size) for rng in rngs])


#: trajectories from a draw of the prior before the first draw that is handed out; they set the step size
START_TRAJECTORIES = 100
#: a bias of more noise sds than this is approached in stages, each with so many times less noise than the one before
STAGE = 10.0
#: trajectories of a stage
STAGE_TRAJECTORIES = 50
#: share of accepted trajectories that the step size is set for
ACCEPTANCE = 0.8
#: a trajectory's step size is uniform between this share of the chain's and the whole
SHORTEST = 0.5
#: dual averaging (Hoffman and Gelman 2014): shrinkage, delay, forgetting
GAMMA, DELAY, KAPPA = 0.05, 10.0, 0.75
#: step size that dual averaging begins with
FIRST_STEP = 0.1

#: R-hat of the log density: beyond the first a note, then a problem
SETTLED_LIMITS = 1.1, 2.0
#: Hamiltonian steps that are shorter, in prior sds, or more often refused than this do not move the bias
SHORTEST_STEP, LEAST_ACCEPTANCE = 1e-12, 0.05


@listed
@dataclass(frozen=True)
class BNN(ListedPrior):
    """b(x) = a + sum_{h=1..H} v_h tanh(c_h + sum_j w_hj u_j(x)), or with a second layer of tanh units between.

    u are the inputs, scaled to [-1, 1] by the range of the data; one that is constant there is left out. With d inputs
    that vary and s = ``weight_sd`` the weights are independent with Neal's scales. In ``oc.methods.Joint`` b is a + c
    times such a function with R = 2 and A = 1, a over the noise sd Cauchy and c half-Cauchy with median 1. In
    ``oc.methods.Projected`` R = max(1, range of the residual at theta_tilde), A its largest absolute value, in units of
    the noise:

    - w_hj ~ N(0, s^2 / d), c_h ~ N(0, s^2), and in the second layer w_hk ~ N(0, s^2 / H), c_h ~ N(0, s^2);
    - v_h ~ N(0, (R / 2)^2 / H), so that more units do not make a larger function;
    - a ~ N(0, max(R / 2, A)^2): R / 2 for a residual around 0, more if it has an offset.

    Parameters
    ----------
    hidden
        H, the units of each hidden layer.
    layers
        Hidden layers, 1 or 2.
    weight_sd
        s: larger values give functions that vary faster.
    leapfrogs
        Steps of a trajectory of Hamiltonian Monte Carlo.
    trajectories
        Trajectories for each draw.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> model1 = oc.examples.MODEL1
    >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 50))
    >>> network = oc.methods.Joint(bias=oc.bias.BNN(hidden=5))
    >>> posterior = oc.calibrate(problem, network, draws=50, chains=2, warmup=100, seed=1, progress=False)
    >>> bool(abs(posterior.theta.mean() - model1.theta_star[0]) < 0.5)
    True
    """

    name: ClassVar[str] = "bnn"
    words: ClassVar[str] = "The bias is a neural network"

    hidden: int = 20
    layers: int = 1
    weight_sd: float = 3.0
    leapfrogs: int = 10
    trajectories: int = 1

    def __post_init__(self) -> None:
        for name in ("hidden", "layers", "leapfrogs", "trajectories"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise InputError(f"BNN has {name}={value!r}: give a whole number of at least 1")
        if self.layers > 2:
            raise InputError(f"BNN has layers={self.layers!r}: give 1 or 2")
        scale = self.weight_sd
        number = isinstance(scale, int | float | np.integer | np.floating) and not isinstance(scale, bool)
        if not number or not 0 < scale < np.inf:
            raise InputError(f"BNN has weight_sd={scale!r}: give a positive number")

    @staticmethod
    def restore(settings: dict[str, Any], x: Array, nodes: Array, noise_var: Array) -> BNNSampler:
        return BNNSampler.restore(settings, x, nodes, noise_var)

    @staticmethod
    def remarks(findings: dict[str, Any]) -> Iterator[Finding]:
        """Whether Hamiltonian Monte Carlo has found the bias."""
        if "density_rhat" not in findings:
            return
        rhat, step, acceptance = (findings[name] for name in ("density_rhat", "hmc_step", "hmc_acceptance"))
        figures = f"R-hat of its log density {rhat:.3g}, shortest step {step:.1g}, lowest acceptance {acceptance:.0%}"
        stuck = step < SHORTEST_STEP or acceptance < LEAST_ACCEPTANCE
        if stuck or rhat > SETTLED_LIMITS[1]:
            state = "hardly moved" if stuck else "not settled"
            advice = (
                NOISE_COV + " may be far too small, or the bias too irregular for this prior: check it, or take another"
            )
            yield Finding("problem", "bias prior", f"the chains have {state} ({figures})", advice)
        elif rhat > SETTLED_LIMITS[0]:
            message = f"the chains have not quite settled ({figures})"
            yield Finding("note", "bias prior", message, RUN_LONGER)

    def prepare(self, setting: Setting) -> BNNSampler:
        # whitened noise has sd 1: a residual much smaller than that says nothing about the scale of the bias
        residual = setting.every.residual
        spread = max(float(np.ptp(residual)), 1.0) / 2
        offset = max(float(np.abs(residual).max()), spread)
        return BNNSampler(self, spread, offset, setting.x, setting.nodes, setting.noise_var, setting.unit)

    def prepare_unit(self, setting: Setting) -> BNNSampler:
        """The sampler of functions of size one, whose size is drawn beside them, as ``oc.methods.Joint`` takes it.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> x = np.linspace(0, 1, 20)[:, None]
        >>> setting = oc.bias.Setting(x, x[:0], np.ones(1), np.ones(20), 10 * x[:, 0] ** 2, x, 1.0)
        >>> oc.bias.BNN(hidden=5).prepare_unit(setting).settings()["kind"]
        'bnn'
        """
        return BNNSampler(self, 1.0, 1.0, setting.x, setting.nodes, setting.noise_var, setting.unit)

    def describe(self) -> dict[str, Any]:
        choices = {name: int(value) for name, value in asdict(self).items() if name != "weight_sd"}
        return {"kind": self.name, **choices, "weight_sd": float(self.weight_sd)}


class BNNSampler(ChainwiseSampler):
    """Hidden weights by Hamiltonian Monte Carlo on p(hidden | y), then the output weights from p(output | hidden, y).

    Given the hidden weights the model is linear and Gaussian in the output weights, which are integrated out of the
    first density and drawn exactly from the second. The weights persist, only the response changes.
    """

    takes_noise_scale = True

    def __init__(
        self,
        prior: BNN,
        spread: float,
        offset: float,
        x: Array,
        nodes: Array,
        noise_var: Array,
        unit: float = 1.0,
    ) -> None:
        self.prior, self.spread, self.offset, self.unit = prior, spread, offset, unit
        low, high = x.min(axis=0), x.max(axis=0)
        self._active = np.flatnonzero(high > low)
        self._low, self._width = low[self._active], (high - low)[self._active]
        self._inputs, self._n = self._scaled(np.vstack([x, nodes])), len(x)
        self._noise_sd = np.sqrt(noise_var)
        #: of each draw: log p(hidden | y), acceptance and step of all chains
        self.trace: list[tuple[Array, Array, Array]] = []
        s = prior.weight_sd
        #: prior sds of the hidden weights, (q,); a layer without inputs has no matrix to scale
        self.hidden_scales: Array = np.concatenate(
            [np.repeat([s / np.sqrt(max(size, 1)), s], [size * units, units]) for size, units in self.shapes]
        )

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """(inputs, units) of each hidden layer: its weights are such a matrix, row by row, then the units' shifts."""
        h = self.prior.hidden
        return [(len(self._active), h), (h, h)][: self.prior.layers]

    @property
    def output_scales(self) -> Array:
        """Prior sds of the output weights, (hidden + 1,), the intercept last."""
        h = self.prior.hidden
        return np.append(np.full(h, self.spread / np.sqrt(h)), self.offset)

    def draw(
        self,
        rngs: list[np.random.Generator],
        state: Network | None,
        residual: Array,
        noise_scale: Array | None = None,
    ) -> tuple[Network, Array]:
        if noise_scale is not None:
            return self._noisier(np.sqrt(noise_scale).reshape(len(rngs), -1)).draw(rngs, state, residual)
        # in units of the noise the density is that of a ridge regression with penalty 1
        response = residual / self._noise_sd
        if state is None:
            self.trace.clear()
            hidden, step = self._start(rngs, response)
        else:
            hidden, step = state.hidden, state.step
        for _ in range(self.prior.trajectories):
            hidden, acceptance, density = self._trajectory(rngs, hidden, step, response)
        self.trace.append((density, acceptance, step))
        network = Network(hidden, self._output(rngs, hidden, response), step)
        return network, self._values(self.record(network)["weights"], self._inputs)

    @property
    def function_sd(self) -> float:
        return self.spread

    def coefficients(self, state: Network) -> tuple[Array, Array]:
        """See ``bias/sized.py``."""
        return np.sum(state.output**2, axis=1), np.full(len(state.output), state.output.shape[1])

    def rescaled(self, state: Network, factor: Array) -> Network:
        return state._replace(output=state.output * factor[:, None])

    def record(self, state: Network) -> dict[str, Array]:
        """All weights, (c, q + hidden + 1): the hidden layers', the output's, the intercept."""
        return {"weights": np.hstack([state.hidden * self.hidden_scales, state.output * self.output_scales])}

    def predict(self, rng: np.random.Generator, records: dict[str, Array], x_new: Array) -> Array:
        return self._values(np.asarray(records["weights"]), self._scaled(x_new))

    def findings(self) -> dict[str, Any]:
        return {
            "function_sd": self.spread / self.unit,
            "intercept_sd": self.offset / self.unit,
            "weights": len(self.hidden_scales) + len(self.output_scales),
            **self._progress(),
        }

    def settings(self) -> dict[str, Any]:
        return {**self.prior.describe(), "spread": self.spread, "offset": self.offset, "unit": self.unit}

    @classmethod
    def restore(cls, settings: dict[str, Any], x: Array, nodes: Array, noise_var: Array) -> BNNSampler:
        """The sampler of a stored posterior; the inputs' scale follows from its data points."""
        prior = BNN(**{name: settings[name] for name in (one.name for one in fields(BNN))})
        spread, offset, unit = (float(settings[name]) for name in ("spread", "offset", "unit"))
        return cls(prior, spread, offset, x, nodes, noise_var, unit)

    def _progress(self) -> dict[str, float]:
        """Whether the hidden weights have moved and settled, from the later half of the draws; nothing after a few.

        Of all the chains: the lowest mean acceptance, the smallest step, and the R-hat of log p(hidden | y) between
        the halves of the chains. The weights themselves would not do: units can change places.
        """
        trace = self.trace[len(self.trace) // 2 :]
        half = len(trace) // 2
        if half < 2:
            return {}
        density, acceptance, step = (np.array(part) for part in zip(*trace, strict=True))
        parts = np.hstack([density[-2 * half : -half], density[-half:]])
        within, between = parts.var(axis=0, ddof=1).mean(), parts.mean(axis=0).var(ddof=1)
        return {
            "hmc_acceptance": float(acceptance.mean(axis=0).min()),
            "hmc_step": float(step.min()),
            # chains that stand still have no variance, and JSON no infinity
            "density_rhat": float(min(np.sqrt(1 - 1 / half + between / max(within, 1e-300)), 1e6)),
        }

    def _start(self, rngs: list[np.random.Generator], response: Array) -> tuple[Array, Array]:
        """Hidden weights and step sizes of each chain, from a draw of the prior.

        Under a bias of many noise sds the density at such a draw is so steep that only tiny steps are accepted, and a
        chain would never arrive: it gets there over densities with a larger noise.
        """
        hidden, step = normals(rngs, len(self.hidden_scales)), np.full(len(rngs), FIRST_STEP)
        for stage in range(int(np.log(self.spread) / np.log(STAGE)), 0, -1):
            larger = STAGE**stage
            hidden, step = self._noisier(larger)._tuned(rngs, hidden, step, response / larger, STAGE_TRAJECTORIES)
        return self._tuned(rngs, hidden, step, response, START_TRAJECTORIES)

    def _noisier(self, factor: Array | float) -> BNNSampler:
        """This sampler, trace and all, with noise sds times a number or times one for each chain, (c, 1)."""
        other = copy.copy(self)
        other._noise_sd = factor * self._noise_sd
        return other

    def _tuned(
        self, rngs: list[np.random.Generator], hidden: Array, step: Array, response: Array, trajectories: int
    ) -> tuple[Array, Array]:
        """Hidden weights and step sizes after some trajectories: dual averaging, each chain on its own."""
        centre, shortfall, average = np.log(10 * step), np.zeros(len(rngs)), np.log(step)
        for t in range(1, trajectories + 1):
            hidden, acceptance, _ = self._trajectory(rngs, hidden, step, response)
            shortfall = shortfall + (ACCEPTANCE - acceptance - shortfall) / (t + DELAY)
            log_step = centre - np.sqrt(t) / GAMMA * shortfall
            average = average + t**-KAPPA * (log_step - average)
            step = np.exp(log_step)
        return hidden, np.exp(average)

    def _trajectory(
        self, rngs: list[np.random.Generator], hidden: Array, step: Array, response: Array
    ) -> tuple[Array, Array, Array]:
        """The next hidden weights of each chain by one trajectory, its probability of acceptance, and their density."""
        momentum = normals(rngs, hidden.shape[1])
        uniform = np.array([rng.random(2) for rng in rngs])
        # trajectories of one length could return to where they began, for ever: their length is random
        size = (step * (SHORTEST + (1 - SHORTEST) * uniform[:, 0]))[:, None]
        # too long a step ends far away or not at a number: it is refused, so that it may overflow
        with np.errstate(over="ignore", invalid="ignore"):
            before, gradient = self._density(hidden, response)
            energy = before - (momentum**2).sum(axis=1) / 2
            proposal = hidden
            momentum = momentum + size / 2 * gradient
            for leap in range(self.prior.leapfrogs):
                proposal = proposal + size * momentum
                density, gradient = self._density(proposal, response)
                last = leap == self.prior.leapfrogs - 1
                momentum = momentum + (size / 2 if last else size) * gradient
            gain = density - (momentum**2).sum(axis=1) / 2 - energy
        acceptance = np.where(np.isfinite(gain), np.exp(np.minimum(np.nan_to_num(gain), 0.0)), 0.0)
        accepted = uniform[:, 1] < acceptance
        return np.where(accepted[:, None], proposal, hidden), acceptance, np.where(accepted, density, before)

    def _density(self, hidden: Array, response: Array) -> tuple[Array, Array]:
        """log p(hidden | y) up to a constant, (c,), and its gradient (c, q).

        log p = -(log det G + |t - F m|^2 + |m|^2 + |hidden|^2) / 2, G = I + F'F, m = G^-1 F't, with the columns F of
        the output weights and the response t in units of the noise; d log p / dF = (t - F m) m' - F G^-1.
        """
        units = self._units(hidden * self.hidden_scales, self._inputs[: self._n])
        columns = self._columns(units[-1])
        values, vectors = ridge(columns)
        mean = self._mean(columns, values, vectors, response)
        error = response - (columns @ mean[:, :, None])[:, :, 0]
        density = -(np.log(values).sum(axis=1) + (error**2).sum(axis=1) + (mean**2).sum(axis=1)) / 2
        inverse = (vectors / values[:, None]) @ vectors.swapaxes(1, 2)
        slope = error[:, :, None] * mean[:, None] - columns @ inverse
        # the intercept's column does not depend on the hidden weights
        slope = slope[:, :, :-1] * (self.output_scales[:-1] / self._noise_sd[..., None])
        gradient = self._back(hidden * self.hidden_scales, units, slope) * self.hidden_scales
        return density - (hidden**2).sum(axis=1) / 2, gradient - hidden

    def _output(self, rngs: list[np.random.Generator], hidden: Array, response: Array) -> Array:
        """Output weights from N(m, G^-1) given the hidden ones, (c, hidden + 1)."""
        columns = self._columns(self._units(hidden * self.hidden_scales, self._inputs[: self._n])[-1])
        values, vectors = ridge(columns)
        noise = normals(rngs, columns.shape[2]) / np.sqrt(values)
        return self._mean(columns, values, vectors, response) + (vectors @ noise[:, :, None])[:, :, 0]

    def _columns(self, units: Array) -> Array:
        """F (c, n, hidden + 1): the last layer's units and the intercept, times prior sd, in units of the noise."""
        ones = np.ones((*units.shape[:2], 1))
        return np.concatenate([units, ones], axis=2) * (self.output_scales / self._noise_sd[..., None])

    @staticmethod
    def _mean(columns: Array, values: Array, vectors: Array, response: Array) -> Array:
        """m = G^-1 F't, (c, hidden + 1)."""
        along = vectors.swapaxes(1, 2) @ (columns.swapaxes(1, 2) @ response[:, :, None])
        mean: Array = (vectors @ (along / values[:, :, None]))[:, :, 0]
        return mean

    def _layers(self, weights: Array) -> list[tuple[Array, Array]]:
        """Matrix (c, inputs, units) and shifts (c, 1, units) of each hidden layer."""
        layers, first = [], 0
        for size, units in self.shapes:
            middle, last = first + size * units, first + (size + 1) * units
            layers.append((weights[:, first:middle].reshape(len(weights), size, units), weights[:, None, middle:last]))
            first = last
        return layers

    def _units(self, weights: Array, inputs: Array) -> list[Array]:
        """Each hidden layer's units (c, m, units) at inputs (m, d)."""
        units, below = [], inputs
        for matrix, shift in self._layers(weights):
            below = np.tanh(shift + below @ matrix)
            units.append(below)
        return units

    def _back(self, weights: Array, units: list[Array], slope: Array) -> Array:
        """Back-propagation: derivatives by the last layer's units (c, n, units) -> by all hidden weights, (c, q)."""
        layers, parts = self._layers(weights), []
        for level in reversed(range(len(layers))):
            delta = slope * (1 - units[level] ** 2)
            below = units[level - 1].swapaxes(1, 2) if level else self._inputs[: self._n].T
            parts.append(np.hstack([(below @ delta).reshape(len(weights), -1), delta.sum(axis=1)]))
            slope = delta @ layers[level][0].swapaxes(1, 2)
        return np.hstack(parts[::-1])

    def _values(self, weights: Array, inputs: Array) -> Array:
        """b (c, m) at inputs (m, d), for draws as well as for predictions."""
        count = len(self.hidden_scales)
        units = self._units(weights[:, :count], inputs)[-1]
        values: Array = weights[:, -1:] + (units @ weights[:, count:-1, None])[:, :, 0]
        return values

    def _scaled(self, x: Array) -> Array:
        """Inputs that vary in the data, (m, their number), scaled by the data's range to [-1, 1]."""
        scaled: Array = 2 * (x[:, self._active] - self._low) / self._width - 1
        return scaled
