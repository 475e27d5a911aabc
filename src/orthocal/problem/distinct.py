"""The distinct points of an array that is asked for many times."""

from __future__ import annotations

from ..arrays import Array, IntArray, repeated_rows

#: arrays of points whose repeats are remembered
REMEMBERED = 16


class DistinctPoints:
    """Remembers how the rows of the last arrays repeat; these are not changed in between."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Array, Array, IntArray | slice]] = {}

    def __call__(self, x: Array) -> tuple[Array, IntArray | slice]:
        """The distinct rows of x, in their order, and which of them each row is; x itself where all are."""
        known = self._known.get(id(x))
        # the array is kept, so that no other can have its id
        if known is None or known[0] is not x:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            repeats = repeated_rows(x)
            known = (x, x, slice(None)) if repeats is None else (x, x[repeats.first], repeats.place)
            self._known[id(x)] = known
        return known[1:]
