"""Line-of-sight velocity distributions and their Gauss-Hermite moments (van der Marel, Franx 1993).

L(v) = g exp(-w^2 / 2) / (sqrt(2 pi) sigma) (1 + h3 H3(w) + h4 H4(w)), w = (v - V) / sigma: V and sigma are those for
which the terms with H1 and H2 vanish.
"""

from __future__ import annotations

import numpy as np

from orthocal.applications import Array
from orthocal.errors import InputError

#: V, sigma, h3 and h4
MOMENTS = ("v", "sigma", "h3", "h4")
#: integral of exp(-w^2 / 2) / sqrt(2 pi) H4(w): what h4 adds to the area of the distribution
H4_AREA = np.sqrt(6) / 4


def hermite(w: Array) -> Array:
    """exp(-w^2 / 2) / sqrt(2 pi) H_m(w), m = 0..4, along the first axis: orthogonal, squared norm 1 / (2 sqrt(pi))."""
    gauss = np.exp(-0.5 * w * w) / np.sqrt(2 * np.pi)
    first, second = np.sqrt(2) * w, (2 * w**2 - 1) / np.sqrt(2)
    third, fourth = (2 * w**3 - 3 * w) / np.sqrt(3), (4 * w**4 - 12 * w**2 + 3) / np.sqrt(24)
    return np.asarray(gauss * np.stack([np.ones_like(w), first, second, third, fourth]))


def losvd(moments: Array, velocity: Array) -> Array:
    """L(v) with area 1 for moments (n, 4) at velocities (nv,): (n, nv)."""
    mean, sd, h3, h4 = np.asarray(moments, dtype=float).T[..., None]
    if not (sd > 0).all():
        raise InputError("sigma must be positive")
    basis = hermite((velocity - mean) / sd)
    return np.asarray((basis[0] + h3 * basis[3] + h4 * basis[4]) / (sd * (1 + H4_AREA * h4)))


def gauss_hermite(light: Array, velocity: Array, blur_var: float = 0.0, steps: int = 200) -> Array:
    """V, sigma, h3 and h4, (n, 4), of distributions ``light`` (n, nv) of any area at evenly spaced velocities (nv,).

    ``blur_var`` is taken from sigma^2: the variance of what has blurred the distributions. NaN where there is no light,
    or no Gaussian for which h1 = h2 = 0.
    """
    given = np.asarray(light, dtype=float)
    if given.ndim != 2 or given.shape[1] != len(velocity):
        raise InputError(f"light has shape {given.shape} for {len(velocity)} velocities: give (n, {len(velocity)})")
    channel = float(velocity[1] - velocity[0])
    with np.errstate(all="ignore"):
        unit = given / given.sum(axis=1, keepdims=True)
        mean = unit @ velocity
        sd = np.sqrt(np.maximum((unit * (velocity - mean[:, None]) ** 2).sum(axis=1), channel**2))
        ratio = np.zeros((5, len(unit)))
        for step in range(steps):
            terms = (hermite((velocity - mean[:, None]) / sd[:, None]) * unit).sum(axis=2)
            ratio = terms / terms[0]
            if not np.nanmax(np.abs(ratio[1:3]), initial=0.0) > 1e-9:
                break
            # Newton's step for a distribution that is nearly Gaussian; for others it may swing
            share = np.sqrt(2) if step < 30 else np.sqrt(0.5)
            mean = mean + np.clip(share * ratio[1], -0.5, 0.5) * sd
            sd = sd * (1 + np.clip(share * ratio[2], -0.3, 0.3))
        out = np.stack([mean, np.sqrt(sd**2 - blur_var), ratio[3], ratio[4]], axis=1)
        out[~(np.abs(ratio[1:3]) < 1e-6).all(axis=0)] = np.nan
    return np.where(np.isfinite(out).all(axis=1, keepdims=True), out, np.nan)
