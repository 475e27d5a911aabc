"""Several experiments: what they share of theta, what each has for itself, and how much each counts.

    y_e = f_e(., theta_e) + b_e + noise_e,   theta* = argmin_t sum_e w_e ∫ |y_R,e - f_e(., t_e)|²_W dP_e

theta_e are the parameters of experiment e, shared ones and its own. The weights w_e define theta*, and leave the
likelihood alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np

from ..advice import Advice
from ..arrays import Array, IntArray
from ..errors import InputError
from ..findings import Finding, Findings
from ..pages.tables import Table, listed, shown_html
from ..problem.prior.joint import Block
from ..problem.prior.parameters import Parameters, prior_table
from ..problem.prior.priors import Distribution
from ..problem.problem import Problem
from .pooled import Pool, Pooled
from .stacked import Stacked, linearised_at, stacked_problem

#: said at the end of every look
TOGETHER = "each was looked at by itself; what a run of all costs, and whether they agree, was not looked at"
#: name -> weight, or what is counted
Weights = Literal["data"] | Mapping[str, float] | None
#: quantiles at which two priors are compared
PROBES = np.array([0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98])
#: a unit at the end of an outcome's name
UNIT = re.compile(r"^(?P<stem>.*\S)\s*[\[(](?P<unit>[^\[\]()]*)[\])]$")


class Experiments:
    """Several problems that share parameters: y_e = f_e(., theta_e) + b_e + noise_e for each experiment e.

    Parameters
    ----------
    problems
        Name -> ``oc.Problem``, each with its own data, inputs, outcomes, noise, domain, bias and simulator. Parameters
        of the same name are one and must have one prior, but for those that are private.
    private
        Names of parameters of which every experiment has its own value, ``offset[rig A]`` in the results; or name ->
        ``oc.Pooled()`` for values that are draws of one normal law (None: each for itself).
    weights
        How much each experiment counts in what theta means: None counts all alike, in units of their noise; ``"data"``
        counts observations; or name -> weight. The likelihood has every observation in any case.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> from scipy import stats
    >>> x = np.linspace(0, 1, 20)
    >>> def line(x, theta):
    ...     return theta[0] * x + theta[1]
    >>> priors = {"slope": stats.norm(0, 10), "offset": stats.norm(0, 10)}
    >>> rigs = {f"rig {k}": oc.Problem(x, 2 * x + k, line, priors, noise_cov=0.01) for k in (1, 2)}
    >>> experiments = oc.Experiments(rigs, private=["offset"])
    >>> experiments.parameters.names
    ('slope', 'offset[rig 1]', 'offset[rig 2]')
    >>> posterior = oc.calibrate(experiments, draws=50, chains=2, seed=1, progress=False)
    >>> posterior.summary()["mean"].round(0).tolist()
    [2.0, 1.0, 2.0]
    """

    def __init__(
        self,
        problems: Mapping[str, Problem],
        private: Sequence[str] | Mapping[str, Pooled | None] = (),
        weights: Weights = None,
    ) -> None:
        self.problems = _checked_problems(problems)
        self.names = tuple(self.problems)
        self.private = _checked_private(private, self.problems)
        self._check_units()
        keys = self._keys()
        self.parameters = Parameters({key: prior for key, (prior, _) in keys.items()}, self._constraint(keys))
        self.columns = self._columns()
        self.weights = _checked_weights(weights, self.problems)
        self.pools = tuple(self._pools())

    def __repr__(self) -> str:
        return f"<Experiments {', '.join(self.names)}: {self.parameters.p} parameters>"

    def _repr_html_(self) -> str:
        each = [
            [name, str(one.data.n), listed(one.data.outcome_names), listed(one.parameters.names)]
            for name, one in self.problems.items()
        ]
        pooled = [name for name, how in self.private.items() if how is not None]
        facts = {"private": listed(name for name in self.private if name not in pooled), "pooled": listed(pooled)}
        tables = [Table(["experiment", "rows", "outcomes", "parameters"], each), prior_table(self.parameters)]
        shown = {name: words for name, words in facts.items() if words}
        return shown_html(f"{len(self.problems)} experiments", shown, tables)

    def __len__(self) -> int:
        return len(self.problems)

    def __getitem__(self, name: str) -> Problem:
        if name not in self.problems:
            raise InputError(f"there is no experiment {name!r}: there are {', '.join(self.names)}")
        return self.problems[name]

    def without(self, names: Sequence[str]) -> Experiments:
        """The other experiments, with what was chosen for these.

        Parameters
        ----------
        names
            Of the experiments that are left out.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 20))
        >>> oc.Experiments({"first": problem, "second": problem, "third": problem}).without(["second"]).names
        ('first', 'third')
        """
        left = {name: problem for name, problem in self.problems.items() if name not in names}
        there = {name for problem in left.values() for name in problem.parameters.names}
        private = {name: one for name, one in self.private.items() if name in there}
        for pool in self.pools:
            # of one value nothing can be pooled
            if sum(pool.name in one.parameters.names for one in left.values()) < 2:
                private[pool.name] = None
        weights = dict(zip(self.names, self.weights.tolist(), strict=True))
        return Experiments(left, private, {name: weights[name] for name in left})

    def theta_of(self, name: str, theta: Array) -> Array:
        """theta (..., P) of all as that of one experiment, (..., p).

        Parameters
        ----------
        name
            Of the experiment.
        theta
            In the order of ``parameters.names``.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 20))
        >>> experiments = oc.Experiments({"first": problem, "second": problem}, private=["theta"])
        >>> experiments.theta_of("second", np.array([3.0, 4.0]))
        array([4.])
        """
        return np.asarray(theta[..., self.columns[name]])

    @cached_property
    def stacked(self) -> Stacked:
        """All experiments as one problem, cell by cell, in units of the noise.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 20))
        >>> oc.Experiments({"first": problem, "second": problem}).stacked.problem.data.n
        40
        """
        return stacked_problem(self.problems, self.columns, self.parameters, self.weights)

    @property
    def together(self) -> Problem:
        """The problem whose best fit is that of all experiments.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 20))
        >>> oc.Experiments({"first": problem, "second": problem}).together.parameters.names
        ('theta',)
        """
        return self.stacked.problem

    @property
    def theta_tilde(self) -> Array:
        """The best fit of all, (P,).

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 20))
        >>> both = oc.Experiments({"first": problem, "second": problem})
        >>> np.allclose(both.theta_tilde, problem.theta_tilde, atol=1e-3)
        True
        """
        return self.together.theta_tilde

    @property
    def minima(self) -> tuple[Any, ...]:
        """The minima of n loss / noise - 2 log pi for all experiments, best first.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> problem = model1.problem(*model1.simulate(np.random.default_rng(1), 20))
        >>> len(oc.Experiments({"first": problem, "second": problem}).minima)
        1
        """
        return self.together.minima

    @cached_property
    def linearised(self) -> dict[str, Problem]:
        """Each problem with the best fit of all in place of its own.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> model1 = oc.examples.MODEL1
        >>> rng = np.random.default_rng(1)
        >>> first, second = (model1.problem(*model1.simulate(rng, 20)) for _ in range(2))
        >>> both = oc.Experiments({"first": first, "second": second})
        >>> np.array_equal(both.linearised["first"].theta_tilde, both.theta_tilde)
        True
        """
        tilde = self.theta_tilde
        return {name: linearised_at(one, self.theta_of(name, tilde)) for name, one in self.problems.items()}

    @property
    def shared(self) -> tuple[str, ...]:
        """Names of the parameters that are one for all experiments that have them.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> part = oc.examples.MODEL2_PART
        >>> problem = part.problem(*part.simulate(np.random.default_rng(1), 20))
        >>> oc.Experiments({"first": problem, "second": problem}, private=["theta2"]).shared
        ('theta1',)
        """
        return tuple(name for name in self._appearing() if name not in self.private)

    def check(self, method: str = "gp", draws: int = 1000, chains: int = 4, warmup: int = 200) -> Findings:
        """What is to be known of each experiment before a run, as ``check`` of a problem says it.

        Parameters
        ----------
        method, draws, chains, warmup
            Those of ``oc.calibrate``: the run that is planned. The method is given by its name.

        Returns
        -------
        Findings
            It prints as words, and is true if there is no problem among them.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> from scipy import stats
        >>> x = np.linspace(0, 1, 20)
        >>> slope = {"slope": stats.norm(0, 10)}
        >>> rigs = {f"rig {k}": oc.Problem(x, k * x, lambda x, t: t[0] * x, slope, noise_cov=0.01) for k in (1, 2)}
        >>> found = oc.Experiments(rigs).check()
        >>> bool(found), found[-1].topic
        (True, 'rig 2, priors')
        """
        named = [
            one._replace(topic=f"{name}, {one.topic}")
            for name, problem in self.problems.items()
            for one in problem.check(method, draws, chains, warmup)
        ]
        return Findings([*named, Finding("note", "experiments", TOGETHER)])

    def _appearing(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for one in self.problems.values() for name in one.parameters.names))

    def _keys(self) -> dict[Any, tuple[Any, list[tuple[str, tuple[str, ...]]]]]:
        """Key of a prior -> the prior, and the experiments that have it with their own names of its parameters."""
        found: dict[Any, tuple[Any, list[tuple[str, tuple[str, ...]]]]] = {}
        blocks: dict[Any, tuple[str, Block]] = {}
        for experiment, problem in self.problems.items():
            parameters = problem.parameters
            for (given, prior), block in zip(parameters.given.items(), parameters.blocks, strict=True):
                names = given if isinstance(given, tuple) else (given,)
                own = {name in self.private for name in names}
                if len(own) > 1:
                    raise InputError(
                        f"the joint prior of {', '.join(names)} in experiment {experiment!r} has private and shared "
                        "parameters: make all of them private, or none"
                    )
                renamed = tuple(f"{name}[{experiment}]" for name in names) if own.pop() else names
                key = renamed if isinstance(given, tuple) else renamed[0]
                if key in found:
                    _require_same(key, blocks[key], (experiment, block))
                else:
                    self._require_new(key, names, found)
                    found[key], blocks[key] = (prior, []), (experiment, block)
                found[key][1].append((experiment, names))
        return found

    def _require_new(self, key: Any, names: tuple[str, ...], found: Mapping[Any, Any]) -> None:
        known = {name for one in found for name in (one if isinstance(one, tuple) else (one,))}
        twice = known & set(key if isinstance(key, tuple) else (key,))
        if twice:
            raise InputError(
                f"the shared parameter {', '.join(sorted(twice))} has a joint prior in one experiment and another in "
                "the next: give all experiments one prior for it, or make it private"
            )

    def _constraint(self, keys: Mapping[Any, Any]) -> Any:
        """All constraints of the experiments as one, of theta (P,)."""
        limited = [name for name, one in self.problems.items() if one.parameters.constraint is not None]
        if not limited:
            return None
        order = [name for key in keys for name in (key if isinstance(key, tuple) else (key,))]
        columns = {name: _places(self._own_names(name), order) for name in limited}

        def allowed(theta: Array) -> bool:
            return all(
                bool(self.problems[name].parameters.possible(np.asarray(theta)[columns[name]])) for name in limited
            )

        return allowed

    def _own_names(self, experiment: str) -> list[str]:
        """The names in the results of an experiment's parameters, in its own order."""
        names = self.problems[experiment].parameters.names
        return [f"{name}[{experiment}]" if name in self.private else name for name in names]

    def _columns(self) -> dict[str, IntArray]:
        return {name: _places(self._own_names(name), list(self.parameters.names)) for name in self.problems}

    def _pools(self) -> list[Pool]:
        pools = []
        for name, pooled in self.private.items():
            if pooled is None:
                continue
            those = [one for one in self.names if name in self.problems[one].parameters.given]
            if not those:
                raise InputError(f"{name!r} has a joint prior with others: a pooled parameter needs one of its own")
            own: Distribution = self.problems[those[0]].parameters.given[name]
            for other in those[1:]:
                first, second = ((one, self._block(one, name)) for one in (those[0], other))
                _require_same(name, first, second, why="the pooled parameter")
            if len(those) < 2:
                raise InputError(f"oc.Pooled for {name!r}: one experiment alone has it, there is nothing to pool")
            columns = tuple(self.parameters.names.index(f"{name}[{one}]") for one in those)
            pools.append(Pool(name, columns, *pooled.priors(name, own)))
        return pools

    def _block(self, experiment: str, name: str) -> Block:
        parameters = self.problems[experiment].parameters
        return parameters.blocks[list(parameters.given).index(name)]

    def _check_units(self) -> None:
        """Outcomes of the same name must have the same unit, where names have one: ``force [N]``."""
        seen: dict[str, tuple[str, str]] = {}
        for experiment, problem in self.problems.items():
            for name in problem.data.outcome_names:
                found = UNIT.match(name)
                if found is None:
                    continue
                stem, unit = found["stem"], found["unit"].strip()
                first, other = seen.setdefault(stem, (experiment, unit))
                if unit != other:
                    raise InputError(
                        f"the outcome {stem!r} has the unit {other!r} in experiment {first!r} and {unit!r} in "
                        f"{experiment!r}: give both in one unit, or call them by different names"
                    )


