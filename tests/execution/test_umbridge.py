"""Models of UM-Bridge servers as simulators: blocks, derivatives, and servers that fail, hang, or go and come back."""

import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from serving import POINTS, Pretended, PretendedDecay, PretendedModel, Server, decay, decay_gradient, free_port

import orthocal as oc
from orthocal.errors import InputError, NonFiniteError, OrthocalWarning, SimulatorError
from orthocal.execution.work.simulation import GoneError
from orthocal.problem.simulator.simulator import Simulator

pytest.importorskip("umbridge", reason="needs umbridge, the extra umbridge")

THETA = np.array([2.0, 1.3])


@pytest.fixture(scope="module")
def url():
    with Server() as server:
        yield server.url


def test_a_model_at_points_of_its_own(url):
    model = oc.UMBridge(url, "plain", points=POINTS)
    assert np.array_equal(model(POINTS, THETA)[:, 0], decay(POINTS, THETA))
    # any of them in any order, also as columns
    assert np.array_equal(model(np.array([[2.0], [-0.0]]), THETA)[:, 0], decay([2.0, 0.0], THETA))
    with pytest.raises(
        InputError, match=r"values at 4 points of its own, x = 0\.7 is not one of them: give the problem"
    ):
        model(np.array([0.0, 0.7]), THETA)
    with pytest.raises(InputError, match="how the model 'plain' takes x is not known: give points="):
        oc.UMBridge(url, "plain")(POINTS, THETA)


def test_outputs_without_inputs(url):
    model = oc.UMBridge(url, "jacobian")
    assert np.array_equal(model(THETA), decay(POINTS, THETA))
    assert np.allclose(model.gradient(THETA), decay_gradient(POINTS, THETA), rtol=1e-15)


def test_x_in_the_config(url):
    model, x = oc.UMBridge(url, "jacobian", x_config="x"), np.linspace(0, 1, 7)
    assert np.array_equal(model(x, THETA)[:, 0], decay(x, THETA))
    assert np.allclose(model.gradient(x, THETA)[:, 0], decay_gradient(x, THETA), rtol=1e-15)


@pytest.mark.parametrize(
    ("model", "kind"), [("plain", "difference"), ("jacobian", "jacobian"), ("gradient", "gradient")]
)
def test_the_derivative_that_the_server_offers(url, model, kind):
    simulator = oc.UMBridge(url, model, points=POINTS)
    assert simulator._derivative == kind
    if kind != "difference":
        assert np.allclose(simulator.gradient(POINTS, THETA)[:, 0], decay_gradient(POINTS, THETA), rtol=1e-15)
    else:
        assert simulator.gradient == "difference"


def test_rows_of_the_jacobian_are_not_asked_for_where_differences_are_cheaper(url):
    """Gradient gives one output's derivatives: 5 outputs would take 5 calls, differences take 4."""
    many = {"x": [[one] for one in range(5)]}
    assert oc.UMBridge(url, "gradient", points=np.arange(5.0), config=many)._derivative == "difference"
    asked = oc.UMBridge(url, "gradient", points=np.arange(5.0), config=many, derivative="gradient")
    assert np.allclose(asked.gradient(np.arange(5.0), THETA)[:, 0], decay_gradient(np.arange(5.0), THETA), rtol=1e-14)
    with pytest.raises(InputError, match="the model 'plain' offers no ApplyJacobian: take \"auto\""):
        _ = oc.UMBridge(url, "plain", points=POINTS, derivative="jacobian").gradient


def test_blocks_of_input_and_output(url):
    model = oc.UMBridge(url, "blocks", x_block=1, fixed={3: [0.25, 0.5]})
    value = decay(POINTS, THETA) + 0.75
    assert np.allclose(model(POINTS, THETA), np.column_stack([value, value**2]), rtol=1e-15)
    slope = decay_gradient(POINTS, THETA)
    expected = np.stack([slope, 2 * value[:, None] * slope], axis=1)
    assert np.allclose(model.gradient(POINTS, THETA), expected, rtol=1e-14)
    second = oc.UMBridge(url, "blocks", x_block=1, fixed={3: [0.25, 0.5]}, outputs=1)
    assert np.array_equal(second(POINTS, THETA), model(POINTS, THETA)[:, 1:])


