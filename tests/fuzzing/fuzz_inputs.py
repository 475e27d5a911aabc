"""Good files, changed at random: bytes that are flipped, cut and moved, and texts that people and programs write."""

import re

import numpy as np

#: what may stand where a number stood, or anywhere
ODD = (
    *("", "0,5", "1_000", "1 000", "1.234,5", "0x10", "1e999", "-1e999", "1e-320", "nan", "NaN", "inf", "-inf", "true"),
    *(
        "9" * 5000,
        "1" * 400,
        "\u0661\u0662",
        "\u2212 1",
        "1D+03",
        "None",
        "NULL",
        "'1'",
        '"1"',
        '"',
        "#",
        "5",
        "-0.0",
        "\0",
    ),
    *("\\u0000", "\\ud800", "\ufeff", "[" * 20000, "{" * 5000, '{"a":' * 20000, "]" * 10, "# columns: 5", "m/s", "..."),
    *(
        "a" * 200_000,
        "\x85",
        "\u2028",
        "\r",
        "\n\n",
        "\t",
        ";",
        ",",
        ",,,",
        "|",
        "=",
        "..",
        "/",
        "*",
        "%s",
        "{0}",
        "$HOME",
    ),
)
NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?")


def changed_bytes(good: bytes, rng: np.random.Generator) -> bytes:
    """One to four changes of a binary file."""
    data = bytearray(good)
    for _ in range(int(rng.integers(1, 5))):
        if not data:
            break
        i, j = sorted(int(k) for k in rng.integers(0, len(data) + 1, 2))
        # most damage is small: a sector is the largest that a disk loses
        j = min(j, i + int(2 ** rng.uniform(0, 9)))
        at = min(i, len(data) - 1)
        kind = int(rng.integers(9))
        if kind <= 2:
            data[at] ^= 1 << int(rng.integers(8))
        elif kind == 3:
            data[at] = int(rng.integers(256))
        elif kind == 4:
            del data[i:j]
        elif kind == 5:
            data[i:i] = rng.bytes(j - i)
        elif kind == 6:
            data[i:j] = bytes(j - i)
        elif kind == 7:
            other = int(rng.integers(len(data)))
            data[i:j] = data[other : other + j - i]
        else:
            del data[i if rng.random() < 0.2 else len(data) - (j - i) :]
    return bytes(data)


def changed_text(good: bytes, rng: np.random.Generator) -> bytes:
    """One to three changes of a text file, or of its bytes."""
    if rng.random() < 0.25:
        return changed_bytes(good, rng)
    text = good.decode()
    for _ in range(int(rng.choice([1, 1, 1, 2, 3]))):
        text = _CHANGES[int(rng.integers(len(_CHANGES)))](text, rng)
    return text.encode("utf-8", "surrogatepass")


def _one(found, rng):
    return found[int(rng.integers(len(found)))] if found else None


def _number(text, rng):
    """Another text, or another number, in the place of a number."""
    place = _one(list(NUMBER.finditer(text)), rng)
    if place is None:
        return text
    number = repr(float(rng.normal() * 10.0 ** rng.integers(-300, 300)))
    new = number if rng.random() < 0.3 else str(ODD[int(rng.integers(len(ODD)))])
    return text[: place.start()] + new + text[place.end() :]


def _insert(text, rng):
    i = int(rng.integers(len(text) + 1))
    return text[:i] + str(ODD[int(rng.integers(len(ODD)))]) + text[i:]


def _delete(text, rng):
    i = int(rng.integers(len(text) + 1))
    return text[:i] + text[i + int(2 ** rng.uniform(0, 6)) :]


def _lines(text, rng):
    """A line is lost, said twice, or moved."""
    lines = text.split("\n")
    i, j = (int(k) for k in rng.integers(0, len(lines), 2))
    kind = int(rng.integers(3))
    line = lines[i] if kind == 1 else lines.pop(i)
    if kind:
        lines.insert(j, line)
    return "\n".join(lines)


def _letters(text, rng):
    """One character becomes another everywhere, or in one line."""
    pairs = (".,", ",;", ",\t", ", ", ",|", "\n\r", "\"'", "=:", "eE", "0O", "[(", "-\u2212")
    old, new = pairs[int(rng.integers(len(pairs)))]
    if rng.random() < 0.5:
        return text.replace(old, new)
    lines = text.split("\n")
    i = int(rng.integers(len(lines)))
    lines[i] = lines[i].replace(old, new)
    return "\n".join(lines)


def _cells(text, rng):
    """A cell more or less in a line."""
    lines = text.split("\n")
    i = int(rng.integers(len(lines)))
    cells = lines[i].split(",")
    k = int(rng.integers(len(cells)))
    if rng.random() < 0.5:
        cells.insert(k, str(ODD[int(rng.integers(len(ODD)))]))
    else:
        del cells[k]
    lines[i] = ",".join(cells)
    return "\n".join(lines)


_CHANGES = (_number, _number, _insert, _delete, _lines, _letters, _cells)
