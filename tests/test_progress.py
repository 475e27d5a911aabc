"""Progress bars appear where they are wanted, on a terminal, after a second."""

import io
import os
import pty
import re
import subprocess
import sys
import termios
import time
from types import SimpleNamespace

import numpy as np
import pytest

from orthocal.progress import progress_bar, progress_shown, silenced
from orthocal.regression import compiled

SLOW = """
import time, numpy as np, orthocal as oc
from scipy import stats

def slow(x, theta):
    time.sleep(0.002)
    return theta[0] * x[:, 0]

x = np.linspace(0, 1, 20)[:, None]
problem = oc.Problem(x, np.sin(x[:, 0]), slow, {"a": stats.norm(0, 10)}, oc.Box(0, 1), noise_cov=0.01, starts=2)
oc.calibrate(problem, draws=250, warmup=0, chains=4, seed=1, progress=PROGRESS)
"""


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_no_bar_unless_wanted_and_on_a_terminal(monkeypatch):
    items = [1, 2, 3]
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert progress_bar(items, "work") is items
    with progress_shown(True):
        assert progress_bar(items, "work") is not items
        assert list(progress_bar(items, "work")) == items
        with progress_shown(False):
            assert progress_bar(items, "work") is items
    assert progress_bar(items, "work") is items
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress_shown(True):
        assert progress_bar(items, "work") is items


def test_quiet_wins_over_those_who_want_a_bar(monkeypatch):
    items = [1, 2, 3]
    monkeypatch.setattr(sys, "stderr", Terminal())
    with silenced(True), progress_shown(True):
        assert progress_bar(items, "work") is items
        with silenced(False):
            assert progress_bar(items, "work") is items
    with silenced(False), progress_shown(True):
        assert progress_bar(items, "work") is not items


def test_a_bar_says_rate_and_remaining_time(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress_shown(True):
        bar = progress_bar(range(10), "work")
        bar.delay, bar.start_t = 0.0, bar.start_t - 4.0
        for _ in zip(range(2), bar, strict=False):
            pass
        bar.update(1)
        shown = str(bar)
        bar.close()
    assert re.search(r"work: +\d+%.*/10 \[00:0\d<00:\d\d, +[\d.]+(it/s|s/it)\]", shown), shown


def seen_on_a_terminal(progress: bool) -> str:
    """What a terminal shows of a calibration that takes about two seconds."""
    parent, child = pty.openpty()
    termios.tcsetwinsize(child, (24, 100))
    code = SLOW.replace("PROGRESS", str(progress))
    subprocess.run([sys.executable, "-c", code], stderr=child, check=True, timeout=120)
    os.close(child)
    shown = b""
    try:
        while part := os.read(parent, 65536):
            shown += part
    except OSError:
        pass  # the end of a terminal that nobody writes to
    os.close(parent)
    return shown.decode()


@pytest.mark.slow
def test_a_long_calibration_shows_a_bar_on_a_terminal():
    assert "projection" in seen_on_a_terminal(True)


@pytest.mark.slow
def test_a_bar_that_is_not_wanted_is_not_shown():
    assert seen_on_a_terminal(False) == ""


@pytest.mark.slow
def test_long_blocks_are_announced(monkeypatch):
    from orthocal.progress import announced

    for wanted, seconds, expected in ((True, 1.3, "compiling\n"), (True, 0.0, ""), (False, 1.3, "")):
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        with progress_shown(wanted), announced("compiling"):
            time.sleep(seconds)
        assert terminal.getvalue() == expected


def test_the_first_updates_of_a_chain_have_a_bar_and_later_ones_none(monkeypatch):
    shown, updated = [], []
    monkeypatch.setattr(compiled, "progress_bar", lambda items, label: shown.append((len(items), label)) or items)

    class Counting(compiled.CompiledSampler):
        title, start_updates = "counting", 7

        def empty(self):
            return SimpleNamespace(fit=np.zeros(3))

        def update(self, rng, state, response, starting, noise_scale):
            updated.append(starting)

    rngs = [np.random.default_rng(seed) for seed in range(2)]
    state, _ = Counting().draw(rngs, None, np.zeros((2, 3)))
    # one to compile, then seven for each of two chains
    assert updated == [True] * 15
    Counting().draw(rngs, state, np.zeros((2, 3)))
    assert updated == [True] * 15 + [False] * 2
    assert shown == [(7, "first updates of counting")]