def test_outcomes_after_one_another_in_one_block(url):
    x = np.array([0.0, 0.5, 1.0, 2.0])
    by_point = oc.UMBridge(url, "plain", points=x[:2])(x[:2], THETA)
    by_outcome = oc.UMBridge(url, "plain", points=x[:2], by="outcome")(x[:2], THETA)
    assert np.array_equal(by_point, decay(x, THETA).reshape(2, 2))
    assert np.array_equal(by_outcome, decay(x, THETA).reshape(2, 2).T)


@pytest.mark.parametrize(
    ("settings", "theta", "message"),
    [
        ({"model": "plane", "x_config": "x"}, THETA, "has no model 'plane': it has plain, jacobian,"),
        (
            {"model": "plain", "x_config": "x"},
            [1.0],
            r"input blocks of 2 numbers, of which theta fills 2, but there are 1 parameters: give",
        ),
        (
            {"model": "blocks", "x_block": 1},
            THETA,
            r"blocks of 1 \+ 1 \+ 1 \+ 2 numbers, of which theta fills 4, but there",
        ),
        ({"model": "blocks", "x_block": 7}, THETA, "x_block=7: the model 'blocks' has 4 input blocks, from number 0"),
        (
            {"model": "blocks", "x_block": 3},
            THETA,
            "block 3 of the model 'blocks' takes 2 numbers: it can be one point x",
        ),
        (
            {"model": "plain", "points": POINTS, "outputs": 3},
            THETA,
            r"outputs=\[3\]: the model 'plain' has 1 output bl",
        ),
        (
            {"model": "plain", "points": POINTS[:3]},
            THETA,
            r"returned 4 values in an output block, for 3 points: give its",
        ),
        ({"model": "plain", "points": POINTS, "x_block": 0}, THETA, "points, x_block and x_config each say where x is"),
        ({"model": "plain", "derivative": "exact"}, THETA, 'derivative=\'exact\': give "auto", "jacobian"'),
        ({"model": "plain", "by": "row"}, THETA, 'by=\'row\': give "point" or "outcome"'),
        ({"model": "plain", "timeout": 0}, THETA, "timeout=0: give seconds, or None"),
        ({"model": "plain", "wait": -1}, THETA, "wait=-1: give seconds, 0 or more"),
        ({"model": "plain", "retries": True}, THETA, "retries=True: give how often"),
        ({"model": "plain", "each": 0}, THETA, "each=0: give the calls that one server takes"),
    ],
)
def test_what_does_not_fit_is_one_sentence(url, settings, theta, message):
    with pytest.raises((InputError, SimulatorError), match=message):
        oc.UMBridge(url, **settings)(POINTS[:3], np.array(theta))


@pytest.mark.parametrize("address", ["localhost:4242", "ftp://host", "http://", "http://host:port", "http://u@h:1"])
def test_an_address_that_is_none(address):
    with pytest.raises(InputError, match="url="):
        oc.UMBridge(address)
    with pytest.raises(InputError, match="url is empty"):
        oc.UMBridge([])


def test_values_that_are_not_finite_come_as_such(url):
    """Python's server writes nan and inf, which are no JSON."""
    values = oc.UMBridge(url, "trouble", points=POINTS)(POINTS, np.array([4.0, 1.0]))[:, 0]
    assert np.array_equal(values, [np.nan, np.inf, -np.inf, 1.0], equal_nan=True)


@pytest.mark.slow
def test_a_failing_and_a_slow_server_are_one_sentence_each():
    with Server() as server:
        model = oc.UMBridge(server.url, "trouble", points=POINTS, timeout=0.3, retries=1, wait=0.0)
        with pytest.raises(NonFiniteError, match=r"the model 'trouble': http.* failed: 500 Internal Server Error"):
            model(POINTS, np.array([1.0, 1.0]))
        with pytest.raises(
            SimulatorError, match=r"gave no answer in 0\.3 s \(time-out\): give a longer one, or mend"
        ) as slow:
            model(POINTS, np.array([2.0, 1.0]))
        assert not isinstance(slow.value, NonFiniteError), "no theta is impossible because a server is slow"


def test_a_server_that_was_never_there_is_one_sentence():
    began = time.monotonic()
    with pytest.raises(GoneError, match=r"cannot be reached \(connection refused\): start the server"):
        oc.UMBridge(f"http://127.0.0.1:{free_port()}", wait=0.2)(THETA)
    assert time.monotonic() - began < 5


