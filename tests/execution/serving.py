"""UM-Bridge servers on this machine: real ones in processes of their own, and pretended ones that start at once."""

import json
import math
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import numpy as np

#: of the models that take no x
POINTS = np.array([0.0, 0.5, 1.0, 2.0])
SCRIPT = Path(__file__).with_name("umbridge_server.py")


def free_port():
    with closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Server:
    """A server that can be killed and started again at the same place."""

    def __init__(self, signs=None, port=None):
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._signs = [] if signs is None else [str(signs)]
        self._process = None

    def start(self, wait=True):
        command = [sys.executable, str(SCRIPT), str(self.port), *self._signs]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while wait and not self.answers():
            assert time.monotonic() < end, "the server does not start"
            time.sleep(0.02)
        return self

    def answers(self):
        with suppress(OSError), closing(HTTPConnection("127.0.0.1", self.port, timeout=5)) as connection:
            connection.request("GET", "/Info")
            return connection.getresponse().status == 200
        return False

    def kill(self):
        self._process.kill()
        self._process.wait()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.kill()


def decay(x, theta):
    """What the servers compute, to the last bit."""
    return np.array([theta[0] * math.exp(-theta[1] * one) for one in np.ravel(x)])


def decay_gradient(x, theta):
    return np.array([[math.exp(-theta[1] * one), -theta[0] * one * math.exp(-theta[1] * one)] for one in np.ravel(x)])


class PretendedModel(BaseHTTPRequestHandler):
    """What the class says, to every question."""

    protocol_version = "HTTP/1.1"
    status, body, seen = 200, b"{}", 0

    def do_GET(self):
        self.answer(b'{"models": ["forward"]}')

    def do_POST(self):
        length = int(self.headers["Content-Length"])
        question = json.loads(self.rfile.read(length))
        kind = self.path.removeprefix("/")
        known = {
            "ModelInfo": b'{"support": {"Evaluate": true}}',
            "InputSizes": b'{"inputSizes": [2]}',
            "OutputSizes": b'{"outputSizes": [4]}',
        }
        assert question["name"] == "forward"
        self.answer(known.get(kind) or self.body, self.status if kind not in known else 200)

    def answer(self, body, status=200):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Pretended(ThreadingHTTPServer):
    """A server in this process, which can go and come back at the same place."""

    daemon_threads = True

    def __init__(self, kind, port=0):
        super().__init__(("127.0.0.1", port), kind)
        self.taken = []
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def process_request(self, request, client_address):
        self.taken.append(request)
        super().process_request(request, client_address)

    def go(self):
        """As if it was killed: who waits for an answer gets none."""
        self.shutdown()
        self.server_close()
        for one in self.taken:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request, client_address):
        pass


class PretendedDecay(PretendedModel):
    """The values at ``POINTS``, after a while."""

    asked, pause = 0, 0.01
    seeds: ClassVar[list[int | None]] = []

    def do_POST(self):
        if self.path != "/Evaluate":
            super().do_POST()
            return
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        (theta,) = question["input"]
        self.seeds.append(question["config"].get("seed"))
        type(self).asked += 1
        time.sleep(self.pause)
        self.answer(json.dumps({"output": [decay(POINTS, theta).tolist()]}).encode())
