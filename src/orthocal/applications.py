"""What applications are built from: arrays, files, settings, work in many processes, pages and compiled code.

An application is a distribution of its own, such as ``orthocal-galaxy``. It imports ``orthocal`` and the names below,
nothing else, so that every other module can move. Its command is an entry point of the group ``orthocal.commands``.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

if _TYPE_CHECKING:
    from .arrays import Array as Array
    from .arrays import BoolArray as BoolArray
    from .arrays import IntArray as IntArray
    from .arrays import as_columns as as_columns
    from .arrays import as_floats as as_floats
    from .execution.work.processes import ProcessWorkers as ProcessWorkers
    from .execution.work.workers import DaskCluster as DaskCluster
    from .execution.work.workers import DaskWorkers as DaskWorkers
    from .execution.work.workers import Lost as Lost
    from .execution.work.workers import Settled as Settled
    from .execution.work.workers import Work as Work
    from .execution.work.workers import Workers as Workers
    from .execution.work.workers import cores as cores
    from .files import checksum as checksum
    from .files import whole_file as whole_file
    from .files.sqlite_file import SqliteFile as SqliteFile
    from .files.tables import number_of as number_of
    from .files.tables import read_text_table as read_text_table
    from .machine.compiling import entry as entry
    from .machine.compiling import part as part
    from .machine.threads import one_blas_thread as one_blas_thread
    from .pages import style as style
    from .pages.page import Picture as Picture
    from .pages.page import picture as picture
    from .pages.page import rendered as rendered
    from .pages.panels import Drawing as Drawing
    from .pages.panels import Panel as Panel
    from .pages.panels import ShownFigure as ShownFigure
    from .pages.tables import Grid as Grid
    from .pages.tables import grid_text as grid_text
    from .pages.tables import summary_rows as summary_rows
    from .pages.tables import with_error as with_error
    from .progress import announced as announced
    from .progress import progress_bar as progress_bar
    from .progress import progress_shown as progress_shown
    from .sections import Section as Section
    from .sections import checked_sections as checked_sections
    from .sections import read_toml as read_toml

# loaded when it is asked for: a command that shows its help needs no compiler and no figures
_PUBLIC = {
    "arrays": ("Array", "BoolArray", "IntArray", "as_columns", "as_floats"),
    "execution.work.processes": ("ProcessWorkers",),
    "execution.work.workers": ("DaskCluster", "DaskWorkers", "Lost", "Settled", "Work", "Workers", "cores"),
    "files": ("checksum", "whole_file"),
    "files.sqlite_file": ("SqliteFile",),
    "files.tables": ("number_of", "read_text_table"),
    "machine.compiling": ("entry", "part"),
    "machine.threads": ("one_blas_thread",),
    "pages.page": ("Picture", "picture", "rendered"),
    "pages.panels": ("Drawing", "Panel", "ShownFigure"),
    "pages.tables": ("Grid", "grid_text", "summary_rows", "with_error"),
    "progress": ("announced", "progress_bar", "progress_shown"),
    "sections": ("Section", "checked_sections", "read_toml"),
}
_PLACES = {name: place for place, names in _PUBLIC.items() for name in names}

__all__ = [*_PLACES, "style"]


def __getattr__(name: str) -> object:
    if name == "style":
        return _import_module(".pages.style", __package__)
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(_import_module(f".{_PLACES[name]}", __package__), name)
    return value
