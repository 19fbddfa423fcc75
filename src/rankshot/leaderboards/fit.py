"""Leaderboards from votes and rankings: the choice of the model and of standard errors."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.special import stdtrit

from rankshot.core.errors import InputError, quote_names
from rankshot.core.estimators import clone
from rankshot.core.validation import require_choice, require_number
from rankshot.leaderboards.board import ELO_MEAN, Leaderboard
from rankshot.leaderboards.evidence import ScoreTests
from rankshot.leaderboards.pair_models import Fitted, fit_matches
from rankshot.leaderboards.rows import Estimate
from rankshot.leaderboards.votes import read_votes
from rankshot.ranking.consensus.precedence import precedence
from rankshot.ranking.construction import Labels, number_labels
from rankshot.ranking.matrices import count_ties
from rankshot.ranking.models.information import (
    find_covariance,
    find_one_sided,
)
from rankshot.ranking.models.plackett_luce import (
    Likelihood as LuceLikelihood,
    PlackettLuce,
)
from rankshot.ranking.models.robust_errors import (
    Units,
    centre,
    find_units,
    keep_least_errors,
    sum_squares,
)
from rankshot.ranking.rankings import Rankings, merge_copies, require_one_subject
from rankshot.ranking.votes import Votes

Floats = NDArray[np.float64]
Ties = Literal["outcome", "half", "ignore"]
Scale = Literal["log-worth", "elo"]
FEW_VOTES = 10
"""Items with fewer votes are listed separately, unless they have a tenth of the median."""


def leaderboard(
    votes: object,
    model: PlackettLuce | None = None,
    *,
    ties: Ties | None = None,
    covariates: str | Iterable[str] = (),
    cluster: Labels = None,
    category: str | bool | None = None,
    anchors: Mapping[str, float] | None = None,
    min_votes: float | None = None,
    scale: Scale = "log-worth",
    level: float = 0.95,
    looks: Literal["one", "many", "guided"] = "one",
    **columns: Any,
) -> Leaderboard:
    r"""Rank items by worth, with confidence intervals for ratings and ranks.

    Parameters
    ----------
    votes : Votes, Rankings, data frame, str or Path
        Rankings of any kind; or a table or a file, as accepted by `leaderboards.read_votes`.
    model : PlackettLuce, optional
        The model of the worths: its ``regularization`` is that of the fit. For votes, it is the
        model of Bradley and Terry.
    ties : {"outcome", "half", "ignore"}, optional
        How ties of two items are interpreted: as an outcome of their own, more likely between
        items of equal worth, as in Davidson's model; as half a win for each item, as in LLM
        leaderboards; or as an unknown order, which contains no information about the two items. By
        default, ties of votes are an outcome; if all votes are ties, they are half wins. Ties in
        longer rankings are always an unknown order.
    covariates, cluster
        As for `leaderboards.read_votes`. Standard errors take raters and clusters into account
        (two-way clusters).
    category : str or True, optional
        The column of categories, or True for the targets of rankings. The board of all votes then
        has a board for each category (`Leaderboard.categories`).
    anchors : dict, optional
        Known ratings of some items, such as ``{"gpt-4": 1000}`` or ``last_board.ratings``. All
        ratings are shifted so that the mean rating of these items matches; a single anchor has
        exactly its given rating. Differences and their errors do not change.
    min_votes : float, optional
        Items with fewer votes are listed separately. By default 10, or a tenth of the median if
        that is less.
    scale : {"log-worth", "elo"}
        The scale of ratings and their differences: log-worths, or Elo points with mean 1000.
    level : float
        The confidence level of the intervals.
    looks : {"one", "many", "guided"}
        For how many looks claims and intervals hold: for one, at a number of votes that was fixed
        beforehand; for many, while votes come in; or for many, while earlier votes guide which
        pairs are voted on next (`Leaderboard.next_pairs`). Each needs more votes than the last.
    **columns : str
        The columns of a table and how it is read, as for `leaderboards.read_votes`: ``a``, ``b``,
        ``winner``, ``loser``, ``rater``, ``weight``, ``count``, ``ignore`` and the like.

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

    Items that are far apart are compared by score tests, which hold for an item that never lost
    (`rankshot.leaderboards.evidence`). The rank interval of an item contains its true rank with at
    least the probability ``level``, however close the worths are (Mogstad et al. 2024, with the
    step-down of their section 4).

    References
    ----------
    Bell and McCaffrey (2002), Bias reduction in standard errors for linear regression with
    multi-stage samples. Survey Methodology 28. Cameron, Gelbach and Miller (2011), Robust inference
    with multiway clustering. Journal of Business & Economic Statistics 29. Davidson (1970), On
    extending the Bradley-Terry model to accommodate ties in paired comparison experiments. Journal
    of the American Statistical Association 65. Mogstad, Romano, Shaikh and Wilhelm (2024),
    Inference for ranks with applications to mobility across neighbourhoods and academic achievement
    across countries. Review of Economic Studies 91.

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
    require_choice("scale", scale, get_args(Scale))
    require_choice("looks", looks, ("one", "many", "guided"))
    if min_votes is not None:
        require_number("min_votes", min_votes, least=0)
    if ties is not None:
        require_choice("ties", ties, get_args(Ties))
    model = PlackettLuce() if model is None else model
    if not isinstance(model, PlackettLuce):
        raise InputError("model", type(model).__name__, "has no worths: use PlackettLuce")
    if isinstance(category, str):
        columns["category"] = category
    read = read_votes(votes, covariates=covariates, cluster=cluster, **columns)
    settings = {
        "level": level, "scale": scale, "looks": looks,
        "origin": ELO_MEAN if scale == "elo" else 0.0,
    }  # fmt: skip

    def make(part: Votes) -> Leaderboard:
        board = _fit(part, model, ties, min_votes, settings)
        return board if anchors is None else _anchor(board, anchors)

    if category is None:
        return make(read)
    if not read.categories:
        raise InputError("category", category, "needs votes with categories")
    whole = replace(read.rankings, targets=np.full(len(read), None, object))
    boards = {}
    for name in read.categories:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            boards[name] = make(read.of_category(name))
        for each in caught:
            warnings.warn(f"{name}: {each.message}", each.category, stacklevel=2)
    return replace(make(replace(read, rankings=whole)), categories=boards)


