"""The Gaussian-process prior on the bias."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from ..advice import LENGTHSCALE, NOISE_COV, Advice
from ..arrays import Array, as_floats
from ..errors import InputError
from ..findings import Finding, Level
from ..regression.gaussian_process import (
    Hyperparameters,
    Labelled,
    check_smoothness,
    fit_hyperparameters,
    label_odds,
)
from .base import ListedPrior, Setting, listed
from .gp_sampler import PREDICTION_BLOCK as PREDICTION_BLOCK, GPSampler as GPSampler, json_number

# Hyperparameters of a Gaussian process that ended on a bound of their search: at which end, and what that means.


def ends(fit: Hyperparameters, residual: Array, span: Array) -> tuple[str, ...]:
    """What ended on a bound, with the end: ``"smallest sd"``, ``"longest lengthscale 2"``.

    Bounds are far from the size of the residuals (n,) that were fitted, and from the width of the domain, (d,).
    """
    size = float(np.std(residual)) or float(np.abs(residual).max())
    found = []
    for name in fit.at_bound:
        if name == "sd":
            found.append("smallest sd" if fit.sd < size or size == 0 else "largest sd")
        else:
            j = int(name.split()[-1]) - 1
            ends_of = ("least", "most") if name.startswith("label") else ("shortest", "longest")
            found.append(f"{ends_of[0] if fit.lengthscale[j] < span[j] else ends_of[1]} {name}")
    return tuple(found)


def bound_findings(findings: dict[str, Any]) -> Iterator[Finding]:
    """One a hyperparameter, with its value; where the bias has no size, its length-scales mean nothing."""
    ended = findings.get("at_bound") or []
    for place in ["smallest sd"] if "smallest sd" in ended else ended:
        end, _, name = place.partition(" ")
        if end in _LABELS:
            which = f"the correlation of the bias between the labels of input {name.split()[-1]}"
            yield Finding(
                "fine", "bias prior", f"the search for {which} ended at the {end} that is looked for: {_LABELS[end]}"
            )
            continue
        if end not in _MEANINGS:
            # a file of version 0.1 does not know the end
            end, name = "last", place
        number = name.removeprefix("lengthscale ")
        which = f"its length-scale along input {number}" if number != name else "its sd"
        value = findings["sd"] if number == name else findings["lengthscale"][int(number) - 1]
        meaning, advice = _MEANINGS.get(end, ("", ""))
        # a bias that needs no more than a straight line is nothing to worry about
        level: Level = "fine" if end == "longest" else "note"
        message = f"the search for {which} ended at the {end} that is looked for, {value:.3g}"
        yield Finding(level, "bias prior", f"{message}{meaning}", advice)


#: the same of the correlation between labels: neither end is anything to worry about
_LABELS = {
    "least": "each label has a bias of its own, about which the others say nothing",
    "most": "all labels have the same bias",
}
#: what each end means, and what to do
_MEANINGS = {
    "smallest": (
        ": the data show no bias beside the noise, and theta's interval allows for none",
        "if the simulator cannot be as good as that, give "
        + Advice("the sd of its bias, oc.bias.GP(sd=...)", "sd in [method], that of its bias"),
    ),
    "largest": (
        ": the bias is far larger than what the simulator leaves of the data, as a trend beyond them would be",
        "give sd and "
        + Advice("lengthscale, oc.bias.GP(sd=..., lengthscale=...)", "lengthscale in [method]")
        + ", or a simulator that has the trend",
    ),
    "longest": (": along it the bias is constant or a straight line", ""),
    "shortest": (
        ": the bias changes from each point to the next, as noise does",
        NOISE_COV + " may be too small; or give the " + LENGTHSCALE,
    ),
}


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
        Prior standard deviation of the bias in the outcome's unit. None: it is unknown. ``oc.methods.Joint`` integrates
        over it, with a half-Cauchy prior in units of the noise's; ``oc.methods.Projected`` takes its best value by
        restricted likelihood of the residual at theta_tilde.
    lengthscale
        A number, or one for each numeric input; None in the same way, with a log-normal prior around .4 of the
        domain's width.
    form
        How it is computed: ``"dense"``, exactly, at a cost that grows with the cube of the number of distinct points;
        ``"large"``, after one pass over the data, exactly in one input and by an approximation whose error is reported
        in several; ``"auto"`` takes the second from 3000 distinct points on (``oc.methods.Joint`` only).
    label_correlation
        rho of categorical inputs, by which k is multiplied where labels differ: 0 for labels with biases that say
        nothing about each other, 1 for labels with the same bias. A number, or one for each categorical input; None in
        the same way, with a prior that is nearly uniform.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> model1 = oc.examples.MODEL1
    >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 30))
    >>> smooth = oc.methods.Joint(bias=oc.bias.GP(nu=2.5, sd=0.5))
    >>> posterior = oc.calibrate(problem, smooth, draws=100, chains=2, seed=1, progress=False)
    >>> bool(abs(posterior.theta.mean() - model1.theta_star[0]) < 0.5)
    True
    >>> oc.bias.GP(nu=3)
    Traceback (most recent call last):
        ...
    orthocal.errors.InputError: nu=3: the smoothness is 0.5, 1.5, 2.5, or inf for the squared
        exponential
    """

    name: ClassVar[str] = "gp"
    words: ClassVar[str] = "The bias is a smooth function (a Gaussian process)"
    knows_labels: ClassVar[bool] = True

    nu: float = 1.5
    sd: float | None = None
    lengthscale: Any = None
    form: Literal["auto", "dense", "large"] = "auto"
    label_correlation: Any = None

    def __post_init__(self) -> None:
        check_smoothness(self.nu)
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

    def prepare(self, setting: Setting) -> GPSampler:
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

    def scales(self, setting: Setting) -> Scales:
        """The hyperparameters that are given, and the others by marginal likelihood.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> x = np.linspace(0, 1, 20)[:, None]
        >>> setting = oc.bias.Setting(x, x[:0], np.ones(1), np.ones(20), 50 * np.sin(6 * x[:, 0]), x, unit=10.0)
        >>> scales = oc.bias.GP(sd=5.0).scales(setting)
        >>> round(scales.sd, 3), bool(0.1 < scales.lengthscale[0] < 3)
        (50.0, True)
        """
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
            )
            sd, length = fit.sd, fit.lengthscale
            at_bound = ends(fit, every.residual, setting.span)
        return Scales(sd, length, at_bound)

    def given_scales(self, d: int, labelled: Labelled) -> Array:
        """The length-scales that are given, (d,), and the odds of labels' correlations; NaN where they are not.

        Examples
        --------
        >>> import orthocal as oc
        >>> oc.bias.GP(lengthscale=0.3).given_scales(2, ())
        array([0.3, 0.3])
        >>> oc.bias.GP().given_scales(2, ())
        array([nan, nan])
        """
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
            "nu": json_number(self.nu),
            "sd": None if self.sd is None else float(self.sd),
            "lengthscale": length,
            **({} if self.form == "auto" else {"form": self.form}),
            **({} if self.label_correlation is None else {"label_correlation": shared}),
        }
