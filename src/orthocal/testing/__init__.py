"""Checks that a third party can run on its own parts: do they keep their contracts?"""

from .bias import check_bias_prior as check_bias_prior
from .contract import ContractError as ContractError
from .emulators import check_emulator as check_emulator
