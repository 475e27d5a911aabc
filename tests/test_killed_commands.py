"""Commands that are killed at random moments: the same command goes on, and nothing that was finished is lost."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import orthocal as oc
from orthocal.cli.demo import PROBLEM, SIMULATOR

#: how often each command is ended
KILLS = int(os.environ.get("ORTHOCAL_KILLS", "2"))
# so short a run is kept from its start, and more often than it need be
DRIVER = """import sys
from orthocal.cli import main, results
from orthocal.execution.checkpoints import checkpoint_file

results.AFTER = 0.0
checkpoint_file.EVERY, checkpoint_file.SHARE, checkpoint_file.LEAST_SECONDS = 0.01, 1e9, 0.0
if sys.argv[1] == "galaxy":
    # with all orbits the search for the best theta takes most of the time, and the kills all come in it
    from orthocal_galaxy.orbits import OrbitSettings
    OrbitSettings.preset = lambda name: OrbitSettings(energies=6, momenta=3, latitudes=2, samples=400, velocities=31)
if __name__ == "__main__":
    main()
"""
CAMPAIGN = f"""
[program]
command = "{sys.executable} -I -S -c 'import time; time.sleep(0.1); print({{g}} ** 2)'"
output = "stdout"
[parameters]
g = {{ distribution = "uniform", loc = 0, scale = 1 }}
[design]
kind = "grid"
n = 40
[x]
file = "x.csv"
columns = ["x"]
[run]
jobs = 2
[outcomes]
names = ["height"]
"""
FIELD = "x,y\n" + "\n".join(f"{i / 29},{3 * i / 29 + 0.1 * (-1) ** i}" for i in range(30)) + "\n"
GALAXY = "--runs 12 --refine 2 --bins 12 --draws 40 --methods gp,bart --compare none --held-out 2 --jobs 2"


def problem(method, draws):
    quick = f"draws = {draws}\nwarmup = 100\nchains = 2\nstarts = 2\n[noise]\ncov = 0.04\n"
    return PROBLEM + quick + f"[method]\n{method}\n[compare]\nfolds = 2\nfold_draws = 100\n"


def draws_of(folder):
    return oc.load(folder / "fit.nc").theta.tobytes()


def runs_of(folder):
    runs = oc.RunTable.load(folder / "runs.csv")
    return runs.theta.tobytes() + runs.output.tobytes()


def table_of(name, without=()):
    """A table of results but for what a run took."""

    def read(folder):
        table = pd.read_csv(folder / name)
        return table.drop(columns=[one for one in table if any(word in one for word in without)]).to_csv()

    return read


#: name -> words of the command, the problem's method and draws, and what is found of the results
CASES = {
    "run gp": ("run problem.toml", ('name = "gp"', 3000), draws_of),
    "run bart": ("run problem.toml", ('name = "bart"', 500), draws_of),
    "run pgp": ("run problem.toml", ('name = "pgp"', 3000), draws_of),
    "run ko": ("run problem.toml", ('name = "ko"\nhyperparameters = "sample"', 300), draws_of),
    "compare": ("compare problem.toml --methods gp,pbart,ko", ('name = "gp"', 500), table_of("compare-scores.csv")),
    "study": (
        "study joint-curved5 --replications 8 --methods gp,pgp --draws 400 --jobs 2 --out .",
        None,
        table_of("joint-curved5.csv", ("second", "ess")),
    ),
    "campaign": ("simulate campaign.toml --export runs.csv", None, runs_of),
    "galaxy mock": (f"galaxy mock {GALAXY} --out .", None, table_of("joint.csv", ("second",))),
}


def made(folder, setting):
    """The folder with all that a command reads."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "driver.py").write_text(DRIVER)
    (folder / "field.csv").write_text(FIELD)
    (folder / "simulator.py").write_text(SIMULATOR)
    (folder / "campaign.toml").write_text(CAMPAIGN)
    (folder / "x.csv").write_text("x\n0.5\n")
    if setting is not None:
        (folder / "problem.toml").write_text(problem(*setting))
    return folder


def begun(folder, words):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "driver.py", *words.split()]
    with (folder / "log").open("a") as log:
        return subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)


def finished(folder, words):
    process = begun(folder, words)
    assert process.wait(1800) == 0, (folder / "log").read_text()[-2000:]


def ended(folder, words, number, after):
    """Whether the command was ended by a signal after some seconds, before it was done, and said no traceback."""
    process = begun(folder, words)
    try:
        process.wait(after)
    except subprocess.TimeoutExpired:
        process.send_signal(number)
    code = process.wait(300)
    assert code in (0, -number, 128 + number), (folder / "log").read_text()[-2000:]
    assert "Traceback" not in (folder / "log").read_text(), (folder / "log").read_text()[-2000:]
    return code != 0


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("case", CASES)
def test_a_killed_command_goes_on(case, number, tmp_path):
    words, setting, found = CASES[case]
    whole = made(tmp_path / "whole", setting)
    began = time.monotonic()
    finished(whole, words)
    seconds = time.monotonic() - began
    expected, rng, kills, runs = found(whole), np.random.default_rng(int(number)), 0, 1
    folder = made(tmp_path / "killed", setting)
    while kills < KILLS:
        if ended(folder, words, number, rng.uniform(0.0, seconds)):
            kills += 1
        else:
            assert found(folder) == expected
            folder, runs = made(tmp_path / "killed", setting), runs + 1
    finished(folder, words)
    assert found(folder) == expected
    assert not list(Path(folder).glob("*.ckpt"))
    print(f"\n{case} {signal.Signals(number).name}: {kills} kills in {runs} runs of {seconds:.1f} s")
