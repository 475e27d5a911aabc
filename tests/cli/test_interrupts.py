"""Ctrl-C at any moment of start-up is one sentence and exit code 130."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import orthocal as oc

# Ctrl-C on a terminal goes to every process of the group
INTERRUPTING = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, *_):
        if name == os.environ.get("INTERRUPTED_AT") and os.environ["AMONG"] in " ".join(sys.orig_argv):
            os.environ["INTERRUPTED_AT"] = ""
            open("interrupted", "w").close()
            os.killpg(0, signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
"""
SENTENCE = "error: interrupted; files that had been written are complete\n"


@pytest.fixture
def interrupted(small, tmp_path_factory):
    """The program, interrupted when a module is asked for by a process whose command line has certain words."""
    hook = tmp_path_factory.mktemp("hook")
    (hook / "sitecustomize.py").write_text(INTERRUPTING)

    def run(module, words=("run", "problem.toml"), among="main"):
        path = os.pathsep.join([str(hook), str(Path(oc.__file__).parents[1])])
        environment = {**os.environ, "PYTHONPATH": path, "INTERRUPTED_AT": module, "AMONG": among}
        command = [sys.executable, "-c", "from orthocal.cli import main; main()", *words]
        return subprocess.run(
            command, cwd=small, env=environment, capture_output=True, text=True, check=False, start_new_session=True
        )

    return run


@pytest.mark.parametrize("module", ["orthocal.cli.commands", "typer", "numpy"])
def test_while_it_loads(interrupted, module):
    run = interrupted(module)
    assert (run.returncode, run.stderr) == (130, SENTENCE)
    assert run.stdout == ""


COLLECTED = """
import os, signal, time, weakref

class Collected:
    pass

calls = []

def simulate(x, theta):
    calls.append(1)
    if len(calls) == 3:
        one = Collected()
        kept = weakref.ref(one, lambda _: os.kill(os.getpid(), signal.NAME))
        del one
        for _ in range(1000):
            time.sleep(0.01)
        os._exit(99)
    return theta[0] * x[:, 0]
"""


@pytest.mark.parametrize(("name", "code"), [pytest.param("SIGINT", 130, marks=pytest.mark.slow), ("SIGTERM", 143)])
def test_where_nothing_can_be_raised(small, name, code):
    """Of an error in what is called when an object is collected Python only says that it was ignored."""
    (small / "simulator.py").write_text(COLLECTED.replace("NAME", name))
    command = [sys.executable, "-c", "from orthocal.cli import main; main()", "run", "problem.toml"]
    run = subprocess.run(command, cwd=small, capture_output=True, text=True, check=False)
    assert run.returncode == code
    assert run.stderr.startswith("error: interrupted")
    assert run.stderr.count("\n") == 1


LOADED = """
import sys
from orthocal.cli import main
before = set(sys.modules)
try:
    main()
finally:
    print(*sorted(set(sys.modules) - before), file=open("loaded", "w"))
"""


@pytest.mark.slow
def test_at_every_module(interrupted, small):
    """Some of the modules that a run loads, at every stage of it; a few come by other ways than an import."""
    subprocess.run([sys.executable, "-c", LOADED, "run", "problem.toml"], cwd=small, check=True, capture_output=True)
    modules = (small / "loaded").read_text().split()
    assert len(modules) > 500
    tried = 0
    for module in modules[::40]:
        run = interrupted(module)
        if (small / "interrupted").exists():
            (small / "interrupted").unlink()
            assert (run.returncode, run.stderr) == (130, SENTENCE), module
            tried += 1
    assert tried > 10


@pytest.mark.slow
def test_where_python_itself_would_lose_it(interrupted):
    """xml.etree takes every error of this import for a missing part, and does without."""
    run = interrupted("pyexpat")
    assert (run.returncode, run.stderr) == (130, SENTENCE)


@pytest.mark.slow
def test_while_processes_for_the_simulator_start(interrupted, small):
    """They are in the same group, and say nothing."""
    file = small / "problem.toml"
    file.write_text(file.read_text().replace('simulate"\n', 'simulate"\njobs = 2\n', 1))
    # so slow that processes are worth their start
    slow = "import time\n" + (small / "simulator.py").read_text().replace(
        "    return", "    time.sleep(0.3)\n    return"
    )
    (small / "simulator.py").write_text(slow)
    run = interrupted("orthocal.execution.work.processes", among="spawn_main")
    assert (run.returncode, run.stderr) == (130, SENTENCE)


def test_a_command_may_answer_by_itself(monkeypatch, program):
    import typer

    def answered(*_):
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            typer.echo("error: interrupted; all is kept", err=True)
            raise typer.Exit(130) from None

    monkeypatch.setattr("orthocal.config.experiments_file.read_any_file", answered)
    ended = program("run", "problem.toml")
    assert (ended.code, ended.err) == (130, "error: interrupted; all is kept\n")


@pytest.mark.parametrize("raised", [KeyboardInterrupt, ImportError])
def test_an_interrupt_that_ends_as_another_error(monkeypatch, program, raised):
    def interrupts(*_):
        try:
            os.kill(os.getpid(), signal.SIGINT)
        except KeyboardInterrupt:
            raise raised("half a module") from None

    monkeypatch.setattr("orthocal.config.experiments_file.read_any_file", interrupts)
    before = signal.getsignal(signal.SIGINT)
    ended = program("run", "problem.toml")
    assert (ended.code, ended.err) == (130, SENTENCE)
    assert signal.getsignal(signal.SIGINT) is before


def test_an_error_without_an_interrupt_keeps_its_traceback(monkeypatch, program):
    def fails(*_):
        raise ZeroDivisionError

    monkeypatch.setattr("orthocal.config.experiments_file.read_any_file", fails)
    with pytest.raises(ZeroDivisionError):
        program("run", "problem.toml")
