"""`JointHead`: what is deployed to predict seen and new classes together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.core.arrays import Array, Constants
from rankshot.core.errors import InputError
from rankshot.core.validation import require_number
from rankshot.zeroshot.class_means import LinearMap
from rankshot.zeroshot.formula import Formula, joint_logits, joint_terms
from rankshot.zeroshot.head_files import HeadFile, read_head_file
from rankshot.zeroshot.linear_head import Head, LinearHead, as_finite
from rankshot.zeroshot.scores import Kind, Scores
from rankshot.zeroshot.together import SEEN_TEMPERATURE, Decision, Together

Doubles = NDArray[np.float64]
NONE_OF_THESE = "none of these"
"""The name of the class of inputs that are of no seen and of no new class."""
ONE_VS_REST_TEMPERATURE = 0.75
"""The temperature of one-vs-rest scores; other kinds have `SEEN_TEMPERATURE`. The best ones on
held-out inputs are .74 to 1.01 for least squares, .38 to .60 for logistic regression, and .36 to
.38 for one-vs-one machines."""


@dataclass(frozen=True, eq=False, repr=False)
class JointHead(Head):
    r"""A fitted head over seen and new classes: what `SeenAndNew` and `Knowledge` fit.

    The log-odds of a new class z against the first guess p of the classifier are

    .. math:: g_z(x) = N_z(x) - S_p(x) - r_z \left[
              \tfrac12 \log \sum_w e^{\ell_w(x)} - \log \sum_i e^{f_i(x) / 0.45} \right]

    where N, S and ℓ are linear functions of the input, and f its standardised scores (see
    `rankshot.zeroshot.together`). A new class is predicted if the largest g exceeds its threshold.

    Like a `LinearHead`, it runs on NumPy, torch, CuPy and JAX arrays, is a torch module
    (`to_torch`) and an ONNX graph (`export_onnx`).

    Parameters
    ----------
    new : LinearHead
        The head over the new classes alone. It says what the columns of an input are.
    slopes, rank_slopes, offsets : arrays of shape (2L, columns), (2L, C) and (2L,)
        N of the new classes, and then ℓ; the columns are scores and features.
    first_slopes, first_offsets : arrays of shape (C, groups, columns) and (C, groups)
        S of each seen class as the first guess, for each group of new classes. With ``misfit``,
        the last group has the values that ℓ are compared with.
    groups : array of shape (groups, L)
        1 for the group of each new class, otherwise 0.
    ranking_shares, thresholds : arrays of shape (L,)
        r, and the threshold of each new class.
    misfit : float, optional
        The threshold of inputs of none of the classes, if these may be predicted.
    seen_temperature : float, optional
        The temperature of the seen classes. By default .75 for one-vs-rest scores, and .45 for
        others.
    predicts_seen : bool
        Whether seen classes may be predicted. Otherwise, "none of these" takes their place.
    new_by_head : bool
        Whether ``new`` chooses among the new classes; otherwise, their log-odds do.

    Attributes
    ----------
    classes_ : ndarray of str
        The seen and the new classes, and "none of these" if it may be predicted, sorted.
    is_seen : ndarray of bool
        Which of ``classes_`` are seen classes.
    about : mapping
        How the head came about. ``about["budget"]`` has the threshold, the loss that the folds of
        the reference show, and the number of inputs that this rests on.

    Examples
    --------
    >>> import rankshot as rs
    >>> known = rs.Knowledge({"cat": ["leopard"], "truck": ["bus", "tram"]},
    ...                      batch=rs.Scores([[4.0, 0.5, 0.0]], ["bus", "leopard", "tram"]))
    >>> head = known.fit(rs.zeroshot.Settings(classes="all"))
    >>> head
    JointHead: 2 new and 3 seen classes
    >>> head.predict([[4.0, 0.5, 0.0], [3.0, 0.0, 2.8]])
    array(['bus', 'truck'], dtype='<U7')
    """

    new: LinearHead
    slopes: Doubles
    rank_slopes: Doubles
    offsets: Doubles
    first_slopes: Doubles
    first_offsets: Doubles
    groups: Doubles
    ranking_shares: Doubles
    thresholds: Doubles
    misfit: float | None = None
    seen_temperature: float | None = None
    predicts_seen: bool = True
    new_by_head: bool = False
    is_seen: NDArray[np.bool_] = field(init=False)
    _columns: NDArray[np.intp] = field(init=False)

    def __post_init__(self) -> None:
        """Check everything: what a fit cannot make, a file cannot hold."""
        new = self.new
        (L, C), d, k = (len(new.classes), len(new.seen)), new.n_features, len(self.groups)
        shapes = {
            "slopes": (2 * L, C + d),
            "rank_slopes": (2 * L, C),
            "offsets": (2 * L,),
            "first_slopes": (C, k, C + d),
            "first_offsets": (C, k),
            "groups": (k, L),
            "ranking_shares": (L,),
            "thresholds": (L,),
        }
        arrays = {name: as_finite(name, getattr(self, name), x) for name, x in shapes.items()}
        if self.seen_temperature is not None:
            require_number("seen_temperature", self.seen_temperature, above=0, below=np.inf)
        seen, none = list(new.seen), [NONE_OF_THESE]
        # Without seen classes, "none of these" is in the place of their group.
        first, last = (seen, none * (self.misfit is not None)) if self.predicts_seen else (none, [])
        names = np.array([*first, *new.classes, *last])
        distinct, times = np.unique(names, return_counts=True)
        if (times > 1).any():
            name, hint = str(distinct[times > 1][0]), "fit the head to rankings of new classes only"
            raise InputError("rankings", name, "would be both seen and new", hint=hint)
        columns = np.argsort(names, kind="stable")
        self.__dict__.update(arrays, _columns=columns, _converted={})
        self.__dict__.update(
            classes_=names[columns],
            is_seen=(columns < C) & self.predicts_seen,
            seen=new.seen,
            evidence=new.evidence,
            n_features=d,
            kind=new.kind,
            about=new.about,
        )

    def __repr__(self) -> str:
        new, seen = len(self.new.classes), len(self.seen)
        return f"JointHead: {new} new and {seen} seen classes"

    @classmethod
    def from_decision(cls, new: LinearHead, together: Together, **options: Any) -> JointHead:
        """The head over ``new`` classes and seen ones, which decides as ``together``.

        ``options`` are further parameters of the head.
        """
        decisions, members = zip(*together.parts, strict=True)
        one, d = decisions[0], new.n_features
        own = LinearMap(*(np.concatenate(x) for x in zip(one.new, one.by_rankings, strict=True)))
        shares = np.empty(len(new.classes))
        for decision, has in together.parts:
            rows = np.flatnonzero(has)
            for part, array in zip(own, decision.new, strict=True):
                part[rows] = array[rows]
            shares[rows] = decision.ranking_share
        first = [_first_guess(decision) for decision in decisions]
        if options.get("misfit") is not None:
            first, members = [*first, one.own], (*members, np.zeros(len(shares)))
        return cls(
            new,
            _join_columns(own, d),
            own.rank_slopes,
            own.offsets,
            np.stack([_join_columns(one, d) for one in first], axis=1),
            np.stack([one.offsets for one in first], axis=1),
            np.array(members, float),
            shares,
            together.thresholds,
            **options,
        )

    # ---- The formula

    file_type: ClassVar[str] = "joint"
    logits: ClassVar[Formula] = staticmethod(joint_logits)

    def constants(self, kind: Kind | None = None) -> Constants:
        """The arrays of the formula by name, for scores of this ``kind``."""
        new, C = self.new, len(self.seen)
        none = np.zeros((len(self.slopes), len(self.evidence)))
        rows = [(np.hstack([self.slopes, none]), self.rank_slopes, self.offsets)]
        if self.new_by_head:
            ranks = new.rank_slopes if new.rank_slopes.size else np.zeros((len(new.classes), C))
            rows.append((new.slopes, ranks, new.offsets))
        stacked = new.stack_constants(*map(np.concatenate, zip(*rows, strict=True)))
        temperature = self.seen_temperature or default_temperature(kind)
        return stacked | {
            "first_slopes": self.first_slopes,
            "first_offsets": self.first_offsets,
            "groups": self.groups,
            "ranking_shares": self.ranking_shares,
            # A budget may allow no new class, or all: then thresholds have no digits to spare.
            "threshold": self.thresholds.min(),
            "further": self.thresholds - self.thresholds.min(),
            # The first by name has the largest number.
            "priority": np.argsort(np.argsort(self.seen)[::-1]) + 1.0,
            "sharpness": np.array(1 / SEEN_TEMPERATURE),
            "seen_temperature": np.array([temperature] * self.predicts_seen),
            "misfit": np.array([] if self.misfit is None else [self.misfit]),
            "columns": self._columns,
        }

    def decision_terms(self, scores: Scores | ArrayLike) -> Doubles:
        """The log-odds of the best new class against the first guess, and less the threshold.

        There is one row for each row of ``scores``.
        """

        def excess(*inputs: Any) -> Array:
            return joint_terms(*inputs)[1]

        found = self._apply(excess, scores, len(self.new.classes))
        least = self.thresholds[found.argmax(axis=1)]
        more = least - self.thresholds.min()
        return np.column_stack([found.max(axis=1) + more, -least])

    # ---- Other values that follow from it

    def rename_seen(self, names: Mapping[str, str]) -> Self:
        """The same head with other ``names`` of some seen classes."""
        return replace(self, new=self.new.rename_seen(names))

    # ---- Files

    def to_file(self) -> HeadFile:
        """The content of a file."""
        file, new = super().to_file(), self.new.to_file()
        arrays = {f"new_{name}": array for name, array in new.arrays.items()}
        return file._replace(
            values={**file.values, "new": new.values}, arrays={**file.arrays, **arrays}
        )


def default_temperature(kind: Kind | None) -> float:
    """The temperature of the standardised scores of seen classes, if no label tells it."""
    return ONE_VS_REST_TEMPERATURE if kind == "one-vs-rest" else SEEN_TEMPERATURE


def _first_guess(decision: Decision) -> LinearMap:
    """S of each seen class: all that depends on the first guess, as a linear function."""
    C, share = len(decision.own.offsets), decision.ranking_share
    total = decision.seen.plus(decision.own, np.full(C, share / 2))
    return total._replace(slopes=total.slopes + share / SEEN_TEMPERATURE * np.eye(C))


def _join_columns(part: LinearMap, n_features: int) -> Doubles:
    """The slopes of scores and of this number of features; zeros if there are none."""
    none = np.zeros((len(part.offsets), n_features - part.feature_slopes.shape[1]))
    return np.hstack([part.slopes, part.feature_slopes, none])


def take_features(head: LinearHead, usual: Doubles) -> LinearHead:
    """The same head for inputs with features, which it does not use unless it has learned them."""
    if head.n_features or not usual.size:
        return head
    scores, others = np.hsplit(head.slopes, [len(head.seen)])
    slopes = np.hstack([scores, np.zeros((len(scores), usual.size)), others])
    return replace(head, slopes=slopes, usual_features=usual)


# ---- Files


def load_head(path: str | Path) -> LinearHead | JointHead:
    """Read a fitted head that its method ``save``, or the command, wrote.

    It gives the same predictions and explanations as the saved head, and can be saved again.
    ``about`` describes how it was made. What a fit cannot make is refused.

    Parameters
    ----------
    path : str or Path
        The file to read (.rankshot).

    Examples
    --------
    >>> import tempfile
    >>> import rankshot as rs
    >>> rankings = rs.Rankings.from_orders(
    ...     [["leopard", "tiger"], ["bus"]], items=["bus", "leopard", "tiger"],
    ...     targets=["cat", "truck"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rs.WeightedMean().fit(rankings).save(folder + "/new-classes.rankshot")
    ...     head = rs.load_head(folder + "/new-classes.rankshot")
    >>> head, head.classes_.tolist()
    (LinearHead: 2 classes from the scores of 3, ['cat', 'truck'])
    """
    return read_head_file(Path(path), _make_head)


def _make_head(file: HeadFile) -> LinearHead | JointHead:
    content: dict[str, Any] = {**file.values, **file.arrays}
    if file.type == "linear":
        return LinearHead(**content, about=file.about)
    inner = {name[4:]: content.pop(name) for name in file.arrays if name.startswith("new_")}
    return JointHead(LinearHead(**content.pop("new"), **inner, about=file.about), **content)
