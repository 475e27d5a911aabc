"""Programs as simulators: what they are given, what is read, and how they end."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from test_campaigns import gone

import orthocal as oc
from orthocal.errors import InputError, OrthocalWarning, SimulatorError
from orthocal.execution.work.processes import run_program

DESIGN = pd.DataFrame({"g": [1.0, 0.1 + 0.2], "k m": [3.0, 4.0]})
X = pd.DataFrame({"x": [0.0, 0.5, 1.0]})
PYTHON = f"{sys.executable} -I -S"

# y = g x + k, by the standard library alone: it starts in milliseconds
LINE = """
import csv, json, sys
values = json.load(open(sys.argv[1]))
with open(sys.argv[2]) as file:
    points = [float(row["x"]) for row in csv.DictReader(file)]
lines = ["x, y ,z"] + [f"{x}, {values['g'] * x + values['k']!r} ,{x}" for x in points]
open(sys.argv[3], "w").write("\\n".join(lines))
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "sim.py").write_text(LINE)
    (tmp_path / "input.json.template").write_text('{"g": {g}, "k": {k m:.1f}, "other": {"left": "{alone}"}}')
    return tmp_path


def program(base, code=None, **settings):
    """A program of our own: Python code that finds its arguments in ``sys.argv``."""
    if code is not None:
        (base / "sim.py").write_text("import json, os, subprocess, sys, time\n" + code)
    given = {"command": f"{PYTHON} sim.py {{input}} {{output}}", "files": ["sim.py"], "base": base, **settings}
    return oc.Program(**given)


def run(simulator, folder, design=DESIGN, **settings):
    return oc.campaign(simulator, design, X, **{"store": folder / "runs.db", "jobs": 2, "retries": 0, **settings})


def line(folder, **settings):
    command = f"{PYTHON} sim.py {{input}} {{x}} {{output}}"
    return program(folder, command=command, input_template="input.json.template", **{"columns": "y", **settings})


def test_a_program_with_a_template(folder):
    runs = run(line(folder), folder)
    expected = np.outer(DESIGN["g"], X["x"]) + DESIGN[["k m"]].to_numpy()
    assert np.array_equal(runs.output[..., 0], expected)
    assert runs.outcome_names == ("y",)
    assert runs.input_names == ("x",)


def test_all_columns_but_the_inputs_are_the_default(folder):
    runs = run(line(folder, columns=None), folder)
    assert runs.q == 2
    assert np.array_equal(runs.output[0, :, 1], X["x"])


@pytest.mark.parametrize(
    ("output", "code", "columns"),
    [
        ("stdout", "print(1.5, 2.5, 3.5)", None),
        ("stdout", "print('# a comment\\n0 1.5\\n0 2.5\\n0 3.5')", 1),
        ("deep/out.txt", "open(sys.argv[2], 'w').write('1.5\\n2.5\\n3.5\\n')", None),
        ("out.csv", "open(sys.argv[2], 'w').write('y\\n1.5\\n2.5\\n3.5\\n')", None),
    ],
)
def test_formats(tmp_path, output, code, columns):
    runs = run(program(tmp_path, code, output=output, columns=columns), tmp_path)
    assert runs.output[0, :, 0].tolist() == [1.5, 2.5, 3.5]


def test_npy_and_a_program_of_ones_own(tmp_path):
    np.save(tmp_path / "ready.npy", np.arange(6.0).reshape(3, 2))
    copy = oc.Program("cp ready.npy {output} {input}.unused", output="out.npy", files=["ready.npy"], base=tmp_path)
    with pytest.raises(SimulatorError, match="all 2 runs failed; run 0: the program ended with code 1: cp: "):
        run(copy, tmp_path)
    (tmp_path / "own").write_text(f"#!{sys.executable} -IS\nimport shutil, sys\nshutil.copy(*sys.argv[1:3])\n")
    (tmp_path / "own").chmod(0o755)
    # relative to the base, though it is started elsewhere
    own = oc.Program("./own ready.npy {output} {input}", output="out.npy", files=["ready.npy"], base=tmp_path)
    runs = run(own, tmp_path, store=tmp_path / "own.db")
    assert np.array_equal(runs.output[0], np.arange(6.0).reshape(3, 2))
    np.save(tmp_path / "ready.npy", np.array([{}, {}, {}], dtype=object), allow_pickle=True)
    with pytest.raises(SimulatorError, match=r"out.npy cannot be read: Object arrays cannot be loaded"):
        run(own, tmp_path, store=tmp_path / "pickle.db")


