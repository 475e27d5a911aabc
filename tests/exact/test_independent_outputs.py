"""Outputs without inputs against Gaussian algebra written here: linear f, Gaussian prior, independent biases.

In units of the noise, y_i = G theta + (I - G (G'G)^-1 G') b + e_i with b ~ N(0, s^2 I): what is projected is orthogonal
to the simulator's gradients, summed over the outputs.
"""

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from orthocal.bias.independent import likely_noise_sds

#: two-sided 6e-6 for each of about 90 numbers: a false alarm in 2000 seeds
LIMIT = 4.5
UNITS = 10.0 ** np.array([-3, 3, 0, 2, -2, 1, 5, -1, 0, 4, -4, 0])
Q = len(UNITS)


class Case:
    """Data of one problem, and the exact posterior of (theta, bias)."""

    def __init__(self, p, rows=1, holes=(), correlated=False, prior_sd=2.0, s=1.5, seed=1):
        rng = np.random.default_rng(seed)
        self.design, self.s, self.prior_sd, self.p = rng.normal(size=(Q, p)), s, prior_sd, p
        self.sd = UNITS * rng.uniform(0.5, 2.0, Q)
        R = np.full((Q, Q), 0.4) + 0.6 * np.eye(Q) if correlated else np.eye(Q)
        self.cov = R * np.outer(self.sd, self.sd)
        noise = rng.multivariate_normal(np.zeros(Q), R, size=rows) * self.sd
        self.y = UNITS * (self.design @ rng.normal(size=p) + 2 * rng.normal(size=Q)) + noise
        for cell in holes:
            self.y[cell] = np.nan

    def simulator(self, theta):
        return UNITS * (self.design @ theta)

    def problem(self, **changes):
        priors = {f"t{j}": stats.norm(0.3, self.prior_sd) for j in range(self.p)}
        return oc.Problem(None, self.y, self.simulator, priors, noise_cov=self.cov, starts=2, **changes)

    def exact(self, projected=True):
        """Mean and covariance of theta and of the bias in the outputs' units, (p + Q,)."""
        G = UNITS[:, None] * self.design / self.sd[:, None]
        free = np.eye(Q) - G @ np.linalg.solve(G.T @ G, G.T) if projected else np.eye(Q)
        to_bias = self.sd[:, None] * free
        root = np.vstack([np.eye(self.p, self.p + Q), np.hstack([np.zeros((Q, self.p)), to_bias])])
        prior = np.diag([self.prior_sd**2] * self.p + [self.s**2] * Q)
        mean = np.concatenate([np.full(self.p, 0.3), np.zeros(Q)])
        observe = np.hstack([UNITS[:, None] * self.design, to_bias])
        seen = [np.flatnonzero(~np.isnan(row)) for row in self.y]
        H = np.vstack([observe[cells] for cells in seen])
        noise = np.zeros((len(H), len(H)))
        start = 0
        for cells in seen:
            noise[start : start + len(cells), start : start + len(cells)] = self.cov[np.ix_(cells, cells)]
            start += len(cells)
        data = np.concatenate([row[cells] for row, cells in zip(self.y, seen, strict=True)])
        # in units of each cell's noise, or the different units cost digits
        scale = np.sqrt(np.diag(noise))
        H, data, noise = H / scale[:, None], data / scale, noise / np.outer(scale, scale)
        S = H @ prior @ H.T + noise
        gain = np.linalg.solve(S, H @ prior).T
        posterior = prior - gain @ H @ prior
        return root @ (mean + gain @ (data - H @ mean)), root @ posterior @ root.T


CASES = {
    "one observation each": Case(2),
    "five parameters": Case(5, seed=2),
    "correlated noise and a missing output": Case(2, holes=[(0, 3)], correlated=True, seed=3),
    "replicates with holes": Case(3, rows=3, holes=[(0, 3), (1, 3), (2, 3), (1, 5)], seed=4),
    "no data to speak of": Case(2, holes=[(0, k) for k in range(10)], prior_sd=0.01, seed=5),
}


