"""`SeenClassSearch`: choose settings on held-out seen classes that play the role of new ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import _safe_indexing

from rankshot.core.errors import RankshotError, quote_names, short_repr, suggest_name
from rankshot.core.progress import ProgressLine
from rankshot.core.validation import Seed
from rankshot.ranking.restriction import restrict_items
from rankshot.semantics.similarity import Similarity
from rankshot.zeroshot.alignment import (
    Semantics,
    align_to,
    require_semantics,
    select_targets,
)
from rankshot.zeroshot.classifier import ZeroShotClassifier, require_same_length
from rankshot.zeroshot.estimator_scores import scores_of
from rankshot.zeroshot.heads.base import most_probable
from rankshot.zeroshot.heads.probabilistic_ranking import ProbabilisticRanking
from rankshot.zeroshot.metrics import mean_class_accuracy
from rankshot.zeroshot.scores import Scores

Labels = NDArray[np.str_]
FIXED = {"rankings", "classes", "gate", "none", "calibration", "reject_below", "reject_label"}
"""Parameters of the classifier that the grid must not contain."""


@dataclass(frozen=True)
class Trial:
    """The result of one setting.

    Attributes
    ----------
    params : dict
        The setting.
    score : float
        The mean over folds of the mean class accuracy on the held-out classes.
    by_fold : tuple of float
        The score of each fold.
    """

    params: dict[str, Any]
    score: float
    by_fold: tuple[float, ...]


class _Fold(NamedTuple):
    """Scores of inputs of held-out classes by a classifier without these classes."""

    scores: Scores
    labels: Labels


class SeenClassSearch(MetaEstimatorMixin, BaseEstimator):
    """Choose the settings of a `ZeroShotClassifier` without inputs or labels of new classes.

    Some seen classes are held out and play the role of new ones: a classifier trained on the
    other classes has to distinguish them by their rankings. The setting with the best score is
    chosen. A frozen classifier is not trained again; its scores for the held-out classes are left
    out.

    Parameters
    ----------
    estimator : ZeroShotClassifier
        The classifier whose settings are chosen, with ``classes="new"``.
    param_grid : dict, or list of dicts
        Lists of values by name of the parameter, as for scikit-learn's `GridSearchCV`:
        ``{"head__k": [2, 4, 7], "head__prior": [PlackettLuce(), Mallows()]}``. Parameters of the
        classifier are ``estimator__…``.
    rankings : Rankings or Similarity, optional
        Rankings or similarities of *seen* classes, from the same sources. By default those of
        seen classes in ``estimator.rankings``.
    n_folds : int
        The seen classes that have rankings are divided at random into this number of groups,
        which are held out in turn.
    held_out : list of lists of names, optional
        The groups, instead of random ones.
    random_state : int, optional
        The seed for the groups.
    verbose : bool
        Show progress.

    Attributes
    ----------
    trials_ : list of Trial
        All settings, in the order of the grid.
    best_params_ : dict
        The best setting; the first one if several are equally good.
    best_score_ : float
        Its score.
    best_estimator_ : ZeroShotClassifier
        The classifier with this setting, fitted to all inputs.

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
        """Try all settings on held-out seen classes, and fit the best one to all inputs.

        Parameters
        ----------
        X, y
            Inputs of seen classes, and their classes.
        """
        if not isinstance(self.estimator, ZeroShotClassifier):
            raise RankshotError(f"expected a ZeroShotClassifier, not {short_repr(self.estimator)}")
        if self.estimator.classes != "new":
            raise RankshotError(
                "SeenClassSearch chooses settings for classes='new' only, not for "
                f"classes={self.estimator.classes!r}"
            )
        require_same_length(X, y)
        labels = np.asarray(y).astype(str)
        semantics = self._semantics_of_seen(labels)
        settings = self._list_settings()
        outcomes: list[list[float]] = [[] for _ in settings]
        with ProgressLine("seen classes held out", enabled=self.verbose) as line:
            groups = self._choose_groups(semantics, labels)
            for number, group in enumerate(groups, 1):
                line.update(f"fold {number} of {len(groups)}")
                for i, fold in self._train_folds(settings, group, X, labels):
                    outcomes[i].append(self._evaluate(settings[i], fold, group, semantics))
        self.trials_ = [
            Trial(params, float(np.mean(by_fold)), tuple(by_fold))
            for params, by_fold in zip(settings, outcomes, strict=True)
        ]
        best = max(self.trials_, key=lambda trial: trial.score)
        self.best_params_, self.best_score_ = best.params, best.score
        self.best_estimator_ = self._configure(best.params).fit(X, y)
        return self

    def _list_settings(self) -> list[dict[str, Any]]:
        try:
            settings = list(ParameterGrid(self.param_grid))
        except (TypeError, ValueError) as error:
            raise RankshotError(f"param_grid: {error}") from None
        if not settings:
            raise RankshotError("param_grid is empty: there is nothing to try")
        if fixed := sorted(FIXED & {name for params in settings for name in params}):
            raise RankshotError(
                f"param_grid: {quote_names(fixed)} cannot be chosen here; set it on the estimator"
            )
        return settings

    def _configure(self, params: Mapping[str, Any]) -> ZeroShotClassifier:
        """Return a copy of the classifier with these parameters."""
        zero_shot: ZeroShotClassifier = clone(self.estimator)
        if zero_shot.head is None:
            zero_shot.set_params(head=ProbabilisticRanking())
        zero_shot.set_params(**{name: clone(v, safe=False) for name, v in params.items()})
        return zero_shot

    def _semantics_of_seen(self, labels: Labels) -> Semantics:
        """Return the rankings or similarities of seen classes."""
        semantics = require_semantics(
            self.estimator.rankings if self.rankings is None else self.rankings
        )
        seen = np.isin(np.array(semantics.targets, object).astype(str), labels)
        if not seen.any():
            raise RankshotError(
                "there is no ranking of a seen class that could be held out, only rankings of "
                f"{quote_names(dict.fromkeys(semantics.targets))}: let the sources rank seen "
                "classes, too, and pass these rankings as rankings="
            )
        return select_targets(semantics, seen)

    def _choose_groups(self, semantics: Semantics, labels: Labels) -> list[tuple[str, ...]]:
        """Return the held-out classes of each fold."""
        ranked = sorted(set(semantics.targets))
        if self.held_out is None:
            n, most = self.n_folds, len(ranked) // 2
            if isinstance(n, bool) or not isinstance(n, int | np.integer) or not 1 <= n <= most:
                raise RankshotError(
                    f"n_folds must be between 1 and {most}, with at least two classes per fold, "
                    f"not {short_repr(n)}"
                )
            mixed = np.random.default_rng(self.random_state).permutation(ranked)
            groups = [tuple(group.tolist()) for group in np.array_split(mixed, n)]
        else:
            groups = _require_groups(self.held_out, ranked)
        for group in groups:
            if len(set(labels) - set(group)) < 2:
                what = "n_folds" if self.held_out is None else "held_out"
                raise RankshotError(
                    f"{what}: with {quote_names(group)} held out fewer than two classes are left "
                    "to train on"
                )
        return groups

    def _train_folds(
        self, settings: list[dict[str, Any]], group: tuple[str, ...], X: Any, labels: Labels
    ) -> Iterator[tuple[int, _Fold]]:
        """Yield each setting with its fold; settings of one classifier share the training."""
        done: dict[tuple[tuple[str, int], ...], _Fold] = {}
        for i, params in enumerate(settings):
            # The values in all settings are the objects of the grid, so their ids can be compared.
            of_estimator = tuple(
                (name, id(value))
                for name, value in params.items()
                if name.split("__")[0] == "estimator"
            )
            if of_estimator not in done:
                done[of_estimator] = self._train_fold(
                    self._configure(params).estimator, group, X, labels
                )
            yield i, done[of_estimator]

    def _train_fold(self, classifier: Any, group: tuple[str, ...], X: Any, labels: Labels) -> _Fold:
        """Train without a group of classes; of a frozen classifier only drop their scores."""
        held_out = np.isin(labels, group)
        train, held = np.flatnonzero(~held_out), np.flatnonzero(held_out)
        trained = clone(classifier).fit(_safe_indexing(X, train), labels[train])
        if unknown := sorted(set(labels[train]) - set(map(str, trained.classes_))):
            raise RankshotError(
                f"{quote_names(unknown)} in y are not among the classes of the classifier"
            )
        scores = scores_of(trained, _safe_indexing(X, held))
        remaining = [name for name in scores.items if name not in group]
        return _Fold(scores.select(remaining), labels[held])

    def _evaluate(
        self, params: dict[str, Any], fold: _Fold, group: tuple[str, ...], semantics: Semantics
    ) -> float:
        """Fit a head for the held-out classes, and measure it on their inputs."""
        head: Any = self._configure(params).head
        head.fit(_restrict(semantics, group, fold.scores.items))
        predicted = head.classes_[most_probable(head.predict_log_proba(fold.scores))]
        return mean_class_accuracy(fold.labels, predicted)


