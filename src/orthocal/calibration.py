"""From a problem and a method to a posterior: seeds, chains, threads, and what is to be known about the run."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial, reduce
from importlib.metadata import version
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from .arrays import Array
from .errors import InputError, OrthocalError, OrthocalWarning
from .execution.checkpoint_file import Checkpoint, kept_in
from .execution.clock import Clock, Spent
from .execution.keeping import Keeper, keeper_around, kept_by
from .machine.threads import one_blas_thread
from .methods import Draws, Method, Plan
from .methods.at_data import thinned
from .methods.base import MOST_KEPT as MOST_AT_DATA
from .methods.merging import run_merged
from .methods.outputs import method_for
from .problem.fingerprint import fingerprint
from .problem.problem import Problem
from .progress import progress_shown
from .projection import ProjectionKind
from .results import record
from .results.curvature import curvature_factors
from .results.labelled import labelled
from .results.likelihood import MOST_KEPT, has_likelihood
from .results.notes import Notes
from .results.open_directions import named_directions
from .results.posterior import Posterior
from .results.prior_conflict import prior_tails

#: share of the draws outside of an emulator's runs that is worth a warning
OUTSIDE_LIMIT = 0.01
#: draws that tell the size of an emulator's error
ERROR_DRAWS = 50


def calibrate(
    problem: Problem,
    method: str | Method = "gp",
    draws: int = 1000,
    chains: int = 4,
    seed: int | None = None,
    warmup: int = 200,
    progress: bool = True,
    checkpoint: str | Path | Checkpoint | None = None,
    keep_mb: float = MOST_AT_DATA / 1e6,
) -> Posterior:
    """Calibrate the simulator of ``problem``.

    Parameters
    ----------
    method
        A name or an object, for instance ``oc.methods.Joint(bias=oc.bias.GP(nu=2.5))``. The default, ``"gp"``, is the
        joint projection with a Gaussian-process bias; ``"pgp"`` is the paper's Algorithm 1.
    draws, warmup
        Kept draws and warm-up iterations of each chain.
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
    """
    if not isinstance(problem, Problem):
        raise InputError(f"problem is {type(problem).__name__}: give an oc.Problem")
    chosen = method_for(problem, method)
    check_lengths(draws, chains, warmup, seed)
    where = Checkpoint(Path(checkpoint)) if isinstance(checkpoint, str | Path) else checkpoint
    if isinstance(keep_mb, bool) or not (isinstance(keep_mb, Real) and 0 < keep_mb < np.inf):
        raise InputError(f"keep_mb={keep_mb!r}: give the megabytes that model and bias at the data may take")
    keep = int(1e6 * keep_mb)
    return _Run(problem, chosen, int(chains), seed, int(warmup), progress, where, keep).posterior(int(draws))


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

    def posterior(self, draws: int, known: Keeper | None = None) -> Posterior:
        """``known`` is where a run with fewer draws ended."""
        problem, work = self.problem, _Work(self.problem)
        entropy = self.seed if self.seed is not None else int(np.random.SeedSequence().entropy)  # type: ignore[arg-type]
        # one BLAS thread: sums in another order would change the draws
        with (
            one_blas_thread(),
            progress_shown(self.progress),
            self._kept(entropy, known) as (keeper, entropy),
        ):
            spawned = np.random.SeedSequence(entropy).spawn(self.chains)
            plan = Plan(draws, self.warmup, [np.random.default_rng(one) for one in spawned], self.keep)
            drawn = run_merged(self.method, problem, plan)
            work.end_of("sampling")
            notes = _notes(problem, drawn)
            work.end_of("checks")
            notes = replace(notes, **work.done())
            # the minima of the loss alone are searched for here
            attributes = record.attributes(problem, self.method, drawn, notes, str(entropy), self.warmup)
            tree = labelled(problem, thinned(drawn, plan), attributes)
        _say_what_is_odd(notes)
        more: Callable[[int], Posterior] = partial(replace(self, seed=entropy).posterior, known=keeper)
        posterior = Posterior(tree, problem.simulator, drawn.samplers, more=more)
        if has_likelihood(posterior.record) and drawn.model.size <= MOST_KEPT:
            _ = posterior.log_likelihood
        return posterior

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
        return work_of(self.problem, self.chains, self.warmup, method=json.dumps(self.method.describe()))


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


class _Work:
    """What the calibration of a problem takes, from now on: its simulator may have worked before."""

    def __init__(self, problem: Problem) -> None:
        self._problem, self._clock = problem, Clock(problem.simulator)
        self._failures, self._search = problem.simulator.failures, problem.simulator.search
        self._stages = {"best fit": Spent()}

    def end_of(self, stage: str) -> None:
        """What has been done since the last one ended is this stage, but for the search for the best fit."""
        simulator = self._problem.simulator
        spent, searched = self._clock.spent(), simulator.search.less(self._search)
        self._clock, self._search = Clock(simulator), simulator.search
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


def _open_directions(problem: Problem, drawn: Draws) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the simulator does not answer to, and what it answers to instead: others refuse such parameters."""
    if drawn.projection is not ProjectionKind.JOINT:
        return (), ()
    return named_directions(problem.directions, problem.parameters.names)


