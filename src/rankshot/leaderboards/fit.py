"""Leaderboards from votes and rankings: the choice of the model and of standard errors."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from rankshot.core.columns import ColumnReader, is_records
from rankshot.core.errors import RankshotError, quote_names, short_repr, suggest_name
from rankshot.core.estimators import clone
from rankshot.core.tables import as_frame
from rankshot.core.validation import (
    Seed,
    require_choice,
    require_generator,
    require_number,
    require_whole_number,
)
from rankshot.leaderboards.board import ELO_MEAN, Estimate, Leaderboard, adjust_holm
from rankshot.leaderboards.davidson_luce import DavidsonLuce, HalfWins
from rankshot.leaderboards.pair_models import MatchModel, read_covariates
from rankshot.leaderboards.raters import weigh_raters as rater_weights
from rankshot.ranking.checks import (
    are_votes,
    merge_copies,
    require_model,
    require_one_subject,
)
from rankshot.ranking.consensus.precedence import item_weights, precedence
from rankshot.ranking.construction import Labels, number_labels, require_one_each
from rankshot.ranking.matrices import count_ties
from rankshot.ranking.models.information import find_one_sided
from rankshot.ranking.models.plackett_luce import PlackettLuce, WorthModel
from rankshot.ranking.models.robust_errors import (
    centre,
    find_units,
    keep_least_errors,
    sum_squares,
)
from rankshot.ranking.ranking_files import (
    SHARED_ARGUMENTS,
    TABLE_ARGUMENTS,
    VOTE_ARGUMENTS,
    read_rankings,
    require_arguments,
)
from rankshot.ranking.rankings import Rankings, require_rankings
from rankshot.ranking.votes import read_votes

Floats = NDArray[np.float64]
Ties = Literal["outcome", "half", "ignore"]
Scale = Literal["log-worth", "elo"]
Names = tuple[str, ...]
Settings = dict[str, Any]
FEW_VOTES = 10
"""Items with fewer votes are listed separately, unless they have a tenth of the median."""


def leaderboard(
    votes: object,
    model: WorthModel | None = None,
    *,
    ties: Ties | None = None,
    covariates: Iterable[str] = (),
    cluster: Labels = None,
    weigh_raters: bool = False,
    anchors: Mapping[str, float] | Leaderboard | None = None,
    min_votes: float | None = None,
    scale: Scale = "log-worth",
    level: float = 0.95,
    n_draws: int = 1000,
    random_state: Seed = 0,
    **columns: str,
) -> Leaderboard:
    r"""Rank items by worth, with confidence intervals for ratings and ranks.

    Parameters
    ----------
    votes : Rankings, data frame, str or Path
        Rankings of any kind; or a table of votes between two items, as accepted by
        `Rankings.from_votes`; or a file of rankings, as accepted by `read_rankings`.
    model : PlackettLuce, DavidsonLuce or another model with worths, optional
        The model of the worths. A copy of it is fitted to the rankings; a fitted model is used
        unchanged. By default, the model follows from ``ties``.
    ties : {"outcome", "half", "ignore"}, optional
        How ties are interpreted: as an outcome of their own, more likely between items of equal
        worth (`DavidsonLuce`); as half a win for each item, as in LLM leaderboards; or as an
        unknown order, which contains no information about the two items. By default, ties are an
        outcome; if all votes are ties, they are half wins.
    covariates : iterable of str
        Columns of the table of votes that may affect who wins, in addition to the worths:
        ``length`` is the column of this name (of the first item minus that of the second), or
        ``length_a`` minus ``length_b``; ``position`` is the advantage of being listed first.
    cluster : str or sequence, optional
        A second reason why votes may be correlated, besides the rater, such as the prompt: a column
        of the table, or one label per ranking. Standard errors then take both into account (two-way
        clusters).
    weigh_raters : bool
        Whether votes are weighted by the reliability of their raters, as in Crowd-BT; see
        `rater_reliability`.
    anchors : dict or Leaderboard, optional
        Known ratings of some items, such as ``{"gpt-4": 1000}`` or those of the last board. All
        ratings are shifted so that the mean rating of these items matches; a single anchor has
        exactly its given rating. Differences and their errors do not change.
    min_votes : float, optional
        Items with fewer votes are listed separately. By default 10, or a tenth of the median if
        that is less.
    scale : {"log-worth", "elo"}
        The scale of ratings and their differences: log-worths, or Elo points with mean 1000.
    level : float
        The confidence level of the intervals.
    n_draws : int
        The number of draws for intervals of ranks.
    random_state : int, Generator or None
    **columns : str
        The names of the columns of a table, as `Rankings.from_votes` takes them: ``a``, ``b``,
        ``winner``, ``loser``, ``rater``, ``weight`` and ``count``.

    Returns
    -------
    Leaderboard

    Notes
    -----
    If raters gave several rankings, these may be correlated, so standard errors are
    clustered by rater: a sandwich estimate, corrected for raters with unequal numbers of votes
    (CR2), with Satterthwaite's degrees of freedom for each item (Bell and McCaffrey 2002). For G
    raters who gave equally many rankings, there are G - 1 degrees of freedom. If only
    some rankings have a rater, the others are treated as those of other raters. For half wins and
    for weights that are not whole numbers, each ranking is a cluster of its own, and only ratios of
    weights matter. A whole-number weight w stands for w rankings. Otherwise, and for a single
    rater, standard errors follow from the model, with 2 n degrees of freedom for n rankings.

    The rank interval of an item contains its true rank with at least the probability ``level``,
    however close the worths are (Mogstad et al. 2024, with the step-down of their section 4).

    References
    ----------
    Bell and McCaffrey (2002), Bias reduction in standard errors for linear regression with
    multi-stage samples. Survey Methodology 28. Holm (1979), A simple sequentially rejective
    multiple test procedure. Scandinavian Journal of Statistics 6. Cameron, Gelbach and Miller
    (2011), Robust inference with multiway clustering. Journal of Business & Economic Statistics 29.
    Mogstad, Romano, Shaikh and Wilhelm (2024), Inference for ranks with applications to mobility
    across neighbourhoods and academic achievement across countries. Review of Economic Studies 91.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders(
    ...     [["a", "b", "c"], ["b", "a", "c"], ["c", "a", "b"]], weights=[50, 20, 10])
    >>> rs.leaderboard(votes)
    Leaderboard: 3 items, 80 rankings, 95% comparison intervals
      rank  item  log-worth        interval   ranks  better  votes  share
         1  a          1.24    0.88 to 1.61  1 to 1       2     80   0.81
         2  b          0.39    0.13 to 0.64  2 to 2       1     80   0.56
         3  c         -1.63  -2.25 to -1.01  3 to 3       0     80   0.12
    """
    require_number("level", level, above=0, below=1)
    require_whole_number("n_draws", n_draws, least=2)
    require_choice("scale", scale, get_args(Scale))
    if min_votes is not None:
        require_number("min_votes", min_votes, least=0)
    if ties is not None:
        require_choice("ties", ties, get_args(Ties))
    names = (covariates,) if isinstance(covariates, str) else tuple(covariates)
    if names and model is not None:
        raise RankshotError("covariates and model cannot be combined: pass only one of them")
    given = read_given(votes, names, cluster, columns)
    seed = int(require_generator(random_state).integers(2**63))
    origin = ELO_MEAN if scale == "elo" else 0.0
    settings = {
        "level": level, "scale": scale, "n_draws": n_draws, "seed": seed, "origin": origin,
    }  # fmt: skip
    if weigh_raters:
        weights = rater_weights(given.rankings)
        given = given._replace(rankings=replace(given.rankings, weights=weights))
    found = _fit(given, model, ties, names, settings)
    _warn_of_names(found.items)
    board = _sort(found, min_votes)
    return board if anchors is None else _anchor(board, anchors)


def _anchor(board: Leaderboard, anchors: Mapping[str, float] | Leaderboard) -> Leaderboard:
    """Return the board with ratings that are, on average, those of the anchors."""
    if isinstance(anchors, Leaderboard):
        if anchors.scale != board.scale:
            raise RankshotError(f"the last board has scale={anchors.scale!r}: use the same scale")
        anchors = anchors.ratings
    known = {item: value for item, value in board.ratings.items() if item in anchors}
    if not known:
        raise RankshotError(f"none of the anchors is ranked: {quote_names(anchors)}")
    shift = sum(float(anchors[item]) - value for item, value in known.items()) / len(known)
    return replace(board, origin=board.origin + shift)


def _sort(board: Leaderboard, least: float | None) -> Leaderboard:
    """Return a leaderboard, best first, of the items that have enough votes."""
    votes = board.votes
    if least is None:
        least = min(FEW_VOTES, float(np.median(votes[votes > 0])) / 10)
    kept = np.flatnonzero(votes >= least)
    if not kept.size:
        raise RankshotError(f"no item has {least:g} votes: lower min_votes")
    values = board.log_worths[kept] - board.log_worths[kept].mean()
    order = np.lexsort(([board.items[i] for i in kept], -values))
    at = kept[order]
    thin = (i for i in np.argsort(-votes, kind="stable") if votes[i] < least)
    return replace(
        board,
        items=tuple(board.items[i] for i in at),
        log_worths=values[order],
        covariance=centre(board.covariance[np.ix_(at, at)]),
        degrees=board.degrees[at],
        votes=votes[at],
        wins=board.wins[np.ix_(at, at)],
        ties=board.ties[np.ix_(at, at)],
        thin={board.items[i]: float(votes[i]) for i in thin},
    )


def as_rankings(votes: object, **columns: Any) -> Rankings:
    """Return rankings as they are, or those of a file or of a table of votes."""
    if isinstance(votes, (str, Path)) or is_records(votes) or as_frame(votes) is not None:
        return read_rankings(votes, **columns)
    if columns:
        raise RankshotError(f"{next(iter(columns))}= names a column of a table, not of Rankings")
    return require_rankings(cast("Rankings", votes))


class Given(NamedTuple):
    """Rankings, the covariates of each, and a second label of each by which errors are alike."""

    rankings: Rankings
    X: Floats | None = None
    clusters: NDArray[np.object_] | None = None

    def select(self, rows: NDArray[np.bool_]) -> Given:
        """Keep some of the rankings."""
        more: Any = (None if each is None else each[rows] for each in self[1:])
        return Given(self.rankings[rows], *more)


def read_given(votes: object, names: Names, cluster: Labels, columns: Settings) -> Given:
    """Return what a leaderboard is made of; ``names`` are those of covariates."""
    require_arguments(columns, TABLE_ARGUMENTS | {"items"})
    if isinstance(votes, Given):
        return votes
    if isinstance(votes, Rankings) and not names and not isinstance(cluster, str):
        rankings = as_rankings(votes, **columns)
        labels = None
        if cluster is not None:
            labels = np.array(require_one_each(cluster, len(rankings), "cluster"), object)
        return Given(rankings, None, labels)
    if not names and cluster is None:
        return Given(as_rankings(votes, **columns))
    if isinstance(votes, Rankings):
        what = "covariates need" if names else f"cluster={cluster!r} needs"
        raise RankshotError(f"{what} a table of votes: a data frame or a file")
    if more := {*columns} - VOTE_ARGUMENTS - SHARED_ARGUMENTS - {"items", "on_error"}:
        raise RankshotError(f"{min(more)}= cannot be combined with covariates or cluster")
    table = ColumnReader(votes, on_error=columns.pop("on_error", "stop"))
    read = read_votes(table, **columns)
    rankings = Rankings.of_votes(read)
    X = read_covariates(table, names, read.rows) if names else None
    if X is not None:
        # The winner comes first in rankings.
        turned = np.where(rankings.codes[::2] == read.first, 1.0, -1.0)
        X = turned[:, None] * np.broadcast_to(X, (turned.size, X.shape[1]))
    labels = None
    if cluster is not None:
        labels = table.read_texts([str(cluster)])[0].select(read.rows).expand(None)
    return Given(rankings, X, labels)


# ---- The fit


def _fit(
    given: Given,
    model: WorthModel | None,
    ties: Ties | None,
    names: Names,
    settings: dict[str, Any],
) -> Leaderboard:
    """Return a leaderboard of all items, as they come."""
    weight = float(require_one_subject(given.rankings).weights.sum())
    if not np.all(given.rankings.weights > 0):
        given = given.select(given.rankings.weights > 0)
    model, ties = choose_model(given.rankings, model, ties)
    if hasattr(model, "log_worths_"):
        given = given._replace(rankings=given.rankings.with_items(model.items_))
    rankings = given.rankings
    merged, number = merge_copies(rankings)
    # Rankings of several targets are warned of once.
    merged = replace(merged, targets=np.full(len(merged), None, object))
    votes, wins, tied = _count(merged)
    one_sided, described = find_one_sided(wins if ties == "ignore" else wins + tied, merged.items)
    if given.X is not None:
        if ties == "ignore":
            given = given.select(~rankings.rows_with_ties)
        fitted: Any = MatchModel(names, has_ties=ties == "outcome" and rankings.has_ties)
        fitted.fit(given.rankings, given.X, is_connected=not described)
        described = "; ".join(filter(None, (described, fitted.endless_)))
        found = Fitted(fitted, given.rankings, np.arange(len(given.rankings)))
    else:
        model = HalfWins.like(model) if ties == "half" and merged.has_ties else model
        is_fitted = hasattr(model, "log_worths_")
        found = Fitted(model if is_fitted else clone(model).fit(merged), merged, number)
    if described:
        warnings.warn(
            f"some items always won, always lost or were not compared ({described}). Their "
            "estimates are not finite without the penalty of the model, and their intervals are "
            "not reliable. Leave them out, or pass a model with a larger penalty (regularization)",
            stacklevel=3,
        )
    is_half = ties == "half" and bool(tied.any())
    tail = (1 - settings["level"]) / 2
    V, degrees, n_raters = _find_errors(found, given, one_sided, tail, is_half=is_half)
    fitted, C = found.model, len(found.model.items_)
    reach = stdtrit(degrees, (1 + settings["level"]) / 2) * np.sqrt(np.diag(V))
    effects = {
        name: Estimate(float(value), (float(value - reach[k]), float(value + reach[k])))
        for k, (name, value) in enumerate(zip(names, fitted.coef_, strict=True) if names else (), C)
    }
    return Leaderboard(
        items=fitted.items_,
        log_worths=fitted.log_worths_,
        covariance=V[:C, :C],
        degrees=degrees[:C],
        votes=votes,
        wins=wins,
        ties=tied,
        weight=weight,
        counted="vote" if are_votes(rankings) else "ranking",
        n_raters=n_raters,
        tie_parameter=getattr(fitted, "tie_parameters_", {}).get(2, 0.0),
        effects=effects,
        thin={},
        **settings,
    )


class Fitted(NamedTuple):
    """A model, what it was fitted to, and the number of each given ranking in that."""

    model: WorthModel | MatchModel
    rankings: Rankings
    number: NDArray[np.intp]


def _find_errors(
    fitted: Fitted, given: Given, one_sided: NDArray[np.bool_], tail: float, *, is_half: bool
) -> tuple[Floats, Floats, int]:
    """Return the covariance of the parameters, degrees of freedom, and the number of raters.

    If raters agree more than by chance, with less than the probability ``tail``, as copies of one
    rater do, the errors are those of the model.
    """
    weights, rater = given.rankings.weights, number_labels(given.rankings.raters)
    groups = [rater]
    if given.clusters is not None:
        second = number_labels(given.clusters)
        both = np.where((rater > 0) & (second > 0), rater * (second.max() + 1) + second, 0)
        groups = [rater, second, np.unique(np.append(0, both), return_inverse=True)[1][1:]]
    units = [find_units(each, weights, fitted.number) for each in groups]
    n_raters = units[0].n_raters if units[0].n_raters > 1 else 0
    _warn_of_raters(rater, n_raters)
    used = [each for each in units[:2] if each.n_raters] or units[:1]
    of_model = 2 * max(float(weights.sum()), 1.0)
    if not (is_half or used[0].n_raters) and used[0].weights_are_counts:
        V = fitted.model.covariance(fitted.rankings)
        return V, np.full(len(V), of_model), 0
    inverse, gradients = fitted.model.inverse_and_gradients(fitted.rankings)
    rows = fitted.rankings.weights
    found = [sum_squares(gradients, rows, each) for each in used]
    if all(each.probability < tail for each in found):
        if n_raters:
            warnings.warn(
                "the raters agree more than independent raters would by chance, like copies of "
                "one rater: the intervals hold for further votes of these raters, not of others",
                stacklevel=4,
            )
        return inverse, np.full(len(inverse), of_model), 0
    B, degrees, _ = found[0]
    if len(found) > 1:
        # What raters and clusters share is in both (Cameron, Gelbach and Miller 2011).
        B = B + found[1][0] - sum_squares(gradients, rows, units[2])[0]
        values, vectors = np.linalg.eigh(B)
        B = vectors * np.maximum(values, 0.0) @ vectors.T
        degrees = np.minimum(degrees, found[1].degrees)
    V = keep_least_errors(inverse @ B @ inverse, inverse, one_sided, degrees)
    return V, np.maximum(degrees, 1.0), n_raters


def choose_model(
    rankings: Rankings, model: WorthModel | None, ties: Ties | None, **settings: Any
) -> tuple[WorthModel, Ties]:
    """Return the model, and what a tie is in it."""
    if model is None:
        if ties is None and np.all(rankings.rows_with_ties & (rankings.n_listed == 2)):
            ties = "half"
        ties = ties or ("outcome" if rankings.has_ties else "ignore")
        model = (DavidsonLuce if ties == "outcome" else PlackettLuce)(**settings)
    elif not hasattr(require_model(model), "covariance"):
        raise RankshotError(
            f"{type(model).__name__} has no worths: use PlackettLuce or DavidsonLuce"
        )
    is_outcome = isinstance(model, DavidsonLuce)
    own: Ties = "outcome" if is_outcome else "ignore"
    if ties not in (None, own) and (is_outcome or ties == "outcome"):
        raise RankshotError(
            f"ties={ties!r} needs {'PlackettLuce' if is_outcome else 'DavidsonLuce'}, not "
            f"{type(model).__name__}: leave one of the two out"
        )
    is_vote = (rankings.n_listed == 2) & (rankings.is_subset | (rankings.n_items == 2))
    if ties == "half" and rankings.has_ties and not is_vote.all():
        raise RankshotError(
            "ties='half' needs votes between two items, but there are other rankings: use "
            "ties='outcome' or ties='ignore'"
        )
    return model, ties or own


def _count(rankings: Rankings) -> tuple[Floats, Floats, Floats]:
    """Return the votes of each item, and the wins and ties of each two."""
    top = ~rankings.is_subset
    everywhere = float(rankings.weights[top].sum())
    votes = item_weights(rankings[~top] if top.any() else rankings) + everywhere
    return votes, precedence(rankings), count_ties(rankings)


# ---- What a reader should know


def _warn_of_raters(rater: NDArray[np.int64], n_raters: int) -> None:
    n_anonymous = int((rater == 0).sum())
    if rater.size > 1 and rater.min() == rater.max() > 0:
        warnings.warn(
            "all rankings are by one rater: the intervals hold for further votes of this rater, "
            "not for other raters",
            stacklevel=5,
        )
    elif n_raters > 1 and n_anonymous:
        warnings.warn(
            f"{n_anonymous:,} of {rater.size:,} rankings have no rater: they are treated as "
            "those of other raters. If each is by a different person, give each its own rater",
            stacklevel=5,
        )


def _warn_of_names(items: tuple[str, ...]) -> None:
    """Warn of names that differ only in case, blanks or signs between words."""
    alike: dict[str, list[str]] = {}
    for item in items:
        alike.setdefault(" ".join(item.replace("_", " ").split()).casefold(), []).append(item)
    if several := [names for names in alike.values() if len(names) > 1]:
        text = "; ".join(" and ".join(map(repr, names)) for names in several[:3])
        warnings.warn(
            f"some names are nearly equal, but are treated as different items: {text}", stacklevel=3
        )


# ---- Categories


class Difference(NamedTuple):
    """The difference between an item's rating in one category and its mean over all categories.

    Attributes
    ----------
    category, item : str
    difference : float
        The rating in this category minus the mean over the categories, in log-worths or Elo points.
    standard_error : float
    p_value : float
        The p-value of the hypothesis of no difference, adjusted by Holm's method for all
        differences.

    Examples
    --------
    >>> import rankshot as rs
    >>> orders = [["a", "b"], ["b", "a"]]
    >>> votes = rs.Rankings.from_orders(
    ...     orders * 2, weights=[30, 10, 12, 28], targets=["lunch"] * 2 + ["dinner"] * 2)
    >>> found = rs.leaderboards.leaderboards(votes).differences()[0]
    >>> found.category, found.item, round(found.difference, 2), round(found.p_value, 3)
    ('dinner', 'a', -0.49, 0.001)
    """

    category: str
    item: str
    difference: float
    standard_error: float
    p_value: float


class Leaderboards(Mapping[str, Leaderboard]):
    """A mapping from categories to leaderboards, as returned by `leaderboards`.

    Parameters
    ----------
    boards : dict of Leaderboard

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders(
    ...     [["a", "b"], ["b", "a"]] * 2, targets=["lunch"] * 2 + ["dinner"] * 2)
    >>> list(rs.leaderboards.leaderboards(votes))
    ['dinner', 'lunch']
    """

    def __init__(self, boards: dict[str, Leaderboard]) -> None:
        self._boards = boards

    def __getitem__(self, category: str) -> Leaderboard:
        if category not in self._boards:
            hint = suggest_name(category, self._boards)
            raise RankshotError(f"no category {short_repr(category)}{hint}")
        return self._boards[category]

    def __iter__(self) -> Iterator[str]:
        return iter(self._boards)

    def __len__(self) -> int:
        return len(self._boards)

    def __repr__(self) -> str:
        return "\n".join(f"{name}: {board!r}" for name, board in self.items())

    def differences(self) -> list[Difference]:
        """Return the differences between categories, most significant first.

        Only items that all categories rank are compared, relative to their mean. Categories are
        treated as independent, which is conservative if the same raters voted in all of them.
        """
        boards = list(self._boards.values())
        common = sorted(set.intersection(*({*board.items} for board in boards)))
        if len(boards) < 2 or len(common) < 2:
            raise RankshotError("there are no two categories with two items in common to compare")
        at = [[board.items.index(item) for item in common] for board in boards]
        K, both = len(boards), list(zip(boards, at, strict=True))
        theta = np.array([board.log_worths[i] for board, i in both])
        theta -= theta.mean(axis=1, keepdims=True)
        covariances = (centre(board.covariance[np.ix_(i, i)]) for board, i in both)
        variances = np.array([np.diag(V) for V in covariances])
        gap = theta - theta.mean(axis=0)
        # Each category adds its part to the variance, and has its own degrees of freedom (Welch).
        own, others = variances * (1 - 1 / K) ** 2, variances / K**2
        variance = np.maximum(own + others.sum(axis=0) - others, np.finfo(float).tiny)
        error, degrees = np.sqrt(variance), np.array([board.degrees[i] for board, i in both])
        rates = own**2 / degrees + (others**2 / degrees).sum(axis=0) - others**2 / degrees
        p = 2 * stdtr(variance**2 / np.maximum(rates, np.finfo(float).tiny), -np.abs(gap / error))
        held, order = adjust_holm(p.ravel()), np.argsort(p, axis=None)
        gap, error = boards[0].unit * gap, boards[0].unit * error
        cells = [(name, item) for name in self._boards for item in common]
        rows = zip(cells, gap.ravel().tolist(), error.ravel().tolist(), held.tolist(), strict=True)
        found = [Difference(*cell, d, s, q) for cell, d, s, q in rows]
        return [found[i] for i in order]


def leaderboards(
    votes: object,
    model: WorthModel | None = None,
    *,
    category: str | None = None,
    covariates: Iterable[str] = (),
    cluster: Labels = None,
    **options: Any,
) -> Leaderboards:
    """Make a leaderboard for each category of votes, or for each target of rankings.

    Parameters
    ----------
    votes : Rankings, data frame, str or Path
        As for `leaderboard`.
    model : PlackettLuce, DavidsonLuce or another model with worths, optional
    category : str, optional
        The column of categories, in a table of votes; `Rankings` have them as targets.
    covariates, cluster
        As for `leaderboard`; each category has its own coefficients.
    **options
        Those of `leaderboard`.

    Returns
    -------
    Leaderboards

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_pairs(
    ...     ["a", "b"] * 30, ["b", "a"] * 30, targets=["lunch"] * 40 + ["dinner"] * 20)
    >>> boards = rs.leaderboards.leaderboards(votes)
    >>> list(boards), boards["lunch"].weight
    (['dinner', 'lunch'], 40.0)
    """
    columns = {name: options.pop(name) for name in TABLE_ARGUMENTS & {*options}}
    if category is not None:
        columns["category"] = category
    names = (covariates,) if isinstance(covariates, str) else tuple(covariates)
    given = read_given(votes, names, cluster, columns)
    if not given.rankings.target_names:
        raise RankshotError("the votes have no categories: name their column with category=")
    found = {}
    for name in given.rankings.target_names:
        part = given.select(given.rankings.targets == name)
        if part.rankings.is_subset.all():
            listed = np.unique(part.rankings.codes)
            items = tuple(part.rankings.items[i] for i in listed)
            part = part._replace(rankings=part.rankings.change_items(items))
        found[name] = leaderboard(part, model, covariates=names, **options)
    return Leaderboards(found)
