"""Which questions a participant gets: always those that have the fewest answers so far."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from random import Random
from typing import NamedTuple


class Turn(NamedTuple):
    """One question in the sequence that a participant goes through."""

    question: str
    repeat: bool


def allot(
    loads: Mapping[str, int], planned: int, n: int, seen: Collection[str], rng: Random
) -> list[str]:
    """Choose questions for one participant.

    Parameters
    ----------
    loads : mapping
        For each question, by its key, the answers given and under way.
    planned : int
        A question that has so many is not given out any more.
    n : int
        How many are wanted; fewer are returned where no more are left.
    seen : collection of str
        Questions that this participant has had.
    rng : Random
        Chooses among equals.

    Notes
    -----
    Taking the n smallest loads, each once, keeps all loads within one of each other: if they
    were m or m + 1 before, the m's are filled first, and no m + 1 is taken while an m is left.

    Examples
    --------
    >>> allot({"cat": 2, "dog": 1, "cow": 3}, planned=3, n=2, seen=[], rng=Random(0))
    ['dog', 'cat']
    """
    open_ones = [key for key, load in loads.items() if load < planned and key not in seen]
    rng.shuffle(open_ones)
    return sorted(open_ones, key=loads.__getitem__)[:n]


def sequence(
    questions: Sequence[str], gold: Sequence[str], repeats: int, rng: Random
) -> list[Turn]:
    """Return the order in which a participant meets questions, gold ones and repeats.

    Gold questions stand anywhere. Repeats come last and repeat the earliest questions, at most
    half of them, so that there is always something in between.
    """
    turns = [Turn(key, repeat=False) for key in (*questions, *gold)]
    rng.shuffle(turns)
    asked = set(questions)
    early = [turn.question for turn in turns if turn.question in asked]
    early = early[: min(repeats, len(early) // 2)]
    return turns + [Turn(key, repeat=True) for key in early]


def shuffled(items: Sequence[str], rng: Random) -> list[str]:
    """Return the items in a random order: nothing that people see is pre-ranked."""
    return rng.sample(items, len(items))
