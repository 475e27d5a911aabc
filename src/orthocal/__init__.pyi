__version__: str

from . import (
    bias as bias,
    emulators as emulators,
    errors as errors,
    examples as examples,
    kernels as kernels,
    losses as losses,
    methods as methods,
)
from .calibration import calibrate as calibrate
from .comparison import (
    Comparison as Comparison,
    ExperimentComparison as ExperimentComparison,
    OutcomeComparison as OutcomeComparison,
    SimulatorComparison as SimulatorComparison,
    compare as compare,
    compare_experiments as compare_experiments,
    compare_outcomes as compare_outcomes,
    compare_simulators as compare_simulators,
)
from .emulators import (
    EmulatorComparison as EmulatorComparison,
    compare_emulators as compare_emulators,
    emulate as emulate,
)
from .errors import OrthocalError as OrthocalError, OrthocalWarning as OrthocalWarning
from .execution import Program as Program
from .execution.fmu import FMU as FMU
from .execution.servers.umbridge import UMBridge as UMBridge
from .experiments import Experiments as Experiments, Pooled as Pooled
from .problem import (
    Box as Box,
    CorrelatedNoise as CorrelatedNoise,
    GroupNoise as GroupNoise,
    JointPrior as JointPrior,
    Labels as Labels,
    LowRankNoise as LowRankNoise,
    Points as Points,
    Problem as Problem,
    Simulator as Simulator,
    VaryingNoise as VaryingNoise,
)
from .refinement import next_runs as next_runs
from .results import Posterior as Posterior, load as load
from .runs import RunTable as RunTable, campaign as campaign, campaign_status as campaign_status, design as design
