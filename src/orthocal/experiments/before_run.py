"""A look at several experiments before their run: at each by itself."""

from __future__ import annotations

from ..findings import Finding, Findings
from ..problem.problem import Problem

#: said at the end of every look
TOGETHER = "each was looked at by itself; what a run of all costs, and whether they agree, was not looked at"


class LookedAt:
    """Of ``oc.Experiments``."""

    problems: dict[str, Problem]

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
