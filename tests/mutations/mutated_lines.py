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
            "change without the prior of the old children",
            "ratio -= log_unsplit_children(old_lo, old_hi, np.int64(tree[k, CUT]), variables, p)",
            "ratio -= 0.0",
        ),
        (
            "change without its evidence",
            "ratio += log_evidence(precision, weighted, leaf_var) + log_evidence(other_precision,",
            "ratio += log_evidence(other_precision, other_weighted, leaf_var) + log_evidence(other_precision,",
        ),
        (
            "swap without a finite prior ratio",
            "ratio = log_prior(tree, cuts, chances) - old",
            "ratio = 0.0 if log_prior(tree, cuts, chances) > -np.inf else -np.inf",
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
        (
            "a leaf that cannot split pays for it",
            "p = chances[tree[k, DEPTH]] if count > 0 else 0.0",
            "p = chances[tree[k, DEPTH]]",
        ),
        ("children that cannot split pay for it", "right = p if count > 1 or hi > cut + 1 else 0.0", "right = p"),
    ),
]
