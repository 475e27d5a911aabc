"""Questions to servers over HTTP: spread over them, repeated where one is gone, and ended when they must be."""

from __future__ import annotations

import json
import os
import re
import socket
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from threading import Condition, Lock
from time import monotonic
from typing import Any
from urllib.parse import urlsplit
from weakref import finalize

from ...errors import InputError, OrthocalWarning, SimulatorError, shortened
from ..work.simulation import GoneError

#: seconds to wait for a connection, and for a server that has never answered: it may still be starting
CONNECTING, STARTING = 10.0, 10.0
#: seconds before a server that is gone is asked again: at first, and at most, doubling in between
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
#: seconds between two looks whether the work was ended meanwhile
LOOK = 0.2
#: what a server, or a load balancer before it, says when it cannot take a question now
BUSY = (429, 502, 503, 504)

# Python's server writes its own words for what JSON has none
_NOT_FINITE = re.compile(r"(?<![\w\"'])(nan|inf)(?![\w\"'])", re.IGNORECASE)

#: a question is one small packet and must not wait for another; a computer that is switched off is noticed in 2 minutes
_OPTIONS = [
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), value)
        for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4))
        if hasattr(socket, name)
    ),
]


class AnswerError(SimulatorError):
    """A server has answered that it cannot; ``kind`` is its word for the mistake, if it has one."""

    def __init__(self, text: str, kind: str | None) -> None:
        super().__init__(text)
        self.kind = kind


class _UnreachableError(Exception):
    """No question was taken."""


class _BrokenError(Exception):
    """The server has gone while it had the question."""


@dataclass
class _Server:
    url: str
    busy: int = 0
    reached: bool = False
    #: since when it is gone, why, when it is asked again, and the pause before that
    gone_since: float | None = None
    why: str = ""
    rests_until: float = 0.0
    pause: float = FIRST_PAUSE
    idle: list[HTTPConnection] = field(default_factory=list)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
            raise InputError(f'url={self.url!r}: give the address of a server, for instance "http://localhost:4242"')
        try:
            self._place = (parts.hostname, parts.port)
        except ValueError as error:
            raise InputError(f"url={self.url!r}: {error}") from None
        self._kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._prefix = parts.path.rstrip("/")

    def connection(self) -> tuple[HTTPConnection, bool]:
        """An open connection, and whether it was used before: the server may have closed such a one."""
        with suppress(IndexError):
            return self.idle.pop(), True
        fresh = self._kind(*self._place, timeout=CONNECTING)
        try:
            fresh.connect()
        except OSError as error:
            raise _UnreachableError(_in_words(error)) from None
        for level, option, value in _OPTIONS:
            fresh.sock.setsockopt(level, option, value)
        return fresh, False

    def ask(self, connection: HTTPConnection, path: str, body: bytes | None, timeout: float | None) -> HTTPResponse:
        connection.sock.settimeout(timeout)
        method, headers = ("GET", {}) if body is None else ("POST", {"Content-Type": "application/json"})
        connection.request(method, f"{self._prefix}/{path}", body, headers)
        return connection.getresponse()


