"""
Other losses: what "closest" means
==================================

A simulator of steady flow fails in a part of the domain, where the real flow separates. With the squared loss that part
pulls at the parameter; with the absolute loss or Huber's it counts less. All three are right: they answer different
questions.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

import orthocal as oc

rng = np.random.default_rng(1)
angle = np.sort(rng.uniform(0, 16, 80))  # degrees
lift = 0.11 * angle - 0.25 * np.clip(angle - 12.5, 0, None) + 0.02 * rng.standard_normal(80)


def thin_airfoil(x, theta):
    return theta[0] * x


problem = oc.Problem(angle, lift, thin_airfoil, {"slope": stats.norm(0.1, 0.1)}, oc.Box(0, 16), noise_cov=0.02**2)
posteriors = {
    str(name): oc.calibrate(problem, oc.methods.Joint(oc.bias.GP(), loss=loss), seed=1, progress=False)
    for name, loss in (("squared", "squared"), ("Huber", oc.losses.Huber(2.0)), ("absolute", "absolute"))
}
for name, posterior in posteriors.items():
    print(name, posterior.summary().round(4), sep="\n")

# %%
# Three closest lines
# -------------------

figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
axes.plot(angle, lift, ".", color="#333333", label="field data")
for (name, posterior), color in zip(posteriors.items(), ("#D55E00", "#E69F00", "#0072B2"), strict=True):
    slope = float(posterior.data["posterior"]["slope"].mean())
    axes.plot([0, 16], [0, 16 * slope], color=color, label=f"{name}: {slope:.3f} per degree")
axes.set(xlabel="angle of attack [degrees]", ylabel="lift coefficient")
axes.legend(frameon=False)
plt.show()