def _anchor(board: Leaderboard, anchors: Mapping[str, float]) -> Leaderboard:
    """Return the board with ratings that are, on average, those of the anchors."""
    known = {item: value for item, value in board.ratings.items() if item in anchors}
    if not known:
        raise InputError("anchors", quote_names(anchors), "names no item that is ranked")
    shift = sum(float(anchors[item]) - value for item, value in known.items()) / len(known)
    return replace(board, origin=board.origin + shift)


# ---- The fit


def _fit(
    votes: Votes,
    model: PlackettLuce,
    ties: Ties | None,
    least: float | None,
    settings: dict[str, Any],
) -> Leaderboard:
    """The leaderboard of the items with at least ``least`` votes, best first."""
    weight = float(require_one_subject(votes.rankings).weights.sum())
    if not np.all(votes.rankings.weights > 0):
        votes = votes.select(votes.rankings.weights > 0)
    ties = choose_ties(votes, ties)
    # Rankings of several targets are warned of once.
    nothing = np.full(len(votes), None, object)
    votes = replace(votes, rankings=replace(votes.rankings, targets=nothing))
    wins, tied = precedence(votes.rankings), count_ties(votes.rankings)
    # A top-K ranking compares all items.
    top = ~votes.rankings.is_subset
    weights = votes.rankings.weights
    of_subsets = np.where(top, 0.0, weights)[votes.rankings.entry_rows]
    counts = np.bincount(votes.rankings.codes, of_subsets, len(wins)) + weights[top].sum()
    # Without a cycle of wins, nothing limits the tie parameter: a tie is no sign of equal worths.
    n_groups, _ = connected_components(csr_array(wins), connection="strong")
    limits = ties != "outcome" or n_groups < len(wins)
    before = wins + tied if limits and ties != "ignore" else wins
    one_sided, sides, described = find_one_sided(before, votes.rankings.items)
    has_order = ~votes.rankings.rows_with_ties
    if votes.are_pairs and ties == "ignore" and has_order.any():
        votes = votes.select(has_order)
    items, w = votes.rankings.items, votes.rankings.weights
    rows, number, found = _fit_model(votes, model, ties)
    told: list[str] = []
    if described := "; ".join(filter(None, (described, found.endless))):
        told.append(
            f"some items always won, always lost or were not compared ({described}). Their ratings "
            "are not finite without the penalty of the model; which items are better and their "
            "ranks hold"
        )
    is_half = ties == "half" and bool(tied.any())
    tail = (1 - settings["level"]) / 2
    inverse = find_covariance(
        found.likelihood, found.parameters, found.ridge, (*items, *votes.names)
    )
    V, degrees, n_raters, units = _find_errors(
        found, votes, rows.weights, number, inverse, one_sided, tail, told, is_half=is_half
    )
    for text in told:
        warnings.warn(text, stacklevel=4)
    V = V * np.outer(found.unit, found.unit)
    C, values = len(items), found.unit * found.parameters
    # A weight that is a whole number counts votes.
    step = 1.0 if np.all(w % 1 == 0) else float(w @ w / w.sum())
    tests = ScoreTests(found.likelihood, found.parameters, found.ridge, units, step, inverse)
    reach = stdtrit(degrees, (1 + settings["level"]) / 2) * np.sqrt(np.diag(V))
    effects = {
        name: Estimate(float(value), (float(value - reach[k]), float(value + reach[k])))
        for k, (name, value) in enumerate(zip(votes.names, values[C:], strict=False), C)
    }
    if least is None:
        least = min(FEW_VOTES, float(np.median(counts[counts > 0])) / 10)
    kept = np.flatnonzero(counts >= least)
    if not kept.size:
        raise InputError("min_votes", least, f"is more than the {counts.max():g} votes of any item")
    theta = values[:C] - values[kept].mean()
    at = kept[np.lexsort(([items[i] for i in kept], -theta[kept]))]
    square = np.ix_(at, at)
    thin = (i for i in np.argsort(-counts, kind="stable") if counts[i] < least)
    return Leaderboard(
        items=tuple(items[i] for i in at),
        log_worths=theta[at],
        covariance=centre(V[square]),
        degrees=degrees[at],
        votes=counts[at],
        wins=wins[square],
        ties=tied[square],
        weight=weight,
        counted="vote" if votes.are_pairs else "ranking",
        n_raters=n_raters,
        tie_parameter=float(np.exp(values[-1])) if values.size > C + len(votes.names) else 0.0,
        effects=effects,
        thin={items[i]: float(counts[i]) for i in thin},
        tests=tests,
        places=at,
        one_sided=sides[at],
        warnings=tuple(told),
        categories={},
        source=votes,
        **settings,
    )


