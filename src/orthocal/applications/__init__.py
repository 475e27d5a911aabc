"""What applications are built from: arrays, files, settings, work in many processes, pages and compiled code.

An application is a distribution of its own, such as ``orthocal-galaxy``. It imports ``orthocal`` and the names below,
nothing else, so that every other module can move. Its command is an entry point of the group ``orthocal.commands``.
"""

from ..lazy_names import names_of_stub

__all__, __getattr__, __dir__ = names_of_stub(__name__, __file__)