def values(posterior):
    """theta and bias of every draw, (draws, p + Q)."""
    bias = posterior.predict()["bias"].values
    return np.hstack([posterior.theta.reshape(-1, posterior.theta.shape[2]), bias.reshape(-1, Q)])


def agrees(drawn, mean, cov, count):
    sd = np.sqrt(np.maximum(np.diag(cov), 1e-300))
    assert np.max(np.abs(drawn.mean(axis=0) - mean) / sd) < LIMIT / np.sqrt(count)
    assert np.max(np.abs(drawn.std(axis=0) / sd - 1)) < LIMIT / np.sqrt(2 * count)


@pytest.mark.parametrize("name", CASES)
def test_the_joint_projection(name):
    case = CASES[name]
    method = oc.methods.Joint(oc.bias.Independent(noise_sds=case.s))
    posterior = oc.calibrate(case.problem(), method, draws=1500, chains=2, seed=1, progress=False)
    drawn = values(posterior)
    agrees(drawn, *case.exact(), len(drawn))
    # orthogonal to the gradients over the outputs, draw by draw
    G = UNITS[:, None] * case.design / case.sd[:, None]
    bias = drawn[:, case.p :] / case.sd
    assert np.abs(bias @ G).max() < 1e-6 * np.linalg.norm(G) * np.linalg.norm(bias, axis=1).max()


def test_an_unconstrained_bias_is_another_posterior():
    """The negative control: without the projection the algebra above does not fit."""
    case = CASES["one observation each"]
    method = oc.methods.Joint(oc.bias.Independent(noise_sds=case.s))
    drawn = values(oc.calibrate(case.problem(), method, draws=1500, chains=2, seed=1, progress=False))
    with pytest.raises(AssertionError):
        agrees(drawn, *case.exact(projected=False), len(drawn))


def test_a_size_for_each_output_is_in_its_own_unit():
    case = Case(2, s=1.5)
    names = tuple(f"y{k + 1}" for k in range(Q))
    for sd in (1.5 * case.sd, dict(zip(names, 1.5 * case.sd, strict=True))):
        method = oc.methods.Joint(oc.bias.Independent(sd=sd))
        drawn = values(oc.calibrate(case.problem(), method, draws=1000, chains=2, seed=1, progress=False))
        agrees(drawn, *case.exact(), len(drawn))


def test_theta_of_ko_and_of_no_bias(monkeypatch):
    """Nearly independent draws: a third of them is taken as effective."""
    case = Case(2)
    monkeypatch.setattr("orthocal.bias.independent.likely_noise_sds", lambda problem: case.s)
    for name, s in (("ko", case.s), ("none", 1e-9)):
        exact = Case(2, s=s).exact(projected=False)
        posterior = oc.calibrate(case.problem(), name, draws=500, chains=2, seed=2, progress=False)
        theta = posterior.theta.reshape(-1, 2)
        agrees(theta, exact[0][:2], exact[1][:2, :2], len(theta) / 3)


def test_the_size_of_the_biases():
    """With t = 1 + s^2 and nu = q - p the mode solves (nu + 2) t^2 - (nu + 3 + RSS) t + RSS = 0."""
    case = Case(3, prior_sd=1e6)
    G, z = UNITS[:, None] * case.design / case.sd[:, None], case.y[0] / case.sd
    rss = float(np.sum((z - G @ np.linalg.lstsq(G, z, rcond=None)[0]) ** 2))
    nu = Q - 3
    middle = nu + 3 + rss
    t = (middle + np.sqrt(middle**2 - 4 * (nu + 2) * rss)) / (2 * (nu + 2))
    assert likely_noise_sds(case.problem()) == pytest.approx(np.sqrt(t - 1), rel=1e-4)
