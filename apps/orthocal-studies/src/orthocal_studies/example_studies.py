"""The study of the examples: any methods, with all their defaults, on each of them."""

from __future__ import annotations

from functools import partial

import orthocal as oc

from .base import Column, Study

#: of a study's name and address: ``examples/tuo-wu``
PREFIX = "examples/"
#: kept draws of a replication, and data sets
DRAWS, REPLICATIONS = 2000, 20
#: those that run where none are named
METHODS = ("gp", "pgp", "pbart", "ogp", "ko", "none")
OTHERS = ("bart", "softbart", "bmars", "bnn", "psoftbart", "pbmars", "pbnn", "sgasp", "pcal")


def example_study(name: str) -> Study:
    """The study of an example, by its name."""
    example = oc.examples.get(name)
    # our rule, not the paper's: what is compared are the methods at their best
    options = {} if example.nodes is None or example.box is None else {"domain": oc.Box(*example.box)}
    columns = tuple(
        Column(key, key, partial(oc.methods.method_by_name, key), extra=key in OTHERS, problem_options=options)
        for key in (*METHODS, *OTHERS)
    )
    return Study(
        f"{PREFIX}{name}",
        example.title,
        example,
        columns,
        draws=DRAWS,
        replications=REPLICATIONS,
        checked=True,
        # the page adds up problems, whose misses would come together if they had the same noise
        stream=name,
    )
