"""`Forecast`: what a rehearsal found, and the accuracy on new classes that follows from it.

A model with two parts. An input has one decision value per new class; over the reference these
values have mean 0, variance 1 and the correlations K. For an input of class z they are shifted by
d K_z: its own value by the *strength* d of the class, and those of similar classes with it. So
similar classes are confused, and the more candidates there are, the more often.

The strengths of held-out classes follow from their accuracies, and those of the new classes are
predicted from them: classes with similar rankings have similar strengths. New classes are rarely
a random sample of all classes. If they resemble each other and no held-out class, their strengths
are uncertain together, and the interval is wide.

Unlabelled inputs of the new classes narrow it: where the probabilities of predicted classes are
higher than in the rehearsal, the accuracy usually is, by as much.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import softmax
from sklearn.metrics.pairwise import cosine_similarity

from rankshot.core.errors import format_count, format_share
from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.metrics import Interval, class_interval
from rankshot.zeroshot.scores import Scores
from rankshot.zeroshot.settings import Settings
from rankshot.zeroshot.weighted_mean import WeightedMean

Floats = NDArray[np.float64]
Labels = NDArray[np.str_]
ENOUGH_CLASSES = 20
"""With fewer rehearsed classes, temperatures of eight differed by a factor of three."""
STRENGTHS = np.linspace(-1.0, 6.0, 141)
"""The strengths that are told apart: from worse than chance to nearly always right."""
SHARES = np.linspace(0.0, 0.95, 20)
"""The shares of the variance of strengths that similar classes may have in common."""
N_INPUTS = 400
"""The number of simulated inputs of each class."""
N_DRAWS = 1000
"""The number of draws of the strengths of the new classes."""
MOST_CLASSES = 100
"""Of more new classes, this many are simulated, each against all."""
CONFIDENCE_ERROR = 0.2
"""The standard deviation of the change in accuracy less the change in mean confidence. Of .05, .1,
.15, .2, .25 and .3, it is the smallest with which at least 95% of the intervals contain the
accuracy on held-out seen classes."""


@dataclass(frozen=True, eq=False)
class Trial:
    """One way to recognise the held-out classes, and how accurate it was.

    Attributes
    ----------
    what : str
        In words: ``"default settings"``, ``"k=5, decay=0.25"``, ``"WordNet alone"``.
    settings : Settings
    by_class : dict of str to float
        The accuracy on each held-out class.

    Examples
    --------
    >>> from rankshot.zeroshot import Settings, Trial
    >>> one = Trial("default settings", Settings(), {"cat": 0.5, "dog": 0.6})
    >>> other = Trial("k=5", Settings(k=5), {"cat": 0.7, "dog": 0.8})
    >>> other.is_clearly_better(one)
    True
    """

    what: str
    settings: Settings
    by_class: dict[str, float]

    @cached_property
    def accuracy(self) -> Interval:
        """The mean accuracy, with a 95% interval from resamples of classes."""
        return class_interval([*self.by_class.values()])

    def is_clearly_better(self, other: Trial, n_errors: float = 1.0) -> bool:
        """Whether the gain is larger than ``n_errors`` standard errors over the classes.

        With few classes, the best of several trials is often best by chance. The gain is that over
        the ``other`` trial.
        """
        gain = np.array([self.by_class[name] - other.by_class[name] for name in self.by_class])
        return bool(gain.mean() > n_errors * gain.std(ddof=1) / np.sqrt(len(gain)))


@dataclass(frozen=True, eq=False, repr=False)
class Forecast:
    """What a rehearsal found.

    Attributes
    ----------
    rankings : Rankings
        Those of the held-out and of the new classes.
    reference : Scores
        The scores of inputs of seen classes.
    batch : Scores or None
        The scores of inputs that are all of new classes.
    settings : Settings
        The settings of the rehearsal, with what was chosen: the weights of the sources, ``k``,
        ``decay``, whether to use a reference, and the temperature that calibrates.
    trials : list of Trial
        All trials, in order; the first has the settings with which the rehearsal began.
    chosen : Trial
        The trial with the settings that were chosen.
    calibration_error : tuple of float
        The expected calibration error on the held-out classes, with temperature 1 and with the
        chosen one, which was fitted to the same inputs.
    strengths : dict of str to float
        The strength of each held-out class, from its accuracy.
    confidence : float
        The mean probability of the predicted classes, over the held-out classes.

    Examples
    --------
    >>> import numpy as np, rankshot as rs
    >>> places = np.arange(12)
    >>> names = [f"class{i:02}" for i in places]
    >>> near = rs.Similarity(-abs(places[:, None] - places).astype(float), names, names)
    >>> label = np.repeat(places, 10)
    >>> noise = np.random.default_rng(0).normal(size=(120, 12))
    >>> reference = rs.Scores(noise - abs(label[:, None] - places), names), np.array(names)[label]
    >>> rs.Knowledge(near.to_rankings(), reference).rehearse(n_folds=3)
    Forecast: .917 [.842, .983] on 12 held-out classes
    """

    rankings: Rankings
    reference: Scores
    batch: Scores | None
    settings: Settings
    trials: list[Trial]
    chosen: Trial
    calibration_error: tuple[float, float]
    strengths: dict[str, float]
    confidence: float

    def __repr__(self) -> str:
        return f"Forecast: {self.accuracy} on {len(self.classes)} held-out classes"

    @property
    def accuracy(self) -> Interval:
        """The mean accuracy of the held-out classes, and its 95% interval over classes."""
        return self.chosen.accuracy

    @property
    def classes(self) -> Labels:
        """The held-out classes, sorted."""
        return np.array(sorted(self.strengths))

    @property
    def new(self) -> Labels:
        """The new classes among the rankings: neither seen classes nor held-out ones."""
        targets = self.rankings.targets.astype(str)
        return np.setdiff1d(targets, [*self.rankings.items, *self.classes])

    @cached_property
    def predicted(self) -> Interval | None:
        """The mean accuracy on the new classes, with a 95% interval for these classes.

        It depends on the accuracies of the held-out classes, especially those with similar
        rankings, on the number of new classes, and on how similar the rankings of the new classes
        are to each other. A batch narrows the interval, if seen classes and "none of these" cannot
        be predicted: the mean probability of the predicted classes is compared with that of the
        held-out classes.

        None if there are no rankings of new classes, or if no ranking in use has a rater, as with
        WordNet and word vectors. Such tables rank some kinds of classes well and others badly: on
        held-out seen classes, the coverage of the intervals was below their nominal level.
        """
        if not self.new.size or not (head := self._fit(self.new)).rankings_.rater_names:
            return None
        names = np.concatenate([self.classes, self.new])
        both = self._fit(names)
        order = np.searchsorted(both.classes_, names)
        return predict_mean_accuracy(
            np.array([self.strengths[name] for name in self.classes]),
            correlate_classes(both, self.reference)[np.ix_(order, order)],
            correlate_classes(head, self.reference),
            self._predict_by_confidence(head),
        )

    def _fit(self, names: Labels) -> WeightedMean:
        """A head for these classes by the chosen settings, before they were calibrated."""
        settings, targets = self.chosen.settings, self.rankings.targets.astype(str)
        reference = self.reference if settings.use_reference else None
        some = self.rankings[np.isin(targets, names)]
        return settings.make_estimator().fit(some, reference=reference)

    def _predict_by_confidence(self, head: WeightedMean) -> tuple[float, float] | None:
        """The accuracy as far as the confidence on the batch tells, and its standard error."""
        if self.batch is None:
            return None
        confidence = head.predict_proba(self.batch.with_blocks()).max(axis=1).mean()
        accuracy = self.accuracy.estimate + confidence - self.confidence
        # The variance of a probability is at most 1/4.
        return float(accuracy), float(np.sqrt(CONFIDENCE_ERROR**2 + 1 / (4 * len(self.batch))))

    def describe(self) -> list[str]:
        """Sentences on the accuracy that is predicted, and on what is doubtful."""
        before, after = map(format_share, self.calibration_error)
        with_reference = "with" if self.settings.use_reference else "without"
        n, n_new = len(self.classes), len(self.new)
        measured = (
            f"rehearsal: {self.accuracy} of the inputs of {n} held-out seen classes are recognised "
            f"({with_reference} a reference; calibration error {before} before, {after} after)"
        )
        lines = [measured]
        classes = format_count(n_new, "new class")
        if n_new and self.predicted is None:
            lines.append(
                f"no accuracy is predicted for the {classes}: tables without raters, such as "
                "WordNet, rank some kinds of classes well and others badly, so held-out classes "
                "cannot predict the accuracy on new ones. If people or language models made these "
                "rankings, name the raters"
            )
        elif n_new:
            batch = "inputs of the new classes as a batch, " if self.batch is None else ""
            predicted = (
                f"predicted mean accuracy of the {classes}, each input alone, with 95% interval: "
                f"{self.predicted} (random guessing: {format_share(1 / n_new)})"
            )
            narrower = (
                f"what would narrow this interval: more held-out classes than {n}, "
                f"{batch}labels of some inputs of the new classes"
            )
            lines += [predicted, narrower]
        if n < ENOUGH_CLASSES:
            can_rehearse = len(self.rankings.items) >= ENOUGH_CLASSES
            remedy = f"; hold out {ENOUGH_CLASSES} or more" * can_rehearse
            lines.append(
                f"warning: only {n} classes were held out, so the temperature is uncertain{remedy}"
            )
        return lines


# ---- The model


def correlate_classes(head: WeightedMean, scores: Scores) -> Floats:
    """The correlations of the decision values of the classes; 0 for a constant one."""
    values = np.asarray(head.decision_function(scores), np.float64)
    correlations = cosine_similarity((values - values.mean(axis=0)).T)
    np.fill_diagonal(correlations, 1.0)
    return np.asarray(correlations)


def simulate_accuracies(correlations: Floats, classes: NDArray[np.intp] | None = None) -> Floats:
    """The accuracy of each class, one row per class, for each of the `STRENGTHS`.

    All classes compete; rows are returned for those in ``classes``, by default for all.
    """
    root = _symmetric_root(correlations)
    noise = np.random.default_rng(0).standard_normal((N_INPUTS, len(root))) @ root
    chosen = np.arange(len(root)) if classes is None else classes
    accuracy = np.empty((len(chosen), len(STRENGTHS)))
    for row, z in enumerate(chosen):
        # z beats j if noise_z + d > noise_j + d K_zj. Equal classes beat each other half the time.
        lead = np.maximum(1 - correlations[z], 1e-6)
        needed = (noise - noise[:, [z]]) / lead
        needed[:, z] = -np.inf
        least = np.sort(needed.max(axis=1))
        accuracy[row] = np.searchsorted(least, STRENGTHS) / N_INPUTS
    return accuracy


def _symmetric_root(covariance: Floats) -> Floats:
    # Other roots depend on the signs of eigenvectors, which are arbitrary.
    variance, directions = np.linalg.eigh(covariance)
    return np.asarray((directions * np.sqrt(np.maximum(variance, 0.0))) @ directions.T)


def find_strengths(accuracies: Floats, correlations: Floats) -> Floats:
    """The strength with which each class reaches its accuracy among the others."""
    simulated = simulate_accuracies(correlations)
    return np.array(
        [np.interp(a, row, STRENGTHS) for a, row in zip(accuracies, simulated, strict=True)]
    )


def draw_strengths(strengths: Floats, similarity: Floats, rng: np.random.Generator) -> Floats:
    """Draw strengths of new classes, one row per draw, given those of held-out classes.

    Strengths are a Gaussian process: the covariance of two classes is their ``similarity`` times a
    share of the variance. The mean has a flat prior, the variance σ² the prior 1/σ², the share a
    uniform one; all three are integrated out.

    Parameters
    ----------
    strengths : ndarray of shape (n,)
    similarity : ndarray of shape (n + L, n + L)
        A correlation matrix of the n held-out and the L new classes, in this order.
    """
    n, size = len(strengths), len(similarity)
    found = []
    for share in SHARES:
        S = (1 - share) * np.eye(size) + share * similarity
        L = np.linalg.cholesky(S[:n, :n])
        given = np.column_stack([strengths, np.ones(n), S[:n, n:]])
        d, ones, to_new = np.split(solve_triangular(L, given, lower=True), [1, 2], axis=1)
        weight = float((ones**2).sum())
        mean = float((ones * d).sum()) / weight
        residual = d - mean * ones
        # Strengths are read off a grid, which limits how equal they can be.
        total = float((residual**2).sum()) + n * (STRENGTHS[1] - STRENGTHS[0]) ** 2 / 12
        log_likelihood = -np.log(np.diag(L)).sum() - (np.log(weight) + (n - 1) * np.log(total)) / 2
        lacking = 1 - to_new.T @ ones
        covariance = S[n:, n:] - to_new.T @ to_new + lacking @ lacking.T / weight
        center = mean + to_new.T @ residual
        found.append((log_likelihood, center[:, 0], covariance * total / (n - 1)))
    likelihood = softmax([one[0] for one in found])
    draws = []
    for number, (_, center, covariance) in zip(
        rng.multinomial(N_DRAWS, likelihood), found, strict=True
    ):
        scale = np.sqrt((n - 1) / rng.chisquare(n - 1, (number, 1)))
        noise = rng.standard_normal((number, len(center))) @ _symmetric_root(covariance)
        draws.append(center + scale * noise)
    return np.concatenate(draws)


def predict_mean_accuracy(
    strengths: Floats,
    similarity: Floats,
    correlations: Floats,
    by_confidence: tuple[float, float] | None = None,
) -> Interval:
    """The mean accuracy of new classes, with a 95% interval for these classes.

    It is one for the *next* classes, and wider than one for the mean of many classes.

    Parameters
    ----------
    strengths : ndarray of shape (n,)
        Of the held-out classes.
    similarity : ndarray of shape (n + L, n + L)
        How similar the held-out and the new classes are: see `draw_strengths`.
    correlations : ndarray of shape (L, L)
        Of the decision values of the new classes.
    by_confidence : tuple of float, optional
        The accuracy of the held-out classes plus the change in mean confidence, and the standard
        deviation of its error.
    """
    n, rng = len(strengths), np.random.default_rng(0)
    chosen = rng.permutation(len(correlations))[:MOST_CLASSES]
    both = np.concatenate([np.arange(n), n + chosen])
    drawn = draw_strengths(strengths, similarity[np.ix_(both, both)], rng)
    column = np.searchsorted(STRENGTHS, drawn).clip(max=len(STRENGTHS) - 1)
    simulated = simulate_accuracies(correlations, chosen)
    means = simulated[np.arange(len(chosen)), column].mean(axis=1)
    return weigh_draws(means, *by_confidence or (0.0, np.inf))


def weigh_draws(draws: Floats, center: float, error: float) -> Interval:
    """The mean and the interval of draws from a prior, given a measurement with normal errors."""
    weights = softmax(-(((draws - center) / error) ** 2) / 2)
    low, high = np.quantile(draws, [0.025, 0.975], weights=weights, method="inverted_cdf")
    # The weights add up to 1, but for rounding.
    return Interval(min(float(weights @ draws), float(draws.max())), float(low), float(high))
