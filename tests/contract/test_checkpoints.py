"""A run that was ended goes on bit for bit: every method, whatever its chains are made of, and at any moment."""

import warnings

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from orthocal.execution.checkpoints.checkpoint_file import CheckpointFile

METHODS = {
    "gp": oc.methods.Joint(),
    "bart": oc.methods.Joint(oc.bias.BART(trees=8)),
    "softbart": oc.methods.Joint(oc.bias.SoftBART(trees=3)),
    "bmars": oc.methods.Joint(oc.bias.BMARS()),
    "bnn": oc.methods.Joint(oc.bias.BNN(hidden=3)),
    "gp sampled": oc.methods.Joint(oc.bias.GP()),
    "pgp": oc.methods.Projected(),
    "pgp finite": oc.methods.Projected(projection="finite"),
    "pbart": oc.methods.Projected(oc.bias.BART(trees=8)),
    "psoftbart": oc.methods.Projected(oc.bias.SoftBART(trees=3)),
    "pbmars": oc.methods.Projected(oc.bias.BMARS()),
    "pbnn": oc.methods.Projected(oc.bias.BNN(hidden=3)),
    "pgp adaptive": oc.methods.Projected(kernel=oc.kernels.AdaptiveMetropolis()),
    "pgp slice": oc.methods.Projected(kernel=oc.kernels.Slice()),
    "pgp hmc": oc.methods.Projected(kernel=oc.kernels.HMC()),
    "ko": oc.methods.KO(),
    "ko given": oc.methods.KO(1.5, 1.0, 0.5),
    "ogp": oc.methods.OGP(),
    "ogp slice": oc.methods.OGP(kernel=oc.kernels.Slice()),
    "sgasp": oc.methods.SGaSP(),
    "pcal": oc.methods.PCAL(),
    "none": oc.methods.NoBias(),
}
#: of the fast suite: those whose state is stored in a way of its own
FAST = ("pgp", "ko", "ogp", "none")
#: two windows of warm-up and a rest
LENGTHS = {"draws": 8, "warmup": 55, "chains": 2, "progress": False}
#: iterations after which runs are ended: in the warm-up, at the end of a window, and among the draws
STOPS = (13, 25, 59)


def problem(noise="estimate", outcomes=1):
    rng = np.random.default_rng(3)
    x = np.linspace(0.0, 1.0, 14)
    y = np.stack([4 * x + x * np.sin(5 * x), 1 - x**2][:outcomes], axis=1) + 0.1 * rng.standard_normal((14, outcomes))
    if outcomes > 1:
        y[3, 1] = np.nan

    def simulate(x, theta):
        return np.stack([theta[0] * x + np.sin(theta[1] * x), theta[1] - x][:outcomes], axis=1)

    priors = {"a": stats.norm(3, 3), "b": stats.uniform(-1, 3)}
    return oc.Problem(x, y, simulate, priors, oc.Box(0, 1, nodes=15), noise_cov=noise, starts=2)


def calibrated(setting, method, **given):
    with warnings.catch_warnings():
        # so short chains
        warnings.simplefilter("ignore")
        return oc.calibrate(problem(*setting), METHODS[method], **{**LENGTHS, **given})


def everything(posterior):
    """Every value of a posterior, as bytes."""
    found = {}
    for node in posterior.data.subtree:
        for name, variable in node.to_dataset(inherit=False).variables.items():
            values = np.asarray(variable.values)
            own = values.tobytes() if values.dtype.kind in "biuf" else str(values.tolist()).encode()
            found[f"{node.path} {name} {values.shape}"] = own
    return found


class EndedError(KeyboardInterrupt):
    pass


@pytest.fixture
def ended(monkeypatch, tmp_path):
    """A run that is written and then ended after so many iterations: what it says, and its checkpoint."""

    def run(setting, method, stop):
        path = tmp_path / f"{stop}.ckpt"

        def offered(self, loop, iteration, state, draws):
            if iteration == stop:
                self._write(loop, iteration, state, draws)
                raise EndedError

        with monkeypatch.context() as patch:
            patch.setattr(CheckpointFile, "offered", offered)
            with pytest.raises(EndedError) as caught:
                calibrated(setting, method, seed=5, checkpoint=path)
        return str(caught.value), path

    return run


@pytest.mark.parametrize("method", FAST)
def test_a_run_that_was_ended_goes_on(method, ended):
    whole = everything(calibrated(("estimate",), method, seed=5))
    words, path = ended(("estimate",), method, 59)
    assert words == f"interrupted: {path} keeps the first 59 iterations, and the same command goes on from there"
    # the seed is the file's
    assert everything(calibrated(("estimate",), method, checkpoint=path)) == whole


@pytest.mark.slow
@pytest.mark.parametrize("setting", [("estimate", 1), ("estimate", 2), ("sample", 1), ("sample", 2)])
@pytest.mark.parametrize("method", [name for name in METHODS if name not in ("gp", "pcal")])
def test_every_run_goes_on_from_any_moment(method, setting, ended):
    try:
        whole = everything(calibrated(setting, method, seed=5))
    except oc.OrthocalError as error:
        pytest.skip(str(error))
    for stop in STOPS:
        _, path = ended(setting, method, stop)
        assert everything(calibrated(setting, method, checkpoint=path)) == whole


@pytest.mark.parametrize(
    "method", [one if one in ("pgp", "pcal") else pytest.param(one, marks=pytest.mark.slow) for one in METHODS]
)
def test_more_draws_are_those_of_one_run(method):
    few = calibrated(("estimate",), method, seed=5, draws=4)
    assert everything(few.extend(4)) == everything(calibrated(("estimate",), method, seed=5))


def test_more_draws_do_not_repeat_the_chain():
    few = calibrated(("estimate",), "none", seed=5, draws=4)
    calls = few._simulator.calls
    longer = few.extend(4)
    # the warm-up alone takes hundreds
    assert longer._simulator.calls - calls < 0.1 * calls
    # the shorter one is what it was
    assert everything(few.extend(4)) == everything(longer)


def test_more_draws_go_on_from_a_finished_checkpoint(tmp_path):
    path = tmp_path / "fit.ckpt"
    few = calibrated(("estimate",), "none", seed=5, draws=4, checkpoint=path)
    whole = everything(calibrated(("estimate",), "none", seed=5))
    assert everything(few.extend(4)) == whole
    # and the same call again needs no draw
    assert everything(calibrated(("estimate",), "none", seed=5, checkpoint=path)) == whole
    with pytest.raises(oc.errors.InputError, match="8 draws a chain already"):
        calibrated(("estimate",), "none", seed=5, draws=4, checkpoint=path)
