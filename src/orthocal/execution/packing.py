"""States as bytes: numbers, text, arrays and our own tuples and dataclasses; reading them runs no code of a file.

The bytes are a JSON skeleton and after it the arrays' values. An array comes back with the layout in memory that it
had: the order of a sum, and with it the last bit of a draw, may depend on it.
"""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import fields, is_dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from ..errors import FileError

Values: TypeAlias = NDArray[Any]

#: kinds of numbers that an array may hold: truth values, whole numbers and floats
KINDS = "biuf"
#: bytes of the digest, and of the skeleton's length
DIGEST, LENGTH = 16, 8
#: an array that is spread over more than so many times its own size in memory comes back without its gaps
MOST_SPREAD = 100


class UnpackableError(TypeError):
    """Something that cannot be stored: a function, or an object of a class that is not ours."""


def pack(value: object) -> bytes:
    """A value as bytes that begin with their digest."""
    arrays: list[Values] = []
    skeleton = json.dumps(_outlined(value, arrays)).encode()
    values = [_plain(one) for one in arrays if one.size]
    parts: list[bytes | memoryview] = [len(skeleton).to_bytes(LENGTH, "big"), skeleton, *values]
    return b"".join([_digest(*parts), *parts])


def unpack(packed: bytes) -> Any:
    """What ``pack`` was given; a ``FileError`` where the bytes are damaged."""
    content = memoryview(packed)[DIGEST:]
    if len(packed) < DIGEST + LENGTH or _digest(content) != packed[:DIGEST]:
        raise FileError("its digest does not fit")
    end = LENGTH + int.from_bytes(content[:LENGTH], "big")
    try:
        return _Reader(content[end:]).filled(json.loads(bytes(content[LENGTH:end])))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise FileError(f"it holds something unknown ({error})") from None


def _plain(array: Values) -> memoryview:
    """Its values row by row; not copied where they lie so."""
    values: Any = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return memoryview(values)


def _digest(*parts: bytes | memoryview) -> bytes:
    total = hashlib.blake2b(digest_size=DIGEST)
    for part in parts:
        total.update(part)
    return total.digest()


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
    if value.dtype.kind not in KINDS:
        raise UnpackableError(f"an array of {value.dtype}")
    arrays.append(value)
    return {"array": [value.dtype.str, list(value.shape), list(value.strides)]}


def _outlined_object(value: object, arrays: list[Values]) -> dict[str, Any]:
    kind = type(value)
    name = f"{kind.__module__}:{kind.__qualname__}"
    if _ours(name) is not kind:
        raise UnpackableError(f"an object of {kind.__module__}.{kind.__qualname__}")
    each = value if isinstance(value, tuple) else [getattr(value, one.name) for one in fields(value)]  # type: ignore[arg-type]
    return {"ours": [name, [_outlined(one, arrays) for one in each]]}


def _ours(name: str) -> Any:
    """The named tuple or dataclass of that name in a module of ours that is loaded already; None if there is none."""
    module, _, own = name.partition(":")
    if not module.startswith(f"{__package__.partition('.')[0]}."):
        return None
    found = getattr(sys.modules.get(module), own, None)
    if not isinstance(found, type) or found.__module__ != module:
        return None
    return found if is_dataclass(found) or (issubclass(found, tuple) and hasattr(found, "_fields")) else None


class _Reader:
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
            made = _ours(own[0])
            if made is None:
                raise ValueError(own[0])
            return made(*(self.filled(one) for one in own[1]))
        if kind == "number":
            return self._array(own["array"])[()]
        return bytes.fromhex(own) if kind == "bytes" else self._array({"array": own}[kind])

    def _array(self, own: list[Any]) -> Values:
        dtype, shape, strides = np.dtype(own[0]), tuple(own[1]), tuple(own[2])
        if dtype.kind not in KINDS or len(strides) != len(shape):
            raise ValueError(f"an array of {dtype}")
        count = int(np.prod(shape, dtype=np.int64))
        plain = np.frombuffer(self._values[: count * dtype.itemsize], dtype).reshape(shape)
        self._values = self._values[count * dtype.itemsize :]
        laid_out = _like(plain, strides)
        laid_out[...] = plain
        return laid_out


def _like(values: Values, strides: tuple[int, ...]) -> Values:
    """An array that can be written, of the shape of ``values`` and with these strides."""
    ahead = [(size - 1) * step for size, step in zip(values.shape, strides, strict=True)]
    before, after = -sum(one for one in ahead if one < 0), sum(one for one in ahead if one > 0)
    spread = before + after + values.itemsize
    if not values.size or any(step % values.itemsize for step in strides) or spread > MOST_SPREAD * values.nbytes:
        return np.empty_like(values)
    buffer = np.empty(spread // values.itemsize, values.dtype)
    return as_strided(buffer[before // values.itemsize :], values.shape, strides)
