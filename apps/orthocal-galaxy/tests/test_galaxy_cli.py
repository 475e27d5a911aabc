"""The commands ``orthocal galaxy mock`` and ``fit``, on tables and files, with what they refuse."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_info, threadpool_limits
from typer.testing import CliRunner

import orthocal as oc
from orthocal.cli import app
from orthocal.errors import InputError

SHARED = Path(__file__).parents[4] / "shared" / "galaxy"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the files of NGC 4570 are not here")
QUICK = ["--methods", "pgp", "--draws", "40", "--chains", "2", "--held-out", "0", "--compare", "none"]


def call(*words):
    return CliRunner().invoke(app, ["galaxy", *map(str, words)])


def refused(*words):
    result = call(*words)
    assert isinstance(result.exception, InputError), result.output
    return str(result.exception)


@pytest.fixture
def table(tmp_path):
    """Twelve runs in 15 bins, linear in theta."""
    rng = np.random.default_rng(0)
    x, slope = rng.uniform(-1, 1, (15, 2)), rng.standard_normal((15, 4, 3))
    theta = rng.random((12, 3)) * [2, 3, 0.4] + [7, 2, 0]
    y = slope @ [8, 3, 0.2] + 0.05 * rng.standard_normal((15, 4))
    np.savez(
        tmp_path / "runs.npz", theta=theta, output=(slope @ theta.T).transpose(2, 0, 1), x=x, y=y, y_err=0 * y + 0.05
    )
    return tmp_path / "runs.npz"


@pytest.mark.slow
def test_fit_of_a_table(table, tmp_path):
    out = tmp_path / "out"
    first = call("fit", "--table", table, "--out", out, "--title", "A <galaxy>", *QUICK)
    assert first.exit_code == 0, first.output
    for words in ("All outcomes together", "Each outcome alone", "fit of v by pgp", "Report: "):
        assert words in first.output
    assert "A &lt;galaxy&gt;" in (out / "report.html").read_text(encoding="utf-8")
    joint = pd.read_csv(out / "joint.csv")
    assert list(joint["parameter"]) == ["log10_mbh", "ml", "f_dm"]
    assert "draws 40, now 50" in refused("fit", "--table", table, "--out", out, *QUICK, "--draws", "50")


def test_what_is_refused(table, tmp_path):
    out = ["--out", tmp_path / "out"]
    assert "nothing to fit" in refused("fit", *out)
    assert "there is no file" in refused("fit", "--table", tmp_path / "none.npz", *out)
    assert "there is no method 'pgq'" in refused("fit", "--table", table, "--methods", "pgq", *out)
    assert "there is no parameter mass" in refused("fit", "--table", table, "--priors", "mass=1:2", *out)
    assert "--bins 2" in refused("mock", "--bins", 2, *out)
    assert "runs: " in refused("mock", "--runs", 1, *out)
    assert "cannot read" in refused("fit", tmp_path / "none.toml", *out)


def test_stages_do_not_depend_on_the_number_of_threads(tmp_path, monkeypatch):
    """Data are made with one BLAS thread: with more, the last digits differ, and a folder would not be known again."""
    seen = []

    def record(*_):
        seen.extend(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas")
        raise InputError("seen")

    monkeypatch.setattr("orthocal_galaxy.fit.data.table_data", record)
    with threadpool_limits(limits=2, user_api="blas"):
        assert refused("fit", "--table", "runs.npz", "--out", tmp_path / "out") == "seen"
    assert set(seen) == {1}


def test_help_names_the_commands():
    text = call("--help").output
    assert "mock" in text
    assert "fit" in text


def started(folder, *words):
    """The command in a process of its own, in a group of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", "from orthocal.cli import main; main()", "galaxy", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def until(path, seconds=120):
    end = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < end, f"{path} has not been written"
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_goes_on_after_it_was_ended(table, tmp_path, how):
    """Ended in the middle of the fits, the same command gives what an undisturbed one gives."""
    words = ["fit", "--table", table, *QUICK, "--draws", "400", "--held-out", "3"]
    process = started(tmp_path, *words, "--out", "ended")
    until(tmp_path / "ended/fits/sigma-pgp.nc")
    os.killpg(process.pid, how)
    said = process.communicate(timeout=60)[0]
    assert process.returncode != 0
    if how == signal.SIGINT:
        assert "the same command goes on from there" in said
    assert not (tmp_path / "ended/report.html").exists()
    again = call(*words, "--out", tmp_path / "ended")
    assert again.exit_code == 0
    assert "fit of v by pgp" not in again.output
    assert call(*words, "--out", tmp_path / "whole").exit_code == 0
    for name in ("joint.csv", "univariate.csv", "held-out.csv"):
        assert (tmp_path / "ended" / name).read_text() == (tmp_path / "whole" / name).read_text()


