"""A Dask cluster that the user has started: connected to with our errors, and left without noise."""

from __future__ import annotations

import logging
from concurrent.futures import Executor
from contextlib import ExitStack
from importlib import import_module
from importlib.metadata import version
from typing import Any

from ..errors import KEPT, InputError, OrthocalError

#: seconds to wait for a cluster and its first worker
PATIENCE = 15

GONE = f"the Dask cluster is gone; {KEPT}"


class DaskCluster:
    """The client of a cluster; Dask itself runs the tasks of a killed worker again.

    ``option`` says that the address was given as --cluster, for the errors.
    """

    def __init__(self, address: str, option: bool = False) -> None:
        self._address = address
        needing, name, it = ("--cluster", "--cluster", "the cluster") if option else ("a cluster", "cluster", "it")
        try:
            # an extra, and without types
            distributed: Any = import_module("distributed")
        except ImportError:
            raise InputError(f"{needing} needs Dask: pip install 'orthocal[dask]'") from None
        try:
            # a client that is made for a wrong address complains again when the program ends
            distributed.comm.resolve_address(address)
            self.client = distributed.Client(address, timeout=PATIENCE, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            raise InputError(f"{name} {address}: there is no Dask scheduler ({error})") from None
        try:
            self.client.wait_for_workers(1, timeout=PATIENCE)
        except BaseException as error:
            self.close()
            if not isinstance(error, TimeoutError):
                raise
            raise InputError(f"{name} {address}: {it} has no workers, start one with `dask worker`") from None

    def require_this_version(self) -> None:
        """Leave a cluster whose workers have another version of orthocal, or none."""
        with ExitStack() as leaving:
            leaving.callback(self.close)
            try:
                versions = set(self.client.run(_version).values())
            except ImportError:
                versions = {"none"}
            if versions != {_version()}:
                raise InputError(
                    f"--cluster {self._address}: the workers have orthocal {', '.join(sorted(versions))}, "
                    f"this is {_version()}: install the same version on all"
                )
            leaving.pop_all()

    def executor(self) -> Executor:
        # a task that runs again is another task for Dask, which would give back the first result
        executor: Executor = self.client.get_executor(pure=False)
        return executor

    @property
    def threads(self) -> list[int]:
        """The number of threads of each worker; workers come and go."""
        try:
            return list(self.client.nthreads().values())
        except OSError:
            raise OrthocalError(GONE) from None

    @property
    def width(self) -> int:
        """Number of tasks to keep in flight: two a thread, so that none waits for the next task."""
        return 2 * max(1, sum(self.threads))

    def close(self) -> None:
        # a client that has lost its scheduler logs a traceback; our error says it in a line
        loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client")]
        levels = [logger.level for logger in loggers]
        try:
            for logger in loggers:
                logger.setLevel(logging.CRITICAL)
            self.client.close()
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)


def _version() -> str:
    return version("orthocal")
