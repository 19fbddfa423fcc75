"""`SeenClassSearch`: settings chosen on seen classes that play unseen ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.model_selection import ParameterGrid, train_test_split
from sklearn.utils import _safe_indexing

from rankshot.core.errors import RankshotError, quote_names, short_repr, suggest_name
from rankshot.core.progress import ProgressLine
from rankshot.core.validation import Seed
from rankshot.ranking.rankings import Rankings
from rankshot.ranking.restriction import restrict_items
from rankshot.semantics.similarity import Similarity
from rankshot.zeroshot.alignment import Semantics, align_to, only_new, require_semantics, with_seen
from rankshot.zeroshot.classifier import ZeroShotClassifier, require_same_length
from rankshot.zeroshot.estimator_scores import scores_of
from rankshot.zeroshot.heads.base import most_probable
from rankshot.zeroshot.heads.probabilistic_ranking import ProbabilisticRanking
from rankshot.zeroshot.metrics import mean_class_accuracy
from rankshot.zeroshot.scores import Scores

Floats = NDArray[np.float64]
Labels = NDArray[np.str_]
FIXED = {"rankings", "classes", "calibration", "reject_below", "reject_label"}
"""What no trial changes."""
VALIDATION_SHARE = 0.25
"""Of the inputs of classes that stay seen, so much is kept from training to judge by."""


# -------------------- zeroshot.calibration
# The constant that lets seen and unseen classes compete: calibrated stacking.


class CalibrationData(NamedTuple):
    """What is to be known of inputs to judge any calibration constant.

    Attributes
    ----------
    margin : ndarray of shape (n,)
        Log-probability of the best seen class less that of the best unseen one. An input goes
        to the seen class where this exceeds the constant.
    right_if_seen, right_if_new : ndarray of bool
        Whether the best seen, and the best unseen, class is the true one.
    weight : ndarray
        One over the number of inputs of its class, and over the number of seen (or unseen)
        classes: accuracies are means over classes.
    is_new : ndarray of bool
        Whether the true class is an unseen one.
    """

    margin: Floats
    right_if_seen: NDArray[np.bool_]
    right_if_new: NDArray[np.bool_]
    weight: Floats
    is_new: NDArray[np.bool_]


def collect_calibration_data(
    log_proba: NDArray[np.floating],
    classes: NDArray[np.str_],
    seen: NDArray[np.bool_],
    y: NDArray[np.str_],
) -> CalibrationData:
    """Sum up what a generalised zero-shot classifier says of labelled inputs."""
    best_seen = log_proba[:, seen].argmax(axis=1)
    best_unseen = log_proba[:, ~seen].argmax(axis=1)
    rows = np.arange(len(y))
    margin = log_proba[:, seen][rows, best_seen] - log_proba[:, ~seen][rows, best_unseen]
    names, which, count = np.unique(y, return_inverse=True, return_counts=True)
    name_unseen = ~np.isin(names, classes[seen])
    n_alike = np.where(name_unseen, name_unseen.sum(), (~name_unseen).sum())
    return CalibrationData(
        margin.astype(np.float64),
        classes[seen][best_seen] == y,
        classes[~seen][best_unseen] == y,
        (1 / (count * n_alike))[which],
        name_unseen[which],
    )


def harmonic_means(inputs: CalibrationData, constants: Floats) -> Floats:
    """Return the harmonic mean of seen and unseen accuracy for every constant."""
    order = np.argsort(inputs.margin)
    # Inputs of a margin up to the constant go to unseen classes.
    n_unseen = np.searchsorted(inputs.margin[order], constants, side="right")

    def accuracy(of: NDArray[np.bool_]) -> Floats:
        weight = np.where(of, inputs.weight, 0.0)[order]
        below = np.append(0, np.cumsum(weight * inputs.right_if_new[order]))
        above = np.append(0, np.cumsum((weight * inputs.right_if_seen[order])[::-1]))[::-1]
        return np.asarray(below[n_unseen] + above[n_unseen])

    unseen, seen = accuracy(inputs.is_new), accuracy(~inputs.is_new)
    total = unseen + seen
    return np.divide(2 * unseen * seen, total, out=np.zeros_like(total), where=total > 0)


def best_calibration(folds: Sequence[CalibrationData]) -> tuple[float, float]:
    """Return the constant with the largest harmonic mean, averaged over folds, and that mean.

    Between two neighbouring margins all constants are alike. The middle of the first stretch
    without a better one is taken.
    """
    margins = np.unique(np.concatenate([fold.margin for fold in folds]))
    edges = np.concatenate([[margins[0] - 1], margins, [margins[-1] + 1]])
    # Where fold after fold adds up in another order, equal means differ in their last digits.
    means = np.mean([harmonic_means(fold, edges[:-1]) for fold in folds], axis=0).round(12)
    first = int(np.argmax(means))
    worse = np.flatnonzero(means[first:] < means[first])
    end = first + (int(worse[0]) if worse.size else means.size - first)
    return float((edges[first] + edges[end]) / 2), float(means[first])


# -------------------- zeroshot.seen_class_search
# `SeenClassSearch`: settings chosen on seen classes that play unseen ones.


@dataclass(frozen=True)
class Trial:
    """How one setting did.

    Attributes
    ----------
    params : dict
        The setting.
    score : float
        The mean over folds of the accuracy on the classes that played unseen, each class
        counting alike; with ``classes="all"``, of the harmonic mean of that on seen and unseen.
    by_fold : tuple of float
        Empty with ``classes="all"``, where one calibration serves all folds.
    calibration : float
        The best constant, with ``classes="all"``; otherwise 0.
    """

    params: dict[str, Any]
    score: float
    by_fold: tuple[float, ...]
    calibration: float


class _Fold(NamedTuple):
    """Scores by a classifier without the classes that play unseen, to rank by and to judge by."""

    items: tuple[str, ...]
    to_rank: tuple[Scores, Labels]
    to_judge: tuple[Scores, Labels]


class SeenClassSearch(MetaEstimatorMixin, BaseEstimator):
    """Choose the settings of a `ZeroShotClassifier` without a single unseen input or label.

    Some seen classes are held out and play unseen ones: a classifier trained on the others has
    to tell them apart by their rankings. What works best there is taken. A frozen classifier
    is not trained again; its scores for the held-out classes are left out.

    Parameters
    ----------
    estimator : ZeroShotClassifier
    param_grid : dict, or list of dicts
        Lists of values by name of the parameter, as for scikit-learn's `GridSearchCV`:
        ``{"head__k": [2, 4, 7], "head__prior": [PlackettLuce(), Mallows()]}``. Parameters of the
        classifier are ``estimator__…``. With ``classes="all"`` the calibration is found for
        every setting, exactly, and needs no place in the grid.
    rankings : Rankings or Similarity, optional
        What is said of *seen* classes, by the same sources. By default what
        ``estimator.rankings`` says of them.
    n_folds : int
        The classes that have rankings take turns, in so many groups, by chance.
    held_out : list of lists of names, optional
        The groups themselves.
    random_state : int, optional
    verbose : bool
        Show progress.

    Attributes
    ----------
    trials_ : list of Trial
        All settings, in the order of the grid.
    best_params_ : dict
        Of the best of them; of equals, the first.
    best_score_ : float
    best_estimator_ : ZeroShotClassifier
        With those settings, fitted to all inputs.

    Examples
    --------
    >>> import numpy as np, rankshot as rs
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.repeat(np.arange(8.0), 20)[:, None] + np.tile(np.linspace(-.2, .2, 20), 8)[:, None]
    >>> y = np.repeat(list("abcdefgh"), 20)
    >>> distance = np.abs(np.append(np.arange(8), [-1, 8])[:, None] - np.arange(8))
    >>> table = rs.Similarity(1 / (1 + distance), list("abcdefghij"), list("abcdefgh"))
    >>> zs = rs.ZeroShotClassifier(
    ...     LogisticRegression(max_iter=1000), head=rs.ProbabilisticRanking(),
    ...     rankings=table.to_rankings())
    >>> search = rs.SeenClassSearch(zs, {"head__k": [1, 3]}, held_out=[["b", "e"], ["c", "g"]])
    >>> search.fit(X, y).best_params_, search.best_score_
    ({'head__k': 1}, 1.0)
    """

    def __init__(
        self,
        estimator: ZeroShotClassifier,
        param_grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]],
        *,
        rankings: Semantics | None = None,
        n_folds: int = 5,
        held_out: Sequence[Iterable[str]] | None = None,
        random_state: Seed = 0,
        verbose: bool = False,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.rankings = rankings
        self.n_folds = n_folds
        self.held_out = held_out
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> SeenClassSearch:
        """Try all settings on held-out seen classes, and fit the best to all inputs.

        Parameters
        ----------
        X, y
            Inputs of seen classes.
        """
        if not isinstance(self.estimator, ZeroShotClassifier):
            raise RankshotError(f"expected a ZeroShotClassifier, not {short_repr(self.estimator)}")
        require_same_length(X, y)
        labels = np.asarray(y).astype(str)
        semantics = self._of_seen(labels)
        settings = self._settings()
        outcomes: list[list[float | CalibrationData]] = [[] for _ in settings]
        with ProgressLine("seen classes held out", enabled=self.verbose) as line:
            groups = self._groups(semantics, labels)
            for number, group in enumerate(groups, 1):
                line.update(f"fold {number} of {len(groups)}")
                for i, fold in self._trained(settings, group, X, labels):
                    outcomes[i].append(self._judged(settings[i], fold, group, semantics))
        self.trials_ = [_trial(*pair) for pair in zip(settings, outcomes, strict=True)]
        best = max(self.trials_, key=lambda trial: trial.score)
        self.best_params_, self.best_score_ = best.params, best.score
        chosen = self._with(best.params)
        if chosen.classes == "all":
            chosen.set_params(calibration=best.calibration)
        self.best_estimator_ = chosen.fit(X, y)
        return self

    def _settings(self) -> list[dict[str, Any]]:
        try:
            settings = list(ParameterGrid(self.param_grid))
        except (TypeError, ValueError) as error:
            raise RankshotError(f"param_grid: {error}") from None
        if not settings:
            raise RankshotError("param_grid is empty: there is nothing to try")
        if fixed := sorted(FIXED & {name for params in settings for name in params}):
            raise RankshotError(
                f"param_grid: {quote_names(fixed)} cannot be chosen here; set it on the estimator (the "
                "calibration is found by itself)"
            )
        return settings

    def _with(self, params: Mapping[str, Any]) -> ZeroShotClassifier:
        """Return a copy of the classifier with some settings."""
        zero_shot: ZeroShotClassifier = clone(self.estimator)
        if zero_shot.head is None:
            zero_shot.set_params(head=ProbabilisticRanking())
        zero_shot.set_params(**{name: clone(v, safe=False) for name, v in params.items()})
        return zero_shot

    def _of_seen(self, labels: Labels) -> Semantics:
        """Return what is said of seen classes."""
        semantics = self.estimator.rankings if self.rankings is None else self.rankings
        if not isinstance(semantics, Rankings | Similarity):
            raise RankshotError(
                f"rankings must be Rankings or a Similarity, not {short_repr(semantics)}"
            )
        seen = np.isin(np.array(semantics.targets, object).astype(str), labels)
        if not seen.any():
            raise RankshotError(
                f"there is no ranking of a seen class to play with (the targets are "
                f"{quote_names(dict.fromkeys(semantics.targets))}): let the sources rank seen classes, "
                "too, and pass that as rankings"
            )
        if isinstance(semantics, Rankings):
            return semantics[seen]
        return semantics.select(np.array(semantics.targets)[seen], semantics.items)

    def _groups(self, semantics: Semantics, labels: Labels) -> list[tuple[str, ...]]:
        """Return the classes that play unseen, fold by fold."""
        known = sorted(set(semantics.targets))
        if self.held_out is None:
            n, most = self.n_folds, len(known) // 2
            if isinstance(n, bool) or not isinstance(n, int | np.integer) or not 1 <= n <= most:
                raise RankshotError(
                    f"n_folds must be between 1 and {most}, two classes a fold or more, not "
                    f"{short_repr(n)}"
                )
            mixed = np.random.default_rng(self.random_state).permutation(known)
            groups = [tuple(group.tolist()) for group in np.array_split(mixed, n)]
        else:
            groups = _require_groups(self.held_out, known)
        for group in groups:
            if len(set(labels) - set(group)) < 2:
                what = "n_folds" if self.held_out is None else "held_out"
                raise RankshotError(
                    f"{what}: with {quote_names(group)} held out fewer than two classes are left to "
                    "train on"
                )
        return groups

    def _trained(
        self, settings: list[dict[str, Any]], group: tuple[str, ...], X: Any, labels: Labels
    ) -> Iterator[tuple[int, _Fold]]:
        """Yield each setting with its fold; settings of one classifier share the training."""
        done: dict[tuple[tuple[str, int], ...], _Fold] = {}
        for i, params in enumerate(settings):
            # Every setting holds the very values of the grid.
            of_estimator = tuple(
                (name, id(value))
                for name, value in params.items()
                if name.split("__")[0] == "estimator"
            )
            if of_estimator not in done:
                done[of_estimator] = self._fold(self._with(params).estimator, group, X, labels)
            yield i, done[of_estimator]

    def _fold(self, classifier: Any, group: tuple[str, ...], X: Any, labels: Labels) -> _Fold:
        """Train without a group of classes; a frozen classifier forgets their scores instead."""
        playing = np.isin(labels, group)
        train, held = np.flatnonzero(~playing), np.flatnonzero(playing)
        if self.estimator.classes == "all":
            seed = int(np.random.default_rng(self.random_state).integers(2**32))
            try:
                train, kept = train_test_split(
                    train, test_size=VALIDATION_SHARE, stratify=labels[train], random_state=seed
                )
            except ValueError as error:
                raise RankshotError(
                    f"classes='all' needs a few inputs of every class to judge by: {error}"
                ) from None
            held = np.concatenate([held, kept])
        trained = clone(classifier).fit(_safe_indexing(X, train), labels[train])
        if unknown := sorted(set(labels[train]) - set(map(str, trained.classes_))):
            raise RankshotError(
                f"the classifier does not know {quote_names(unknown)}: not seen classes"
            )
        ranked, judged = (
            scores.select([name for name in scores.items if name not in group])
            for scores in (scores_of(trained, _safe_indexing(X, rows)) for rows in (train, held))
        )
        return _Fold(judged.items, (ranked, labels[train]), (judged, labels[held]))

    def _judged(
        self, params: dict[str, Any], fold: _Fold, group: tuple[str, ...], semantics: Semantics
    ) -> float | CalibrationData:
        """Fit a head for the classes that play unseen, and see how it does."""
        zero_shot = self._with(params)
        head: Any = zero_shot.head
        # Seen classes are ranked by what the classifier will be given of them, if anything.
        staying = set(fold.items) & set(require_semantics(self.estimator.rankings).targets)
        about = _restricted(semantics, group, staying, fold.items)
        scores, labels = fold.to_judge
        if zero_shot.classes == "new":
            head.fit(only_new(about))
            playing = np.isin(labels, group)
            chosen = head.classes_[most_probable(head.predict_log_proba(scores[playing]))]
            return mean_class_accuracy(labels[playing], chosen)
        head.fit(with_seen(about, lambda: fold.to_rank))
        seen = np.isin(head.classes_, fold.items)
        return collect_calibration_data(head.predict_log_proba(scores), head.classes_, seen, labels)


def _require_groups(held_out: Any, known: list[str]) -> list[tuple[str, ...]]:
    """Return the groups that a caller wants held out."""
    groups: list[tuple[str, ...]] = []
    for group in held_out:
        names = () if isinstance(group, str) or not isinstance(group, Iterable) else tuple(group)
        if len(set(names)) < max(2, len(names)):
            raise RankshotError(
                f"held_out: a fold is a list of two different classes or more, not {short_repr(group)}"
            )
        for name in names:
            if name not in known:
                raise RankshotError(
                    f"held_out: no ranking of a seen class {short_repr(name)}{suggest_name(name, known)}"
                )
        groups.append(names)
    if not groups:
        raise RankshotError("held_out is empty: name at least one fold")
    return groups


def _restricted(
    semantics: Semantics, group: tuple[str, ...], staying: set[str], items: tuple[str, ...]
) -> Semantics:
    """Return what is said of the group, and of classes that stay seen, over the items alone."""
    wanted = [name in group or name in staying for name in semantics.targets]
    if isinstance(semantics, Similarity):
        return semantics.select(np.array(semantics.targets)[wanted], items)
    about = semantics[np.array(wanted, bool)]
    about = restrict_items(about, [name for name in semantics.items if name in items])
    if missing := sorted(set(group) - set(about.target_names)):
        raise RankshotError(
            f"the rankings of {quote_names(missing)} name no class that is still seen when "
            f"{quote_names(group)} are held out"
        )
    return align_to(about, items)


def _trial(params: dict[str, Any], outcomes: list[float | CalibrationData]) -> Trial:
    folds = [outcome for outcome in outcomes if isinstance(outcome, CalibrationData)]
    if folds:
        constant, score = best_calibration(folds)
        return Trial(params, score, (), constant)
    accuracies = tuple(outcome for outcome in outcomes if isinstance(outcome, float))
    return Trial(params, float(np.mean(accuracies)), accuracies, 0.0)
