"""The peer: Algorithm 1 as it is published, written plainly in NumPy for one chain.

Each iteration builds and factorises the Gaussian posterior of the bias at data and nodes, draws it, projects it and
makes one random-walk Metropolis step, tuned to accept 30 %. Its random walk is not an exact draw of theta, so its
law differs somewhat from ours (docs/theory.md); it is here for its speed only.
"""

from __future__ import annotations

import numpy as np

from orthocal.regression.gaussian_process import correlation


def plain_algorithm(problem, draws, warmup, rng, nu=1.5, sd=1.0, lengthscale=0.5):
    """Draws of theta, (draws, p)."""
    x, y = problem.data.x, problem.data.y[:, 0]
    nodes, weights = problem.rule
    noise_var = float(problem.noise.cov[0, 0])
    n = len(x)
    simulate = problem.simulator.evaluate
    theta = problem.theta_tilde.copy()
    g_data = problem.simulator.gradient(x, theta)[:, 0]
    g_nodes = problem.simulator.gradient(nodes, theta)[:, 0]
    Q = g_nodes.T @ (weights[:, None] * g_nodes)
    every = np.vstack([x, nodes])
    scale = np.sqrt(np.diag(np.linalg.inv(g_data.T @ g_data / noise_var)))
    step, kept, accepted = 1.0, [], 0
    model = simulate(x, theta)[:, 0]
    for iteration in range(warmup + draws):
        K = sd**2 * correlation(every, every, np.full(x.shape[1], lengthscale), nu)
        regression = np.linalg.solve(K[:n, :n] + noise_var * np.eye(n), K[:n]).T
        covariance = K - regression @ K[:n] + 1e-10 * np.eye(len(every))
        b = regression @ (y - model) + np.linalg.cholesky(covariance) @ rng.standard_normal(len(every))
        projected = b[:n] - g_data @ np.linalg.solve(Q, g_nodes.T @ (weights * b[n:]))
        proposal = theta + step * scale * rng.standard_normal(len(theta))
        if problem.parameters.inside(proposal):
            new = simulate(x, proposal)[:, 0]
            log_ratio = (np.sum((y - model - projected) ** 2) - np.sum((y - new - projected) ** 2)) / (2 * noise_var)
            log_ratio += float(problem.parameters.log_prior(proposal) - problem.parameters.log_prior(theta))
            if np.log(rng.random()) < log_ratio:
                theta, model = proposal, new
                accepted += 1
        if iteration < warmup and iteration % 50 == 49:
            step *= np.exp(accepted / 50 - 0.3)
            accepted = 0
        if iteration >= warmup:
            kept.append(theta)
    return np.array(kept)
