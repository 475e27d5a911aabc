"""How the compiled parts are compiled: what is called from Python, what only compiled code calls, loops over data.

Compiling takes seconds at a user's first call, so the compiled code is written for that, too:

- What only compiled code calls has no wrapper for Python, and no cache, as the cache of its caller contains it.
- What is read from arrays of small integers becomes int64: a function is compiled for each type of its arguments.
- There are loops in place of array expressions and of assignments to slices, whose code for the message that shapes do
  not match alone takes 3 s.
- Division by zero gives inf or nan, as in NumPy: an error would be a branch at each division.
"""

from __future__ import annotations

from typing import Any

import numba

# its stubs leave options out
njit: Any = numba.njit

#: called from Python, in threads
entry = njit(cache=True, nogil=True, error_model="numpy")
#: called by compiled code only
part = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy")
#: loops over data in which sums may be reordered, so that the compiler makes vector instructions of them: at n = 10000
#: that is five times as fast; infinities stay what they are
vector_part = njit(
    no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"}
)
