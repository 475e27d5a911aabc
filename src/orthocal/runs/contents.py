"""What a table of runs holds: its sizes, points and output, and which runs have failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..arrays import Array, BoolArray, IntArray
from ..errors import InputError


class LongRuns(NamedTuple):
    """All runs below each other, one row a run and point: run (N,), x (N, d) and output (N, q)."""

    run: IntArray
    x: Array
    output: Array


class Contents:
    """The part of ``oc.RunTable`` that says what is in it."""

    theta: Array
    #: one block where all runs share their points, else one a run
    _x: tuple[Array, ...]
    _output: tuple[Array, ...]

    @property
    def s(self) -> int:
        """Number of runs.

        Examples
        --------
        >>> import orthocal as oc
        >>> runs = oc.RunTable([[1.0], [2.0], [3.0]], [[0.0, 1.0], [0.0, 2.0], [0.0, 3.0]], x=[0.0, 1.0])
        >>> runs.s
        3
        """
        return len(self.theta)

    @property
    def p(self) -> int:
        """Number of parameters.

        Examples
        --------
        >>> import orthocal as oc
        >>> oc.RunTable([[1.0, 5.0], [2.0, 5.0]], [[0.0, 1.0], [0.0, 2.0]], x=[0.0, 1.0]).p
        2
        """
        return int(self.theta.shape[1])

    @property
    def d(self) -> int:
        """Number of inputs.

        Examples
        --------
        >>> import orthocal as oc
        >>> oc.RunTable([[1.0], [2.0]], [[0.0, 1.0], [0.0, 2.0]], x=[[0.0, 0.0], [1.0, 0.5]]).d
        2
        """
        return int(self._x[0].shape[1])

    @property
    def q(self) -> int:
        """Number of outcomes.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> oc.RunTable([[1.0], [2.0]], np.zeros((2, 5, 3)), x=np.linspace(0, 1, 5)).q
        3
        """
        return int(self._output[0].shape[-1])

    @property
    def m(self) -> int:
        """Number of points that all runs share.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> oc.RunTable([[1.0], [2.0]], np.zeros((2, 5)), x=np.linspace(0, 1, 5)).m
        5
        """
        if self.ragged:
            raise InputError("each run has points of its own: there is no common m, see `points`")
        return len(self._x[0])

    @property
    def ragged(self) -> bool:
        """Whether each run has points of its own.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> own_points = [np.array([0.0, 0.5, 1.0]), np.array([0.2])]
        >>> oc.RunTable([[1.0], [2.0]], [np.zeros(3), np.zeros(1)], own_points).ragged
        True
        """
        return len(self._x) > 1

    @property
    def points(self) -> IntArray:
        """Number of points of each run, (s,).

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> own_points = [np.array([0.0, 0.5, 1.0]), np.array([0.2])]
        >>> oc.RunTable([[1.0], [2.0]], [np.zeros(3), np.zeros(1)], own_points).points
        array([3, 1])
        """
        counts = [len(one) for one in self._x] if self.ragged else [len(self._x[0])] * self.s
        return np.array(counts, dtype=np.intp)

    @property
    def x(self) -> Array | tuple[Array, ...]:
        """The points, (m, d); of a ragged table one (m_s, d) a run.

        Examples
        --------
        >>> import orthocal as oc
        >>> oc.RunTable([[1.0], [2.0]], [[0.0, 1.0], [0.0, 2.0]], x=[0.0, 1.0]).x
        array([[0.],
               [1.]])
        """
        return self._x if self.ragged else self._x[0]

    @property
    def output(self) -> Array | tuple[Array, ...]:
        """The output, (s, m, q); of a ragged table one (m_s, q) a run.

        Examples
        --------
        >>> import orthocal as oc
        >>> oc.RunTable([[1.0], [2.0]], [[0.0, 1.0], [0.0, 2.0]], x=[0.0, 1.0]).output.shape
        (2, 2, 1)
        """
        return self._output if self.ragged else self._output[0]

    @property
    def failed(self) -> BoolArray:
        """Runs without any output, (s,).

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> oc.RunTable([[1.0], [2.0]], [[0.0, 1.0], [np.nan, np.nan]], x=[0.0, 1.0]).failed
        array([False,  True])
        """
        return np.array([bool(np.isnan(one).all()) for one in self._runs], dtype=np.bool_)

    @property
    def complete(self) -> BoolArray:
        """Runs without a missing cell, (s,).

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> oc.RunTable([[1.0], [2.0]], [[0.0, 1.0], [0.0, np.nan]], x=[0.0, 1.0]).complete
        array([ True, False])
        """
        return np.array([not np.isnan(one).any() for one in self._runs], dtype=np.bool_)

    @property
    def long(self) -> LongRuns:
        """The runs below each other: ``run`` (N,), ``x`` (N, d) and ``output`` (N, q).

        Examples
        --------
        >>> import orthocal as oc
        >>> long = oc.RunTable([[1.0], [2.0]], [[0.0, 1.0], [0.0, 2.0]], x=[0.0, 1.0]).long
        >>> long.run, long.output[:, 0]
        (array([0, 0, 1, 1]), array([0., 1., 0., 2.]))
        """
        x = np.concatenate(self._x) if self.ragged else np.tile(self._x[0], (self.s, 1))
        return LongRuns(np.repeat(np.arange(self.s), self.points), x, np.concatenate(list(self._runs)))

    @property
    def _runs(self) -> Sequence[Array]:
        return self._output if self.ragged else list(self._output[0])
