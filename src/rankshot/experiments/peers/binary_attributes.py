"""From the probabilities of attributes to those of classes: what DAP and IAP share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankshot.experiments.peers.complete_vectors import CompleteVectors
from rankshot.ranking.errors import RankshotError

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BinaryAttributes:
    """Attributes that a class has or has not, as the training classes tell.

    A class has an attribute if its number is above the mean over all entries of the training
    classes' table, as Lampert et al. took it; a table of zeros and ones stays what it is.

    An attribute that all training classes have, or none, is left out: nothing can be learned of
    it, so P(a|x) = P(a), and the factor is one. This also keeps priors from 0 and 1: among C
    classes they are from 1/C to 1 - 1/C.

    Attributes
    ----------
    threshold : float
    differs : ndarray of bool
        Which attributes are not the same for all training classes.
    prior : ndarray
        P(a_m = 1) of those that differ, the mean over training classes.
    """

    threshold: float
    differs: NDArray[np.bool_]
    prior: Floats

    @classmethod
    def of(cls, training: CompleteVectors) -> BinaryAttributes:
        """Take threshold and priors from the training classes."""
        threshold = float(training.values.mean())
        mean = (training.values > threshold).mean(axis=0)
        differs = (mean > 0) & (mean < 1)
        if not differs.any():
            raise RankshotError(
                f"no attribute tells the {len(training.names)} training classes apart: none is "
                f"above the mean, {threshold:.3g}, for some of them and not for others"
            )
        return cls(threshold, differs, mean[differs])

    def present(self, classes: CompleteVectors) -> NDArray[np.bool_]:
        """Return which of the attributes that differ each class has, a row a class."""
        had: NDArray[np.bool_] = classes.values[:, self.differs] > self.threshold
        return had

    def log_posterior(
        self, log_present: Floats, log_absent: Floats, targets: CompleteVectors
    ) -> Floats:
        r"""Return log P(z|x) up to what depends on x alone, a column a target.

        .. math:: P(z|x) ∝ \prod_m P(a_m^z | x) / P(a_m^z)

        Parameters
        ----------
        log_present, log_absent : ndarray of shape (n, attributes that differ)
            log P(a_m = 1 | x) and log P(a_m = 0 | x).
        targets : CompleteVectors
        """
        has = self.present(targets).astype(np.float64)
        for_present = (log_present - np.log(self.prior)) @ has.T
        for_absent = (log_absent - np.log1p(-self.prior)) @ (1 - has).T
        posterior: Floats = for_present + for_absent
        return posterior
