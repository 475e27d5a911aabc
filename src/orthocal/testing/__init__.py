"""Checks that a third party can run on its own parts: does a new prior, method or kernel keep its contract?"""

from .base import ContractError as ContractError
from .bias import check_bias_prior as check_bias_prior
from .kernels import check_kernel as check_kernel
from .methods import check_method as check_method
