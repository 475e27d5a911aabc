"""From a problem and a method to a posterior: seeds, chains, threads, and what is to be known about the run."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import partial, reduce
from importlib.metadata import version
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from .advice import EMULATOR_ERROR, NEXT_RUNS
from .errors import InputError, OrthocalWarning
from .execution.checkpoints.checkpoint_file import Checkpoint, kept_in
from .execution.checkpoints.keeping import Keeper, keeper_around, kept_by
from .execution.work.calls import Spent
from .experiments import Experiments
from .experiments.calibrated import joint_run, posterior_of_one
from .experiments.draws import joint_method
from .machine.threads import one_blas_thread
from .methods import Method, Plan
from .methods.base import MOST_KEPT as MOST_AT_DATA, ListedMethod, run_merged
from .methods.bias_samplers import method_for
from .methods.stored_draws import thinned
from .problem.fingerprint import fingerprint
from .problem.problem import Problem
from .problem.simulator.emulator import emulator_with_draws
from .progress import progress_shown
from .results import record
from .results.checks.run_diagnostics import run_facts
from .results.data_tree import result_tree
from .results.posterior import Posterior
from .results.predict.likelihood import few_enough
from .results.run_facts import RunFacts

#: share of the draws outside of an emulator's runs that is worth a warning
OUTSIDE_LIMIT = 0.01
#: draws of an emulator where none are asked for
DRAWS_BY_DEFAULT = 64


def calibrate(
    problem: Problem | Experiments,
    method: str | Method = "gp",
    draws: int = 1000,
    chains: int = 4,
    seed: int | None = None,
    warmup: int = 200,
    progress: bool = True,
    checkpoint: str | Path | Checkpoint | None = None,
    keep_mb: float = MOST_AT_DATA / 1e6,
    emulator_draws: int | None = None,
) -> Posterior:
    """Draws of theta and of the bias b given the field data: y = f(., theta) + b + noise, b orthogonal to df/dtheta.

    Parameters
    ----------
    problem
        An ``oc.Problem``, or ``oc.Experiments``, several of them that share parameters.
    method
        A name or an object, for instance ``oc.methods.Joint(bias=oc.bias.GP(nu=2.5))``. The default, ``"gp"``, is the
        joint projection with a Gaussian-process bias; ``"pgp"`` is the paper's Algorithm 1.
    draws, warmup, chains
        Kept draws and warm-up iterations of each chain, and the number of chains.
    seed
        The same seed gives the same draws, whatever the number of threads. None takes a new one, which is kept in
        the results.
    progress
        Show a progress bar on a terminal if the run takes longer than a second.
    checkpoint
        A file that keeps the run while it is under way: after whatever ended it, the same call goes on from there, and
        its draws are those of a run that was not ended, bit for bit. A file of other work is an error. It stays when
        the run is done; the same call with more ``draws`` then goes on.
    keep_mb
        Megabytes that model and bias at the data may take. Where those of all draws would take more (with 4 times 1000
        draws, more than 4000 cells of y) they are kept of some draws, evenly spread, and mean, sd and quantiles of
        each point stand in ``data["at_data"]``. Theta is kept of every draw, and so is what predictions need.
    emulator_draws
        How many draws of the emulator stand for what is uncertain about the simulator, where the simulator is an
        emulator that has draws: the joint projection projects each draw of the real process on one of them. Default:
        64; 0 takes the emulator's mean for the simulator, and so do other methods and several experiments.

    Examples
    --------
    >>> import orthocal as oc
    >>> problem = oc.examples.MODEL1.problem(seed=1)
    >>> posterior = oc.calibrate(problem, draws=500, seed=1, progress=False)
    >>> print(posterior.summary()[["mean", "sd"]].round(2))
               mean    sd
    parameter
    theta      3.54  0.03
    >>> bool(posterior.check())
    True
    """
    lengths = (draws, chains, warmup)
    run = _planned(problem, method, lengths, seed, progress, checkpoint, keep_mb, emulator_draws)
    return run.posterior(int(draws))


def _planned(
    problem: Problem | Experiments,
    method: str | Method,
    lengths: tuple[int, int, int],
    seed: int | None,
    progress: bool,
    checkpoint: str | Path | Checkpoint | None,
    keep_mb: float,
    emulator_draws: int | None,
) -> _Run:
    """The run, with all that ``calibrate`` was given checked."""
    if not isinstance(problem, Problem | Experiments):
        raise InputError(f"problem is {type(problem).__name__}: give an oc.Problem, or oc.Experiments")
    alone = problem if isinstance(problem, Problem) else next(iter(problem.problems.values()))
    chosen = method_for(alone, method)
    draws, chains, warmup = lengths
    check_lengths(draws, chains, warmup, seed)
    where = Checkpoint(Path(checkpoint)) if isinstance(checkpoint, str | Path) else checkpoint
    if isinstance(keep_mb, bool) or not (isinstance(keep_mb, Real) and 0 < keep_mb < np.inf):
        raise InputError(f"keep_mb={keep_mb!r}: give the megabytes that model and bias at the data may take")
    rest = (int(chains), seed, int(warmup), progress, where, int(1e6 * keep_mb))
    if isinstance(problem, Experiments):
        taken = _asked_draws_of_each(problem.problems.values(), chosen, emulator_draws)
        return _joint_run(problem, chosen, (*rest, taken))
    if isinstance(chosen, ListedMethod) and chosen.plugs_in:
        problem = problem.plugged_in
    return _Run(problem, chosen, *rest, _asked_draws(problem, chosen, emulator_draws))


def _asked_draws(problem: Problem, method: Method, asked: int | None) -> int:
    """How many draws of the emulator are taken, or an error where those that are asked for cannot be."""
    possible = isinstance(method, ListedMethod) and method.draws_emulators
    there = emulator_with_draws(problem.simulator.emulator) is not None
    if asked is None:
        return DRAWS_BY_DEFAULT if possible and there and not problem.emulator_error else 0
    if isinstance(asked, bool) or not isinstance(asked, int | np.integer) or asked < 0:
        raise InputError(f"emulator_draws={asked!r}: give the number of draws of the emulator, or 0 for its mean alone")
    if not asked:
        return 0
    if not there:
        raise InputError(
            f"emulator_draws={asked}: the simulator is no emulator that has draws; oc.emulate(runs, 'gp') makes one, "
            "'bart' and 'bmars' have them too"
        )
    if not possible:
        raise InputError(
            f"emulator_draws={asked}: draws of an emulator go with the joint projection, gp for instance; for other "
            "methods give the problem " + EMULATOR_ERROR
        )
    if problem.emulator_error:
        raise InputError(
            f"emulator_draws={asked} and the problem's " + EMULATOR_ERROR + " would count its error twice: leave "
            "one of them out"
        )
    return int(asked)


def _asked_draws_of_each(problems: Iterable[Problem], method: Method, asked: int | None) -> int:
    """The same for several experiments: those that have an emulator with draws take as many."""
    each = list(problems)
    drawn = [one for one in each if emulator_with_draws(one.simulator.emulator) is not None]
    return max(_asked_draws(one, method, asked) for one in drawn or each[:1])


def _emulator_seed(seed: int) -> int:
    """The emulator's draws have a seed of their own, which the run's gives."""
    return int(np.random.SeedSequence(seed, spawn_key=(2**31 + 1,)).generate_state(1, np.uint32)[0])


@dataclass(frozen=True)
class _Run:
    """All that a calibration is given but the number of draws, of which there may be more later."""

    problem: Problem
    method: Method
    chains: int
    seed: int | None
    warmup: int
    progress: bool
    checkpoint: Checkpoint | None
    keep: int
    emulator_draws: int

    def posterior(self, draws: int, known: Keeper | None = None) -> Posterior:
        """``known`` is where a run with fewer draws ended."""
        problem, work = self.problem, _Stages(self.problem)
        with self._begun(draws, known) as (plan, keeper, entropy):
            # before there are draws beside it, as both take memory at the data
            _ = problem.loss_minima
            drawn = run_merged(self.method, problem, plan)
            work.end_of("sampling")
            facts = run_facts(problem, drawn)
            work.end_of("checks")
            facts = replace(facts, **work.done())
            attributes = record.attributes(problem, self.method, drawn, facts, str(entropy), self.warmup)
            tree = result_tree(problem, thinned(drawn, plan), attributes)
        _say_what_is_odd(facts)
        more: Callable[[int], Posterior] = partial(replace(self, seed=entropy).posterior, known=keeper)
        posterior = Posterior(tree, problem.simulator, drawn.samplers, more=more)
        if few_enough(posterior.record):
            _ = posterior.log_likelihood
        return posterior

    @contextmanager
    def _begun(self, draws: int, known: Keeper | None) -> Iterator[tuple[Plan, Keeper, int]]:
        """The plan of a run, where it is kept, and its seed."""
        entropy = self.seed if self.seed is not None else int(np.random.SeedSequence().entropy)  # type: ignore[arg-type]
        # one BLAS thread: sums in another order would change the draws
        with (
            one_blas_thread(),
            progress_shown(self.progress),
            self._kept(entropy, known) as (keeper, entropy),
        ):
            spawned = np.random.SeedSequence(entropy).spawn(self.chains)
            rngs = [np.random.default_rng(one) for one in spawned]
            plan = Plan(draws, self.warmup, rngs, self.keep, self.emulator_draws, _emulator_seed(entropy))
            yield plan, keeper, entropy

    @contextmanager
    def _kept(self, seed: int, known: Keeper | None) -> Iterator[tuple[Keeper, int]]:
        """Where the run is kept: in memory, in a file, or with what it is a part of; and its seed."""
        around = keeper_around()
        if self.checkpoint is not None:
            with kept_in(self.checkpoint, self._work, seed, self.seed is not None) as file:
                yield file, file.seed
        elif around is not None:
            yield around, seed
        else:
            keeper = Keeper() if known is None else known.again()
            with kept_by(keeper):
                yield keeper, seed

    def _work(self) -> dict[str, str]:
        """Which work it is."""
        more = {"draws of the emulator": str(self.emulator_draws)} if self.emulator_draws else {}
        return work_of(self.problem, self.chains, self.warmup, method=json.dumps(self.method.describe()), **more)


@dataclass(frozen=True)
class _RunAlone(_Run):
    """One experiment in ``oc.Experiments``: the draws of its problem, bit for bit."""

    experiments: Experiments = field(kw_only=True)

    def posterior(self, draws: int, known: Keeper | None = None) -> Posterior:
        ((_, problem),) = self.experiments.problems.items()
        rest = {one.name: getattr(self, one.name) for one in fields(_Run) if one.name != "problem"}
        run = _Run(problem, **rest)
        own = run.posterior(draws, known)
        more: Callable[[int], Posterior] = partial(replace(self, seed=own.record.seed).posterior)
        return posterior_of_one(self.experiments, own, more)


@dataclass(frozen=True)
class _RunTogether(_Run):
    """The same for several experiments; ``problem`` is that of all of them."""

    experiments: Experiments = field(kw_only=True)

    def posterior(self, draws: int, known: Keeper | None = None) -> Posterior:
        works = {name: _Stages(one) for name, one in self.experiments.problems.items()}

        def work_of(name: str) -> dict[str, Any]:
            works[name].end_of("sampling")
            return works[name].done()

        with self._begun(draws, known) as (plan, keeper, entropy):
            method = joint_method(self.method)
            found = joint_run(self.experiments, method, plan, str(entropy), self.warmup, run_facts, work_of)
        more: Callable[[int], Posterior] = partial(replace(self, seed=entropy).posterior, known=keeper)
        return found.posterior(str(entropy), self.warmup, _added([work.done() for work in works.values()]), more)

    def _work(self) -> dict[str, str]:
        own = {
            f"{part} of {name}": value
            for name, one in self.experiments.problems.items()
            for part, value in fingerprint(one).items()
        }
        return {**super()._work(), **own}


def work_of(problem: Problem, chains: int, warmup: int, **more: str) -> dict[str, str]:
    """What a checkpoint must agree in, part by part."""
    return {
        "version of orthocal": version("orthocal"),
        **more,
        "number of chains": str(chains),
        "warmup": str(warmup),
        **fingerprint(problem),
    }


def check_lengths(draws: int, chains: int, warmup: int, seed: int | None) -> None:
    """An error where these are not what a run needs."""
    for name, value, least in (("draws", draws, 4), ("chains", chains, 1), ("warmup", warmup, 0)):
        if not isinstance(value, int | np.integer) or value < least:
            raise InputError(f"{name}={value!r}: give a whole number of at least {least}")
    if seed is not None and (not isinstance(seed, int | np.integer) or seed < 0):
        raise InputError(f"seed={seed!r}: give a whole number that is not negative, or None")


def _joint_run(experiments: Experiments, method: Method, rest: tuple[Any, ...]) -> _Run:
    """The run of several experiments; that of one is the run of its problem."""
    joint = joint_method(method)
    if len(experiments) == 1:
        return _RunAlone(experiments.together, joint, *rest, experiments=experiments)
    return _RunTogether(experiments.together, joint, *rest, experiments=experiments)


def _added(works: list[dict[str, Any]]) -> dict[str, Any]:
    """What several problems took, each stage added up."""
    stages: dict[str, Spent] = {}
    for work in works:
        for stage, spent in work["stages"].items():
            stages[stage] = stages.get(stage, Spent()).plus(spent)
    numbers = ("simulator_seconds", "simulator_calls", "simulator_failures")
    wall = max((work["seconds"] for work in works), default=0.0)
    return {"stages": stages, "seconds": wall, **{name: sum(work[name] for work in works) for name in numbers}}


class _Stages:
    """What the calibration of a problem takes, from now on: its simulator may have worked before."""

    def __init__(self, problem: Problem) -> None:
        self._problem, self._before = problem, problem.simulator.spent()
        self._failures, self._search = problem.simulator.failures, problem.simulator.search
        self._stages = {"best fit": Spent()}

    def end_of(self, stage: str) -> None:
        """What has been done since the last one ended is this stage, but for the search for the best fit."""
        simulator = self._problem.simulator
        spent, searched = simulator.spent().less(self._before), simulator.search.less(self._search)
        self._before, self._search = simulator.spent(), simulator.search
        self._stages["best fit"] = self._stages["best fit"].plus(searched)
        self._stages[stage] = spent.less(searched)

    def done(self) -> dict[str, Any]:
        total = reduce(Spent.plus, self._stages.values())
        return {
            "seconds": total.wall,
            "simulator_seconds": total.simulator,
            "simulator_calls": total.calls,
            "simulator_failures": self._problem.simulator.failures - self._failures,
            "stages": self._stages,
        }


def _say_what_is_odd(facts: RunFacts) -> None:
    if facts.outside_runs is None:
        _say_if_slow(facts)
    else:
        _say_if_outside(facts.outside_runs)


def _say_if_slow(work: RunFacts) -> None:
    if work.seconds > 10 and work.simulator_seconds > 0.5 * work.seconds:
        each = 1000 * work.simulator_seconds / work.simulator_calls
        warnings.warn(
            f"{work.simulator_calls} calls of the simulator ({each:.3g} ms each) took "
            f"{work.simulator_seconds / work.seconds:.0%} of the {work.seconds:.0f} s: an emulator, a cheap "
            "stand-in fitted to a table of runs and given as the simulator, would avoid this cost",
            OrthocalWarning,
            stacklevel=5,
        )


def _say_if_outside(share: float) -> None:
    if share > OUTSIDE_LIMIT:
        warnings.warn(
            f"{share:.0%} of the draws of theta have no runs nearby, and the emulator extrapolates: add runs there "
            + NEXT_RUNS
            + ", or restrict the priors to where runs are",
            OrthocalWarning,
            stacklevel=5,
        )
