"""
A bias prior of your own
========================

A prior is two small classes: what the user chooses, and a sampler that draws the bias given the residuals. This one has
random Fourier features, in thirty lines (`docs/skeletons/bias_prior.py`, explained under *A prior of your own*).
`check_bias_prior` says whether it keeps the contract.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import orthocal as oc
from orthocal.examples import MODEL1
from orthocal.testing import check_bias_prior

# beside this script, or in the folder that the gallery is built from
here = Path(__file__).parent if "__file__" in globals() else Path.cwd()
sys.path.insert(0, str(here.parent / "skeletons"))
from bias_prior import FourierFeatures  # noqa: E402

check_bias_prior(FourierFeatures())

x, y = MODEL1.simulate(np.random.default_rng(1))
problem = MODEL1.problem(x, y)
posteriors = {
    "Fourier features": oc.calibrate(problem, oc.methods.Projected(bias=FourierFeatures()), seed=1, progress=False),
    "Gaussian process": oc.calibrate(problem, "pgp", seed=1, progress=False),
}
for name, posterior in posteriors.items():
    print(name, posterior.summary().round(3), sep="\n")

# %%
# The bias under both priors
# --------------------------

grid = np.linspace(0, 1, 101)[:, None]
figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
for (name, posterior), color in zip(posteriors.items(), ("#009E73", "#0072B2"), strict=True):
    bias = posterior.predict(grid, draws=250)["bias"].isel(outcome=0)
    low, middle, high = bias.quantile([0.025, 0.5, 0.975], ("chain", "draw"))
    axes.fill_between(grid[:, 0], low, high, alpha=0.25, color=color, lw=0)
    axes.plot(grid[:, 0], middle, color=color, label=name)
axes.set(xlabel="x", ylabel="bias")
axes.legend(frameon=False)
plt.show()
