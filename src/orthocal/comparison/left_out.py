"""Outputs without inputs that are left out: each is predicted from the others, through theta and a bias of its own."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from ..arrays import BoolArray
from ..errors import InputError, OrthocalError
from ..methods import Method
from ..methods.bias_samplers import method_for
from ..problem.problem import Problem
from ..results.posterior import Posterior
from ..results.predict.scores import CellScores, cell_scores
from .folds import Fold, Split


def with_output_priors(problem: Problem, methods: dict[str, Method]) -> dict[str, Method]:
    """The methods with the priors that they have for outputs without inputs, so that they are described as they are."""
    chosen = dict(methods)
    for name, method in methods.items():
        # one that cannot do the problem says so when it is tried
        with suppress(InputError):
            chosen[name] = method_for(problem, method)
    return chosen


def output_folds(problem: Problem, folds: int, seed: int) -> Split:
    """The outputs at random in parts whose sizes differ by one at most, and the problem without each part."""
    q = problem.data.q
    fold_of_output = np.empty(q, dtype=np.intp)
    order = np.random.default_rng(np.random.SeedSequence([seed, 0])).permutation(q)
    fold_of_output[order] = np.arange(q) % folds
    parts = []
    for k in range(folds):
        name, hidden = f"fold {k + 1} of {folds}", fold_of_output == k
        try:
            parts.append(Fold(name, hidden, problem.subset(np.arange(problem.data.n), hidden=hidden)))
        except OrthocalError as error:
            raise InputError(f"without {name}: {error}; or take more folds, or folds=0") from None
    return Split(fold_of_output, parts)


def output_scores(fit: Posterior, problem: Problem, outputs: BoolArray) -> tuple[CellScores, CellScores]:
    """Scores of outputs (q,) that a fit has not seen, by model + bias and by the model alone.

    Cells are (count r, 1), output after output, in units of each one's noise: their own units differ.
    """
    predicted = fit.predict()
    # drawn anew, from the fold's seed: all methods get the same noise, and chance does not set them apart
    rng = np.random.default_rng(np.random.SeedSequence(fit.record.seed, spawn_key=(1,)))
    sd = np.sqrt(np.diag(problem.noise.cov))
    own = problem.noise.by_point
    each_sd = np.broadcast_to(sd, problem.data.y.shape) if own is None else np.sqrt(np.einsum("nii->ni", own))
    draws = predicted["mean"].shape[:2]
    noise = rng.standard_normal((*draws, *problem.data.y.shape)) * each_sd
    y = (problem.data.y / sd)[:, outputs].T.reshape(-1, 1)
    scores = []
    for name in ("mean", "model"):
        values = ((predicted[name].values + noise) / sd)[..., outputs].swapaxes(2, 3)
        scores.append(cell_scores(values.reshape(-1, *y.shape), y))
    return scores[0], scores[1]
