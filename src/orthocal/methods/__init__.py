"""Ways to calibrate, by name or as an object. A new one is a file, and a line here, in the messages' order."""
# ruff: noqa: I001

from .base import Draws as Draws
from .base import Method as Method
from .base import Plan as Plan
from .base import method_by_name as method_by_name
from .joint.joint import Joint as Joint
from .projected import Projected as Projected
from .rivals.ko import KO as KO
from .rivals.ogp import OGP as OGP
from .rivals.sgasp import SGaSP as SGaSP
from .rivals.pcal import PCAL as PCAL
from .rivals.no_bias import NoBias as NoBias
