"""The Gaussian-process prior on the bias."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from ..arrays import Array, IntArray, as_floats, unique_rows
from ..errors import InputError
from ..findings import Finding
from ..regression.gaussian_process import (
    Labelled,
    check_smoothness,
    correlation,
    fit_hyperparameters,
    jittered_cholesky,
    label_correlation,
    label_odds,
)
from ..regression.log_prior import LogPrior
from .at_bound import bound_findings, ends
from .base import ListedPrior, Setting, listed

#: beyond this the matrices take more than about 1 GB each
MOST_POINTS = 10_000
#: predictions are joint within blocks of this many points
PREDICTION_BLOCK = 2_000


class Scales(NamedTuple):
    """sd in whitened units, lengthscale (d,), and what ended on a bound of the search."""

    sd: float
    lengthscale: Array
    at_bound: tuple[str, ...] = ()


@listed
@dataclass(frozen=True)
class GP(ListedPrior):
    """b ~ GP(0, sd^2 k), with a Matern or squared-exponential correlation k.

    Parameters
    ----------
    nu
        Smoothness: 0.5, 1.5, 2.5, or inf for the squared exponential.
    sd
        Prior standard deviation of the bias in the outcome's unit; None chooses it by marginal likelihood of the
        residual at theta_tilde.
    lengthscale
        A number, or one for each numeric input; None chooses one an input by marginal likelihood.
    hyperparameters
        What happens to an sd and length-scales that are not given: ``"marginal-likelihood"`` chooses them,
        ``"sample"`` draws them together with theta, with the priors of ``oc.methods.KO`` (``oc.methods.Joint`` only).
    form
        How it is computed: ``"dense"``, exactly, at a cost that grows with the cube of the number of distinct points;
        ``"large"``, after one pass over the data, exactly in one input and by an approximation whose error is reported
        in several; ``"auto"`` takes the second from 3000 distinct points on (``oc.methods.Joint`` only).
    label_correlation
        rho of categorical inputs, by which k is multiplied where labels differ: 0 for labels with biases that say
        nothing about each other, 1 for labels with the same bias. A number, or one for each categorical input; None
        chooses one an input by marginal likelihood.
    """

    name: ClassVar[str] = "gp"
    words: ClassVar[str] = "The bias is a smooth function (a Gaussian process)"
    knows_labels: ClassVar[bool] = True

    nu: float = 1.5
    sd: float | None = None
    lengthscale: Any = None
    hyperparameters: Literal["marginal-likelihood", "sample"] = "marginal-likelihood"
    form: Literal["auto", "dense", "large"] = "auto"
    label_correlation: Any = None

    def __post_init__(self) -> None:
        check_smoothness(self.nu)
        check_hyperparameters(self.hyperparameters)
        if self.form not in ("auto", "dense", "large"):
            raise InputError(f'form={self.form!r}: give "auto", "dense" or "large"')
        if self.sd is not None and not (isinstance(self.sd, Real) and 0 < self.sd < np.inf):
            raise InputError(f"sd={self.sd}: the prior sd of the bias is a positive number, or None")
        if self.lengthscale is not None:
            lengths = as_floats(self.lengthscale, "lengthscale")
            if lengths.ndim > 1 or not (np.isfinite(lengths).all() and (lengths > 0).all()):
                raise InputError(f"lengthscale={self.lengthscale}: give a positive number, or one an input")
        if self.label_correlation is not None:
            shared = as_floats(self.label_correlation, "label_correlation")
            if shared.ndim > 1 or not ((shared >= 0) & (shared <= 1)).all():
                raise InputError(f"label_correlation={self.label_correlation}: give a number between 0 and 1")

    @staticmethod
    def restore(settings: dict[str, Any], x: Array, nodes: Array, noise_var: Array) -> GPSampler:
        return GPSampler.restore(settings, x, nodes, noise_var)

    @staticmethod
    def remarks(findings: dict[str, Any]) -> Iterator[Finding]:
        yield from bound_findings(findings)
        if findings.get("jitter", 0) > 1e-8:
            message = f"a jitter of {findings['jitter']:.0e} of its variance was needed"
            yield Finding("note", "bias prior", message, "points may lie too close together for so smooth a prior")

    @property
    def sampled(self) -> bool:
        """Whether there are hyperparameters to sample."""
        return self.hyperparameters == "sample" and (self.sd is None or self.lengthscale is None)

    def prepare(self, setting: Setting) -> GPSampler:
        if self.sampled:
            raise InputError(
                'oc.bias.GP(hyperparameters="sample") is for oc.methods.Joint: this method needs them fixed, take '
                '"marginal-likelihood"'
            )
        scales = self.scales(setting)
        return GPSampler(
            self.nu,
            scales.sd,
            scales.lengthscale,
            setting.x,
            setting.nodes,
            setting.noise_var,
            scales.at_bound,
            setting.unit,
            setting.labels.columns,
        )

    def scales(self, setting: Setting, expected: LogPrior | None = None) -> Scales:
        """The hyperparameters that are given, and the others by marginal likelihood, with what is ``expected``."""
        length = self.given_scales(setting.x.shape[1], setting.labels.columns)
        sd = None if self.sd is None else self.sd * setting.unit
        at_bound: tuple[str, ...] = ()
        if sd is None or np.isnan(length).any():
            every = setting.every
            fit = fit_hyperparameters(
                every.x,
                every.residual,
                self.nu,
                span=setting.span,
                basis=every.gradient,
                relative_var=every.noise_var,
                sd=sd,
                lengthscale=length,
                noise_var=1.0,
                relative_cov=every.noise_cov,
                labelled=setting.labels.columns,
                expected=expected,
            )
            sd, length = fit.sd, fit.lengthscale
            at_bound = ends(fit, every.residual, setting.span)
        return Scales(sd, length, at_bound)

    def given_scales(self, d: int, labelled: Labelled) -> Array:
        """The length-scales that are given, (d,), and the odds of labels' correlations; NaN where they are not."""
        scales = np.full(d, np.nan)
        numeric = np.setdiff1d(np.arange(d), labelled)
        if self.lengthscale is not None:
            length = np.atleast_1d(as_floats(self.lengthscale, "lengthscale"))
            if length.size not in (1, len(numeric)):
                what = f"{len(numeric)} numeric inputs" if labelled else f"{d} inputs"
                raise InputError(f"lengthscale has {length.size} values but x has {what}: give one, or one an input")
            scales[numeric] = length
        if self.label_correlation is not None:
            shared = np.atleast_1d(as_floats(self.label_correlation, "label_correlation"))
            if not labelled:
                raise InputError("label_correlation is for categorical inputs, and x has none: leave it out")
            if shared.size not in (1, len(labelled)):
                raise InputError(
                    f"label_correlation has {shared.size} values but x has {len(labelled)} categorical inputs: give "
                    "one, or one an input"
                )
            scales[list(labelled)] = label_odds(shared)
        return scales

    def describe(self) -> dict[str, Any]:
        length = None if self.lengthscale is None else np.asarray(self.lengthscale, dtype=float).tolist()
        shared = None if self.label_correlation is None else np.asarray(self.label_correlation, dtype=float).tolist()
        return {
            "kind": self.name,
            "nu": _json_number(self.nu),
            "sd": None if self.sd is None else float(self.sd),
            "lengthscale": length,
            **({"hyperparameters": "sample"} if self.hyperparameters == "sample" else {}),
            **({} if self.form == "auto" else {"form": self.form}),
            **({} if self.label_correlation is None else {"label_correlation": shared}),
        }


