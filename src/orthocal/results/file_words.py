"""Advice in terms of the problem file and of commands, for a result that the command line made from a file."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..findings import Finding

#: what a Python program would write -> what a problem file or a command has for it; longer phrases come first
_WORDS = (
    (r"noise_cov=oc\.VaryingNoise\(\)", "varying in [noise]"),
    (
        r"noise_cov=oc\.CorrelatedNoise\((.*?), length=(.*?), share=(.*?), sd=(.*?)\)",
        r'kind = "ar1", column = \1, length = \2, share = \3 and sd = \4 in [noise]',
    ),
    (r'noise_cov="sample"', 'cov = "sample" in [noise]'),
    (r"oc\.GroupNoise with a group", "groups in [noise], one"),
    (r"oc\.Box\(lower, upper, nodes=\.\.\.\)", "nodes in [domain]"),
    (r"oc\.Box\(lower, upper\) or oc\.Points\(nodes\)", "lower and upper, or file, in [domain]"),
    (r'method="gp", or oc\.methods\.Joint with this prior', 'name = "gp" in [method], or this one without its p'),
    (r'method="gp"', 'name = "gp" in [method]'),
    (r'the joint projection, "gp"', 'the joint projection, name = "gp" in [method]'),
    (r"oc\.kernels\.Slice\(\)", 'kernel = "slice" in [method]'),
    (
        r"take more inner steps, or the kernel Laplace\(\) or Slice\(\)",
        'take kernel = "laplace" or "slice" in [method]',
    ),
    (r"give starts=|(?<=or )more starts", "more starts in [sampling]"),
    (r"add runs( there)? \(oc\.next_runs\)", r"make more runs\1 (orthocal next-runs says where)"),
    (r"oc\.compare_emulators", "orthocal emulate"),
    (r"\(emulator_draws\)", "(emulator_draws in [sampling])"),
    (r"emulator_error=True", "error = true in [simulator]"),
    (r'emulator "(gp|auto)"', r'emulator = "\1" in [simulator]'),
    (r"oc\.Simulator\(f, jobs=\.\.\.\)", "jobs in [simulator]"),
    (r"\(oc\.campaign, oc\.emulate\)", "(orthocal simulate, and runs in [simulator])"),
    (r"batched=True", "batched = true in [simulator]"),
    (r"posterior\.check\(\) says it after a run", "orthocal run says it"),
    (
        r"give a longer step, oc\.Simulator\(f, step=1e-3\)",
        "let it return more digits, or give gradient in [simulator]",
    ),
    (r"give the sd of its bias, oc\.bias\.GP\(sd=\.\.\.\)", "give sd in [method], that of its bias"),
    (r"oc\.bias\.GP\(sd=\.\.\., lengthscale=\.\.\.\)", "in [method]"),
    (r"oc\.bias\.GP\(lengthscale=\.\.\.\)", "in [method]"),
    (r'transform=("\w+"(?: or "\w+")?)', r"transform = \1 in [data]"),
    (r"y_err", "y_err in [data]"),
    (r"noise_cov=", "cov in [noise] = "),
    (r"noise_cov", "cov in [noise]"),
    (r"(more draws, and more warmup|more draws|more warmup)\b", r"\1 in [sampling]"),
)


def in_file_words(text: str) -> str:
    """The text for somebody who writes a problem file, not a program."""
    for python, file in _WORDS:
        text = re.sub(python, file, text)
    return text


def for_a_file(found: Iterable[Finding]) -> list[Finding]:
    """The findings with such advice."""
    return [one._replace(advice=in_file_words(one.advice)) for one in found]
