"""Make the pictures of docs/galaxy.md from the mock galaxy: `python docs/make_galaxy_images.py [FOLDER]`.

The fit of ``orthocal galaxy mock --full --out FOLDER`` (default: galaxy-mock) is taken from there, or made, which takes
a quarter of an hour.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

from orthocal.pages.style import STYLE
from orthocal_galaxy import mock_galaxy
from orthocal_galaxy.command import FULL, FULL_BINS
from orthocal_galaxy.fit.data import mock_data
from orthocal_galaxy.fit.figures import fit_maps, posteriors_figure
from orthocal_galaxy.fit.fit import fit_galaxy
from orthocal_galaxy.galaxy_config import Sampling
from orthocal_galaxy.stages import Stages

IMAGES = Path(__file__).parent / "images"


def pictures(folder: Path) -> dict[str, Figure]:
    """Name -> figure."""
    settings = Sampling(**FULL)
    # as the command does: with another number of threads the last digits differ
    with threadpool_limits(limits=1, user_api="blas"):
        data = mock_data(mock_galaxy("full", FULL_BINS), settings.seed)
        fit = fit_galaxy(data, settings, Stages(folder), print)
    return {"galaxy_posteriors": posteriors_figure(fit), "galaxy_maps": fit_maps(fit, "pgp")}


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "galaxy-mock")
    IMAGES.mkdir(exist_ok=True)
    with mpl.rc_context(STYLE):
        for name, figure in pictures(folder).items():
            figure.savefig(IMAGES / f"{name}.png", dpi=110)


if __name__ == "__main__":
    main()
