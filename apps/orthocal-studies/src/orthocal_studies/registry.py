"""Studies and their columns by name."""

from __future__ import annotations

from importlib import import_module

from orthocal.errors import InputError

from .base import Column, Study
from .example_studies import PREFIX, example_study
from .joint_studies import JOINT_STUDIES
from .paper_studies import PAPER_STUDIES

#: those that ``all`` means
STUDIES = PAPER_STUDIES


def study_by_name(name: str) -> Study:
    """A study of the paper by its name, or one of the user's as ``module:NAME``."""
    known = STUDIES | JOINT_STUDIES
    if name in known:
        return known[name]
    if name.startswith(PREFIX):
        return example_study(name.removeprefix(PREFIX))
    module, _, attribute = name.partition(":")
    if not attribute:
        raise InputError(f"there is no study {name!r}: choose one of {', '.join(known)}, examples, all")
    try:
        found = getattr(import_module(module), attribute, None)
    except ImportError as error:
        raise InputError(f"the study {name!r} cannot be loaded: {error}") from None
    if not isinstance(found, Study) or found.address != name:
        raise InputError(f"{name!r} is no study: give the module and the name of a Study with reference={name!r}")
    return found


def columns_by_key(study: Study, keys: tuple[str, ...] | None) -> tuple[Column, ...]:
    """The columns with these keys, in the study's order; without keys the paper's own."""
    if keys is None:
        return tuple(column for column in study.columns if not column.extra)
    known = [column.key for column in study.columns]
    unknown = [key for key in keys if key not in known]
    if unknown or not keys:
        raise InputError(
            f"{study.name} has no method {', '.join(unknown) or '(none given)'}: it has {', '.join(known)}"
        )
    return tuple(column for column in study.columns if column.key in keys)