def test_no_shell_and_whole_arguments(tmp_path):
    code = "json.dump(sys.argv[1:], open(os.environ['SEEN'], 'w')); print(1, 2, 3)"
    (tmp_path / "sim.py").write_text("import json, os, sys\n" + code)
    seen = tmp_path / "seen.json"
    command = f"{PYTHON} sim.py 'two words' ';' $HOME \"g = {{g}}\" \"{{k m:.3e}}\" '{{\"a\": {{b}}}}' *"
    os.environ["SEEN"] = str(seen)
    try:
        run(program(tmp_path, command=command, output="stdout"), tmp_path, DESIGN[1:])
    finally:
        del os.environ["SEEN"]
    assert json.loads(seen.read_text()) == [
        "two words", ";", "$HOME", "g = 0.30000000000000004", "4.000e+00", '{"a": {b}}', "*"
    ]  # fmt: skip


def test_without_a_template_the_input_is_a_table_of_the_parameters(tmp_path):
    code = "text = open(sys.argv[1]).read().split('\\n'); print(text[1].replace(',', ' '), 0)"
    runs = run(program(tmp_path, code, output="stdout"), tmp_path)
    assert runs.output[1, :, 0].tolist() == [0.1 + 0.2, 4.0, 0.0]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("sys.stderr.write('a' * 5000 + 'the end'); sys.exit(7)", r"ended with code 7: a{500,1993}the end$"),
        ("sys.exit(7)", "ended with code 7, and said nothing on standard error"),
        ("os.kill(os.getpid(), 11)", r"ended by signal 11 \(Segmentation fault\)"),
        ("pass", "did not write output.csv"),
        ("open(sys.argv[2], 'w').write('y\\n1\\n2\\n')", r"shape \(2, 1\) for 3 points"),
        (
            "open(sys.argv[2], 'w').write('y\\n1\\n2\\nhigh\\n')",
            "column 'y' of output.csv, line 4: 'high' is not a number",
        ),
        ("open(sys.argv[2], 'w').write('g\\n1\\n2\\n3')", "output.csv has no column 'y'; there are: g"),
        ("open(sys.argv[2], 'w')", "output.csv is not a CSV table: it is empty"),
        ("time.sleep(60)", r"no result after 0.3 s \(time-out\)"),
    ],
)
def test_programs_that_fail(tmp_path, code, message):
    with pytest.raises(SimulatorError, match="all 1 runs failed; run 0: .*" + message):
        run(program(tmp_path, code, columns="y"), tmp_path, DESIGN[:1], timeout=0.3 if "sleep" in code else None)


def test_a_time_out_ends_the_programs_children_too(tmp_path):
    code = (
        f"open({str(tmp_path / 'pids')!r}, 'w').write(f'{{os.getpid()}} {{subprocess.Popen([\"sleep\", \"60\"]).pid}}')"
    )
    started = time.monotonic()
    with pytest.raises(SimulatorError, match="time-out"):
        run(program(tmp_path, code + "\ntime.sleep(60)"), tmp_path, DESIGN[:1], timeout=1)
    assert time.monotonic() - started < 20
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert len(pids) == 2
    assert all(gone(pid) for pid in pids)


@pytest.mark.parametrize("end", ["print(1, 2, 3)", "sys.exit(3)"])
def test_what_a_program_leaves_behind_ends_with_it(tmp_path, end):
    code = f"open({str(tmp_path / 'pid')!r}, 'w').write(str(subprocess.Popen(['sleep', '60']).pid))\n{end}"
    with nullcontext() if "print" in end else pytest.raises(SimulatorError, match="ended with code 3"):
        run(program(tmp_path, code, output="stdout"), tmp_path, DESIGN[:1])
    assert gone(int((tmp_path / "pid").read_text()))


def test_retries(tmp_path):
    """The first attempt of each run fails, the second goes well."""
    code = f"""
mark = {str(tmp_path)!r} + "/mark-" + open(sys.argv[1]).read().split()[-1]
if not os.path.exists(mark):
    open(mark, "w")
    sys.exit("not yet")
print(1, 2, 3)
"""
    simulator = program(tmp_path, code, output="stdout")
    assert not run(simulator, tmp_path, retries=1).failed.any()


def test_folders_that_are_kept(tmp_path):
    code = "print(1, 2, 3)\nsys.exit(open(sys.argv[1]).read().count('1.0'))"
    simulator = program(tmp_path, code, output="stdout", folder="work", keep="failed")
    with pytest.warns(OrthocalWarning, match=r"1 of 2 runs failed; run 0: .*\(files: .*run-00000-"):
        run(simulator, tmp_path)
    (kept,) = (tmp_path / "work").iterdir()
    assert kept.name.startswith("run-00000-")
    assert {path.name for path in kept.iterdir()} == {"parameters.csv", "x.csv", "sim.py", "stdout.txt", "stderr.txt"}


def test_another_program_is_refused(folder):
    run(line(folder), folder)
    (folder / "input.json.template").write_text('{"g": {g}, "k": {k m}, "more": 1}')
    with pytest.raises(InputError, match=f"the code of program {Path(sys.executable).name} has changed"):
        run(line(folder), folder)
    assert run(line(folder), folder, accept_changed=True).s == 2


