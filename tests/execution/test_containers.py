"""Programs in containers: what is mounted, who owns the files, and that no container outlives its run.

No engine runs in tests. A ``docker`` of our own does what matters here: the container is no child of the client, and
lives on when the client is killed; it sees what is mounted, and nothing else.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from test_campaigns import gone

import orthocal as oc
from orthocal.errors import InputError, OrthocalWarning

DOCKER = """#!{python} -IS
import os, signal, subprocess, sys

containers, given = "{containers}", sys.argv[1:]
verb = given.pop(0)
if verb == "rm":
    assert given.pop(0) == "--force"
    place = os.path.join(containers, given[0])
    if not os.path.exists(place):
        sys.exit("Error: No such container: " + given[0])
    try:
        os.killpg(int(open(place).read()), signal.SIGKILL)
    except ProcessLookupError:
        pass
    os.remove(place)
    sys.exit()
assert verb == "run", verb
options, flags = {{}}, set()
while given[0].startswith("-"):
    name = given.pop(0)
    if name in ("--rm", "--init"):
        flags.add(name)
    else:
        options[name] = given.pop(0)
image, command = given[0], given[1:]
assert image == "mysim:1.2", image
assert options["--user"] == f"{{os.getuid()}}:{{os.getgid()}}"
outside, inside = options["--volume"].split(":")
assert outside == inside
for folder, folders, files in os.walk(outside):
    for one in files:
        # a link out of what is mounted leads nowhere in the container
        if not os.path.realpath(os.path.join(folder, one)).startswith(os.path.realpath(outside) + os.sep):
            os.remove(os.path.join(folder, one))
# as the engine does: in a session of its own, whoever started it
process = subprocess.Popen(command, cwd=options["--workdir"], start_new_session=True)
place = os.path.join(containers, options["--name"])
with open(place, "w") as file:
    file.write(str(process.pid))
code = process.wait()
if "--rm" in flags:
    os.remove(place)
sys.exit(code if code >= 0 else 128 - code)
"""

APPTAINER = """#!{python} -IS
import os, sys

