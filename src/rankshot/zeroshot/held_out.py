"""Held-out seen classes: which, with which rankings, and what they tell of new classes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import softmax

from rankshot.core.errors import RankshotError, format_count, quote_names, short_repr, suggest_name
from rankshot.core.validation import Seed, require_whole_number
from rankshot.ranking.matrices import restrict_items
from rankshot.sources.similarity import Similarity
from rankshot.zeroshot.decide import most_probable
from rankshot.zeroshot.heads.base import BaseHead, Semantics, align_to, select_targets
from rankshot.zeroshot.metrics import Interval
from rankshot.zeroshot.scores import Scores, class_scores

Floats = NDArray[np.float64]
Labels = NDArray[np.str_]
ENOUGH_TO_JUDGE = 50
"""The number of inputs from which on a classifier that is no better than chance is noticed."""
LEAST_CLASSES = 5
"""With fewer classes, a rehearsal tells nothing about other classes."""
USUAL_FOLDS = 5
"""The number of groups, if there are classes enough for two in each."""


class Fold(NamedTuple):
    """Some held-out classes that stand for new ones.

    ``semantics`` are those of the held-out classes, by the other seen classes. ``new`` are scores
    of their inputs, without their own columns; ``seen`` those of inputs of the other classes.
    """

    semantics: Semantics
    new: Scores
    new_label: Labels
    seen: Scores
    seen_label: Labels


def choose_groups(
    semantics: Semantics, held_out: Any, n_folds: int | None, random_state: Seed
) -> list[tuple[str, ...]]:
    """Return the groups of classes that are held out together: see `Rehearsal`."""
    ranked = sorted(set(semantics.targets))
    if held_out is not None:
        return _require_groups(held_out, ranked)
    if len(ranked) < LEAST_CLASSES:
        raise RankshotError(
            f"only {format_count(len(ranked), 'seen class')} with rankings and inputs "
            f"({quote_names(ranked)}): a rehearsal needs at least {LEAST_CLASSES}, and 20 are "
            "better"
        )
    if not _listed_items(semantics) & set(ranked):
        return [tuple(ranked)]
    most = len(ranked) // 2
    number = min(USUAL_FOLDS, most) if n_folds is None else n_folds
    number = require_whole_number("n_folds", number, least=1, most=most)
    mixed = np.random.default_rng(random_state).permutation(ranked)
    return [tuple(group.tolist()) for group in np.array_split(mixed, number)]


def _require_groups(held_out: Any, ranked: list[str]) -> list[tuple[str, ...]]:
    """Return the groups of ``held_out``; each class must be one of the ranked seen classes."""
    groups = [() if isinstance(group, str) else tuple(group) for group in held_out]
    names = [name for group in groups for name in group]
    is_odd = not {*names} <= {*ranked} or len(set(names)) < len(names)
    if is_odd or min(map(len, groups), default=0) < 2:
        raise RankshotError(
            "held_out must be a list of groups, each a list of at least two ranked seen classes "
            f"that are in no other group, not {short_repr(held_out)}"
        )
    return groups


def hold_out(scores: Scores, labels: Labels, semantics: Semantics, group: tuple[str, ...]) -> Fold:
    """Hold out a group of classes: their columns leave the scores and the rankings."""
    left = scores.select([name for name in scores.items if name not in group])
    # Classes without a column that are in another group are neither.
    is_new, is_seen = np.isin(labels, group), np.isin(labels, left.items)
    _require_agreement(left[is_seen], labels[is_seen])
    about = _restrict(semantics, group, left.items)
    return Fold(about, left[is_new], labels[is_new], left[is_seen], labels[is_seen])


def _require_agreement(scores: Scores, labels: Labels) -> None:
    """Raise if the classifier is no better than chance: then scores and labels do not belong."""
    if len(scores) < ENOUGH_TO_JUDGE:
        return
    values = class_scores(scores.values, scores.kind, len(scores.items), {}, np)
    agreement = float(np.mean(np.array(scores.items)[most_probable(values)] == labels))
    if agreement < 2 / len(scores.items):
        raise RankshotError(
            f"only {agreement:.1%} of the inputs of other seen classes have the highest score for "
            "their own class: do the labels belong to these scores, row by row?"
        )


def _listed_items(semantics: Semantics) -> set[str]:
    """Return the items that rankings list; of similarities, all."""
    if isinstance(semantics, Similarity):
        return set(semantics.items)
    return {semantics.items[code] for code in np.unique(semantics.codes)}


def _restrict(semantics: Semantics, group: tuple[str, ...], items: tuple[str, ...]) -> Semantics:
    """Return the rankings of the held-out group, by the remaining seen classes."""
    about = select_targets(semantics, np.isin(np.array(semantics.targets, object), group))
    if isinstance(about, Similarity):
        return about.select(about.targets, items)
    if wrong := sorted(_listed_items(about) - set(items) - set(group)):
        raise RankshotError(
            f"the rankings list {quote_names(wrong)}, which the scores do not have"
            f"{suggest_name(wrong[0], items)}"
        )
    about = restrict_items(about, [name for name in about.items if name in set(items)])
    if missing := sorted(set(group) - set(about.target_names)):
        raise RankshotError(
            f"the rankings of {quote_names(missing)} list no seen class that is left if "
            f"{quote_names(group)} are held out"
        )
    return align_to(about, items)


# ---- How accurate new classes will be, from how accurate held-out seen classes were
#
# A model with two parts. An input has one decision value per new class; over the reference these
# values have mean 0, variance 1 and the correlations K. For an input of class z they are shifted by
# d K_z: its own value by the *strength* d of the class, and those of similar classes with it. So
# similar classes are confused, and the more candidates there are, the more often.
#
# The strengths of held-out classes follow from their accuracies, and those of the new classes are
# predicted from them: classes with similar rankings have similar strengths. New classes are rarely
# a random sample of all classes. If they resemble each other and no held-out class, their strengths
# are uncertain together, and the interval is wide.

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


def correlate_classes(head: BaseHead, scores: Scores) -> Floats:
    """Return the correlations of the decision values of the classes; 0 for a constant one."""
    values = np.asarray(head.decision_function(scores), np.float64)
    values = values - values.mean(axis=0)
    size = np.sqrt((values**2).sum(axis=0))
    values /= np.where(size > 0, size, 1.0)
    correlations = values.T @ values
    np.fill_diagonal(correlations, 1.0)
    return np.asarray(correlations)


def simulate_accuracies(correlations: Floats, classes: NDArray[np.intp] | None = None) -> Floats:
    """Return the accuracy of each class, one row per class, for each of the `STRENGTHS`.

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
    # Any other root depends on the signs of eigenvectors, which are arbitrary.
    variance, directions = np.linalg.eigh(covariance)
    return np.asarray((directions * np.sqrt(np.maximum(variance, 0.0))) @ directions.T)


def find_strengths(accuracies: Floats, correlations: Floats) -> Floats:
    """Return the strength with which each class reaches its accuracy among the others."""
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


def predict_mean_accuracy(strengths: Floats, similarity: Floats, correlations: Floats) -> Interval:
    """Return the mean accuracy of new classes, with a 95 % interval for these classes.

    It is one for the *next* classes, and wider than one for the mean of many classes.

    Parameters
    ----------
    strengths : ndarray of shape (n,)
        Of the held-out classes.
    similarity : ndarray of shape (n + L, n + L)
        How similar the held-out and the new classes are: see `draw_strengths`.
    correlations : ndarray of shape (L, L)
        Of the decision values of the new classes.
    """
    n, rng = len(strengths), np.random.default_rng(0)
    chosen = rng.permutation(len(correlations))[:MOST_CLASSES]
    both = np.concatenate([np.arange(n), n + chosen])
    drawn = draw_strengths(strengths, similarity[np.ix_(both, both)], rng)
    column = np.searchsorted(STRENGTHS, drawn).clip(max=len(STRENGTHS) - 1)
    simulated = simulate_accuracies(correlations, chosen)
    means = simulated[np.arange(len(chosen)), column].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return Interval(float(means.mean()), float(low), float(high))