def test_programs_in_an_executor_of_the_user(folder):
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        runs = run(line(folder), folder, executor=pool, timeout=30)
    assert not runs.failed.any()


ALONE = """
assert sys.stdin.read() == ""
assert os.getpid() == os.getpgid(0) == os.getsid(0)
pid = os.fork() or os._exit(0)
try:
    while True:
        assert os.wait()[0] == pid
except ChildProcessError:
    pass
open({groups!r}, "a").write(f"{{os.getpid()}}\\n")
print(1, 2, 3)
"""


def empty(group, seconds=5.0):
    """Whether a group of processes ends within some seconds."""
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            os.killpg(group, 0)
            time.sleep(0.02)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.slow
def test_a_program_is_alone_with_its_children(tmp_path):
    """Who guards it is none of them, and ends with it."""
    code = ALONE.format(groups=str(tmp_path / "groups"))
    assert not run(program(tmp_path, code, output="stdout"), tmp_path).failed.any()
    assert all(empty(int(group)) for group in (tmp_path / "groups").read_text().split())


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="looks at /proc")
def test_a_program_ignores_no_signal(tmp_path):
    """Python ignores some for itself. What nohup ignores stays so, and the C library's own two nobody can set."""
    run_program(["grep", "SigIgn", "/proc/self/status"], [], tmp_path, None, "")
    ignored = int((tmp_path / "stdout.txt").read_text().split()[1], 16)
    assert not [one for one in signal.valid_signals() - {signal.SIGHUP} if ignored >> (one - 1) & 1]


def test_a_program_without_its_interpreter(tmp_path):
    script = tmp_path / "sim"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o700)
    with pytest.raises(SimulatorError, match=r"all 2 runs failed; run 0: cannot start '.*/sim': No such file or dir"):
        run(oc.Program("./sim {input}", base=tmp_path), tmp_path)


SCRIPT = """
import sys
import numpy as np, orthocal as oc
code = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(60)"
program = oc.Program([sys.executable, "-c", code, {pid!r}, "{{theta}}"])
oc.campaign(program, np.arange(3.0), np.array([0.0, 1.0]), store={store!r}, jobs=1)
"""


@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGINT])
def test_no_program_outlives_its_campaign(tmp_path, way):
    pid = tmp_path / "pid"
    script = SCRIPT.format(pid=str(pid), store=str(tmp_path / "runs.db"))
    campaign = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL)
    while not pid.exists() or not pid.read_text():
        assert campaign.poll() is None
        time.sleep(0.02)
    campaign.send_signal(way)
    assert campaign.wait(20) == -way
    assert gone(int(pid.read_text()))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"command": ""}, "command is empty"),
        ({"command": "sim 'open"}, "cannot be split"),
        ({"command": f"{PYTHON} -c pass {{g}}"}, r"parameter 'k m' is not used: .* has \{k m\}"),
        ({"command": "no-such-program {input}"}, "there is no program 'no-such-program'"),
        ({"command": "./absent {input}"}, "there is no program '.*/absent'"),
        ({"command": f"{PYTHON} {{g:d}} '{{k m}}'"}, "a format that does not suit a number"),
        ({"files": ["absent.dat"]}, "there is no file .*absent.dat, which the program needs"),
        ({"input_template": "absent.txt"}, "cannot read the template"),
        ({"output": "/etc/out.csv"}, "relative to the run's folder"),
        ({"output": "../out.csv"}, "relative to the run's folder"),
        ({"keep": "some"}, "keep='some'"),
        ({"output": "sim.py"}, r"files: .*sim.py would lie in the run's folder under the name of the output"),
        ({"files": ["sim.py", "sim.py"]}, "under the name of another of the files"),
        ({"files": ["data"], "output": "data/out.csv"}, "under the name of the output: rename it"),
        ({"files": ["x.csv"]}, "under the name of the points x"),
        ({"output": "parameters.csv"}, "output='parameters.csv' is the name of the input file of every run"),
    ],
)
def test_mistakes_are_refused_before_anything_runs(tmp_path, settings, message):
    (tmp_path / "data").mkdir()
    (tmp_path / "x.csv").write_text("x\n1\n")
    (tmp_path / "sim.py").write_text("")
    with pytest.raises(InputError, match=message):
        run(program(tmp_path, **settings), tmp_path)
    assert not (tmp_path / "runs.db").exists()


def test_parameters_with_the_names_of_files_are_refused(tmp_path):
    (tmp_path / "sim.py").write_text("")
    with pytest.raises(InputError, match="parameter 'output' has the name of a placeholder"):
        run(program(tmp_path), tmp_path, DESIGN.rename(columns={"g": "output"}))