def _fit_model(
    votes: Votes, model: PlackettLuce, ties: Ties
) -> tuple[Rankings, NDArray[np.intp], Fitted]:
    """Fit worths to the different rankings, with the number of each vote among these."""
    rows, number = merge_copies(votes.rankings)
    if not votes.are_pairs:
        fitted = clone(model).fit(rows)
        ridge, unit = np.full(rows.n_items, model.regularization), np.ones(rows.n_items)
        return rows, number, Fitted(LuceLikelihood(rows), fitted.log_worths_, ridge, unit, "")
    X = np.empty((len(rows), 0))
    if votes.names:
        rows, number, X = votes.rankings, np.arange(len(votes)), votes.covariates
    has_ties = ties == "outcome" and rows.has_ties
    fit = fit_matches(rows, X, votes.names, has_ties=has_ties, penalty=model.regularization)
    return rows, number, fit


def _find_errors(
    fitted: Fitted,
    votes: Votes,
    rows: Floats,
    number: NDArray[np.intp],
    inverse: Floats,
    one_sided: NDArray[np.bool_],
    tail: float,
    told: list[str],
    *,
    is_half: bool,
) -> tuple[Floats, Floats, int, tuple[Units, ...]]:
    """Return the covariance of the parameters, degrees of freedom, the number of raters, units.

    ``rows`` are the weights of the different rankings, ``number`` that of each vote among them, and
    ``inverse`` is the covariance if votes are independent. It is returned if so much agreement of
    raters has a probability below ``tail`` by chance, as that of copies of one rater.
    """
    weights, rater = votes.rankings.weights, number_labels(votes.rankings.raters)
    groups = [rater]
    if votes.clusters is not None:
        second = number_labels(votes.clusters)
        both = np.where((rater > 0) & (second > 0), rater * (second.max() + 1) + second, 0)
        groups = [rater, second, np.unique(np.append(0, both), return_inverse=True)[1][1:]]
    units = [find_units(each, weights, number) for each in groups]
    n_raters = units[0].n_raters if units[0].n_raters > 1 else 0
    if rater.size > 1 and rater.min() == rater.max() > 0:
        told.append(
            "all rankings are by one rater: the intervals hold for further votes of this rater, "
            "not for other raters"
        )
    if n_raters and (n_anonymous := int((rater == 0).sum())):
        told.append(
            f"{n_anonymous:,} of {rater.size:,} rankings have no rater: they are treated as "
            "those of other raters. If each is by a different person, give each its own rater"
        )
    used = [each for each in units[:2] if each.n_raters] or units[:1]
    of_model = np.full(fitted.unit.size, 2 * max(float(weights.sum()), 1.0))
    if not (is_half or used[0].n_raters) and used[0].weights_are_counts:
        return inverse, of_model, 0, ()
    gradients = fitted.likelihood.row_gradients(fitted.parameters)
    found = [sum_squares(gradients, rows, each) for each in used]
    if all(each.probability < tail for each in found):
        if n_raters:
            told.append(
                "the raters agree more than independent raters would by chance, like copies of "
                "one rater: the intervals hold for further votes of these raters, not of others"
            )
        return inverse, of_model, 0, ()
    B, degrees, _ = found[0]
    if len(found) > 1:
        # What raters and clusters share is in both (Cameron, Gelbach and Miller 2011).
        B = B + found[1][0] - sum_squares(gradients, rows, units[2])[0]
        values, vectors = np.linalg.eigh(B)
        B = vectors * np.maximum(values, 0.0) @ vectors.T
        degrees = np.minimum(degrees, found[1].degrees)
        used.append(units[2])
    V = keep_least_errors(inverse @ B @ inverse, inverse, one_sided, degrees)
    return V, np.maximum(degrees, 1.0), n_raters, tuple(used)


def choose_ties(votes: Votes, ties: Ties | None) -> Ties:
    """Return what a tie is."""
    tied = votes.rankings.rows_with_ties
    if not votes.are_pairs:
        if ties in ("outcome", "half") and tied.any():
            raise InputError("ties", ties, "needs votes between two items, but there are others")
        return "ignore"
    if ties == "outcome" and tied.all():
        raise InputError("ties", ties, "needs votes that are not ties", hint="use half")
    return ties or ("half" if tied.all() else "outcome" if tied.any() else "ignore")
