"""Checks that a third party can run on its own parts: does a prior, kernel, method or emulator keep its contract?"""

from .base import ContractError as ContractError
from .bias import check_bias_prior as check_bias_prior
from .emulators import check_emulator as check_emulator
from .kernels import check_kernel as check_kernel
from .methods import check_method as check_method
