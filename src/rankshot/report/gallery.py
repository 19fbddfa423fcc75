"""The gallery: which inputs are shown with their pictures, and what is said of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError
from rankshot.report.pictures import Picture
from rankshot.report.texts import format_percent
from rankshot.zeroshot.explanation import Explanation

MAX_PICTURES = 60
FIRST_PICTURES = 20
"""Pictures that are not folded."""
N_SPEAKERS = 3
"""Seen classes that are named with each prediction."""
Labels = NDArray[np.str_]
Rows = NDArray[np.intp]


# ---- Values


class ShownInput(NamedTuple):
    """An input with its picture, what was predicted for it, and why.

    Attributes
    ----------
    name : str
        The input, for example its id.
    picture : Picture
    label : str
        The predicted class.
    probability : float
        Of the predicted class.
    truth : str, optional
        The true class, if it is known.
    speakers : tuple of str
        The seen classes that speak most for the predicted class.

    Examples
    --------
    >>> import numpy as np
    >>> from rankshot.report import Picture, ShownInput
    >>> picture = Picture.from_pixels(np.full((32, 32, 3), 200, np.uint8))
    >>> shown = ShownInput("image 23", picture, "cat", 0.345, truth="dog", speakers=("lynx",))
    >>> shown.label == shown.truth
    False
    """

    name: str
    picture: Picture
    label: str
    probability: float
    truth: str | None = None
    speakers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Gallery:
    """Inputs with pictures, and sentences that say how they were chosen.

    Attributes
    ----------
    inputs : tuple of ShownInput
        What is shown.
    choice : str
        How they were chosen; see `describe_choice`.

    Examples
    --------
    >>> import numpy as np
    >>> from rankshot.report import Gallery, Picture, ShownInput
    >>> picture = Picture.from_pixels(np.full((32, 32, 3), 200, np.uint8))
    >>> gallery = Gallery((ShownInput("image 23", picture, "cat", 0.345),), "One at random.")
    >>> gallery.inputs[0].label, gallery.choice
    ('cat', 'One at random.')
    """

    inputs: tuple[ShownInput, ...]
    choice: str = ""

    def __post_init__(self) -> None:
        for one in self.inputs:
            if not 0 <= one.probability <= 1:
                raise RankshotError(
                    f"input {one.name!r}: {one.probability} is not a probability from 0 to 1"
                )


class Answers(NamedTuple):
    """The predictions of all n inputs, and the true classes if they are known.

    Attributes
    ----------
    predicted : ndarray of str, shape (n,)
        The predicted classes.
    proba : ndarray of shape (n, L)
        The probabilities of all classes.
    truth : ndarray of str or None
        The true classes, if they are known.
    classes : sequence of str
        The L classes, in the order of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from rankshot.report import Answers
    >>> proba = np.array([[0.6, 0.4], [0.9, 0.1], [0.3, 0.7]])
    >>> answers = Answers(
    ...     predicted=np.array(["cat", "cat", "dog"]), proba=proba,
    ...     truth=np.array(["cat", "dog", "dog"]), classes=["cat", "dog"])
    >>> answers.probability([0, 2])
    array([0.6, 0.7])
    """

    predicted: Labels
    proba: NDArray[np.floating]
    truth: Labels | None
    classes: Sequence[str]

    def probability(self, rows: Sequence[int] | Rows) -> NDArray[np.floating]:
        """Return the probabilities of the predicted classes of some inputs."""
        place = {name: j for j, name in enumerate(self.classes)}
        columns = [place[str(label)] for label in self.predicted[rows]]
        # Single precision can give a little more than 1.
        return np.asarray(np.clip(self.proba[rows, columns], 0, 1))


# ---- Choice


def choose_pictures(answers: Answers, candidates: Rows) -> list[int]:
    """Return the rows to show: of each class as many right as wrong predictions, surest first.

    If the truth is not known, it is the most and the least probable predictions of each class.
    One of both kinds for each class comes first, then the next of both kinds for each class.

    Parameters
    ----------
    answers : Answers
    candidates : ndarray of int
        The rows that may be chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from rankshot.report import Answers, choose_pictures
    >>> proba = np.array([[0.6, 0.4], [0.9, 0.1], [0.3, 0.7], [0.2, 0.8], [0.5, 0.5]])
    >>> predicted = np.array(["cat", "cat", "dog", "dog", "cat"])
    >>> truth = np.array(["cat", "cat", "cat", "dog", "dog"])
    >>> choose_pictures(Answers(predicted, proba, truth, ["cat", "dog"]), np.arange(5))
    [1, 2, 3, 4, 0]
    """
    surest = candidates[np.argsort(-answers.probability(candidates), kind="stable")]
    given = answers.predicted[surest]
    truth = None if answers.truth is None else answers.truth[surest]
    shown, each = _plan(len(answers.classes))
    piles: list[Rows] = []
    for name in (answers.classes[place] for place in shown):
        if truth is None:
            theirs = surest[given == name]
            half = (len(theirs) + 1) // 2
            piles += [theirs[:half], theirs[half:][::-1]]
        else:
            own, right = truth == name, given == name
            piles += [surest[own & right], surest[own & ~right]]
    return [int(pile[i]) for i in range(each) for pile in piles if i < len(pile)]


def _plan(n_classes: int) -> tuple[list[int], int]:
    """Return the places of the classes to show, and the number of inputs of each kind."""
    n_shown = min(n_classes, MAX_PICTURES // 2)
    places = np.linspace(0, n_classes - 1, n_shown).round().astype(int)
    return places.tolist(), MAX_PICTURES // (2 * n_shown)


def describe_choice(answers: Answers, rows: Sequence[int], n_candidates: int) -> str:
    """Return how `choose_pictures` chose rows, and what share of all inputs they are.

    Parameters
    ----------
    answers : Answers
    rows : sequence of int
        The rows that were chosen.
    n_candidates : int
        How many could have been chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from rankshot.report import Answers, choose_pictures, describe_choice
    >>> proba = np.array([[0.6, 0.4], [0.9, 0.1], [0.3, 0.7]])
    >>> answers = Answers(
    ...     predicted=np.array(["cat", "cat", "dog"]), proba=proba,
    ...     truth=np.array(["cat", "dog", "dog"]), classes=["cat", "dog"])
    >>> rows = choose_pictures(answers, np.arange(3))[:2]
    >>> describe_choice(answers, rows, n_candidates=3).partition(":")[0]
    '2 of 3 inputs are shown, 66.7%'
    """
    n, n_classes = len(answers.predicted), len(answers.classes)
    shown, each = _plan(n_classes)
    kind = "predicted class" if answers.truth is None else "true class"
    if len(shown) < n_classes:
        kind = f"of {len(shown)} of the {n_classes:,} {kind}es"
    many = f"{each} " if each > 1 else ""
    source = "" if n_candidates == n else f" (of {n_candidates:,} that could be shown)"
    text = (
        f"{len(rows):,} of {n:,} inputs are shown, {format_percent(len(rows) / n)}{source}: for "
        f"each {kind}, "
    )
    if answers.truth is None:
        return (
            f"{text}the {many}most probable and the {many}least probable predictions, as far as "
            "there are any."
        )
    wrong = answers.predicted != answers.truth
    return (
        f"{text}the {many}right and the {many}wrong predictions with the highest probability, as "
        "far as there are any. The pictures do not show how often predictions are wrong: "
        f"{format_percent(wrong.mean(), 0)} of all inputs, but "
        f"{format_percent(wrong[list(rows)].mean(), 0)} of those shown."
    )


def find_speakers(why: Explanation) -> tuple[str, ...]:
    """Return the seen classes that speak most for the explained class, the strongest first.

    Where rankings are known, only classes in the rankings of the explained class count: others
    speak for it only by their low scores.
    """
    listed = set(why.listed)
    speaking = [
        (-value, name) for name, value in why.items if value > 0 and (name in listed or not listed)
    ]
    return tuple(name for _, name in sorted(speaking)[:N_SPEAKERS])


def build_gallery(
    answers: Answers,
    names: Sequence[str] | NDArray[np.object_],
    pictures: Mapping[int, Picture],
    explanations: Mapping[int, Explanation],
    choice: str,
) -> Gallery:
    """Return the gallery of some inputs.

    Parameters
    ----------
    answers : Answers
    names : sequence of str, shape (n,)
        The names of all inputs.
    pictures : mapping of int to Picture
        The pictures of the inputs to show, by their rows.
    explanations : mapping of int to Explanation
        Why they got their classes, by their rows, as far as it is known.
    choice : str
        How they were chosen; see `describe_choice`.

    Examples
    --------
    >>> import numpy as np
    >>> from rankshot.report import Answers, Picture, build_gallery
    >>> proba = np.array([[0.6, 0.4], [0.9, 0.1], [0.3, 0.7]])
    >>> answers = Answers(
    ...     predicted=np.array(["cat", "cat", "dog"]), proba=proba,
    ...     truth=np.array(["cat", "dog", "dog"]), classes=["cat", "dog"])
    >>> picture = Picture.from_pixels(np.full((32, 32, 3), 200, np.uint8))
    >>> gallery = build_gallery(answers, ["a", "b", "c"], {1: picture}, {}, "The surest one.")
    >>> [(shown.name, shown.label, shown.truth) for shown in gallery.inputs]
    [('b', 'cat', 'dog')]
    """
    rows = list(pictures)
    shown = zip(rows, answers.probability(rows).tolist(), strict=True)
    return Gallery(
        tuple(
            ShownInput(
                str(names[row]),
                pictures[row],
                str(answers.predicted[row]),
                probability,
                None if answers.truth is None else str(answers.truth[row]),
                find_speakers(explanations[row]) if row in explanations else (),
            )
            for row, probability in shown
        ),
        choice,
    )


# ---- Section


def format_gallery(gallery: Gallery) -> dict[str, Any]:
    """Return the cards of the inputs: the first ones, and those that are folded."""
    cards = [
        one._asdict()
        | {
            "probability": format_percent(one.probability),
            "right": None if one.truth is None else one.truth == one.label,
        }
        for one in gallery.inputs
    ]
    return {
        "first": cards[:FIRST_PICTURES],
        "others": cards[FIRST_PICTURES:],
        "choice": gallery.choice,
        "explained": any(one.speakers for one in gallery.inputs),
    }
