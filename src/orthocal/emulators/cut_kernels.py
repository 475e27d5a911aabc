"""Cut points move within the gaps between the rows' values, which no row notices: compiled.

Between two neighbouring values of an input all cuts fit equally well, and only the prior says where a tree cuts. A
sweep rarely moves a cut above others, so the mean over the draws would jump where it should interpolate.
"""

from __future__ import annotations

import numpy as np

from ..machine.compiling import entry
from ..regression.tree_kernels import CHILD, CUT, DEPTHS, FREE, LEAF, PARENT, SLOTS, VARIABLE, cut_range, log_prior


@entry
def move_cuts(rng, nodes, cuts, shares, gap_low, gap_high, alpha, beta):
    """One Metropolis step in place for every inner node: a cut of the same gap, ``gap_low`` to ``gap_high`` - 1.

    The gaps (k, most cuts) are those of each cut; the likelihood stays what it is. The number of cuts that moved.
    """
    chances = np.empty(DEPTHS)
    for depth in range(DEPTHS):
        chances[depth] = alpha * (1.0 + depth) ** (-beta)
    moved = 0
    for t in range(len(nodes)):
        tree = nodes[t]
        if tree[0, CHILD] == LEAF:
            continue
        prior = log_prior(tree, cuts, shares, chances)
        for k in range(SLOTS):
            if tree[k, PARENT] == FREE or tree[k, CHILD] == LEAF:
                continue
            v, old = np.int64(tree[k, VARIABLE]), np.int64(tree[k, CUT])
            lo, hi = cut_range(tree, k, v, cuts)
            lo, hi = max(lo, gap_low[v, old]), min(hi, gap_high[v, old])
            cut = lo + int(rng.random() * (hi - lo))
            if cut == old:
                continue
            tree[k, CUT] = cut
            proposed = log_prior(tree, cuts, shares, chances)
            if np.log(1 - rng.random()) < proposed - prior:
                prior = proposed
                moved += 1
            else:
                tree[k, CUT] = old
    return moved
