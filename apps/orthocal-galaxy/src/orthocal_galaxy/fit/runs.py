"""The runs of a galaxy's model: a design over the priors, and more of them where the posterior is."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import pandas as pd

import orthocal as oc
from orthocal.applications import Array
from orthocal.errors import InputError, OrthocalError, OrthocalWarning

from ..galaxy_config import Sampling
from ..mass import PARAMETERS
from ..stages import Stages
from .data import INPUTS, GalaxyData, check_inside

Result = TypeVar("Result")
STORE, REFINED = "runs.db", "refined.json"


def make_runs(data: GalaxyData, settings: Sampling, stages: Stages, say: Callable[[str], None]) -> oc.RunTable:
    """All runs, of which those that are there are not made again.

    An emulator of runs that are spread over the priors may be good everywhere and yet shift theta by a good part of its
    posterior sd. So ``settings.refine`` runs are added where ``next_runs`` wants them, by the posterior of all outcomes
    from the runs before.
    """
    model = data.model
    assert model is not None
    if model.theta_0 is not None:
        check_inside(model.theta_0, data.box, "theta_0, where the weights of the orbits are fitted,")
    name, digest = model.identity()
    made_with = {"model": name, "digest": digest[:12], "priors": data.box, "seed": settings.seed}
    stages.there(STORE, made_with)
    known = stages.read_json(REFINED) if stages.there(REFINED, made_with) else []
    refined = np.reshape(np.array(known, dtype=float), (-1, len(PARAMETERS)))
    spread = oc.design(data.priors, settings.runs, seed=settings.seed).to_numpy()
    there, planned = _done(stages), settings.runs + len(refined)
    if there > planned:
        wanted = there - len(refined)
        raise InputError(f"{stages.folder} has more runs already: give --runs {wanted} or more, or another --out")
    say(f"runs: {planned}, of which {there} are there")

    def executed() -> oc.RunTable:
        return oc.campaign(
            model,
            pd.DataFrame(np.vstack([spread, refined]), columns=list(PARAMETERS)),
            data.x,
            store=stages.folder / STORE,
            jobs=settings.jobs,
            input_names=INPUTS,
            outcome_names=data.kinematics.names,
        )

    runs = executed()
    more = settings.refine - len(refined)
    if more > 0:
        say(f"runs: {more} more, where the emulator's error matters most to theta")
        try:
            refined = np.vstack([refined, noted(lambda: _wanted(data, runs, more, settings.seed), "more runs", say)])
        except OrthocalError as error:
            say(f"  none: {error}")
            return runs
        stages.write_json(REFINED, refined.tolist())
        runs = executed()
    return runs


def _wanted(data: GalaxyData, runs: oc.RunTable, n: int, seed: int) -> Array:
    emulator = oc.emulate(runs, "gp")
    posterior = oc.calibrate(data.problem(emulator), "gp", draws=250, seed=seed)
    return oc.next_runs(posterior, runs, n, seed).to_numpy()


def _done(stages: Stages) -> int:
    path = stages.folder / STORE
    return oc.campaign_status(path).done if path.is_file() else 0


def noted(run: Callable[[], Result], what: str, say: Callable[[str], None]) -> Result:
    """Run, and say its warnings with what they are about."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", OrthocalWarning)
        result = run()
    for one in caught:
        if issubclass(one.category, OrthocalWarning):
            say(f"  note ({what}): {one.message}")
    return result