given = sys.argv[1:]
assert given.pop(0) == "exec"
assert given.pop(0) == "--bind"
os.chdir(given.pop(0))
assert given.pop(0) == "mysim.sif"
os.execvp(given[0], given)
"""

SIM = """
import sys, time
a = float(open(sys.argv[1]).read().split()[1])
open("began", "w").close()
time.sleep({pause} if a == 2 else 0)
open(sys.argv[2], "w").write("1 2 3\\n".replace("1", repr(a)))
"""

DESIGN = pd.DataFrame({"a": [1.0, 2.0, 3.0]})
RUN = "docker run --rm --init --name {run} --user {user} --volume {folder}:{folder} --workdir {folder} mysim:1.2"


@pytest.fixture
def engine(tmp_path, monkeypatch):
    """The folder with a file for each container that is there."""
    programs, containers = tmp_path / "bin", tmp_path / "containers"
    for folder in (programs, containers):
        folder.mkdir()
    for name, text in (("docker", DOCKER), ("apptainer", APPTAINER)):
        (programs / name).write_text(text.format(python=sys.executable, containers=containers))
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    return containers


def program(folder, pause=0.0, before=RUN, **settings):
    (folder / "sim.py").write_text(SIM.format(pause=pause))
    command = f"{before} {sys.executable} -IS {{folder}}/sim.py {{input}} {{output}}"
    given = {"output": "out.txt", "files": ["sim.py"], "base": folder, "link": False, "folder": "work", **settings}
    return oc.Program(command, **given)


def run(simulator, folder, **settings):
    given = {"store": folder / "runs.db", "jobs": 3, "retries": 0, "progress": False, **settings}
    return oc.campaign(simulator, DESIGN, np.arange(3.0), **given)


def containers(engine):
    return [int(path.read_text()) for path in engine.iterdir()]


STOP = "docker rm --force {run}"


def test_a_program_in_a_container(engine, tmp_path):
    runs = run(program(tmp_path, stop=STOP), tmp_path)
    assert np.array_equal(runs.output[..., 0], [[a, 2, 3] for a in DESIGN["a"]])
    assert containers(engine) == []
    # nothing is left that this user could not remove
    assert list((tmp_path / "work").iterdir()) == []


def test_links_lead_out_of_a_container(engine, tmp_path):
    with pytest.raises(oc.OrthocalError, match=r"all 3 runs failed; run 0: the program ended with code 2.*sim\.py"):
        run(program(tmp_path, link=True), tmp_path)


@pytest.mark.slow
def test_apptainer(engine, tmp_path):
    """Its container is a child like any other, and ends with the client."""
    inside = program(tmp_path, pause=60.0, before="apptainer exec --bind {folder} mysim.sif", keep="failed")
    with pytest.warns(OrthocalWarning, match=r"1 of 3 runs failed; run 1: no result after 2 s \(time-out\)"):
        runs = run(inside, tmp_path, timeout=2.0)
    assert runs.failed.tolist() == [False, True, False]
    (left,) = (tmp_path / "work").iterdir()
    assert (left / "began").exists()
    assert not any(str(left).encode() in path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline"))


@pytest.mark.parametrize("stop", [STOP, pytest.param(None, marks=pytest.mark.slow)])
def test_a_container_ends_with_its_run(engine, tmp_path, stop):
    """And without the command it would not: that is why there is one."""
    with pytest.warns(OrthocalWarning, match=r"1 of 3 runs failed; run 1: no result after 2 s \(time-out\)"):
        runs = run(program(tmp_path, pause=60.0, stop=stop), tmp_path, timeout=2.0)
    assert runs.failed.tolist() == [False, True, False]
    left = containers(engine)
    try:
        assert len(left) == (stop is None)
        assert not any(gone(pid, 0.2) for pid in left)
    finally:
        for pid in left:
            os.killpg(pid, signal.SIGKILL)


@pytest.mark.slow
def test_a_stop_command_that_fails_is_said(engine, tmp_path):
    wrong = program(tmp_path, pause=60.0, stop="docker rm --force another-{run}")
    with pytest.warns(
        OrthocalWarning, match=r"\(time-out\); it may still be running, because its stop command ended with"
    ):
        run(wrong, tmp_path, timeout=2.0)
    for pid in containers(engine):
        os.killpg(pid, signal.SIGKILL)


CAMPAIGN = """
import numpy as np, pandas as pd, sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from test_containers import STOP, program, run
if __name__ == "__main__":
    run(program(Path({folder!r}), pause=60.0, stop=STOP), Path({folder!r}))
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_container_outlives_its_campaign(engine, tmp_path, number):
    (tmp_path / "campaign.py").write_text(CAMPAIGN.format(tests=str(Path(__file__).parent), folder=str(tmp_path)))
    paths = [
        str(Path(oc.__file__).parents[1]),
        *(str(Path(__file__).parents[1] / one) for one in ("runs", "execution")),
    ]
    environment = {**os.environ, "PYTHONPATH": ":".join(paths)}
    process = subprocess.Popen([sys.executable, tmp_path / "campaign.py"], env=environment, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 60
    # the two quick ones have gone, the slow one has begun
    while not (len(found := containers(engine)) == 1 and oc.campaign_status(tmp_path / "runs.db").done == 2):
        assert time.monotonic() < end
        time.sleep(0.05)
    process.send_signal(number)
    process.wait(30)
    assert gone(found[0], 10)
    while containers(engine):
        assert time.monotonic() < end
        time.sleep(0.05)
    assert oc.campaign_status(tmp_path / "runs.db").done == 2


def test_commands_that_cannot_be_used(tmp_path):
    with pytest.raises(InputError, match="stop is empty"):
        oc.Program("sim {a}", stop=[])
    with pytest.raises(InputError, match=r"stop .* cannot be split into arguments"):
        oc.Program("sim {a}", stop="docker 'rm")
    with pytest.raises(InputError, match="there is no program 'no-such-engine' that can be started"):
        oc.Program("true {a}", stop="no-such-engine rm {run}").check(["a"], here=True)
    with pytest.raises(InputError, match="parameter 'run' has the name of a placeholder"):
        oc.Program("true {run}").check(["run"], here=True)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_a_queue(engine, tmp_path):
    """Jobs of a queue are workers of Dask; processes of this machine stand in for those of a batch system."""
    answer = signal.getsignal(signal.SIGINT)
    queue = pytest.importorskip("dask_jobqueue.local", reason="dask-jobqueue, in the extra test")
    # its import makes Ctrl-C end Python, for all tests that come after
    signal.signal(signal.SIGINT, answer)
    place = {"host": "127.0.0.1", "dashboard_address": None}
    with queue.LocalCluster(cores=1, processes=1, memory="1GB", scheduler_options=place) as cluster:
        cluster.scale(jobs=2)
        cluster.wait_for_workers(1, timeout=300)
        runs = run(program(tmp_path, stop=STOP), tmp_path, jobs=None, cluster=cluster.scheduler_address)
    assert np.array_equal(runs.output[..., 0], [[a, 2, 3] for a in DESIGN["a"]])
    assert containers(engine) == []
