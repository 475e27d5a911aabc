"""The compiled walk through the trees of a forest."""

from __future__ import annotations

import numpy as np

from ..machine.compiling import entry


@entry
def walk(roots, left, right, feature, threshold, value, inputs, means):
    """Add to means (M, r) the mean over trees of the leaf values (nodes, r) that the inputs (M, k) end in."""
    for m in range(len(inputs)):
        for root in roots:
            node = root
            while left[node] >= 0:
                # single precision, in which the trees were grown
                if np.float32(inputs[m, feature[node]]) <= threshold[node]:
                    node = root + left[node]
                else:
                    node = root + right[node]
            for k in range(means.shape[1]):
                means[m, k] += value[node, k]
        for k in range(means.shape[1]):
            means[m, k] /= len(roots)