class Servers:
    """Servers that answer alike.

    Parameters
    ----------
    urls
        Their addresses.
    each
        Questions that one of them takes at a time.
    retries
        How often a question is asked again whose server has gone while it had it.
    wait
        Seconds to wait for a server that has answered before, when all are gone.
    """

    def __init__(self, urls: Sequence[str], each: int, retries: int, wait: float) -> None:
        self._settings = (tuple(urls), each, retries, wait)
        self._begin()

    def __reduce__(self) -> tuple[type[Servers], tuple[Any, ...]]:
        return Servers, self._settings

    def _begin(self) -> None:
        self._servers = [_Server(url.rstrip("/")) for url in self._settings[0]]
        self._close = finalize(self, _closed, self._servers)
        self._process, self._changed, self._next = os.getpid(), Condition(), 0

    @property
    def width(self) -> int:
        """Questions at a time."""
        return len(self._settings[0]) * self._settings[1]

    @property
    def words(self) -> str:
        return ", ".join(self._settings[0])

    def ask(self, path: str, question: dict[str, Any] | None, timeout: float | None = None, work: str = "") -> Any:
        """What a server answers, as JSON; ``work`` is a name by which the question can be ended.

        It may be a part of another, ``"work/part"``.
        """
        if self._process != os.getpid():
            # a copy of the process that has the connections
            self._close()
            self._begin()
        body = None if question is None else json.dumps(question, allow_nan=False).encode()
        broken = 0
        while True:
            server = self._taken(work)
            try:
                return self._asked(server, path, body, timeout, work)
            except _UnreachableError as error:
                self._rest(server, str(error))
            except _BrokenError as error:
                self._rest(server, str(error))
                broken += 1
                if broken > self._settings[2]:
                    raise AnswerError(
                        f"{server.url} has gone {broken} times while it computed this ({error}): not asked again", None
                    ) from None
            finally:
                with self._changed:
                    server.busy -= 1
                    self._changed.notify()

    def _asked(self, server: _Server, path: str, body: bytes | None, timeout: float | None, work: str) -> Any:
        connection, used = server.connection()
        kept = False
        try:
            with _listed(connection, work):
                response = server.ask(connection, path, body, timeout)
                text, status = response.read(), response.status
                kept = not response.will_close
        except (OSError, HTTPException) as error:
            _refuse_ended(work)
            # of the connection itself it has a number
            if isinstance(error, TimeoutError) and error.errno is None:
                raise SimulatorError(
                    f"{server.url} gave no answer in {timeout:g} s (time-out): give a longer one, or mend the server"
                ) from None
            if used:
                # the server may have closed it long ago
                for other in (connection, *server.idle):
                    other.close()
                server.idle.clear()
                return self._asked(server, path, body, timeout, work)
            raise _BrokenError(_in_words(error)) from None
        finally:
            if kept:
                server.idle.append(connection)
            else:
                connection.close()
        if status in BUSY:
            raise _UnreachableError(f"HTTP status {status}")
        self._answered(server)
        return _answer(server.url, path, status, text)

    def _taken(self, work: str) -> _Server:
        """A server that is free, as soon as there is one."""
        with self._changed:
            while True:
                _refuse_ended(work)
                now = monotonic()
                order = [*self._servers[self._next :], *self._servers[: self._next]]
                # one that was gone is asked one question first
                free = [
                    one
                    for one in order
                    if one.busy < (self._settings[1] if one.gone_since is None else 1) and one.rests_until <= now
                ]
                if free:
                    chosen = min(free, key=lambda one: (one.gone_since is not None, one.busy))
                    chosen.busy += 1
                    self._next = (self._servers.index(chosen) + 1) % len(self._servers)
                    return chosen
                self._refuse_gone(now)
                until = min((one.rests_until for one in self._servers if one.rests_until > now), default=now + LOOK)
                self._changed.wait(min(LOOK, until - now))

    def _refuse_gone(self, now: float) -> None:
        """An error where all servers are gone for too long."""
        said = []
        for one in self._servers:
            patience = self._settings[3] if one.reached else min(STARTING, self._settings[3])
            if one.gone_since is None or now < one.gone_since + patience:
                return
            since = f"does not answer for {now - one.gone_since:.3g} s" if one.reached else "cannot be reached"
            said.append(f"{one.url} {since} ({one.why})")
        for one in self._servers:
            # who asks again begins to wait again
            one.gone_since, one.rests_until, one.pause = None, 0.0, FIRST_PAUSE
        raise GoneError(f"{'; '.join(said)}: start the server again, or mend the address")

    def _rest(self, server: _Server, why: str) -> None:
        """It is gone, and asked again after a pause."""
        with self._changed:
            now, new = monotonic(), server.gone_since is None
            server.gone_since, server.why = now if server.gone_since is None else server.gone_since, why
            server.rests_until, server.pause = now + server.pause, min(2 * server.pause, LONGEST_PAUSE)
            alone = all(one.gone_since is not None for one in self._servers)
        if new and server.reached:
            then = f"it is waited for, up to {self._settings[3]:g} s" if alone else "the others take its work"
            warnings.warn(f"{server.url} is gone ({why}): {then}", OrthocalWarning, stacklevel=2)

    def _answered(self, server: _Server) -> None:
        with self._changed:
            server.reached, server.gone_since, server.pause, server.rests_until = True, None, FIRST_PAUSE, 0.0
            self._changed.notify_all()


def _closed(servers: list[_Server]) -> None:
    for server in servers:
        while server.idle:
            server.idle.pop().close()


def _answer(url: str, path: str, status: int, text: bytes) -> Any:
    """The JSON of an answer, or what it says about a failure."""
    words = text.decode(errors="replace")
    try:
        answer = _parsed(words)
    except ValueError:
        answer = None
    error = answer.get("error") if isinstance(answer, dict) else None
    if isinstance(error, dict):
        kind, message = str(error.get("type")), shortened(str(error.get("message")))
        raise AnswerError(f"{url} says {kind}: {message}", kind)
    if status >= 500:
        # what has gone wrong is known to the server alone
        raise AnswerError(f"{url} failed: {shortened(' '.join(words.split()))}", None)
    if status != 200 or not isinstance(answer, dict):
        given = f"HTTP status {status}" if status != 200 else f"{shortened(words, 60)!r}"
        raise SimulatorError(f"{url} is no UM-Bridge server: it answers {path} by {given}")
    return answer


def _parsed(words: str) -> Any:
    try:
        return json.loads(words)
    except ValueError:
        return json.loads(_NOT_FINITE.sub(lambda found: "NaN" if found[1].lower() == "nan" else "Infinity", words))


def _in_words(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no connection in time"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error) or type(error).__name__


_lock = Lock()
_open: defaultdict[str, set[HTTPConnection]] = defaultdict(set)
_ended: set[str] = set()


@contextmanager
def _listed(connection: HTTPConnection, work: str) -> Iterator[None]:
    """Known to ``end_questions`` while an answer is waited for."""
    with _lock:
        _open[work].add(connection)
    try:
        _refuse_ended(work)
        yield
    finally:
        with _lock:
            _open[work].discard(connection)
            if not _open[work]:
                del _open[work]


def end_questions(work: str) -> None:
    """Wait for no answer any more that this process waits for in a work or its parts, and ask no more."""
    with _lock:
        _ended.add(work)
        for name, connections in _open.items():
            if work in (name, name.partition("/")[0]):
                for connection in connections:
                    with suppress(OSError, AttributeError):  # it may be closed already
                        connection.sock.shutdown(socket.SHUT_RDWR)


def _refuse_ended(work: str) -> None:
    if work in _ended or work.partition("/")[0] in _ended:
        raise SimulatorError("the work was ended while a server was asked")
