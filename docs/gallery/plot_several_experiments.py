"""
Several experiments that share a parameter
==========================================

Three test rigs measure one spring. All share its stiffness; each has a zero offset and a bias of its own. Together they
know the stiffness better than any of them.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

import orthocal as oc


def spring(stretch, theta):
    return theta[0] * stretch + theta[1]  # N, for a stretch in cm


priors = {"stiffness": stats.norm(2, 2), "offset": stats.norm(0, 2)}
rng = np.random.default_rng(1)
problems = {}
for name, n, offset, wave in (("rig A", 15, 0.5, 0.3), ("rig B", 60, -1.0, 0.1), ("rig C", 25, 0.2, -0.4)):
    stretch = np.linspace(0, 5, n)
    force = 2 * stretch + offset + wave * np.sin(2.5 * stretch) + 0.15 * rng.standard_normal(n)
    problems[name] = oc.Problem(stretch, force, spring, priors, oc.Box(0, 5), noise_cov=0.15**2)

experiments = oc.Experiments(problems, private=["offset"])
posterior = oc.calibrate(experiments, seed=1, progress=False)
print(posterior.summary().round(3))

# %%
# Each alone, and all together
# ----------------------------

alone = {name: oc.calibrate(problem, seed=1, progress=False) for name, problem in problems.items()}
figure, axes = plt.subplots(figsize=(6, 2.8), layout="constrained")
for row, (name, one) in enumerate({**alone, "together": posterior}.items()):
    draws = one.data["posterior"]["stiffness"].values.ravel()
    low, high = np.quantile(draws, [0.025, 0.975])
    color = "#0072B2" if name == "together" else "#D55E00"
    axes.plot([low, high], [row, row], color=color, lw=3, solid_capstyle="butt")
    axes.plot(draws.mean(), row, "o", color=color)
axes.set(xlabel="stiffness [N/cm]", yticks=range(4), yticklabels=[*alone, "together"])
axes.invert_yaxis()
plt.show()