@pytest.fixture
def other():
    """A server that answers as it is told."""

    class Told(PretendedModel):
        pass

    server = Pretended(Told)
    Told.url = f"http://127.0.0.1:{server.server_port}"
    yield Told
    server.go()


@pytest.mark.parametrize(
    ("status", "body", "kind", "message"),
    [
        (200, b"<html>", SimulatorError, "is no UM-Bridge server: it answers Evaluate by '<html>'"),
        (200, b"{}", SimulatorError, "is no UM-Bridge server: its answer to Evaluate has no 'output'"),
        (404, b"", SimulatorError, "it answers Evaluate by HTTP status 404"),
        (200, b'{"output": [["a"]]}', SimulatorError, "an output that is no list of vectors of numbers"),
        (200, b'{"output": 3}', SimulatorError, "an output that is no list of vectors of numbers"),
        (400, b'{"error": {"type": "InvalidInput", "message": "two"}}', SimulatorError, "says InvalidInput: two"),
        (500, b'{"error": {"type": "Diverged", "message": "at 3"}}', NonFiniteError, "says Diverged: at 3"),
    ],
)
def test_other_answers(other, status, body, kind, message):
    other.status, other.body = status, body
    with pytest.raises(SimulatorError, match=message) as raised:
        oc.UMBridge(other.url)(THETA)
    assert type(raised.value) is kind


def test_null_is_what_other_servers_write_for_nan(other):
    other.body = b'{"output": [[1, null]]}'
    assert np.array_equal(oc.UMBridge(other.url)(THETA), [1, np.nan], equal_nan=True)


def test_a_balancer_that_has_no_server_yet_is_asked_again(other):
    other.status, other.body = 503, b'{"output": [[1.5]]}'
    model = oc.UMBridge(other.url)
    model.check(["a", "b"], here=True)
    threading.Timer(0.3, setattr, (other, "status", 200)).start()
    with pytest.warns(OrthocalWarning, match=r"is gone \(HTTP status 503\): it is waited for, up to 600 s"):
        values = model(THETA)
    assert values.tolist() == [1.5]


def problem(simulator):
    rng = np.random.default_rng(3)
    x = np.linspace(0, 2, 15)
    y = 2 * np.exp(-1.2 * x) + 0.1 * np.sin(4 * x) + 0.05 * rng.standard_normal(15)
    priors = {"a": stats.norm(2, 1), "b": stats.uniform(0.1, 4)}
    return oc.Problem(x, y, simulator, priors, domain=oc.Box(0, 2, 8), noise_cov=0.0025, starts=2)


OWN = {"plain": Simulator(decay), "jacobian": Simulator(decay, decay_gradient)}


@pytest.mark.parametrize("model", OWN)
def test_the_same_best_fit_as_with_the_function_itself(url, model):
    served, own = problem(oc.UMBridge(url, model, x_config="x")), problem(OWN[model])
    assert np.array_equal(served.theta_tilde, own.theta_tilde)
    assert np.array_equal(served.gradient_at_nodes, own.gradient_at_nodes)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*an emulator, a cheap stand-in")
@pytest.mark.parametrize("model", OWN)
def test_the_same_posterior_as_with_the_function_itself(url, model):
    served, own, other = (
        oc.calibrate(problem(one), draws=500, chains=2, seed=1, progress=False).theta
        for one in (oc.UMBridge(url, model, x_config="x"), *(OWN[one] for one in sorted(OWN, key=model.__ne__)))
    )
    assert np.max(np.abs(served - own)) < 1e-10
    assert np.max(np.abs(served - other)) > 0, "by another gradient the last digits are others"


def test_it_goes_to_other_processes_as_its_settings(url):
    model = oc.UMBridge(url, "plain", points=POINTS)
    expected = model(POINTS, THETA)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again(POINTS, THETA), expected)
    assert again.identity() == model.identity()
    elsewhere = oc.UMBridge("http://elsewhere:1", "plain", points=POINTS)
    assert elsewhere.identity() == model.identity(), "the runs of a store are a model's, wherever it is served"
    assert oc.UMBridge(url, "jacobian", points=POINTS).identity() != model.identity()


DESIGN = pd.DataFrame({"a": np.linspace(1, 2, 12), "b": np.linspace(0.5, 1.5, 12)})


def expected_runs():
    return np.array([decay(POINTS, row) for row in DESIGN.to_numpy()])


