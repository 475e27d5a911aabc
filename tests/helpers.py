"""What many tests share: settings and generators of samplers, means of batches, field data, short chains."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import ExitStack
from unittest.mock import patch

import numpy as np

import orthocal as oc
from orthocal.bias import Setting
from orthocal.examples import TWO_OUTCOMES


def setting(x, nodes=None, noise_var=None, residual=None, unit=1.0):
    """What a prior is given, with unit noise and some residual where nothing else is said."""
    n, d = x.shape
    return Setting(
        x=x,
        nodes=np.empty((0, d)) if nodes is None else nodes,
        span=np.ones(d),
        noise_var=np.ones(n) if noise_var is None else noise_var,
        residual=np.linspace(-1, 1, n) if residual is None else residual,
        gradient=np.ones((n, 1)),
        unit=unit,
    )


def generators(count, seed=0):
    return [np.random.default_rng(one) for one in np.random.SeedSequence(seed).spawn(count)]


def unit_inputs(rng, n, d):
    """Points whose range is [0, 1] in each input, so that scaling changes nothing."""
    x = rng.random((n, d))
    return (x - x.min(axis=0)) / np.ptp(x, axis=0)


def batch_means(draws, batches=40):
    """Mean of each column of autocorrelated draws (s, f), and its standard error."""
    means = np.array(draws, dtype=float).reshape(batches, -1, np.shape(draws)[1]).mean(axis=1)
    return means.mean(axis=0), means.std(axis=0, ddof=1) / np.sqrt(batches)


def batch_z(draws, truth, truth_error=0.0):
    """z of the mean of autocorrelated draws (s, f)."""
    mean, error = batch_means(draws)
    return (mean - truth) / np.hypot(error, truth_error)


def line(x, theta):
    return theta[0] * x[:, 0]


def short(problem, method="pgp", draws=50, seed=1, **options):
    """A posterior of two short chains."""
    return oc.calibrate(problem, method, draws=draws, warmup=50, chains=2, seed=seed, progress=False, **options)


def row_by_row():
    """A context in which rows with the same x are not merged anywhere: what merging must agree with."""
    stack = ExitStack()
    for name, module in list(sys.modules.items()):
        if name.startswith("orthocal.") and "repeated_rows" in vars(module):
            stack.enter_context(patch.object(module, "repeated_rows", lambda rows: None))
    return stack


def two_outcomes(seed=0, n=60):
    """Field data of the test problem with two outcomes."""
    return TWO_OUTCOMES.simulate(np.random.default_rng(seed), n)


def with_holes(y, share=0.2, seed=1):
    return np.where(np.random.default_rng(seed).random(y.shape) < share, np.nan, y)


def largest_error(posterior):
    """The largest of the draws' orthogonality errors."""
    return float(posterior.data["sample_stats"]["orthogonality_error"].max())


def emptied(path, *names):
    """The SQLite file with an empty page in the place of the first one of each table or index, as damage can leave it.

    ``sqlite_master`` is the list of all tables.
    """
    with sqlite3.connect(path) as file:
        size = file.execute("PRAGMA page_size").fetchone()[0]
        pages = dict(file.execute("SELECT name, rootpage FROM sqlite_master"))
    file.close()
    content = bytearray(path.read_bytes())
    for name in names:
        # https://www.sqlite.org/fileformat.html: kind of the page (a leaf is 8 more), first free block, number of cells
        start = 100 if name == "sqlite_master" else (pages[name] - 1) * size
        content[start] |= 8
        content[start + 1 : start + 5] = bytes(4)
    path.write_bytes(content)
