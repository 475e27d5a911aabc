"""
Errors in x
===========

Where the simulator is steep, an error of x is an error of y. `x_err` adds it to the noise of every point, to first
order, and `check()` says when that is not enough.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

import orthocal as oc

rng = np.random.default_rng(1)
depth = rng.uniform(0, 2, 50)  # m, as it was set
reached = depth + 0.04 * rng.standard_normal(50)  # as it was
pressure = 10 * reached + 4 * reached**2 + 0.1 * rng.standard_normal(50)  # kPa


def column(x, theta):
    return theta[0] * x + theta[1] * x**2


priors = {"linear": stats.norm(10, 5), "square": stats.norm(0, 5)}
posteriors = {}
for name, x_err in (("x taken for exact", None), ("x known to 4 cm", 0.04)):
    problem = oc.Problem(depth, pressure, column, priors, oc.Box(0, 2), noise_cov=0.01, x_err=x_err)
    posteriors[name] = oc.calibrate(problem, "none", draws=500, seed=1, progress=False)
    print(name, posteriors[name].summary().round(3), sep="\n")

# %%
# The two intervals
# -----------------
# The truth is 10 and 4. Without the errors of x the intervals are a fraction of what they should be.

figure, axes = plt.subplots(figsize=(5, 3.8), layout="constrained")
for (name, posterior), color in zip(posteriors.items(), ("#D55E00", "#0072B2"), strict=True):
    axes.plot(*posterior.theta.reshape(-1, 2).T, ".", ms=2, color=color, alpha=0.4, label=name)
axes.plot(10, 4, "k+", ms=12, mew=2, label="truth")
axes.set(xlabel="linear term [kPa/m]", ylabel="square term [kPa/m²]")
axes.legend(frameon=False, markerscale=3)
plt.show()