def _require_groups(held_out: Any, ranked: list[str]) -> list[tuple[str, ...]]:
    """Return the groups of ``held_out``; each class must be one of the ranked seen classes."""
    groups: list[tuple[str, ...]] = []
    for group in held_out:
        names = () if isinstance(group, str) or not isinstance(group, Iterable) else tuple(group)
        if len(set(names)) < max(2, len(names)):
            raise RankshotError(
                "held_out: a fold must be a list of at least two different classes, not "
                f"{short_repr(group)}"
            )
        for name in names:
            if name not in ranked:
                raise RankshotError(
                    f"held_out: there is no ranking of a seen class {short_repr(name)}"
                    f"{suggest_name(name, ranked)}"
                )
        groups.append(names)
    if not groups:
        raise RankshotError("held_out is empty: pass at least one fold")
    return groups


def _restrict(semantics: Semantics, group: tuple[str, ...], items: tuple[str, ...]) -> Semantics:
    """Return the semantics of the held-out group, by seen ``items``."""
    wanted = [name in group for name in semantics.targets]
    if isinstance(semantics, Similarity):
        return semantics.select(np.array(semantics.targets)[wanted], items)
    about = semantics[np.array(wanted, bool)]
    about = restrict_items(about, [name for name in semantics.items if name in items])
    if missing := sorted(set(group) - set(about.target_names)):
        raise RankshotError(
            f"the rankings of {quote_names(missing)} contain no seen class when "
            f"{quote_names(group)} are held out"
        )
    return align_to(about, items)
