"""Where a calibration stands, so that it can go on: in memory, for more draws; ``checkpoint_file`` does it on disk."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from functools import lru_cache
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from ...arrays import Array
from ...errors import FileError

# States as bytes: numbers, text, arrays and our own tuples and dataclasses; reading them runs no code of a file.
#
# The bytes are a JSON skeleton and after it the arrays' values. An array comes back with the layout in memory that it
# had: the order of a sum, and with it the last bit of a draw, may depend on it. Many values of one shape, as the draws
# of a chain, are outlined by their columns: once for all of them, and not each by itself.

Values: TypeAlias = NDArray[Any]
Steps: TypeAlias = tuple[int, ...]

#: kinds of numbers that an array may hold: truth values, whole numbers and floats
KINDS = "biuf"
#: bytes of the digest, and of the skeleton's length
DIGEST, LENGTH = 16, 8
#: an array that is spread over more than so many times its own size in memory comes back without its gaps
MOST_SPREAD = 100


class UnpackableError(TypeError):
    """Something that cannot be stored: a function, or an object of a class that is not ours."""


def pack(value: object) -> bytearray:
    """A value as bytes that begin with their digest."""
    arrays: list[Values] = []
    return _packed(_outlined(value, arrays), arrays)


def pack_alike(values: list[Any]) -> bytearray:
    """As ``pack``, for a list of values that mostly have one shape: faster, and smaller."""
    arrays: list[Values] = []
    return _packed({"columns": _column(values, arrays)}, arrays)


def _packed(outline: object, arrays: list[Values]) -> bytearray:
    skeleton = json.dumps(outline).encode()
    # type checkers of Python 3.11 do not know that arrays are buffers
    values: list[Any] = [_plain(one) for one in arrays if one.size]
    # all is copied once: the digest, known last, is put in its place afterwards
    packed = bytearray().join([bytes(DIGEST), len(skeleton).to_bytes(LENGTH, "big"), skeleton, *values])
    packed[:DIGEST] = _digest(memoryview(packed)[DIGEST:])
    return packed


def unpack(packed: bytes | bytearray) -> Any:
    """What ``pack`` was given; a ``FileError`` where the bytes are damaged."""
    content = memoryview(packed)[DIGEST:]
    if len(packed) < DIGEST + LENGTH or _digest(content) != packed[:DIGEST]:
        raise FileError("its digest does not fit")
    end = LENGTH + int.from_bytes(content[:LENGTH], "big")
    try:
        return _ArrayReader(content[end:]).filled(json.loads(bytes(content[LENGTH:end])))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise FileError(f"it holds something unknown ({error})") from None


def _plain(array: Values) -> Values:
    """Its values in the order in which they lie in memory, and not copied; row by row where they lie with gaps."""
    axes = _axes(array.shape, array.strides, array.itemsize)
    return np.ascontiguousarray(array) if axes is None else array.transpose(axes)


@lru_cache(maxsize=1024)
def _axes(shape: Steps, strides: Steps, itemsize: int) -> Steps | None:
    """The order of axes in which an array lies in memory without gaps; None where there is none."""
    # where an axis of one value steps to says nothing
    axes = sorted(range(len(shape)), key=lambda axis: (shape[axis] > 1, -strides[axis]))
    expected = itemsize
    for axis in reversed(axes):
        if shape[axis] > 1 and strides[axis] != expected:
            return None
        expected *= shape[axis]
    return tuple(axes)


def _digest(content: bytes | bytearray | memoryview) -> bytes:
    # faster than others where the processor knows it, which most do
    return hashlib.sha256(content).digest()[:DIGEST]


def _outlined(value: object, arrays: list[Values]) -> Any:
    """The skeleton of a value, with arrays put aside; what is no plain JSON is {kind: ...}."""
    if isinstance(value, np.ndarray):
        return _outlined_array(value, arrays)
    if isinstance(value, np.generic):
        return {"number": _outlined_array(np.asarray(value), arrays)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, dict):
        return {"dict": [[_outlined(key, arrays), _outlined(one, arrays)] for key, one in value.items()]}
    if isinstance(value, list):
        return [_outlined(one, arrays) for one in value]
    if type(value) is tuple:
        return {"tuple": [_outlined(one, arrays) for one in value]}
    return _outlined_object(value, arrays)


def _outlined_array(value: Values, arrays: list[Values]) -> dict[str, Any]:
    arrays.append(value)
    return {"array": _layout(value.dtype, value.shape, value.strides)}


def _layout(dtype: np.dtype[Any], shape: Steps, strides: Steps) -> list[Any]:
    if dtype.kind not in KINDS:
        raise UnpackableError(f"an array of {dtype}")
    return [dtype.str, list(shape), list(strides)]


def _column(values: list[Any], arrays: list[Values]) -> dict[str, Any]:
    """The skeleton of many values: column by column, or one after another where they are not alike."""
    kinds, first = set(map(type, values)), values[0] if values else None
    if kinds == {np.ndarray}:
        arrays.extend(values)
        # the trees of most draws have one of a few sizes
        layouts: dict[Any, int] = {}
        which = [layouts.setdefault((one.dtype, one.shape, one.strides), len(layouts)) for one in values]
        return {"arrays": [[_layout(*one) for one in layouts], which]}
    if len(kinds) == 1 and isinstance(first, tuple) and first and len(set(map(len, values))) == 1:
        parts = [_column(list(one), arrays) for one in zip(*values, strict=True)]
        return {"tuples": ["" if type(first) is tuple else _name(first), parts]}
    if kinds == {dict} and first and len({tuple(one) for one in values}) == 1:
        return {"dicts": [[_outlined(key, arrays), _column([one[key] for one in values], arrays)] for key in first]}
    return {"each": [_outlined(one, arrays) for one in values]}


def _outlined_object(value: object, arrays: list[Values]) -> dict[str, Any]:
    name = _name(value)
    each = value if isinstance(value, tuple) else [getattr(value, one.name) for one in fields(value)]  # type: ignore[arg-type]
    return {"ours": [name, [_outlined(one, arrays) for one in each]]}


def _name(value: object) -> str:
    """Of its class, which must be ours."""
    kind = type(value)
    name = f"{kind.__module__}:{kind.__qualname__}"
    if _ours(name) is not kind:
        raise UnpackableError(f"an object of {kind.__module__}.{kind.__qualname__}")
    return name


def _ours(name: str) -> Any:
    """The named tuple or dataclass of that name in a module of ours that is loaded already; None if there is none."""
    module, _, own = name.partition(":")
    if not module.startswith(f"{__package__.partition('.')[0]}."):
        return None
    found = getattr(sys.modules.get(module), own, None)
    if not isinstance(found, type) or found.__module__ != module:
        return None
    return found if is_dataclass(found) or (issubclass(found, tuple) and hasattr(found, "_fields")) else None


class _ArrayReader:
    """Fills a skeleton with the arrays whose values follow it, in their order."""

    def __init__(self, values: memoryview) -> None:
        self._values = values

    def filled(self, outline: Any) -> Any:
        if isinstance(outline, list):
            return [self.filled(one) for one in outline]
        if not isinstance(outline, dict):
            return outline
        ((kind, own),) = outline.items()
        if kind == "dict":
            return {self.filled(key): self.filled(one) for key, one in own}
        if kind == "tuple":
            return tuple(self.filled(one) for one in own)
        if kind == "ours":
            return _made(own[0], [self.filled(one) for one in own[1]])
        if kind == "columns":
            return self._column(own)
        if kind == "number":
            return self._array(own["array"])[()]
        return bytes.fromhex(own) if kind == "bytes" else self._array({"array": own}[kind])

    def _column(self, outline: dict[str, Any]) -> list[Any]:
        """The values that ``_column`` outlined."""
        ((kind, own),) = outline.items()
        if kind == "arrays":
            layouts, which = own
            return [self._array(layouts[one]) for one in which]
        if kind == "tuples":
            rows = zip(*[self._column(one) for one in own[1]], strict=True)
            return [_made(own[0], row) if own[0] else row for row in rows]
        if kind == "dicts":
            names = [(self.filled(key), self._column(one)) for key, one in own]
            return [dict(row) for row in zip(*([(name, one) for one in each] for name, each in names), strict=True)]
        return [self.filled(one) for one in {"each": own}[kind]]

    def _array(self, own: list[Any]) -> Values:
        dtype, shape, strides = np.dtype(own[0]), tuple(own[1]), tuple(own[2])
        if dtype.kind not in KINDS or len(strides) != len(shape):
            raise ValueError(f"an array of {dtype}")
        count = int(np.prod(shape, dtype=np.int64))
        plain = np.frombuffer(self._values[: count * dtype.itemsize], dtype)
        self._values = self._values[count * dtype.itemsize :]
        axes = _axes(shape, strides, dtype.itemsize) if count else None
        if axes is not None:
            # a copy, as what it is read from cannot be written
            return as_strided(plain.copy(), shape, strides)
        laid_out = _like(plain.reshape(shape), strides)
        laid_out[...] = plain.reshape(shape)
        return laid_out


def _made(name: str, each: Iterable[Any]) -> Any:
    made = _ours(name)
    if made is None:
        raise ValueError(name)
    return made(*each)


def _like(values: Values, strides: tuple[int, ...]) -> Values:
    """An array that can be written, of the shape of ``values`` and with these strides."""
    ahead = [(size - 1) * step for size, step in zip(values.shape, strides, strict=True)]
    before, after = -sum(one for one in ahead if one < 0), sum(one for one in ahead if one > 0)
    spread = before + after + values.itemsize
    if not values.size or any(step % values.itemsize for step in strides) or spread > MOST_SPREAD * values.nbytes:
        return np.empty_like(values)
    buffer = np.empty(spread // values.itemsize, values.dtype)
    return as_strided(buffer[before // values.itemsize :], values.shape, strides)


#: bytes of kept draws beyond which memory does not hold them twice
MOST_HELD = 200_000_000
#: what is called: f, or its gradient
VALUES, GRADIENT = "f", "gradient"


class Standing(NamedTuple):
    """Where a loop stands: iterations done, all that an iteration changes, and the draws that it has kept."""

    iteration: int
    state: Any
    draws: list[Any]


class Keeper:
    """What a run may go on from. This one holds where its loops ended, if that is not too much."""

    def __init__(self) -> None:
        self._ended: dict[int, tuple[int, bytearray, list[Any]]] = {}
        self._loops = 0

    def again(self) -> Keeper:
        """For the same run with more draws: it goes on where these loops ended."""
        other = Keeper()
        other._ended = dict(self._ended)
        return other

    def begun(self) -> tuple[int, Standing | None]:
        """The number of the loop that begins, and where it stood."""
        self._loops += 1
        known = self._ended.get(self._loops)
        if known is None:
            return self._loops, None
        iteration, state, draws = known
        return self._loops, Standing(iteration, unpack(state), list(draws))

    def offered(self, loop: int, iteration: int, state: Callable[[], Any], draws: list[Any]) -> None:
        """Where a loop stands after an iteration, to be kept if it is time."""

    def ended(self, loop: int, iteration: int, state: Callable[[], Any], draws: list[Any]) -> None:
        """Where a loop has ended."""
        if draws and len(draws) * size_of(draws[-1]) > MOST_HELD:
            return
        # a sampler of the user's may hold anything in its state: then all begins again
        try:
            self._ended[loop] = (iteration, pack(state()), draws)
        except UnpackableError:
            self._ended.pop(loop, None)

    def known(self, label: str, x: Array, theta: Array) -> Values | None:
        """What a call of the simulator, or of its gradient, gave before the run was ended."""
        return None

    def record(self, label: str, x: Array, theta: Array, output: Any, seconds: float) -> None:
        """What a call gave, and how long it took."""


def size_of(value: object) -> int:
    """Bytes of the arrays in nested tuples and dicts."""
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    each = value.values() if isinstance(value, dict) else value if isinstance(value, tuple | list) else ()
    return sum(size_of(one) for one in each)


# a context, so that the code in between need not hand it down
_current: ContextVar[Keeper | None] = ContextVar("keeper", default=None)


@contextmanager
def kept_by(keeper: Keeper | None) -> Iterator[None]:
    """What runs in this block is kept there."""
    token = _current.set(keeper)
    try:
        yield
    finally:
        _current.reset(token)


def keeper_around() -> Keeper | None:
    """Of the run that is under way, if there is one."""
    return _current.get()


def keeper() -> Keeper:
    """Of the run that is under way; one that is forgotten where there is none."""
    return keeper_around() or Keeper()


def kept_call(label: str, x: Array, theta: Array, made: Callable[[], Any]) -> Any:
    """What a call of the simulator gives: what is known of it, or what ``made`` returns; that, without a label."""
    current = _current.get()
    if current is None or not label:
        return made()
    output = current.known(label, x, theta)
    if output is None:
        started = perf_counter()
        output = made()
        current.record(label, x, theta, output, perf_counter() - started)
    return output
