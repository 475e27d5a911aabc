"""Public data that a fit has not seen: a new curve of aluminium, and the census after 1950."""

import numba
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import orthocal as oc
from real_problems import DATA, REAL_PROBLEMS

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="needs the folder of public data sets beside the repository")


def test_population_to_1950_with_a_domain_to_2000():
    """281 millions came in 2000; nothing in the data says so, and both the check and the prediction say that."""
    whole = REAL_PROBLEMS["population"]()
    seen = whole.data.x[:, 0] <= 1950
    problem = oc.Problem(
        whole.data.x[seen, 0],
        whole.data.y[seen, 0],
        lambda year, theta: whole.simulator.evaluate(year[:, None], theta)[:, 0],
        {"a": stats.norm(0.03, 0.01), "c": stats.norm(-22.6, 1)},
        oc.Box(1790, 2000),
    )
    posterior = oc.calibrate(problem, draws=50, seed=1, progress=False)
    assert any("24% of it has no data nearby" in one.message for one in posterior.check().problems)
    with pytest.warns(oc.OrthocalWarning, match="1 of 2 points of x_new lie far from the data"):
        posterior.predict([1945.0, 2000.0])


@numba.njit
def johnson_cook(strain, log_rate, temperature, first, theta, stress):
    A, B, C, n, m = theta
    for i in range(len(strain)):
        if first[i]:
            before, heat = 0.0, temperature[i]
            flow = A * (1 + C * np.log(10.0) * log_rate[i]) * (1 - min(max((heat - 298) / 595, 0.0), 1.0) ** m)
        if log_rate[i] > 0:
            heat += flow * (strain[i] - before) / (2.66 * 0.9)
        flow = (A + B * strain[i] ** n) * (1 + C * np.log(10.0) * log_rate[i])
        flow *= 1 - min(max((heat - 298) / 595, 0.0), 1.0) ** m
        before, stress[i] = strain[i], flow


def flow_stress(x, theta):
    """Along each curve, from small strains to large ones: fast tests are heated by their own work."""
    order = np.lexsort(x.T)
    strain, log_rate, temperature = x[order].T.copy()
    first = np.r_[True, (np.diff(log_rate) != 0) | (np.diff(temperature) != 0)]
    stress = np.empty(len(x))
    sorted_stress = np.empty(len(x))
    johnson_cook(strain, log_rate, temperature, first, np.asarray(theta), sorted_stress)
    stress[order] = sorted_stress
    return stress


@pytest.mark.slow
def test_aluminium_without_a_curve():
    """Rows of a curve are predicted to 4 MPa, a new curve to 20 to 30; without a bias to 74."""
    table = pd.read_csv(DATA / "al5083.csv")
    x = np.column_stack([table["strain"], np.log10(table["strain_rate_per_s"]), table["temperature_K"]])
    nodes = [
        np.column_stack([np.linspace(*np.quantile(own[:, 0], [0, 1]), 15), np.tile(own[0, 1:], (15, 1))])
        for own in (x[table["curve"] == one] for one in table["curve"].unique())
    ]
    bounds = {"A": (50, 400), "B": (100, 1500), "C": (0, 0.06), "n": (0.05, 1), "m": (0.5, 5)}
    priors = {name: stats.uniform(low, high - low) for name, (low, high) in bounds.items()}
    problem = oc.Problem(
        x, table["stress_MPa"], flow_stress, priors, oc.Points(np.vstack(nodes)), starts=6, groups=table["curve"]
    )
    options = {"draws": 60, "chains": 2, "warmup": 60, "folds": 3, "seed": 1, "progress": False}
    result = oc.compare(problem, ["gp", "bart", "ko", "none"], groups="curve", **options)
    assert not result.missed
    rmse = result.scores().xs("stress_MPa", level="outcome")["rmse"]
    assert (rmse[["gp", "bart", "ko"]].between(15, 40)).all()
    assert 65 < rmse["none"] < 85
    assert any("held out row by row and by curve, the RMSE is gp 4" in one for one in result.remarks())
