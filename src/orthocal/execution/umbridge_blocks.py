"""Where theta and x stand among the input blocks of a UM-Bridge model, and the outcomes in its output."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Literal

from ..arrays import Array
from ..errors import InputError, SimulatorError
from .umbridge_protocol import Call, RemoteModel


class Blocks:
    """The part of ``oc.UMBridge`` that makes questions of x and theta, and outcomes of answers."""

    model: str
    by: Literal["point", "outcome"]
    points: Array | None
    x_block: int | None
    x_config: str | None
    config: dict[str, Any]
    fixed: dict[int, Array]
    outputs: list[int] | None
    _remote: RemoteModel

    @property
    def _own_points(self) -> Array:
        assert self.points is not None
        return self.points

    def _rows(self, x: Array | None) -> list[int] | None:
        """Which of the model's own points those of x are; None where it takes x."""
        if x is None or self.x_block is not None or self.x_config is not None:
            return None
        if self.points is None:
            raise InputError(
                f"how the model {self.model!r} takes x is not known: give points=, if its output are the values at "
                "points of its own, or x_block= or x_config="
            )
        known = self._places
        rows = [known.get(row.tobytes(), -1) for row in x + 0.0]
        if -1 in rows:
            other = ", ".join(f"{one:g}" for one in x[rows.index(-1)])
            raise InputError(
                f"the model {self.model!r} gives its values at {len(self.points)} points of its own, x = {other} is "
                "not one of them: give the problem domain=oc.Points(points), or in a problem file [domain] file = ..."
            )
        return rows

    @cached_property
    def _places(self) -> dict[bytes, int]:
        # -0.0 is 0.0; of points that are given twice the first counts
        return {row.tobytes(): i for i, row in reversed(list(enumerate(self._own_points + 0.0)))}

    def _shaped(self, block: Array, m: int) -> Array:
        """A block of outputs at m points, (m, k)."""
        if not block.size or block.size % m:
            raise SimulatorError(
                f"the model {self.model!r} returned {block.size} values in an output block, for {m} points: give its "
                "own points, or choose its output blocks by outputs="
            )
        return block.reshape(m, -1) if self.by == "point" else block.reshape(-1, m).T

    def _chosen(self, blocks: list[Array]) -> list[Array]:
        wanted = range(len(blocks)) if self.outputs is None else self.outputs
        if any(not 0 <= number < len(blocks) for number in wanted):
            raise InputError(
                f"outputs={list(wanted)}: the model {self.model!r} has {len(blocks)} output blocks, numbered from 0"
            )
        return [blocks[number] for number in wanted]

    def _calls(self, x: Array | None, theta: Array) -> list[Call]:
        """What the model is asked: once, or for each point where it takes one at a time."""
        if x is None or self.x_block is None:
            return [self._call(x, theta)]
        own = self._size_of_x()
        if own == x.size:
            return [self._call(x, theta)]
        if own != x.shape[1]:
            raise InputError(
                f"input block {self.x_block} of the model {self.model!r} takes {own} numbers: it can be one point x, "
                f"with {x.shape[1]}, or all {len(x)} of them, with {x.size}"
            )
        return [self._call(row[None], theta) for row in x]

    def _size_of_x(self) -> int:
        sizes, block = self._remote.input_sizes(self.config), self.x_block
        assert block is not None
        if not 0 <= block < len(sizes):
            raise InputError(f"x_block={block}: the model {self.model!r} has {len(sizes)} input blocks, from number 0")
        return sizes[block]

    def _call(self, x: Array | None, theta: Array) -> Call:
        config = dict(self.config)
        if x is not None and self.x_config is not None:
            config[self.x_config] = x.tolist()
        sizes = self._remote.input_sizes(config)
        places = [
            (number, place)
            for number, size in enumerate(sizes)
            if number not in self.fixed and number != self.x_block
            for place in range(size)
        ]
        if len(places) != len(theta):
            raise InputError(
                f"the model {self.model!r} has input blocks of {' + '.join(map(str, sizes)) or '0'} numbers, of which "
                f"theta fills {len(places)}, but there are {len(theta)} parameters: give blocks that are neither theta "
                "nor x by fixed="
            )
        values = iter(theta.tolist())
        blocks = [self._block(number, size, x, values) for number, size in enumerate(sizes)]
        return Call(blocks, config, places)

    def _block(self, number: int, size: int, x: Array | None, values: Iterator[float]) -> list[float]:
        if number in self.fixed:
            return self.fixed[number].ravel().tolist()
        if number == self.x_block:
            # where only sizes are asked for any will do
            return [0.0] * size if x is None else x.ravel().tolist()
        return [next(values) for _ in range(size)]

    def _chosen_sizes(self, call: Call) -> list[tuple[int, int]]:
        """Number and size of every output block that is used."""
        sizes = self._remote.output_sizes(call.config)
        return [(b, sizes[b]) for b in (range(len(sizes)) if self.outputs is None else self.outputs)]