def test_a_problem_asks_several_servers_at_a_time():
    class Own(PretendedDecay):
        busy, most, pause = 0, 0, 0.003

        def do_POST(self):
            Own.busy += self.path == "/Evaluate"
            Own.most = max(Own.most, Own.busy)
            super().do_POST()
            Own.busy -= self.path == "/Evaluate"

    servers = [Pretended(Own) for _ in range(3)]
    model = oc.UMBridge([f"http://127.0.0.1:{one.server_port}" for one in servers], points=POINTS, wait=0.0)
    priors = {"a": stats.norm(2, 1), "b": stats.uniform(0.1, 4)}
    y = decay(POINTS, [2.0, 1.0])
    found = oc.Problem(POINTS, y, model, priors, domain=oc.Points(POINTS), noise_cov=0.01, starts=2)
    alone = oc.Problem(POINTS, y, decay, priors, domain=oc.Points(POINTS), noise_cov=0.01, starts=2)
    assert np.array_equal(found.theta_tilde, alone.theta_tilde)
    assert 2 <= Own.most <= 3
    for one in servers:
        one.go()
    # a server that is gone makes no theta impossible, whichever thread finds it out
    with pytest.warns(OrthocalWarning, match="is gone"), pytest.raises(SimulatorError, match="does not answer for"):
        found.simulator.batch(POINTS[:, None], np.ones((8, 2)))


@pytest.mark.filterwarnings("ignore:the replicates of every theta agree")
def test_each_run_of_a_random_model_has_a_seed(tmp_path):
    class Own(PretendedDecay):
        seeds: ClassVar[list[int | None]] = []

    server = Pretended(Own)
    for key, store in (("seed", "seeded.db"), (None, "plain.db")):
        model = oc.UMBridge(f"http://127.0.0.1:{server.server_port}", seed_config=key)
        oc.campaign(model, DESIGN[:3], POINTS, store=tmp_path / store, replicates=2, progress=False)
    server.go()
    assert len(set(Own.seeds[:6])) == 6
    assert None not in Own.seeds[:6]
    assert Own.seeds[6:] == [None] * 6


def test_a_server_that_goes_and_comes_back_three_times(tmp_path):
    class Own(PretendedDecay):
        asked = 0

    server = Pretended(Own)
    model = oc.UMBridge(f"http://127.0.0.1:{server.server_port}", wait=60)

    def go_and_come():
        nonlocal server
        for goal in (2, 5, 8):
            while Own.asked < goal:
                time.sleep(0.001)
            server.go()
            time.sleep(0.05)
            server = Pretended(Own, server.server_port)

    away = threading.Thread(target=go_and_come)
    away.start()
    with pytest.warns(OrthocalWarning, match="it is waited for, up to 60 s"):
        runs = oc.campaign(model, DESIGN, POINTS, store=tmp_path / "runs.db", retries=0, progress=False)
    away.join()
    server.go()
    assert np.array_equal(runs.output[..., 0], expected_runs())
    assert oc.campaign_status(tmp_path / "runs.db")[:3] == (12, 0, 0)


def test_a_server_that_does_not_come_back_ends_the_campaign(tmp_path):
    class Own(PretendedDecay):
        asked = 0

    server, store = Pretended(Own), tmp_path / "runs.db"
    model = oc.UMBridge(f"http://127.0.0.1:{server.server_port}", wait=0.2)

    def go():
        while Own.asked < 4:
            time.sleep(0.001)
        server.go()

    away = threading.Thread(target=go)
    away.start()
    with (
        pytest.warns(OrthocalWarning, match=r"it is waited for, up to 0\.2 s"),
        pytest.raises(GoneError, match=r"does not answer for [\d.]+ s \(.*\): start .*; what had finished is kept"),
    ):
        oc.campaign(model, DESIGN, POINTS, store=store, retries=0, progress=False)
    away.join()
    kept = oc.campaign_status(store)
    assert kept.done >= 3
    assert kept.failed == 0
    server = Pretended(Own, server.server_port)
    runs = oc.campaign(model, DESIGN, POINTS, store=store, retries=0, progress=False)
    server.go()
    assert np.array_equal(runs.output[..., 0], expected_runs())