def _places(names: Sequence[str], order: Sequence[str]) -> IntArray:
    return np.array([order.index(name) for name in names], dtype=np.intp)


def _checked_problems(problems: object) -> dict[str, Problem]:
    if not isinstance(problems, Mapping) or not problems:
        raise InputError('give the experiments as a dictionary: oc.Experiments({"rig A": problem, ...})')
    for name, problem in problems.items():
        # a group of a file has this name, and parameters end with it
        if not isinstance(name, str) or not name.strip(" .") or not name.isprintable() or set(name) & set("[]/"):
            raise InputError(f"the name {name!r} of an experiment: give a printable text without [, ] and /")
        if not isinstance(problem, Problem):
            raise InputError(f"experiment {name!r} is {type(problem).__name__}: give an oc.Problem")
    return dict(problems)


def _checked_private(private: object, problems: Mapping[str, Problem]) -> dict[str, Pooled | None]:
    if isinstance(private, str) or not isinstance(private, Sequence | Mapping):
        raise InputError(f'private={private!r}: give a list of names, or a dictionary {{"offset": oc.Pooled()}}')
    asked = dict(private) if isinstance(private, Mapping) else dict.fromkeys(private)
    there = dict.fromkeys(name for one in problems.values() for name in one.parameters.names)
    for name, pooled in asked.items():
        if name not in there:
            raise InputError(f"private parameter {name!r}: no experiment has it, the parameters are {', '.join(there)}")
        if pooled is not None and not isinstance(pooled, Pooled):
            raise InputError(f"private {name!r} is {pooled!r}: give oc.Pooled(), or None for values of their own")
    return asked


