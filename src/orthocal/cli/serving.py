"""The command ``orthocal serve``: a posterior as UM-Bridge models."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ConfigError, InputError, OrthocalError
from .results import ended_in_words

if TYPE_CHECKING:
    import numpy as np

    from ..results.callable_posterior import CallablePosterior
    from ..results.posterior import Posterior

#: what a model of a server is asked with
Blocks = list[list[float]]
Config = dict[str, Any]


def serve(
    fit: Annotated[Path, typer.Argument(help="A result file, fit.nc.")],
    problem: Annotated[
        Path | None, typer.Option(help="Its problem file, for the simulator: without it at the data points alone.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any that is free.")] = 4242,
    host: Annotated[str, typer.Option(help="Where to listen; by default this computer alone can ask.")] = "127.0.0.1",
) -> None:
    """Offer a calibrated model to others, as models of a UM-Bridge server.

    model, bias, mean and observation take points x and the number of a draw, summary takes points x, parameters the
    number of a draw.
    """
    with ended_in_words():
        models = served_models(_posterior(fit, problem))
        try:
            _listen(models, fit, host, port)
        except KeyboardInterrupt as stop:
            raise type(stop)("the server has ended") from None


def _posterior(fit: Path, problem: Path | None) -> Posterior:
    from ..results.files.loading import load

    if problem is None:
        note = "note: values at the data points alone, without the simulator: give --problem problem.toml"
        typer.echo(note, err=True)
        return _of_one(load(fit), fit)
    from ..config.priors import names_of, priors_of
    from ..config.problem_file import build_simulator, read_problem_file

    config = read_problem_file(problem)
    names = tuple(names_of(priors_of(config.parameters)))
    own = load(fit).parameter_names
    if names != own:
        raise ConfigError(
            f"{problem} has the parameters {', '.join(names)}, and {fit} has {', '.join(own)}: give the problem file "
            "that it was made with"
        )
    return _of_one(load(fit, build_simulator(config, problem.parent)), fit)


def _of_one(posterior: Posterior, fit: Path) -> Posterior:
    if "experiments" in posterior.record.data.attrs:
        raise ConfigError(f'{fit} has several experiments: serve one, which posterior["its name"].save(...) writes')
    return posterior


class ServedModel:
    """What a UM-Bridge server needs of a model: ``blocks`` are the sizes of its inputs for m points, and outputs."""

    def __init__(
        self,
        name: str,
        blocks: Callable[[int], tuple[list[int], list[int]]],
        function: Callable[[Blocks, Config, int], list[np.ndarray[Any, Any]]],
    ) -> None:
        self.name, self._blocks, self._function = name, blocks, function

    def get_input_sizes(self, config: Config) -> list[int]:
        with _in_words():
            return self._blocks(_points(config))[0]

    def get_output_sizes(self, config: Config) -> list[int]:
        with _in_words():
            return self._blocks(_points(config))[1]

    def __call__(self, parameters: Blocks, config: Config) -> Blocks:
        with _in_words():
            return [block.ravel().tolist() for block in self._function(parameters, config, _points(config))]

    def supports_evaluate(self) -> bool:
        return True

    def supports_gradient(self) -> bool:
        return False

    supports_apply_jacobian = supports_apply_hessian = supports_gradient


def served_models(posterior: Posterior) -> list[ServedModel]:
    """The models of a posterior."""
    from ..results.callable_posterior import SUMMARY_DRAWS, CallablePosterior
    from ..results.predict.predict import QUANTITIES

    served = CallablePosterior(posterior)
    points = [served.d] if served.d else []

    def quantity(name: str) -> ServedModel:
        def value(given: Blocks, config: Config, m: int) -> list[np.ndarray[Any, Any]]:
            return [served.values(name, _x(served, given, m), given[-1][0], _seed(config))]

        return ServedModel(name, lambda m: ([*(m * d for d in points), 1], [m * served.q]), value)

    def summary(given: Blocks, config: Config, m: int) -> list[np.ndarray[Any, Any]]:
        of, draws = str(config.get("of", "mean")), config.get("draws", SUMMARY_DRAWS)
        return served.summary(of, _x(served, given, m), draws, _seed(config))

    def theta(given: Blocks, config: Config, m: int) -> list[np.ndarray[Any, Any]]:
        return [served.theta(given[0][0])]

    return [
        *map(quantity, QUANTITIES),
        ServedModel("summary", lambda m: ([m * d for d in points], [m * served.q] * 4), summary),
        ServedModel("parameters", lambda m: ([1], [served.p]), theta),
    ]


def _x(served: CallablePosterior, given: Blocks, m: int) -> np.ndarray[Any, Any]:
    import numpy as np

    return np.array(given[0] if served.d else [[0.0]], dtype=np.float64).reshape(m if served.d else 1, -1)


def _points(config: Config) -> int:
    m = config.get("points", 1)
    if isinstance(m, bool) or not isinstance(m, int) or m < 1:
        raise InputError(f"points={m!r}: give the number of points x in a call, 1 or more")
    return m


def _seed(config: Config) -> int | None:
    seed = config.get("seed")
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or seed < 0):
        raise InputError(f"seed={seed!r}: give a whole number, 0 or more")
    return seed


@contextmanager
def _in_words() -> Iterator[None]:
    """Errors of ours are errors of the protocol: the server would make a page of any other."""
    from aiohttp import web

    try:
        yield
    except OrthocalError as error:
        kind = "InvalidInput" if isinstance(error, InputError) else "ModelError"
        text = json.dumps({"error": {"type": kind, "message": str(error)}})
        raise web.HTTPBadRequest(text=text, content_type="application/json") from None


def _listen(models: list[ServedModel], fit: Path, host: str, port: int) -> None:
    """Answer until somebody ends it."""
    try:
        import umbridge
        from aiohttp import web
    except ImportError:
        raise InputError("orthocal serve needs umbridge: install orthocal[umbridge]") from None
    import asyncio

    async def answer(app: web.Application) -> None:
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port).start()
            where = ", ".join(f"http://{at[0]}:{at[1]}" for at in runner.addresses)
            typer.echo(f"{', '.join(one.name for one in models)} of {fit} at {where} (Ctrl-C ends it)")
            await asyncio.Event().wait()
        finally:
            await runner.cleanup()

    # it would listen on every interface of the computer, and takes no address
    plain = web.run_app
    web.run_app = lambda app, **_: asyncio.run(answer(app))
    try:
        umbridge.serve_models(models, port)
    except OSError as error:
        raise ConfigError(f"cannot listen on {host}:{port}: {error.strerror or error}; give another --port") from None
    finally:
        web.run_app = plain
