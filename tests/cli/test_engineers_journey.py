"""The engineer: tables of field data and of runs, and commands; no Python file is written or needed."""

import json

import numpy as np
import pandas as pd

DRAG, GRAVITY = 0.35, 9.81
#: few nodes, so that it takes seconds
QUICK = "domain={lower=[0.2], upper=[3.0], nodes=24}"


def speed(t, g, drag):
    """A falling body: v' = g - drag v."""
    return g / drag * (1 - np.exp(-drag * t))


def write_tables(folder):
    """Field data of a body whose drag grows with its speed, and 16 runs of a code with linear drag."""
    rng = np.random.default_rng(3)
    t = np.linspace(0.2, 3.0, 15)
    v = speed(t, GRAVITY, DRAG) - 0.05 * t**2 + 0.05 * rng.standard_normal(len(t))
    pd.DataFrame({"no": range(1, 16), "t": t, "v": v.round(4), "by": "Ann"}).to_csv(folder / "field.csv", index=False)
    from scipy.stats import qmc

    plan = qmc.scale(qmc.Sobol(2, seed=1).random(16), [8, 0.1], [11, 0.8])
    runs = pd.DataFrame(
        [(g, drag, one, speed(one, g, drag), 12.5) for g, drag in plan for one in t],
        columns=["g", "drag", "t", "v", "seconds"],
    )
    runs["seconds"] = 12.5
    runs.to_csv(folder / "runs.csv", index=False)


def test_from_two_tables_to_predictions_by_commands_alone(small, program):
    for old in small.iterdir():
        old.unlink()
    write_tables(small)
    begun = program("init", "--data", "field.csv", "--runs", "runs.csv")
    assert begun.code == 0, begun.err
    assert "outcome v; inputs t; not used: no (it seems to number the rows), by (words" in begun.out
    assert "g from 8." in begun.out
    assert "orthocal check problem.toml" in begun.out
    assert "seconds" in begun.out, "the column that is not used is named"
    text = (small / "problem.toml").read_text().replace('emulator = "auto"', 'emulator = "gp"')
    (small / "problem.toml").write_text(text)
    looked = program("check", "problem.toml")
    assert looked.code == 0, looked.out
    settings = ["method.sd=0.5", "method.lengthscale=1", "noise.cov=0.0025", "sampling.emulator_draws=8", QUICK]
    quick = [word for setting in settings for word in ("--set", setting)]
    ran = program("run", "problem.toml", "--draws", "40", "--chains", "2", *quick, "--json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)["parameters"]
    assert set(found) == {"g", "drag"}
    assert abs(found["g"]["mean"] - GRAVITY) < 1
    (small / "new.csv").write_text("case,t\nA,1.1\nB,2.55\n")
    assert program("predict", "fit.nc", "new.csv").code == 0
    table = pd.read_csv(small / "new-predictions.csv")
    truth = speed(table["t"], GRAVITY, DRAG) - 0.05 * table["t"] ** 2
    assert table["case"].tolist() == ["A", "B"]
    assert ((table["observation_lower"] < truth) & (truth < table["observation_upper"])).all()
    assert (table["mean_upper"] - table["mean_lower"] < 0.5).all()
    chosen = program("next-runs", "problem.toml", "--number", "2")
    assert chosen.code == 0, chosen.err
    more = pd.read_csv(small / "next-runs.csv")
    assert list(more.columns) == ["g", "drag"]
    assert more["g"].between(8, 11).all()
    assert {one.name for one in small.glob("*.py")} == set()