@pytest.mark.slow
def test_several_servers_share_the_runs_of_a_campaign(tmp_path):
    with Server(tmp_path) as first, Server(tmp_path) as second:
        model = oc.UMBridge([first.url, second.url], "slow")
        runs = oc.campaign(model, DESIGN, POINTS, store=tmp_path / "runs.db", progress=False)
        ports = [line.split()[0] for line in (tmp_path / "calls").read_text().splitlines()]
    assert np.array_equal(runs.output[..., 0], expected_runs())
    assert len(ports) == 12
    assert min(ports.count(str(one.port)) for one in (first, second)) >= 4
    assert model.width == 2


@pytest.mark.slow
def test_the_other_server_takes_over(tmp_path):
    with Server() as second:
        first = Server().start()
        model = oc.UMBridge([first.url, second.url], "slow")
        model.check(["a", "b"], here=True)
        threading.Timer(0.15, first.kill).start()
        with pytest.warns(OrthocalWarning, match=r"is gone \(.*\): the others take its work"):
            runs = oc.campaign(model, DESIGN, POINTS, store=tmp_path / "runs.db", progress=False)
    assert np.array_equal(runs.output[..., 0], expected_runs())


@pytest.mark.slow
def test_killed_three_times_in_a_campaign_nothing_is_lost(tmp_path):
    server = Server(tmp_path).start()
    calls = tmp_path / "calls"

    def made():
        return len(calls.read_text().splitlines()) if calls.exists() else 0

    def kill_and_start():
        for goal in (2, 5, 8):
            while made() < goal:
                time.sleep(0.005)
            server.kill()
            time.sleep(0.2)
            server.start(wait=False)

    killer, model = threading.Thread(target=kill_and_start), oc.UMBridge(server.url, "slow", wait=60)
    killer.start()
    try:
        with pytest.warns(OrthocalWarning, match="it is waited for, up to 60 s"):
            runs = oc.campaign(model, DESIGN, POINTS, store=tmp_path / "runs.db", retries=0, progress=False)
    finally:
        killer.join()
        server.kill()
    assert np.array_equal(runs.output[..., 0], expected_runs())
    assert oc.campaign_status(tmp_path / "runs.db")[:3] == (12, 0, 0)
    # a run is made again only if its server was killed while it had it
    assert 12 <= made() <= 15


@pytest.mark.slow
def test_a_theta_that_ends_its_server_is_a_failed_run(tmp_path):
    """However often the server is started again, it is not asked for ever."""
    server, going = Server().start(), threading.Event()

    def keep_alive():
        while not going.wait(0.05):
            if server._process.poll() is not None:
                server.start(wait=False)

    keeper = threading.Thread(target=keep_alive)
    keeper.start()
    try:
        model = oc.UMBridge(server.url, "trouble", retries=1, wait=60)
        design = pd.DataFrame({"a": [1.5, 3.0], "b": [1.0, 1.0]})
        with pytest.warns(OrthocalWarning) as warned:
            runs = oc.campaign(model, design, POINTS, store=tmp_path / "runs.db", retries=0, progress=False)
    finally:
        going.set()
        keeper.join()
        server.kill()
    assert runs.failed.tolist() == [False, True]
    assert any("has gone 2 times while it computed this" in str(one.message) for one in warned)


@pytest.mark.slow
def test_a_slow_server_is_a_failed_run(tmp_path):
    with Server() as server:
        design, model = pd.DataFrame({"a": [1.5, 2.0], "b": [1.0, 1.0]}), oc.UMBridge(server.url, "trouble")
        with pytest.warns(
            OrthocalWarning, match=r"1 of 2 runs failed; run 1: .* gave no answer in 0\.4 s \(time-out\)"
        ):
            runs = oc.campaign(model, design, POINTS, store=tmp_path / "r.db", retries=0, timeout=0.4, progress=False)
    assert runs.complete.tolist() == [True, False]


@pytest.mark.slow
def test_what_waits_is_ended_with_the_work():
    with Server() as server:
        model = oc.UMBridge(server.url, "trouble")
        began = time.monotonic()
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(model.run, POINTS, {"a": 2.0, "b": 1.0}, ["x"], None, "run", "one campaign")
            time.sleep(0.3)
            model.end_runs("another")
            assert not waiting.done()
            model.end_runs("one campaign")
            with pytest.raises(SimulatorError, match="the work was ended while a server was asked"):
                waiting.result(5)
        assert time.monotonic() - began < 5
