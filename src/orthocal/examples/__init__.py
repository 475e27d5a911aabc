"""Calibration problems with known answers. A new one is a file, and a line here, in the order of tables.

    import orthocal as oc

    oc.examples.names()                        # what there is
    example = oc.examples.get("tuo-wu")
    posterior = oc.calibrate(example.problem(seed=1))
    example.theta_star                         # the answer

``docs/examples.md`` has the table, with sources, and how to add one.
"""
# ruff: noqa: I001

from .base import Example as Example, Published as Published
from .exact import ExactPosterior as ExactPosterior
from .base import all as all, get as get, listed as listed, names as names

from .paper import MODEL1 as MODEL1, MODEL2 as MODEL2, MODEL2_PART as MODEL2_PART, MODEL3 as MODEL3
from .two_outcomes import TWO_OUTCOMES as TWO_OUTCOMES
from .two_outcomes import TWO_OUTCOMES_PRECISION as TWO_OUTCOMES_PRECISION
from .two_outcomes import TWO_OUTCOMES_SECOND as TWO_OUTCOMES_SECOND
from .tuo_wu import TUO_WU as TUO_WU, TUO_WU_2 as TUO_WU_2
from .gu_wang import GU_WANG as GU_WANG
from .bayarri import BAYARRI as BAYARRI, BAYARRI_2 as BAYARRI_2
from .curvature import curved as curved, curved_draws as curved_draws
from .cooling_fin import FIN as FIN, fin_truth as fin_truth
from .uneven import saturation as saturation
from .borehole import BOREHOLE as BOREHOLE
from .friedman import FRIEDMAN as FRIEDMAN
from .ball_drop import BALL_DROP as BALL_DROP
from .chaboche import CHABOCHE as CHABOCHE
from .population import POPULATION as POPULATION
from .common_cold import COMMON_COLD as COMMON_COLD

#: what the reference shows; the problems themselves are got by name
__all__ = [
    "ExactPosterior",
    "Example",
    "Published",
    "all",
    "curved",
    "curved_draws",
    "get",
    "listed",
    "names",
    "saturation",
]
