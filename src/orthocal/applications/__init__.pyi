from ..arrays import (
    Array as Array,
    BoolArray as BoolArray,
    IntArray as IntArray,
    as_columns as as_columns,
    as_floats as as_floats,
)
from ..execution.work.processes import ProcessWorkers as ProcessWorkers
from ..execution.work.workers import (
    DaskCluster as DaskCluster,
    DaskWorkers as DaskWorkers,
    Lost as Lost,
    Settled as Settled,
    Work as Work,
    Workers as Workers,
    cores as cores,
)
from ..files import checksum as checksum, whole_file as whole_file
from ..files.sqlite_file import SqliteFile as SqliteFile
from ..files.tables import number_of as number_of, read_text_table as read_text_table
from ..machine.compiling import entry as entry, part as part
from ..machine.threads import one_blas_thread as one_blas_thread
from ..pages import style as style
from ..pages.page import Picture as Picture, picture as picture, rendered as rendered
from ..pages.panels import Drawing as Drawing, Panel as Panel, ShownFigure as ShownFigure
from ..pages.tables import Grid as Grid, grid_text as grid_text, summary_rows as summary_rows, with_error as with_error
from ..progress import announced as announced, progress_bar as progress_bar, progress_shown as progress_shown
from ..sections import Section as Section, checked_sections as checked_sections, read_toml as read_toml
