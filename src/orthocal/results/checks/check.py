"""What a user should know before trusting a posterior, in plain words: all that is looked at, in its order."""

from __future__ import annotations

from collections.abc import Mapping

from ...findings import Findings
from ..record import Record
from .bias_findings import bias_findings
from .bound_findings import allowed, identified
from .chain_findings import mixing, stored_draws, theta_step
from .domain_findings import bias_integrals, domain_findings, quadrature
from .identifiability import sensitivity
from .noise_correlation import correlated
from .noise_findings import errors_in_x, impossible_observations, noise_findings
from .parameter_findings import curvature, maxima, minima_findings, orthogonality, projected_draws
from .prior_conflict import conflict
from .simulator_findings import emulator_findings, gradient_error, simulator_work

#: what is judged of the parameters, and so of several experiments together
OF_PARAMETERS = (
    orthogonality,
    projected_draws,
    maxima,
    sensitivity,
    minima_findings,
    mixing,
    theta_step,
    identified,
    conflict,
    allowed,
    curvature,
)
#: all that is judged of a result, in the order of its findings; what is not about the parameters belongs to each
#: experiment
JUDGED = (
    orthogonality,
    projected_draws,
    maxima,
    sensitivity,
    quadrature,
    bias_integrals,
    minima_findings,
    mixing,
    stored_draws,
    theta_step,
    identified,
    conflict,
    allowed,
    curvature,
    noise_findings,
    correlated,
    errors_in_x,
    impossible_observations,
    bias_findings,
    simulator_work,
    emulator_findings,
    gradient_error,
    domain_findings,
)


def findings(record: Record) -> Findings:
    """All findings about a result."""
    found = Findings([one for judge in JUDGED for one in judge(record, record.run_facts)])
    return found.in_files() if record.problem_file else found


def joint_findings(record: Record, experiments: Mapping[str, Record]) -> Findings:
    """All findings about several experiments: of their parameters together, then of each experiment, by its name."""
    found = [one for judge in OF_PARAMETERS for one in judge(record, record.run_facts)]
    for name, own in experiments.items():
        each = (one for judge in JUDGED if judge not in OF_PARAMETERS for one in judge(own, own.run_facts))
        found += [one._replace(topic=f"{name}: {one.topic}") for one in each]
    return Findings(found).in_files() if record.problem_file else Findings(found)
