"""How the compiled parts are compiled: what is called from Python, what only compiled code calls, loops over data.

Compiling takes seconds at a user's first call, so the compiled code is written for that, too:

- What only compiled code calls has no wrapper for Python, and no cache, as the cache of its caller contains it.
- What is read from arrays of small integers becomes int64: a function is compiled for each type of its arguments.
- There are loops in place of array expressions and of assignments to slices, whose code for the message that shapes do
  not match alone takes 3 s.
- Division by zero gives inf or nan, as in NumPy: an error would be a branch at each division.
- Sums are taken in the order in which they stand, so that the numbers do not depend on what the cache held. With
  LLVM's fast mathematics orbits took 6 % less, and differed in the 13th digit when they had just been compiled.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from multiprocessing import parent_process
from typing import Any

import numba
from numba.core.caching import FunctionCache

from ..errors import OrthocalWarning

# its stubs leave options out, or types
njit: Any = numba.njit
function_cache: Any = FunctionCache

#: called by compiled code only
part = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy")
#: loops over data in which sums may be reordered, so that the compiler makes vector instructions of them: at n = 10000
#: that is five times as fast; infinities stay what they are. Inlined: where several entries shared such a function, the
#: last digits of the galaxy's orbits differed between a process that compiled it and one that loaded it
vector_part = njit(
    no_cpython_wrapper=True,
    no_cfunc_wrapper=True,
    error_model="numpy",
    forceinline=True,
    fastmath={"reassoc", "contract", "nsz"},
)


def entry(function: Callable[..., Any], **options: Any) -> Any:
    """``function`` compiled, called from Python, in threads; the compiled code is kept on disk where that is possible.

    No installation is refused for the want of a cache: the code is then compiled in every process anew.
    """
    compiled = njit(nogil=True, error_model="numpy", **options)(function)
    try:
        compiled._cache = _Cache(function)
    except RuntimeError:  # numba has found no folder to write to
        _say_that_nothing_is_kept()
    return compiled


class _Cache:
    """numba's cache on disk, without which all goes on: the disk may be full, or what is there damaged."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._kept: Any = function_cache(function)

    def load_overload(self, *given: Any) -> Any:
        try:
            return self._kept.load_overload(*given)
        except Exception:  # whatever a damaged file makes pickle raise
            _say_that_nothing_is_kept()
            return None

    def save_overload(self, *given: Any) -> None:
        try:
            self._kept.save_overload(*given)
        except Exception:  # it reads what is there first
            _say_that_nothing_is_kept()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kept, name)


@cache
def _say_that_nothing_is_kept() -> None:
    """Once, and not in every process that calls a simulator."""
    if parent_process() is None:
        warnings.warn(
            "compiled code cannot be kept on disk, so that every process compiles it anew, some seconds each time: set "
            "the environment variable NUMBA_CACHE_DIR to a folder that can be written",
            OrthocalWarning,
            stacklevel=4,
        )
