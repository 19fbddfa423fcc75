"""The mean over the rankings of each class, on equal terms for all sources."""

from __future__ import annotations

from math import log

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.special import logsumexp as numpy_logsumexp, softmax

from rankshot.core.arrays import Array, Constants, Library, logsumexp
from rankshot.ranking.rankings import Rankings

Floats = NDArray[np.floating]


class MeanOverSources:
    r"""From log P(π|x) of each ranking π to one value per class.

    A source may have several rankings of a class: its value L_s(z) is their weighted mean. The
    value of the class is the weighted mean over the sources, with the same weight of a source for
    all classes: the mean weight of its rankings of a class.

    Some sources rank easier items than others, so values are only comparable within a source. A
    class that a source does not rank gets what the classes that it ranks get on average there,
    log (1/n_s) Σ_z exp L_s(z). So the source is neutral: it decides among the classes that it
    ranks, and the class neither gains nor loses by not being ranked. A source that ranks a single
    class has no effect. Sources without a common class, neither directly nor through other
    sources, cannot be compared so: the value of a class is the mean over the sources that are
    connected with its own, and these values are compared as they are.

    Parameters
    ----------
    rankings : Rankings
        At least one ranking for each class. Rankings without a source count as one source.
    classes : ndarray of str
        The classes, in the order of the result.

    Attributes
    ----------
    groups : ndarray of int
        A number for each ranking: rankings of one group have the same class, source and weight,
        so that their log-probabilities may be added.
    missing : dict of str to list of str
        For each source that does not rank all classes connected with it: those that it lacks.
        Rankings without a source have the name "".
    unused : tuple of str
        The sources that rank one of several classes.
    """

    def __init__(self, rankings: Rankings, classes: NDArray[np.str_]) -> None:
        z = np.searchsorted(classes, rankings.targets.astype(str))
        names, s = np.unique(
            ["" if source is None else source for source in rankings.sources], return_inverse=True
        )
        n_classes, n_sources = len(classes), len(names)
        keys, self.groups, sizes = np.unique(
            np.column_stack([s, z, rankings.weights]),
            axis=0,
            return_inverse=True,
            return_counts=True,
        )
        s, z, weights = keys[:, 0].astype(int), keys[:, 1].astype(int), keys[:, 2]
        total = np.zeros((n_sources, n_classes))
        np.add.at(total, (s, z), weights * sizes)
        ranked = total > 0
        share = total.sum(axis=1) / ranked.sum(axis=1)
        together = _connected(ranked)
        self.missing = {
            str(names[source]): classes[together[source] & ~ranked[source]].tolist()
            for source in np.flatnonzero((together & ~ranked).any(axis=1))
        }
        # A source that ranks one of several classes compares nothing.
        alone = (ranked.sum(axis=1) == 1) & (together.sum(axis=1) > 1)
        self.unused = tuple(map(str, names[alone]))
        together[alone] = False
        lacks = together & ~ranked
        # The weight of each source for each class.
        share_of = np.where(together, share[:, None], 0.0)
        share_of /= share_of.sum(axis=0)
        # A group is a column; its share is that of one of its rankings in the mean of its class.
        group, in_mean = np.arange(len(keys)), weights / total[s, z]
        self._own = csr_array((share_of[s, z] * in_mean, (z, group)), (n_classes, len(keys)))
        # The usual case: one source, and rankings of equal weight. Groups are in the order of z.
        self._one_group_each = n_sources == 1 and len(keys) == n_classes
        by_source = csr_array(
            (in_mean, (s * n_classes + z, group)), (n_sources * n_classes, len(keys))
        )
        partial = np.flatnonzero(lacks.any(axis=1))
        self._partial = [
            by_source[source * n_classes + np.flatnonzero(ranked[source])] for source in partial
        ]
        self._neutral_share = np.where(lacks, share_of, 0.0)[partial].T

    def combine(self, log_prob: Floats) -> Floats:
        """Return one row per class, from one row per group of rankings."""
        if self._one_group_each:
            return np.asarray(log_prob * self._own.data[:, None].astype(log_prob.dtype))
        result = np.asarray(self._own @ log_prob, np.float64)
        if self._partial:
            values = [within @ log_prob for within in self._partial]
            neutral = [numpy_logsumexp(value, axis=0) - np.log(len(value)) for value in values]
            result += self._neutral_share @ np.array(neutral)
        return result

    def constants(self) -> Constants:
        """Return the arrays of `combine_array`."""
        partial = {
            f"partial{i}": within.toarray()[:, self.groups].T
            for i, within in enumerate(self._partial)
        }
        own = self._own.toarray()[:, self.groups].T
        return {"own": own, "neutral_share": self._neutral_share.T} | partial

    def combine_array(self, log_prob: Array, c: Constants, xp: Library) -> Array:
        """Return one column per class, from one column per ranking, in any library."""
        result = log_prob @ c["own"]
        if self._partial:
            # Symbolic arrays do not know their shape.
            neutral = [
                logsumexp(log_prob @ c[f"partial{i}"], xp, 1) - log(within.shape[0])
                for i, within in enumerate(self._partial)
            ]
            result = result + xp.concat(neutral, axis=1) @ c["neutral_share"]
        return result

    def slopes(self, log_prob: Floats) -> NDArray[np.float64]:
        """Return the derivatives of `combine`: classes by groups by inputs, or by 1 if equal."""
        slopes = self._own.toarray()[:, :, None]
        for share, within in zip(self._neutral_share.T, self._partial, strict=True):
            # A class that the source lacks depends on its most probable classes.
            by_group = within.T @ softmax(within @ log_prob, axis=0)
            slopes = slopes + share[:, None, None] * by_group
        return np.asarray(slopes)


def _connected(ranked: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Mark the sources and classes that are connected, directly or through others."""
    n_sources, n_classes = ranked.shape
    source, target = np.nonzero(ranked)
    size = n_sources + n_classes
    graph = csr_array((np.ones(source.size), (source, n_sources + target)), shape=(size, size))
    part = connected_components(graph, directed=False)[1]
    return np.asarray(part[:n_sources, None] == part[n_sources:])