def _checked_weights(weights: object, problems: Mapping[str, Problem]) -> Array:
    """One weight an experiment, with the mean 1."""
    if weights is None:
        found = np.ones(len(problems))
    elif isinstance(weights, str):
        if weights != "data":
            raise InputError(f'weights={weights!r}: give "data", None, or a dictionary of name and weight')
        found = np.array([float(one.data.observed.sum()) for one in problems.values()])
    elif isinstance(weights, Mapping):
        if set(weights) != set(problems):
            raise InputError(
                f"weights are given for {', '.join(map(str, weights))}: give one for each of {', '.join(problems)}"
            )
        found = np.array([float(weights[name]) for name in problems])
    else:
        raise InputError(f'weights={weights!r}: give "data", None, or a dictionary of name and weight')
    if not (np.isfinite(found).all() and (found > 0).all()):
        raise InputError(f"weights={weights!r}: every experiment needs a positive weight; leave one out to ignore it")
    return np.asarray(found / found.mean())


def _require_same(key: Any, first: tuple[str, Block], other: tuple[str, Block], why: str = "") -> None:
    if _same(first[1], other[1]):
        return
    name = ", ".join(key) if isinstance(key, tuple) else key
    message = (
        f"{why or 'the shared parameter'} {name} has two priors, in the experiments {first[0]!r} and {other[0]!r}: "
        "give both the same"
    )
    if not why:
        one = name.split(", ")[0]
        message += ", or make it private: " + Advice(f"private=[{one!r}]", f'private = ["{one}"]')
    raise InputError(message)


def _same(a: Block, b: Block) -> bool:
    """Whether two priors are one: the same bounds and quantiles, and the same density at points that fill them."""
    if len(a.median) != len(b.median):
        return False
    unit = np.tile(PROBES[:, None], len(a.median))
    first, second = (np.concatenate([one.marginal(unit), one.median[None]]) for one in (a, b))
    ends = [np.concatenate([one.lower, one.upper]) for one in (a, b)]
    near = 1e-9 * float(a.spread.max())
    if not (np.array_equal(ends[0], ends[1]) and np.allclose(first, second, rtol=1e-9, atol=near)):
        return False
    return bool(np.allclose(a.log_density(first), b.log_density(first), rtol=1e-9, atol=1e-9))
