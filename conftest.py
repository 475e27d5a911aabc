"""For the tests of all distributions: signals as a terminal gives them, and tests whose extra is not installed."""

from __future__ import annotations

import re
import signal
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

import pytest

import orthocal as oc

#: extra -> a module that comes with it
EXTRAS = {
    "jax": "jax",
    "dask": "distributed",
    "learn": "sklearn",
    "umbridge": "umbridge",
    "fmpy": "fmpy",
}


@contextmanager
def skipped_without_extra() -> Iterator[None]:
    """Skip where the package itself says that an extra is needed which is really not there."""
    try:
        yield
    except oc.OrthocalError as error:
        named = re.search(r"orthocal\[(\w+)\]", str(error))
        if named is None or find_spec(EXTRAS[named[1]]) is not None:
            raise
        pytest.skip(str(error))


def pytest_configure() -> None:
    """Ctrl-C and Ctrl-\\ are not ignored, nor by what tests start: shells do so to all that is in the background."""
    for one, answer in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL)):
        if signal.getsignal(one) is signal.SIG_IGN:
            signal.signal(one, answer)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Generator[None, object, object]:
    with skipped_without_extra():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, object, object]:
    with skipped_without_extra():
        return (yield)
