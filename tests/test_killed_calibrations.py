"""Calibrations in processes that are killed at random moments: the same call goes on, bit for bit."""

import os
import signal
import time
import traceback
import warnings

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from orthocal.execution.checkpoints import checkpoint_file, checkpoint_file as spending

#: how often each run is ended
KILLS = int(os.environ.get("ORTHOCAL_KILLS", "4"))
#: name of a case -> method, draws, noise
CASES = {
    "gp": (oc.methods.Joint(), 200, "estimate"),
    "bart": (oc.methods.Joint(oc.bias.BART(trees=20)), 400, "estimate"),
    "pgp": (oc.methods.Projected(), 300, "estimate"),
    "ko": (oc.methods.KO(), 150, "estimate"),
    "none": (oc.methods.NoBias(), 400, "estimate"),
    "ogp": (oc.methods.OGP(), 60, "estimate"),
    "pcal": (oc.methods.PCAL(), 100, "estimate"),
    "sampled noise": (oc.methods.Projected(oc.bias.BART(trees=20)), 150, "sample"),
}


def calibrated(case, checkpoint=None):
    method, draws, noise = CASES[case]
    rng = np.random.default_rng(1)
    x = np.linspace(0.0, 1.0, 15)
    y = 4 * x + x * np.sin(5 * x) + 0.1 * rng.standard_normal(15)

    def simulate(x, theta):
        return theta[0] * x + np.sin(theta[1] * x)

    priors = {"a": stats.norm(3, 3), "b": stats.uniform(-1, 3)}
    problem = oc.Problem(x, y, simulate, priors, oc.Box(0, 1, nodes=15), noise_cov=noise, starts=2)
    with warnings.catch_warnings():
        # on a busy machine the simulator may take long
        warnings.simplefilter("ignore")
        return oc.calibrate(problem, method, draws, 2, seed=4, warmup=60, progress=False, checkpoint=checkpoint)


def everything(posterior):
    """Every value of a posterior, as bytes."""
    found = {}
    for node in posterior.data.subtree:
        for name, variable in node.to_dataset(inherit=False).variables.items():
            values = np.asarray(variable.values)
            own = values.tobytes() if values.dtype.kind in "biuf" else str(values.tolist()).encode()
            found[f"{node.path} {name} {values.shape}"] = own
    return found


def ended(case, checkpoint, number, after):
    """Whether a process that calibrates was ended by a signal after some seconds, before it was done."""
    with warnings.catch_warnings():
        # JAX, which another test may have loaded, warns of every copy of a process
        warnings.simplefilter("ignore")
        child = os.fork()
    if not child:
        # so short a run is written more often than it need be, with all calls of the simulator
        checkpoint_file.EVERY, spending.SHARE, checkpoint_file.LEAST_SECONDS = 0.01, 1e9, 0.0
        checkpoint_file.BYTES_A_SECOND = np.inf
        code = 1
        try:
            calibrated(case, checkpoint)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    time.sleep(after)
    os.kill(child, number)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("case", CASES)
def test_a_killed_calibration_goes_on_bit_for_bit(case, number, tmp_path):
    # compiled before it is timed
    calibrated(case)
    began = time.monotonic()
    expected = everything(calibrated(case))
    seconds, rng, kills, runs = time.monotonic() - began, np.random.default_rng(int(number)), 0, 1
    checkpoint = tmp_path / "fit.ckpt"
    while kills < KILLS:
        if ended(case, checkpoint, number, rng.uniform(0.0, 0.7 * seconds)):
            kills += 1
        else:
            assert everything(calibrated(case, checkpoint)) == expected
            checkpoint.unlink()
            runs += 1
    assert everything(calibrated(case, checkpoint)) == expected
    print(f"\n{case} {number.name}: {kills} kills in {runs} runs of {seconds:.1f} s")