def check_hyperparameters(hyperparameters: str) -> None:
    if hyperparameters not in ("marginal-likelihood", "sample"):
        raise InputError(f'hyperparameters={hyperparameters!r}: give "marginal-likelihood" or "sample"')


def found_scales(lengthscale: Array, labelled: Labelled) -> dict[str, Any]:
    """For findings: length-scales, one an input, and, in the place of labels', None and their correlations."""
    lengths: list[float | None] = lengthscale.tolist()
    if not labelled:
        return {"lengthscale": lengths}
    shared = [float(label_correlation(lengthscale[j])) for j in labelled]
    return {
        "lengthscale": [None if j in labelled else one for j, one in enumerate(lengths)],
        "label_correlation": shared,
    }


class GPSampler:
    """Joint draws at data and nodes from the Gaussian posterior, with everything factorised once.

    With K = L L' the prior covariance at all distinct points, b = L w and w ~ N(0, I). Given the residual z at the
    data (rows L_n, noise variances D), w ~ N(H^-1 L_n' D^-1 z, H^-1) with H = I + L_n' D^-1 L_n. H is at least I, so
    no second jitter is needed, and b = G z + F e with e ~ N(0, I) is one matrix product for all chains.
    """

    takes_noise_scale = True

    def __init__(
        self,
        nu: float,
        sd: float,
        lengthscale: Array,
        x: Array,
        nodes: Array,
        noise_var: Array,
        at_bound: tuple[str, ...] = (),
        unit: float = 1.0,
        labelled: Labelled = (),
    ) -> None:
        self.nu, self.sd, self.lengthscale, self.unit, self.at_bound = nu, sd, lengthscale, unit, at_bound
        self.labelled = labelled
        self._points, (at_data, at_nodes) = unique_rows(x, nodes)
        if len(self._points) > MOST_POINTS and labelled:
            raise InputError(
                f"the Gaussian process would need matrices of {len(self._points)} x {len(self._points)}: with "
                f"categorical inputs it is made for at most {MOST_POINTS} points: take bart, or thin or average them"
            )
        if len(self._points) > MOST_POINTS:
            raise InputError(
                f"the Gaussian process would need matrices of {len(self._points)} x {len(self._points)}: "
                f"in this form it is made for at most {MOST_POINTS} points: take the method gp, which has another for "
                "large data, or thin or average them"
            )
        self._noise_var = noise_var
        self._rows = np.concatenate([at_data, at_nodes])
        self._n = len(x)
        self._root, self.jitter = jittered_cholesky(self._prior(self._points, self._points))

    @cached_property
    def _posterior(self) -> tuple[Array, Array]:
        """Gain and factor: b at the distinct points = gain z + factor e. Predictions need neither."""
        data_root, noise_var = self._root[self._rows[: self._n]], self._noise_var
        precision = data_root.T @ (data_root / noise_var[:, None])
        precision[np.diag_indices_from(precision)] += 1.0
        lower = cholesky(precision, lower=True)
        gain = self._root @ cho_solve((lower, True), (data_root / noise_var[:, None]).T)
        return gain, solve_triangular(lower, self._root.T, lower=True).T

    def draw(
        self,
        rngs: list[np.random.Generator],
        state: Array | None,
        residual: Array,
        noise_scale: Array | None = None,
    ) -> tuple[Array, Array]:
        normal = np.array([rng.standard_normal(len(self._points)) for rng in rngs])
        if noise_scale is None:
            gain, factor = self._posterior
            values = residual @ gain.T + normal @ factor.T
        else:
            spectrum, information, root = self._spectral
            precision = 1 + spectrum**2 / noise_scale[:, None]
            pull = residual @ information.T * spectrum / noise_scale[:, None]
            values = (pull / precision + normal / np.sqrt(precision)) @ root.T
        return values, values[:, self._rows]

    @cached_property
    def _spectral(self) -> tuple[Array, Array, Array]:
        """For noise variances s D with any s: D^-1/2 L_n = U diag(e) V', then H = I + V e^2 V' / s.

        Returned are e (u,) and U' D^-1/2 (u, n), both filled up with zeros, and L V (u, u).
        """
        sd = np.sqrt(self._noise_var)[:, None]
        U, values, Vt = np.linalg.svd(self._root[self._rows[: self._n]] / sd, full_matrices=True)
        rank = len(values)
        rest = len(self._points) - rank
        information = np.pad((U[:, :rank] / sd).T, ((0, rest), (0, 0)))
        return np.pad(values, (0, rest)), information, self._root @ Vt.T

    def record(self, state: Array) -> dict[str, Array]:
        return {"values": state}

    def predict(self, rng: np.random.Generator, records: dict[str, Array], x_new: Array) -> Array:
        """b(x_new) given b at the data and nodes: Gaussian conditioning; joint within blocks of 2000 points."""
        white = solve_triangular(self._root, records["values"].T, lower=True)
        blocks = []
        for start in range(0, len(x_new), PREDICTION_BLOCK):
            points, (place,) = unique_rows(x_new[start : start + PREDICTION_BLOCK])
            cross = solve_triangular(self._root, self._prior(self._points, points), lower=True)
            covariance = self._prior(points, points) - cross.T @ cross
            # what conditioning leaves of the variance at a known point is rounding: it may be slightly negative
            values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
            root = vectors * np.sqrt(np.maximum(values, 0.0))
            normal = rng.standard_normal((len(records["values"]), len(points)))
            blocks.append((white.T @ cross + normal @ root.T)[:, place])
        return np.concatenate(blocks, axis=1)

    def covariance_factor(self) -> Array:
        """F (n + m, r) with F F' = Cov(b | y) at data and nodes."""
        return np.asarray(self._posterior[1][self._rows])

    def extended(self, values: Array, x_new: Array) -> Array:
        """E(b(x_new) | b = values at data and nodes (n + m, ...)): how a direction of the bias goes on elsewhere."""
        at_points = np.empty((len(self._points), *values.shape[1:]))
        at_points[self._rows] = values
        weights = cho_solve((self._root, True), self._prior(self._points, x_new)).T
        return np.asarray(weights @ at_points)

    @property
    def prior_root(self) -> tuple[Array, IntArray]:
        """L with L L' the prior covariance at the distinct points, and which of these the data and nodes are."""
        return self._root, self._rows

    def findings(self) -> dict[str, Any]:
        return {
            "sd": self.sd / self.unit,
            **found_scales(self.lengthscale, self.labelled),
            "jitter": self.jitter / self.sd**2,
            "at_bound": list(self.at_bound),
        }

    def settings(self) -> dict[str, Any]:
        return {
            "kind": "gp",
            "nu": _json_number(self.nu),
            "sd": self.sd,
            "lengthscale": self.lengthscale.tolist(),
            "unit": self.unit,
            **({"labelled": list(self.labelled)} if self.labelled else {}),
        }

    @classmethod
    def restore(cls, settings: dict[str, Any], x: Array, nodes: Array, noise_var: Array) -> GPSampler:
        """The sampler of a stored posterior."""
        return cls(
            float(settings["nu"]),
            float(settings["sd"]),
            np.asarray(settings["lengthscale"], dtype=np.float64),
            x,
            nodes,
            noise_var,
            unit=float(settings["unit"]),
            labelled=tuple(settings.get("labelled", ())),
        )

    def _prior(self, a: Array, b: Array) -> Array:
        return np.asarray(self.sd**2 * correlation(a, b, self.lengthscale, self.nu, self.labelled))


def _json_number(value: float) -> float | str:
    """JSON has no infinity."""
    return "inf" if value == np.inf else value
