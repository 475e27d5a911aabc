"""What the estimate of the noise has found in the field data, in plain words."""

from __future__ import annotations

from collections.abc import Iterator

from ..findings import Finding
from .data import FieldData
from .noise_regression import MOST_OUTLIERS, Outlier, PureError, Regression

#: outliers that are named one by one
NAMED = 5
#: an estimate with fewer degrees of freedom is hardly known
FEW_FREEDOM = 8.0
#: replicates as uneven as this in one of a thousand data sets whose variance is even
UNEVEN = 0.001


def remarks(data: FieldData, k: int, found: Regression) -> Iterator[Finding]:
    """Findings about outcome k."""
    name = data.outcome_names[k]
    if found.outliers:
        yield _outliers(data, name, found.outliers)
    if found.pure is not None:
        yield from _replicates(name, found, found.pure)
    if found.freedom < FEW_FREEDOM:
        message = f"the estimate of {name} has {found.freedom:.1f} degrees of freedom only"
        yield Finding("note", "noise", message, 'give noise_cov, or take noise_cov="sample", which knows how little')


def _outliers(data: FieldData, name: str, outliers: tuple[Outlier, ...]) -> Finding:
    def place(one: Outlier) -> str:
        at = ", ".join(data.labels.described(data.input_names, data.x[one.row]))
        return f"row {one.row} ({at}) by {one.distance:.1f} sds"

    far = sorted(outliers, key=lambda one: -one.distance)
    shown = "; ".join(place(one) for one in far[:NAMED])
    more = f"; and {len(far) - NAMED} more" if len(far) > NAMED else ""
    message = f"{name} is far from what the other data predict in {shown}{more}"
    if len(far) >= max(2, int(MOST_OUTLIERS * data.observed[:, data.outcome_names.index(name)].sum())):
        advice = "so many are noise with heavy tails, or noise that varies: give y_err, or noise_cov=oc.VaryingNoise()"
        return Finding("problem", "outliers", message, advice)
    advice = "check it, and set y to NaN if it is wrong; an estimate of the noise gives it a variance of its own"
    return Finding("note", "outliers", message, advice)


def _replicates(name: str, found: Regression, pure: PureError) -> Iterator[Finding]:
    if pure.used:
        message = (
            f"replicates of {name} scatter {pure.ratio:.2g} times as much (sd) as a smooth curve through all data "
            f"leaves: their own scatter is taken ({pure.freedom} degrees of freedom)"
        )
        advice = "repeated rows may share an error, or the real process is rough: give noise_cov if you know better"
        yield Finding("note", "replicates", message, advice)
    if pure.unevenness is not None and pure.unevenness < UNEVEN:
        p_value = f"p = {pure.unevenness:.1g}, Bartlett's and Levene's tests"
        message = f"the scatter of {name} differs between replicated points ({p_value})"
        advice = "give y_err, noise_cov=oc.VaryingNoise(), or oc.GroupNoise with a group for each kind of measurement"
        yield Finding("problem", "replicates", message, advice)
