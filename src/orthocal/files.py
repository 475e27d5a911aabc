"""Files: written whole or not at all, with a digest that shows damage."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from .errors import InputError


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """A path to write to, which becomes ``path`` at the end, or nothing if the writing fails."""
    target = Path(path)
    if target.is_dir() or not target.parent.is_dir():
        problem = "is a folder" if target.is_dir() else "lies in a folder that does not exist"
        raise InputError(f"cannot write {target}: it {problem}")
    with tempfile.TemporaryDirectory(prefix=".writing-", dir=target.parent) as folder:
        draft = Path(folder) / "draft"
        yield draft
        os.replace(draft, target)


def digest(data: xr.DataTree) -> str:
    """SHA-256 of all names, dimensions, values and attributes. It shows damage, it is no signature."""
    total = hashlib.sha256()
    for node in sorted(data.subtree, key=lambda node: node.path):
        dataset = node.to_dataset(inherit=False)
        _add(total, node.path, _plain(node.attrs))
        for name in sorted(dataset.variables, key=str):
            variable = dataset.variables[name]
            _add(total, str(name), list(variable.dims), list(variable.shape), _plain(variable.attrs))
            values = np.asarray(variable.values)
            if values.dtype.kind in "biuf":
                total.update(np.ascontiguousarray(values, dtype="<f8").tobytes())
            else:
                _add(total, [str(value) for value in values.ravel()])
    return total.hexdigest()


def _add(total: hashlib._Hash, *parts: Any) -> None:
    total.update(json.dumps(parts, sort_keys=True).encode())


def _plain(attributes: Mapping[Any, Any]) -> dict[str, Any]:
    return {
        str(name): value.tolist() if isinstance(value, np.ndarray | np.generic) else value
        for name, value in attributes.items()
    }
