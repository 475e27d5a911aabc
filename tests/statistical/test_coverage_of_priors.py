"""Coverage of the 95 % intervals for the priors that have no closed form, and which prior predicts what best.

Coverage over 100 data sets must lie between 0.90 and 0.99 for every parameter: a sampler with 0.95 falls outside with
probability 0.03 for each of them (binomial: 0.028 below, 0.006 above 0.99), with 0.97 with probability 0.05 (all of
it above). Seeds are fixed.
"""

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from orthocal.examples import MODEL1, MODEL2, MODEL3

DATA_SETS = 100
METHODS = {
    "pbart": oc.bias.BART(),
    "pbmars": oc.bias.BMARS(),
    "psoftbart": oc.bias.SoftBART(),
    "pbnn": oc.bias.BNN(),
}
#: a network takes 3 seconds for 400 draws of four chains, which are worth 900 independent ones or more
DRAWS = {"pbnn": 400}


@pytest.mark.slow
@pytest.mark.parametrize("model", [MODEL1, MODEL2, MODEL3], ids=lambda model: model.name)
@pytest.mark.parametrize("name", METHODS)
def test_coverage(name, model):
    covered, sds = [], []
    for data_set in range(DATA_SETS):
        x, y = model.simulate(np.random.default_rng(70_000 + data_set))
        method = oc.methods.Projected(METHODS[name])
        draws = DRAWS.get(name, 500)
        posterior = oc.calibrate(model.problem(x, y), method, draws=draws, seed=data_set, progress=False)
        theta = posterior.theta.reshape(-1, len(model.theta_star))
        low, high = np.quantile(theta, [0.025, 0.975], axis=0)
        covered.append((low < model.theta_star) & (model.theta_star < high))
        sds.append(theta.std(axis=0))
    share = np.mean(covered, axis=0)
    print(f"{name}, {model.name}: coverage {share}, sd {np.min(sds, axis=0)} to {np.max(sds, axis=0)}")
    assert np.all((share >= 0.90) & (share <= 0.99))


def predictive_error(bias_function, prior, seed):
    """Rms error of model + bias at 200 new points."""
    rng = np.random.default_rng(seed)
    x, x_new = rng.random((100, 1)), np.linspace(0.01, 0.99, 200)[:, None]

    def truth(x):
        return 3 * x[:, 0] + bias_function(x[:, 0])

    y = truth(x) + 0.2 * rng.standard_normal(100)
    problem = oc.Problem(
        x, y, lambda x, t: t[0] * x[:, 0], {"t": stats.norm(0, 10)}, domain=oc.Box(0, 1), noise_cov=0.04
    )
    posterior = oc.calibrate(problem, oc.methods.Projected(prior), draws=300, seed=seed, progress=False)
    mean = posterior.predict(x_new, draws=100)["mean"].mean(("chain", "draw")).values[:, 0]
    return np.sqrt(np.mean((mean - truth(x_new)) ** 2))


@pytest.mark.slow
def test_bart_predicts_a_step_better_and_a_smooth_bias_worse_than_a_gp():
    errors = {
        (shape, name): np.mean([predictive_error(function, prior, seed) for seed in range(10)])
        for shape, function in {
            "step": lambda x: np.where(x > 0.6, 1.5, 0.0),
            "smooth": lambda x: np.sin(4 * x),
        }.items()
        for name, prior in {"bart": oc.bias.BART(), "gp": oc.bias.GP(2.5)}.items()
    }
    print({key: round(float(value), 4) for key, value in errors.items()})
    assert errors["step", "bart"] < 0.9 * errors["step", "gp"]
    assert errors["smooth", "gp"] < errors["smooth", "bart"]