def _notes(problem: Problem, drawn: Draws) -> Notes:
    """Facts for ``check`` that cost calls of the simulator, or belong to the problem."""
    weakest = None
    if drawn.projection is not ProjectionKind.NONE:
        finite = drawn.projection is ProjectionKind.FINITE
        weakest = (problem.sensitivity_at_data if finite else problem.directions).weakest
    return Notes(
        **vars(drawn.notes),
        quadrature_error=problem.quadrature_error if drawn.nodes_drawn else None,
        gradient_error=problem.gradient_error,
        row_error=_row_error(problem),
        gradient_kind=problem.simulator.gradient_kind,
        simulator_failure=problem.simulator.failure,
        curvature_factors=_curvature(problem, drawn),
        weakest_sensitivity=weakest,
        open_directions=_open_directions(problem, drawn),
        outside_runs=_share_outside(problem, drawn.theta),
        emulator_sd=_emulator_sd(problem, drawn.theta),
        emulator_counted=problem.emulator_error,
        on_bound=tuple(problem.parameters.on_bound(problem.theta_tilde)),
        misfit=_misfit(problem, drawn),
        prior_tails=prior_tails(problem),
        outside_runs_x=_outside_x(problem),
        allowed_share=problem.parameters.allowed_share,
        on_edge=problem.parameters.on_edge(problem.theta_tilde),
        unfinished=not problem.minima[0].finished,
        rivals=problem.rivals,
        domain_given=problem.domain_given,
        domain=repr(problem.domain),
        noise_source=problem.noise.source,
        noise_freedom=problem.noise.freedom,
        noise_remarks=problem.noise.remarks,
        noise_smooth=problem.noise.smooth,
    )


def _curvature(problem: Problem, drawn: Draws) -> tuple[float, ...] | None:
    """``curvature_factors``, NaN where the loss has no minimum; None where they do not apply or cannot be found."""
    theta = drawn.theta.reshape(-1, drawn.theta.shape[-1])
    # the joint projection knows the curvature
    known = drawn.projection in (ProjectionKind.NONE, ProjectionKind.JOINT)
    if known or not (theta.std(axis=0) > 0).all():
        return None
    try:
        factors = curvature_factors(problem, theta, drawn.bias.mean(axis=(0, 1)))
    except (OrthocalError, np.linalg.LinAlgError):
        # the draws are good without it
        return None
    return None if factors is None else tuple(factors.tolist())


def _misfit(problem: Problem, drawn: Draws) -> float:
    """``problem.misfit``, beside the noise that was sampled where it was: the estimate does not count then."""
    sampled = drawn.noise_cov
    if sampled is None:
        return problem.misfit
    estimated, found = (np.trace(problem.weight @ cov) for cov in (problem.noise.cov, sampled.mean(axis=(0, 1))))
    return float(problem.misfit * estimated / found)


def _outside_x(problem: Problem) -> tuple[float, float] | None:
    """Share of the rows, and of the domain, that an emulator's runs have no points near to; None where unknown."""
    outside = getattr(problem.simulator.emulator, "outside_x", None)
    if outside is None or problem.data.without_inputs:
        return None
    at_nodes = np.asarray(outside(problem.rule.nodes))
    return float(np.mean(outside(problem.data.x))), float(problem.rule.weights[at_nodes].sum())


def _say_what_is_odd(notes: Notes) -> None:
    if notes.outside_runs is None:
        _say_if_slow(notes)
    else:
        _say_if_outside(notes.outside_runs)


def _say_if_slow(work: Notes) -> None:
    if work.seconds > 10 and work.simulator_seconds > 0.5 * work.seconds:
        each = 1000 * work.simulator_seconds / work.simulator_calls
        warnings.warn(
            f"{work.simulator_calls} calls of the simulator ({each:.3g} ms each) took "
            f"{work.simulator_seconds / work.seconds:.0%} of the {work.seconds:.0f} s: an emulator, a cheap "
            "stand-in fitted to a table of runs and given as the simulator, would take this time away",
            OrthocalWarning,
            stacklevel=5,
        )


def _row_error(problem: Problem) -> float | None:
    """By how much f at every other row changes where these are asked for alone, in sds of the noise: it must not."""
    rows = slice(1, None, 2)
    if problem.simulator.emulator is not None or problem.data.without_inputs or problem.data.n < 2:
        return None
    try:
        alone = problem.simulator.required(problem.data.x[rows], problem.theta_tilde)
    except OrthocalError:
        return np.inf
    return float(np.abs(problem.whiten(alone - problem.fit[rows])).max())


def _share_outside(problem: Problem, theta: Array) -> float | None:
    """Share of the draws where an emulator had no runs nearby; None for a simulator."""
    outside = problem.simulator.outside
    if outside is None:
        return None
    flat = theta.reshape(-1, theta.shape[-1])
    # some thousand draws tell the share well enough
    return float(np.mean(outside(flat[:: max(1, len(flat) // 2000)])))


def _emulator_sd(problem: Problem, theta: Array) -> float | None:
    """Root mean square of an emulator's sd at some draws, in sds of the noise; None where it has none."""
    emulator = problem.simulator.emulator
    if emulator is None or not emulator.has_variance:
        return None
    flat = theta.reshape(-1, theta.shape[-1])
    some = flat[:: max(1, len(flat) // ERROR_DRAWS)]
    x, noise_var = problem.data.x, np.diag(problem.noise.cov)
    shares = [problem.simulator.slope(x, one) ** 2 * emulator.variance(x, one) / noise_var for one in some]
    return float(np.sqrt(np.mean(shares)))


def _say_if_outside(share: float) -> None:
    if share > OUTSIDE_LIMIT:
        warnings.warn(
            f"{share:.0%} of the draws of theta have no runs nearby, and the emulator extrapolates: add runs there "
            "(oc.next_runs), or restrict the priors to where runs are",
            OrthocalWarning,
            stacklevel=5,
        )
