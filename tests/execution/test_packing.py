"""States as bytes: all that a sampler holds comes back, with its layout in memory, and nothing of a file is run."""

from pathlib import Path

import numpy as np
import pytest

from orthocal.errors import FileError
from orthocal.execution.checkpoints.keeping import UnpackableError, pack, pack_alike, unpack
from orthocal.kernels.base import ThetaState

VALUES = np.random.default_rng(0).normal(size=(4, 5, 6))
ARRAYS = {
    "plain": VALUES,
    "transposed": VALUES.T,
    "every other": VALUES[:, ::2],
    "backwards": VALUES[::-1],
    "a part": VALUES[:, :3],
    "repeated": np.broadcast_to(VALUES[0, 0], (3, 6)),
    "by columns": np.asfortranarray(VALUES[0]),
    "a number": np.array(3.5),
    "nothing": np.empty((0, 3)),
    "codes": np.arange(5, dtype=np.int16),
    "truth": VALUES > 0,
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_keep_values_and_layout_and_can_be_written(name):
    array = ARRAYS[name]
    found = unpack(pack(array))
    assert found.dtype == array.dtype
    assert np.array_equal(found, array)
    assert not array.size or found.strides == array.strides
    found[...] = 0


def test_nested_values_keep_their_types():
    rng = np.random.default_rng(1)
    rng.standard_normal(3)
    value = {"a": (1, 2.5, None, True, "x", float("inf")), b"k": [ThetaState(VALUES, VALUES[0], np.float64(2))], 3: ()}
    found = unpack(pack(value))
    assert found["a"] == value["a"]
    assert isinstance(found[b"k"][0], ThetaState)
    assert isinstance(found[b"k"][0].log_prior, np.float64)
    assert list(found) == ["a", b"k", 3]
    assert unpack(pack(rng.bit_generator.state)) == rng.bit_generator.state


@pytest.mark.parametrize("value", [print, object(), Path("x"), np.array([None]), {"a": lambda: 0}])
def test_what_is_not_ours_cannot_be_stored(value):
    with pytest.raises(UnpackableError):
        pack(value)


def test_no_class_of_a_file_is_made_that_is_not_ours():
    for name in ("os:system", "subprocess:Popen", "orthocal.files:Path", "orthocal.execution.checkpoints.keeping:pack"):
        packed = pack({"tuple": 1})
        made = packed[16:].replace(b'{"dict": [["tuple", 1]]}', f'{{"ours": ["{name}", ["echo"]]}}'.encode())
        length = (len(made) - 8).to_bytes(8, "big") + made[8:]
        from orthocal.execution.checkpoints.keeping import _digest

        with pytest.raises(FileError, match=name.replace(".", r"\.")):
            unpack(_digest(length) + length)


def rows():
    """Draws as a chain keeps them: of two sizes, with a layout of their own, some without a part."""
    for number in range(60):
        size = 5 + number % 2
        values = np.arange(4.0 * size).reshape(size, 4).T + number
        yield ThetaState(values, np.float64(number), {"kind": np.int16([number]), "parts": (values[:, ::2], None)})


def same(one, other):
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.strides == other.strides and np.array_equal(one, other)
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[name], other[name]) for name in one)
    if isinstance(one, tuple | list):
        return type(one) is type(other) and all(same(*each) for each in zip(one, other, strict=True))
    return type(one) is type(other) and one == other


@pytest.mark.parametrize(
    "values",
    [
        list(rows()),
        [VALUES.T + number for number in range(5)],
        [*rows(), VALUES, None],
        [(1, VALUES), (2,)],
        [{"a": 1}, {"b": VALUES}],
        [{}, {}],
        [(), ()],
        [[VALUES], [VALUES[0]]],
        [],
    ],
)
def test_many_values_come_back_as_each_alone(values):
    found = unpack(pack_alike(values))
    assert same(found, values)
    assert same(found, unpack(pack(values)))


def test_many_values_are_outlined_once():
    draws = [ThetaState(VALUES + number, VALUES[0], VALUES[0, 0]) for number in range(60)]
    values = sum(one.nbytes for one in draws[0])
    each, of_all = len(pack(draws[0])) - values, len(pack_alike(draws)) - len(draws) * values
    assert of_all < len(draws) * each / 10


def test_what_is_not_ours_cannot_be_stored_among_many():
    for values in ([print, print], [(print,), (print,)], [np.array([None])] * 2, [{"a": Path("x")}] * 2):
        with pytest.raises(UnpackableError):
            pack_alike(values)


@pytest.mark.parametrize("packed", [pack([VALUES, "text"]), pack_alike([(VALUES, 1), (VALUES, 2)])])
def test_damage_is_seen(packed):
    for place in range(0, len(packed), 37):
        damaged = bytearray(packed)
        damaged[place] ^= 1
        with pytest.raises(FileError):
            unpack(bytes(damaged))
    for length in (0, 10, len(packed) - 1):
        with pytest.raises(FileError):
            unpack(packed[:length])
