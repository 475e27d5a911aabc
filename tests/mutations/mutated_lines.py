"""Errors that one could make in the numerical core, one line each, and the fast tests that must notice them."""

from __future__ import annotations

from typing import NamedTuple


class Mutation(NamedTuple):
    """``old``, which stands once in ``file``, becomes ``new``: then one of ``tests`` must fail."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def _of(file: str, tests: str, *lines: tuple[str, str, str]) -> list[Mutation]:
    """Mutations (name, old, new) of one file of the package, with the tests that they share."""
    stem = file.removesuffix(".py")
    each = tuple(f"tests/{test}" for test in tests.split())
    return [Mutation(f"{stem}: {name}", f"src/orthocal/{file}", old, new, each) for name, old, new in lines]


MUTATIONS = [
    *_of(
        "kernels/hmc.py",
        "kernels/test_reversible.py",
        ("the mirror without its factor 2", "mirror = 2 * tuning.root", "mirror = tuning.root"),
        ("the momentum turned halfway", "momentum[c] - 2 * (momentum[c]", "momentum[c] - (momentum[c]"),
        ("the last kick is a full one", "0.5 if leap == self.leapfrogs - 1 else 1.0", "1.0"),
        ("never reflects", "if np.array_equal(beyond(back), crossed[c]):", "if False:"),
        ("reflects whatever the way back", "if np.array_equal(beyond(back), crossed[c]):", "if True:"),
    ),
    *_of(
        "kernels/slice.py",
        "kernels/test_reversible.py",
        ("as many widenings on both sides", "int(self._rng.integers(MOST_WIDENINGS))", "MOST_WIDENINGS // 2"),
        ("the bracket lies around the middle", "left = -self._rng.random()", "left = -0.5"),
        ("the bracket shrinks to the wrong side", "(shift, right) if shift < 0", "(shift, right) if shift > 0"),
    ),
    *_of(
        "kernels/laplace.py",
        "kernels/test_reversible.py",
        ("freedom + 1", "(freedom + z.shape[1])", "(freedom + 1)"),
        ("a chi-squared a coordinate", "size=(count, 1))", "size=(count, p))"),
        (
            "a redraw without its z",
            "theta[c], scaled[c] = candidates[first[0]], tries[first[0]]",
            "theta[c] = candidates[first[0]]",
        ),
        ("every chain redraws with the first root", "root[c if len(root) > 1 else 0]", "root[0]"),
    ),
    *_of(
        "regression/bart_kernels.py",
        "bias/test_bart_enumerated.py",
        (
            "change without the prior of the new children",
            "ratio = log_unsplit_children(lo, hi, cut, variables, p)",
            "ratio = 0.0",
        ),
        (
            "change without the prior of the children",
            "ratio -= log_unsplit_children(old_lo, old_hi, np.int64(tree[k, CUT]), variables, p)",
            "ratio = 0.0",
        ),
        (
            "change without its evidence",
            "ratio += log_evidence(precision, weighted, leaf_var) + log_evidence(other_precision,",
            "ratio += log_evidence(other_precision, other_weighted, leaf_var) + log_evidence(other_precision,",
        ),
        (
            "swap without a finite prior ratio",
            "ratio = log_prior(tree, cuts, shares, chances) - old",
            "ratio = 0.0 if log_prior(tree, cuts, shares, chances) > -np.inf else -np.inf",
        ),
        ("swap whatever is left in a leaf", "if fresh[j, 0] < least:", "if fresh[j, 0] < 0:"),
        (
            "grow whatever is left on the right",
            "if points < least or sums[k, 0] - points < least:",
            "if points < least:",
        ),
        (
            "grow whatever is left on the left",
            "if points < least or sums[k, 0] - points < least:",
            "if sums[k, 0] - points < least:",
        ),
        ("change whatever is left", "if points < least or total - points < least:", "if points < least:"),
        (
            "grow as often as prune is proposed",
            "np.log(SHARES[PRUNE] / prunable) - np.log(SHARES[GROW] / growable)",
            "np.log(SHARES[PRUNE]) - np.log(SHARES[GROW])",
        ),
        (
            "prune forgets how many can grow",
            "np.log(SHARES[GROW] / growable) - np.log(SHARES[PRUNE] / prunable)",
            "np.log(SHARES[GROW]) - np.log(SHARES[PRUNE] / prunable)",
        ),
    ),
    *_of(
        "regression/tree_kernels.py",
        "bias/test_bart_enumerated.py",
        ("children that cannot split pay for it", "right = p if count > 1 or hi > cut + 1 else 0.0", "right = p"),
    ),
    *_of(
        "bias/gp.py",
        "bias/test_gp.py",
        (
            "hyperparameters take the noise for the same everywhere",
            "relative_var=every.noise_var",
            "relative_var=np.ones(len(every.x))",
        ),
    ),
    *_of(
        "bias/gp_sampler.py",
        "bias/test_gp.py",
        (
            "a scale of the noise is ignored",
            "precision = 1 + spectrum**2 / noise_scale[:, None]",
            "precision = 1 + spectrum**2",
        ),
        ("predictions without their own spread", "(white.T @ cross + normal @ root.T)", "(white.T @ cross)"),
    ),
    *_of(
        "bias/outcomes.py",
        "bias/test_outcomes_given_noise.py",
        (
            "a precision for a variance",
            "scale = 1 / (precision * self._points[k].noise_var)",
            "scale = precision * self._points[k].noise_var",
        ),
        ("the pull of the other outcomes forgotten", "residual[:, rows, k] + pull / diagonal", "residual[:, rows, k]"),
    ),
    *_of(
        "methods/sampled_noise.py",
        "methods/test_noise_sample.py",
        ("all rows have the first group's noise", "precision[:, noise.groups]", "precision[:, noise.groups * 0]"),
        (
            "a sum over rows for a mean",
            "share = np.bincount(groups) / len(groups)",
            "share = np.bincount(groups) / 1.0",
        ),
    ),
    *_of(
        "methods/rivals/marginal.py",
        "methods/test_ko_sampled.py",
        ("C without its size", "return -self.log_size - 0.5 *", "return -0.5 *"),
        (
            "points that count by their evidence twice",
            "then = (law := self._law(other)).log_gaussian(left) - self._evidence[other]",
            "then = (law := self._law(other)).log_gaussian(left)",
        ),
    ),
    *_of(
        "methods/rivals/ogp.py",
        "methods/test_ogp_density.py",
        (
            "without the log determinants",
            "own = _log_size(triangles) - self.size - 0.5 * (",
            "own = -0.5 * (",
        ),
        ("the log determinants the other way round", "float(sizes[0] - sizes[1])", "float(sizes[1] - sizes[0])"),
        (
            "the constraint at the first chain's theta",
            "self._laws[c].extra(theta[c], left[c])",
            "self._laws[c].extra(theta[0], left[c])",
        ),
        (
            "the expansion without what is free",
            "np.linalg.slogdet(free)[1] - np.linalg.slogdet(known)[1]",
            "-np.linalg.slogdet(known)[1]",
        ),
        ("no weights of nodes", "A = self.weighed(gradient)", "A = gradient.reshape(-1, gradient.shape[2])"),
    ),
    *_of(
        "methods/rivals/pcal.py",
        "methods/test_pcal_closest.py",
        (
            "the metric is the identity",
            "weighted = problem.rule.weights[:, None, None] * problem.metric",
            "weighted = problem.rule.weights[:, None, None] * np.eye(problem.data.q)",
        ),
        ("no halving", "size = np.where(worse, size / 2, size)", "size = size * 1"),
    ),
    *_of(
        "results/predict/predict.py",
        "results/test_predicted_noise.py",
        (
            "a point's own noise is ignored at the data",
            "roots = record.noise_roots(keep, x) if own is None else np.linalg.cholesky(own)",
            "roots = record.noise_roots(keep, x)",
        ),
        ("the noise root transposed", '"...ij,...j->...i", noise_root', '"...ji,...j->...i", noise_root'),
    ),
    *_of(
        "results/record.py",
        "results/test_predicted_noise.py",
        (
            "the noise of the first draws",
            "sampled is None else sampled[:, keep][:, :, None]",
            "sampled is None else sampled[:, : len(keep)][:, :, None]",
        ),
    ),
    *_of(
        "results/checks/run_diagnostics.py",
        "results/test_curvature.py",
        ("points count alike", "problem.volumes[:, None] *", "np.full((problem.data.n, 1), 1 / problem.data.n) *"),
        ("without the metric", "(problem.whiten(bias) @ problem.metric)", "problem.whiten(bias)"),
        (
            "the curvature has the wrong sign",
            "np.linalg.solve(gram - product, gram)",
            "np.linalg.solve(gram + product, gram)",
        ),
    ),
    *_of(
        "problem/domain/domain.py",
        "problem/test_domain.py",
        (
            "cells of unequal sides",
            "cKDTree((rows - lower) / (upper - lower)).query((points - lower) / (upper - lower))",
            "cKDTree(rows - lower).query(points - lower)",
        ),
        ("cells end at their points", "np.clip((rows[1:, 0] + rows[:-1, 0]) / 2, lower", "np.clip(rows[1:, 0], lower"),
        ("weights that sum to two to the d", "np.meshgrid(*[weights / 2] * d", "np.meshgrid(*[weights] * d"),
    ),
    *_of(
        "problem/search/best_fit.py",
        "problem/test_merging.py",
        (
            "W with a missing cell struck out",
            "observed_precision(np.linalg.inv(weight), observed)",
            "weight * (observed[:, :, None] & observed[:, None, :])",
        ),
    ),
    *_of(
        "regression/weighted_points.py",
        "regression/test_weighted_points.py",
        (
            "weighted points without the density of their proposals",
            "log_weights = density - mixture",
            "log_weights = density",
        ),
    ),
    *_of(
        "emulators/gp_hyperparameters.py",
        "emulators/test_gp_hyperparameters.py",
        (
            "hyperparameters of few runs without their prior",
            "return of_means(values) - scatter / 2 + log_prior(values, runs.known)",
            "return of_means(values) - scatter / 2",
        ),
        (
            "noise of few runs that is drawn by its density alone",
            "level = here + np.log1p(-rng.random())",
            "level = here",
        ),
    ),
    *_of(
        "emulators/gp.py",
        "emulators/test_gp_hyperparameters.py",
        ("draws of few runs with the likeliest hyperparameters", "fitted = fitted.redrawn(rng)", "rng.random()"),
    ),
    *_of(
        "emulators/gp.py",
        "emulators/test_kriging.py",
        (
            "variance without the error of the trend",
            "- (explained**2).sum(axis=0) + (of_trend**2).sum(axis=0)",
            "- (explained**2).sum(axis=0)",
        ),
        (
            "variance without noise",
            "(np.maximum(own, 0.0) + left)[:, None]",
            "np.maximum(own, 0.0)[:, None]",
        ),
        (
            "covariance without the trend",
            "own - explained.T @ explained + of_trend.T @ of_trend",
            "own - explained.T @ explained",
        ),
    ),
    *_of(
        "emulators/components.py",
        "emulators/test_kriging.py",
        (
            "a scale for its square",
            "(scale.scale**2 * variance(unit)[0])",
            "(scale.scale * variance(unit)[0])",
        ),
        (
            "a scale for its square between the points",
            "error_var = scale.scale**2 * fitted.variance(inputs(x))",
            "error_var = scale.scale * fitted.variance(inputs(x))",
        ),
        (
            "interpolation without an error",
            "left_var = error_var @ np.append(1.0, basis.scores.var(axis=0)) + basis.left_var.mean()",
            "left_var = error_var[:, 0] * 0 + basis.left_var.mean()",
        ),
    ),
    *_of(
        "emulators/error_reduction.py",
        "test_refinement.py::test_the_best_run_is_taken_then_the_best_beside_it "
        "test_refinement.py::test_an_outcome_with_less_noise_counts_for_more",
        ("no division by the variance", " / np.where(var > 0, var, np.inf)", ""),
        (
            "no update after a pick",
            "covariance -= np.outer(column, column) / own_var",
            "covariance -= 0 * np.outer(column, column)",
        ),
        (
            "no scale of the components",
            "(projector[:, :, k] @ functions.T) * scale.scale / sd[:, None]",
            "(projector[:, :, k] @ functions.T) / sd[:, None]",
        ),
        ("not in posterior sds", "* scale.scale / sd[:, None]", "* scale.scale"),
        ("W not inverted", "weight = np.linalg.inv(noise_cov)", "weight = noise_cov"),
    ),
    *_of(
        "projection.py",
        "test_projection.py",
        (
            "nodes count alike",
            'np.einsum("kqr,krp->kqp", weighted, own.reshape(at_nodes.shape))',
            'np.einsum("qr,krp->kqp", metric / len(weights), own.reshape(at_nodes.shape))',
        ),
        (
            "too much is taken away",
            "projected = at_data - coefficient @ self.directions.T",
            "projected = at_data - 2 * coefficient @ self.directions.T",
        ),
        (
            "without the metric",
            'np.einsum("k,kqi,qr,krj->ij", weights, gradient, metric, gradient)',
            'np.einsum("k,kqi,kqj->ij", weights, gradient, gradient)',
        ),
    ),
    *_of(
        "kernels/laplace.py",
        "kernels/test_bounds.py::test_the_density_of_truncated_proposals "
        "kernels/test_bounds.py::test_truncated_proposals_at_one_bound_are_the_truncated_gaussian",
        ("a density without its size", "top + np.log(-np.expm1(log_ndtr(low) - top))", "top"),
        (
            "the later coordinates forgotten",
            "middle = self.centre[:, j] + np.sum(self.root[:, j] * z, axis=1)",
            "middle = self.centre[:, j]",
        ),
    ),
    *_of(
        "regression/gaussian_process.py",
        "regression/test_gaussian_process.py",
        (
            "the log determinant of the basis dropped",
            "value += 2 * np.log(np.abs(np.diag(triangle))).sum()",
            "value += 0.0",
        ),
        ("half a log determinant", "value = 2 * np.log(np.diag(lower)).sum()", "value = np.log(np.diag(lower)).sum()"),
        ("the slope of the sd halved", "slope(2 * var * k)", "slope(var * k)"),
        (
            "noise that does not differ",
            "noise_slope = noise_var * float(np.diag(change) @ relative)",
            "noise_slope = noise_var * float(np.diag(change).sum())",
        ),
    ),
    *_of(
        "kernels/base.py",
        "contract/test_kernels.py::TestEveryKernel kernels/test_reversible.py",
        ("a ratio of densities squared", "(np.log1p(-uniform) < log_ratio)", "(np.log1p(-uniform) < 2 * log_ratio)"),
        ("a likelihood without its half", "log_likelihood = -0.5 * np.einsum", "log_likelihood = -1.0 * np.einsum"),
        (
            "the slope of the prior forgotten",
            "np.asarray(slope + self.base.parameters.log_prior_gradient(state.theta))",
            "np.asarray(slope)",
        ),
    ),
    *_of(
        "bias/gp_sampler.py",
        "exact/test_several_outcomes.py",
        ("the prior counts twice", "H[np.diag_indices_from(H)] += 1.0", "H[np.diag_indices_from(H)] += 2.0"),
        (
            "outcomes that are not coupled",
            "one.T @ (precision[:, k, m, None] * other if",
            "one.T @ (precision[:, k, m, None] * other * (k == m) if",
        ),
    ),
    *_of(
        "problem/noise/noise.py",
        "problem/test_noise.py",
        (
            "a whitener of the covariance",
            "return np.asarray((vectors / np.sqrt(values)) @ vectors.T / sd)",
            "return np.asarray((vectors * np.sqrt(values)) @ vectors.T / sd)",
        ),
        (
            "missing cells by rows of the inverse",
            "result[np.ix_(rows, cells, cells)] = np.linalg.inv(part)",
            "result[np.ix_(rows, cells, cells)] = np.linalg.inv(each[rows])[np.ix_(range(len(rows)), cells, cells)]",
        ),
    ),
    *_of(
        "regression/gaussian_process.py",
        "regression/test_gaussian_process.py",
        (
            "a slope of the odds as of the correlation itself",
            "0.0, k * (1 - label_correlation(lengthscale[j]))",
            "0.0, k",
        ),
        ("labels that differ count as the same", "np.where(a[:, j, None] == b[:, j], 1.0,", "np.where(True, 1.0,"),
    ),
    *_of(
        "regression/tree_kernels.py",
        "bias/test_one_hot.py",
        ("every label counts as an input", "if skip < shares[v]:", "if skip < open_shares(tree, k, cuts, shares) / 6:"),
    ),
    *_of(
        "problem/domain/labels.py",
        "problem/test_label_domain.py exact/test_categorical.py",
        ("volumes of all labels together", "own = self.labels.same(x, row)", "own = np.ones(len(x), dtype=bool)"),
        ("labels that weigh the same whatever is said", "if not given:", "if True:"),
    ),
]
