"""
A categorical input: which machine?
===================================

The same part was made by three machines, and the simulator knows nothing of machines. The bias may differ from one to
the other: it has a part that all share and one of each machine's own.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy import stats

import orthocal as oc

rng = np.random.default_rng(2)
table = pd.DataFrame({"load": rng.uniform(0, 10, 90), "machine": rng.choice(["A", "B", "C"], 90)})
shift = table["machine"].map({"A": 0.0, "B": 0.6, "C": -0.3})
sag = 1.5 * table["load"] + np.sin(0.8 * table["load"]) + shift + 0.2 * rng.standard_normal(90)


def beam(x, theta):
    """Sag [mm] at loads x[:, 0] [kN]; x[:, 1] is the machine, which it leaves alone."""
    return theta[0] * x[:, 0]


problem = oc.Problem(table, sag, beam, {"softness": stats.norm(1, 1)}, oc.Box(0, 10), noise_cov=0.04)
posterior = oc.calibrate(problem, seed=1, progress=False)
print(problem.categories)
print(posterior.summary().round(3))

# %%
# The bias of each machine
# ------------------------

load = np.linspace(0, 10, 60)
figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
for machine, color in zip("ABC", ("#0072B2", "#D55E00", "#009E73"), strict=True):
    new = posterior.predict(pd.DataFrame({"load": load, "machine": machine}), draws=250)
    low, middle, high = new["bias"].isel(outcome=0).quantile([0.025, 0.5, 0.975], ("chain", "draw"))
    axes.fill_between(load, low, high, color=color, alpha=0.25, lw=0)
    axes.plot(load, middle, color=color, label=f"machine {machine}")
axes.axhline(0, color="0.7", lw=0.8)
axes.set(xlabel="load [kN]", ylabel="bias [mm]")
axes.legend(frameon=False)
plt.show()