@pytest.mark.slow
def test_small_mock_from_end_to_end(tmp_path):
    """Joint 95 % intervals of three parameters, widened by half, hold theta_star: false alarms 1 % over seeds."""
    out = tmp_path / "mock"
    result = call("mock", "--out", out, "--methods", "pgp,pbart", "--jobs", 1)
    assert result.exit_code == 0, result.output
    star = np.array(json.loads((out / "theta_star.json").read_text())["all together"])
    joint = pd.read_csv(out / "joint.csv")
    for _, rows in joint.groupby("method"):
        middle, half = (rows["lower"] + rows["upper"]) / 2, (rows["upper"] - rows["lower"]) / 2
        assert (np.abs(star - middle) < 1.5 * half).all()
    assert (out / "runs.db").is_file()


@needs_shared
@pytest.mark.slow
def test_table_of_ngc4570(tmp_path):
    """From the 400-run table, thinned to every fifth run so that it takes a minute."""
    arrays = dict(np.load(SHARED / "runs_ngc4570.npz"))
    arrays |= {"theta": arrays["theta"][::5], "output": arrays["output"][::5]}
    np.savez(tmp_path / "runs.npz", **arrays)
    words = ["fit", "--table", tmp_path / "runs.npz", "--bin-map", SHARED / "ngc4570.npz", "--out", tmp_path / "out"]
    result = call(*words, "--methods", "pgp", "--draws", "100", "--chains", "2")
    assert result.exit_code == 0, result.output
    joint = pd.read_csv(tmp_path / "out" / "joint.csv").set_index("parameter")
    assert 3.6 <= joint["mean"]["ml"] <= 5.7
    held = pd.read_csv(tmp_path / "out" / "held-out.csv").set_index("outcome")
    assert held["with_bias"]["v"] < 0.2
    assert held["with_bias"]["sigma"] < 0.6


@needs_shared
@pytest.mark.slow
def test_kinematics_of_ngc4570(tmp_path):
    """From the FITS table with few runs and few orbits."""
    words = ["fit", "--kinematics", SHARED / "NGC4570_4moments_ATLAS3d.fits", "--out", tmp_path / "out"]
    words += ["--distance", 17.1, "--inclination", 88, "--position-angle", 159.3, "--luminosity", 1.18e10]
    words += ["--psf", 0.64, "--bins", 40, "--orbits", "small", "--runs", 32, "--theta0", "7.8,4.2,0.15"]
    words += ["--priors", "log10_mbh=6.4:9.3,ml=3:6,f_dm=0:0.4", "--jobs", 1]
    result = call(*words, "--methods", "pgp", "--draws", "100", "--chains", "2")
    assert result.exit_code == 0, result.output
    assert oc.load(tmp_path / "out/fits/all-together-pgp.nc").parameter_names == ("log10_mbh", "ml", "f_dm")
    held = pd.read_csv(tmp_path / "out" / "held-out.csv").set_index("outcome")
    assert held["with_bias"]["v"] < 0.2
