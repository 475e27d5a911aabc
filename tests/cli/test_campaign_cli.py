"""``orthocal simulate`` as a user meets it."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import orthocal as oc
from orthocal.cli import main
from orthocal.config.campaign_file import CampaignFile
from orthocal.config.simulators import FileFunction
from orthocal.runs.store import RunStore
from orthocal.sections import Section

# a program: it starts faster than a process for a Python function
CAMPAIGN = f"""
[program]
command = "{sys.executable} -I -S sim.py {{g}} {{b}}"
output = "stdout"
files = ["sim.py"]
[parameters]
g = {{ distribution = "norm", loc = 0, scale = 10 }}
b = {{ distribution = "uniform", loc = 0, scale = 1 }}
[design]
kind = "grid"
n = 2
bounds = {{ g = [1, 2] }}
[x]
file = "x.csv"
columns = ["x"]
[run]
retries = 0
[outcomes]
names = ["height"]
[units]
g = "m/s²"
"""
SIM = """
import os, sys
open("{log}", "a").write(sys.argv[1] + "\\n")
if sys.argv[1] == "2.0" and not os.path.exists("{licence}"):
    sys.exit("no licence")
print(*[float(sys.argv[1]) * x for x in (0, 0.5, 1)])
"""


class Result(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def orthocal(monkeypatch, capfd, tmp_path):
    """Run the program in this process, as its entry point does."""

    def run(*arguments):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("COLUMNS", "200")
        monkeypatch.setattr(sys, "argv", ["orthocal", "simulate", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        return Result(int(ended.value.code or 0), *capfd.readouterr())

    return run


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "campaign.toml").write_text(CAMPAIGN)
    (tmp_path / "sim.py").write_text(SIM.format(log=tmp_path / "log", licence=tmp_path / "licence"))
    (tmp_path / "x.csv").write_text("x,other\n0,a\n0.5,b\n1,c\n")
    return tmp_path


def test_status_run_retry_and_export(folder, orthocal):
    before = orthocal("campaign.toml", "--status")
    assert before.returncode == 0
    assert before.stdout == "done 0, failed 0, missing 4: nothing has been run yet\n"
    assert not (folder / "runs.db").exists()
    first = orthocal("campaign.toml", "--export", "runs.csv")
    assert first.returncode == 1
    assert first.stdout.startswith("done 2, failed 2, missing 0; 0.")
    assert first.stderr.splitlines()[0] == "  run 2: the program ended with code 1: no licence"
    assert first.stderr.splitlines()[-1] == "error: some runs failed; try them again with --retry"
    assert oc.RunTable.load(folder / "runs.csv").failed.tolist() == [False, False, True, True]
    assert len((folder / "log").read_text().split()) == 4
    known = oc.campaign_status(folder / "runs.db")
    assert (known.done, known.failed, known.missing) == (2, 2, 0)
    status = orthocal("campaign.toml", "--status")
    assert status.returncode == 0
    assert "run 3: the program ended with code 1: no licence" in status.stdout
    (folder / "licence").touch()
    assert orthocal("campaign.toml").returncode == 1
    assert len((folder / "log").read_text().split()) == 4
    last = orthocal("campaign.toml", "--retry", "--export", "runs.nc")
    assert (last.returncode, last.stderr) == (0, "")
    assert last.stdout.startswith("done 4, failed 0, missing 0")
    assert len((folder / "log").read_text().split()) == 6
    runs = oc.RunTable.load(folder / "runs.nc")
    assert np.array_equal(runs.output[..., 0], np.outer([1, 1, 2, 2], [0, 0.5, 1]))
    assert (runs.outcome_names, runs.units) == (("height",), {"g": "m/s²"})


def test_a_campaign_whose_runs_all_fail(folder, orthocal):
    (folder / "sim.py").write_text("raise SystemExit('broken')")
    run = orthocal("campaign.toml", "--export", "runs.nc")
    assert run.returncode == 1
    assert run.stdout == "done 0, failed 4, missing 0\n"
    assert "run 0: the program ended with code 1: broken" in run.stderr
    assert "Traceback" not in run.stderr
    assert not (folder / "runs.nc").exists()


def test_a_grown_design_is_seen_before_it_is_run(folder, orthocal):
    (folder / "licence").touch()
    assert orthocal("campaign.toml", "--jobs", "1").returncode == 0
    (folder / "campaign.toml").write_text(CAMPAIGN.replace("n = 2", "n = 3"))
    assert orthocal("campaign.toml", "--status").stdout.startswith("done 4, failed 0, missing 5; ")
    assert orthocal("campaign.toml").stdout.startswith("done 9, failed 0, missing 0; ")
    assert len((folder / "log").read_text().split()) == 9
    refused = orthocal("campaign.toml", "--status", "--export", "runs.txt")
    assert refused.stderr == "error: --export runs.txt: give a name that ends in .nc or .csv\n"


def test_functions_of_a_file(folder, orthocal):
    """In a process of its own, which loads the file itself; the file may import its neighbours."""
    (folder / "neighbour.py").write_text("factor = 2.0\n")
    (folder / "sim.py").write_text(
        "def simulate(x, theta):\n    import neighbour\n    return neighbour.factor * theta[0] * x[:, 0]\n"
    )
    program = CAMPAIGN[CAMPAIGN.index("[program]") : CAMPAIGN.index("[parameters]")]
    text = CAMPAIGN.replace(program, '[simulator]\nfunction = "sim.py:simulate"\n')
    (folder / "campaign.toml").write_text(text)
    run = orthocal("campaign.toml", "--jobs", "1", "--export", "runs.nc")
    assert (run.returncode, run.stderr) == (0, "")
    runs = oc.RunTable.load(folder / "runs.nc")
    assert np.array_equal(runs.output[..., 0], 2 * np.outer([1, 1, 2, 2], [0, 0.5, 1]))
    # a comment is no change, another number is
    (folder / "sim.py").write_text("# new\n" + (folder / "sim.py").read_text())
    assert orthocal("campaign.toml").returncode == 0
    (folder / "sim.py").write_text((folder / "sim.py").read_text().replace("theta[0]", "theta[1]"))
    refused = orthocal("campaign.toml")
    assert refused.returncode == 1
    assert "the code of sim.py:simulate has changed since its runs were made" in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert orthocal("campaign.toml", "--accept-changed").returncode == 0


def test_ctrl_c_says_that_what_had_finished_is_kept(folder, orthocal):
    (folder / "licence").touch()
    (folder / "sim.py").write_text((folder / "sim.py").read_text() + "if sys.argv[1] == '2.0': time.sleep(60)\n")
    (folder / "sim.py").write_text("import time\n" + (folder / "sim.py").read_text())
    program = Path(sys.executable).with_name("orthocal")
    process = subprocess.Popen(
        [program, "simulate", "campaign.toml", "--jobs", "1"], cwd=folder, stderr=subprocess.PIPE, text=True
    )
    while not (folder / "log").exists() or len((folder / "log").read_text().split()) < 3:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, words = process.communicate(timeout=20)
    assert process.returncode == 130
    assert words == "error: interrupted; what had finished is kept: the same command goes on from there\n"
    assert orthocal("campaign.toml", "--status").stdout.startswith("done 2, failed 0, missing 2; ")


def test_a_design_from_a_file(folder, orthocal):
    (folder / "licence").touch()
    (folder / "design.csv").write_text("b,g,note\n0.5,7,a\n0.25,8,b\n")
    design = CAMPAIGN[CAMPAIGN.index("[design]") : CAMPAIGN.index("[x]")]
    (folder / "campaign.toml").write_text(CAMPAIGN.replace(design, '[design]\nfile = "design.csv"\n'))
    assert orthocal("campaign.toml").returncode == 0
    with RunStore(folder / "runs.db") as store:
        runs = store.table()
    assert runs.parameter_names == ("g", "b")
    assert runs.theta.tolist() == [[7, 0.5], [8, 0.25]]


BAD = {
    "an unknown key": ("retries = 0", "tries = 0", "unknown key 'run.tries'"),
    "no simulator": ("[program]", "[other]", "unknown key 'other'"),
    "two simulators": ("[program]", '[simulator]\nfunction = "sim.py:f"\n[program]', "give either [simulator] or"),
    "a negative number": ("retries = 0", "retries = -1", "run.retries"),
    "an unknown kind": ('"grid"', '"random"', "design.kind"),
    "no number of runs": ("n = 2\n", "", "[design] needs n"),
    "a file and a number": ("n = 2", 'n = 2\nfile = "d.csv"', "[design] with a file takes no other key"),
    "bounds beyond the prior": ("g = [1, 2]", "b = [-1, 1]", "outside of the prior's support"),
    "an unknown distribution": ('"norm"', '"gauss"', "'gauss' is not a continuous distribution"),
    "a missing column": ('columns = ["x"]', 'columns = ["z"]', "x.csv has no column 'z'; there are: x, other"),
    "a column of texts": ('columns = ["x"]', 'columns = ["other"]', "column 'other' of x.csv"),
    "an unused parameter": ("{b}", "", "parameter 'b' is not used"),
    "a missing file": ('files = ["sim.py"]', 'files = ["gone.py"]', "gone.py, which the program needs"),
    "not TOML": ("[x]", "[x", "not valid TOML"),
    "a unit of nothing": ("[units]\ng", "[units]\nz", "units has 'z'"),
}


@pytest.mark.parametrize("case", BAD)
def test_mistakes_in_the_file_are_one_line(folder, case, orthocal):
    old, new, message = BAD[case]
    assert old in CAMPAIGN
    (folder / "campaign.toml").write_text(CAMPAIGN.replace(old, new, 1))
    run = orthocal("campaign.toml")
    assert run.returncode == 1
    assert run.stderr.startswith("error: ")
    assert run.stderr.count("\n") == 1
    assert message in run.stderr
    assert not (folder / "runs.db").exists()


def test_a_missing_simulator_file_is_refused_at_once(folder):
    with pytest.raises(oc.OrthocalError, match=r"absent\.py does not exist"):
        oc.campaign(FileFunction("absent.py:f", folder), [1.0], [0.0, 1.0], store=folder / "runs.db")
    assert not (folder / "runs.db").exists()


def test_the_page_names_every_key():
    """docs/campaigns.md is complete: every key of every table is there."""
    page = (Path(__file__).parents[2] / "docs" / "campaigns.md").read_text(encoding="utf-8")
    for table, field in CampaignFile.model_fields.items():
        assert ("**constraint**" if table == "constraint" else f"[{table}]") in page
        kinds = [one for one in (field.annotation, *getattr(field.annotation, "__args__", ())) if isinstance(one, type)]
        for kind in kinds:
            if issubclass(kind, Section):
                for key in kind.model_fields:
                    assert f"`{key}`" in page, f"{table}.{key}"
