"""Figures of a posterior for its user: those of the report, one at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import xarray as xr

from .record import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Plots:
    """What a posterior can draw. Each function gives a ``matplotlib`` Figure, which a notebook shows."""

    record: Record

    @property
    def curves(self) -> xr.Dataset | None:
        """Bands along the domain, which are put into the record."""
        raise NotImplementedError

    def _drawn_record(self) -> Record:
        """The record whose data and fit are drawn."""
        return self.record

    def plot_fit(self, outcome: str | None = None, x: str | None = None) -> Figure:
        """Data and fit: the model alone, and model + bias, with bands that hold 95 % of the posterior.

        Along one input, a curve; beside it categorical inputs, a panel for each of their labels; with several inputs,
        observed against fitted values; of outputs without inputs, a line for each.

        Parameters
        ----------
        outcome
            The name of one outcome; None for all.
        x
            With several inputs, the name of the one along which data and fit are shown.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> from scipy import stats
        >>> x = np.linspace(0, 1, 20)
        >>> y = 4 * x + x * np.sin(5 * x) + 0.1 * np.cos(40 * x)
        >>> problem = oc.Problem(x, y, lambda x, theta: theta[0] * x, {"slope": stats.norm(0, 10)}, noise_cov=0.01)
        >>> posterior = oc.calibrate(problem, draws=50, chains=2, seed=1, progress=False)
        >>> [axis.get_title() for axis in posterior.plot_fit().axes]
        ['model alone', 'model + bias']
        """
        from .figures.figures import fit_drawing

        _ = self.curves
        return fit_drawing(self._drawn_record(), outcome, x).figure()

    def plot_bias(self, outcome: str | None = None, x: str | None = None) -> Figure:
        """The bias with its 95 % band, and the field data less the model.

        Along one input, a curve; with several inputs, the bias at the data points along each.

        Parameters
        ----------
        outcome
            The name of one outcome; None for all.
        x
            With several inputs, the name of the one along which the bias is shown; None for all.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> from scipy import stats
        >>> x = np.linspace(0, 1, 20)
        >>> problem = oc.Problem(x, x**2, lambda x, theta: theta[0] * x, {"slope": stats.norm(0, 10)}, noise_cov=0.01)
        >>> posterior = oc.calibrate(problem, draws=50, chains=2, seed=1, progress=False)
        >>> posterior.plot_bias().axes[0].get_ylabel()
        'bias of y'
        """
        from .figures.figures import bias_drawing

        _ = self.curves
        return bias_drawing(self._drawn_record(), outcome, x).figure()

    def plot_posterior(self, parameters: Sequence[str] | None = None) -> Figure:
        """The posterior of each parameter beside its prior, with 95 % interval and best fit.

        Parameters
        ----------
        parameters
            Names of some; None for all.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> from scipy import stats
        >>> x = np.linspace(0, 1, 20)
        >>> problem = oc.Problem(x, x**2, lambda x, theta: theta[0] * x, {"slope": stats.norm(0, 10)}, noise_cov=0.01)
        >>> posterior = oc.calibrate(problem, draws=50, chains=2, seed=1, progress=False)
        >>> posterior.plot_posterior(["slope"]).axes[0].get_title()
        'slope'
        """
        from .figures.figures import posterior_figure

        return posterior_figure(self.record, parameters)

    def plot_residuals(self, outcome: str | None = None, x: str | None = None) -> Figure:
        """What model + bias leave over, (y - model - bias) / noise sd, against the fitted values and each input.

        Parameters
        ----------
        outcome
            The name of one outcome; None for all.
        x
            The name of one input, along which alone they are shown.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> from scipy import stats
        >>> x = np.linspace(0, 1, 20)
        >>> problem = oc.Problem(x, x**2, lambda x, theta: theta[0] * x, {"slope": stats.norm(0, 10)}, noise_cov=0.01)
        >>> posterior = oc.calibrate(problem, draws=50, chains=2, seed=1, progress=False)
        >>> [axis.get_xlabel() for axis in posterior.plot_residuals().axes]
        ['fitted y', 'x']
        """
        from .figures.figures import residuals_drawing

        return residuals_drawing(self._drawn_record(), outcome, x).figure()

    def plot_predictive(self, outcome: str | None = None) -> Figure:
        """The posterior predictive check: the data beside replicated ones, and where each lies in its prediction.

        Parameters
        ----------
        outcome
            The name of one outcome; None for all.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> from scipy import stats
        >>> x = np.linspace(0, 1, 20)
        >>> problem = oc.Problem(x, x**2, lambda x, theta: theta[0] * x, {"slope": stats.norm(0, 10)}, noise_cov=0.01)
        >>> posterior = oc.calibrate(problem, draws=50, chains=2, seed=1, progress=False)
        >>> len(posterior.plot_predictive().axes)
        2
        """
        from .figures.figures import predictive_drawing

        return predictive_drawing(self._drawn_record(), outcome).figure()

    def pairs_figure(self) -> Figure:
        """The joint posterior of every two parameters.

        Examples
        --------
        >>> import orthocal as oc
        >>> problem = oc.examples.MODEL3.problem(seed=1)
        >>> posterior = oc.calibrate(problem, draws=50, chains=2, seed=1, progress=False)
        >>> len(posterior.pairs_figure().axes)
        1
        """
        from .figures.parameters import pairs_figure

        return pairs_figure(self.record)
