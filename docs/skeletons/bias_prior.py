"""A prior on the bias, to copy: random Fourier features with Gaussian weights.

Inside the package: a file in ``bias/`` under ``@listed`` and a line in its ``__init__.py``. Outside give the object,
``oc.methods.Joint(bias=FourierFeatures())``.
"""

import numpy as np

import orthocal as oc


class FourierFeatures:
    """b(x) = sd sqrt(2 / m) sum_i w_i cos(u_i' x + v_i), w_i ~ N(0, 1); u_i ~ N(0, 1 / lengthscale^2), v_i uniform."""

    # the user's choices
    def __init__(self, features=100, sd=1.0, lengthscale=0.3):
        self.features, self.sd, self.lengthscale = features, sd, lengthscale

    def prepare(self, setting):
        return FourierSampler(self, setting)

    # what JSON can store: it goes into the file of a result, and tells this prior from others
    def describe(self):
        return {"kind": "fourier", **vars(self)}


class FourierSampler(oc.bias.ChainwiseSampler):
    """The prior once it has seen x (n, d), nodes (m, d) and the noise variances (n,): what no draw changes is here."""

    def __init__(self, prior, setting):
        rng = np.random.default_rng(0)
        self.frequency = rng.standard_normal((setting.x.shape[1], prior.features)) / prior.lengthscale
        self.phase = rng.uniform(0, 2 * np.pi, prior.features)
        self.scale = prior.sd * setting.unit * np.sqrt(2 / prior.features)
        self.design = self.at(np.vstack([setting.x, setting.nodes]))
        data = self.design[: len(setting.x)] / setting.noise_var[:, None]
        precision = data.T @ self.design[: len(setting.x)] + np.eye(prior.features)
        self.root = np.linalg.inv(np.linalg.cholesky(precision)).T
        self.gain = self.root @ self.root.T @ data.T

    def at(self, x):
        return self.scale * np.cos(x @ self.frequency + self.phase)

    # b at data and nodes, (n + m,), given residual = b + noise at the data; the first of the two comes back as `state`
    def one_draw(self, rng, state, residual):
        weights = self.gain @ residual + self.root @ rng.standard_normal(len(self.root))
        return weights, self.design @ weights

    # what predictions need of a draw: arrays, which go into the file
    def one_record(self, state):
        return {"weights": state}

    def one_prediction(self, record, x_new):
        return self.at(x_new) @ record["weights"]
