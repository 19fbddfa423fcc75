"""Prompts to paste into a chat window, for whoever has no endpoint of a language model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import Any

from rankshot.core.errors import RankshotError
from rankshot.core.validation import as_names, require_whole_number, shuffle_names
from rankshot.sources.questions import (
    Question,
    as_json,
    choose_length,
    estimate_tokens,
    make_question,
)

MAX_TOKENS = 8000
"""Tokens of a prompt and its answer together. A thousand class names fit, and an answer stays short
enough for a model to complete it."""


def make_prompts(
    targets: Iterable[Any],
    items: Iterable[Any],
    *,
    question: str = "images",
    inputs: str | None = None,
    k: int | None = None,
    raters: int = 4,
    seed: int = 0,
    max_tokens: int = MAX_TOKENS,
) -> dict[str, str]:
    r"""Return prompts that ask for the lists of all targets, by the names of their files.

    Each rater has the items and the targets in another order. If a prompt with all targets would
    be too long, they are divided: ``rater-1.part-1.txt`` and ``rater-1.part-2.txt`` are two prompts
    of one rater. `read_answer_files` reads answers that are saved under the same names.

    Parameters
    ----------
    targets, items : iterables of names
        The names to rank for, and the names to be ranked.
    question, inputs, k
        As for `LanguageModel`.
    raters : int
        The number of prompts, or of groups of prompts.
    seed : int
        The seed of the shuffles.
    max_tokens : int
        The most tokens of a prompt and its answer together, as far as they can be estimated.

    Examples
    --------
    >>> from rankshot.sources import make_prompts
    >>> prompts = make_prompts(["cat", "truck"], ["tiger", "bus", "whale"], raters=2)
    >>> list(prompts)
    ['rater-1.txt', 'rater-2.txt']
    >>> print(prompts["rater-2.txt"].split("\n\n")[2])
    Answer this question for each of these new classes: ["truck", "cat"]
    """
    names = as_names(targets, "targets")
    count = require_whole_number("raters", raters)
    return make_follow_ups(
        {f"rater-{number}": names for number in range(1, count + 1)},
        items,
        question=question,
        inputs=inputs,
        k=k,
        seed=seed,
        max_tokens=max_tokens,
    )


def make_follow_ups(
    unanswered: Mapping[str, Sequence[str]],
    items: Iterable[Any],
    *,
    question: str = "images",
    inputs: str | None = None,
    k: int | None = None,
    seed: int = 0,
    max_tokens: int | None = None,
) -> dict[str, str]:
    """Return prompts that ask again for the targets without an answer, by the names of files.

    Parameters
    ----------
    unanswered : mapping of str to names
        The targets, by the name of the prompt without its ending.
    items, question, inputs, k, seed
        As for `make_prompts`.
    max_tokens : int, optional
        As for `make_prompts`; by default twice as many as one target needs, and 8,000 at least.

    Examples
    --------
    >>> from rankshot.sources import make_follow_ups
    >>> list(make_follow_ups({"rater-1.again-1": ["cat"], "rater-2.again-1": []}, ["fox", "bus"]))
    ['rater-1.again-1.txt']
    """
    names = as_names(items)
    writer = _PromptWriter(
        make_question(question, inputs),
        names,
        choose_length(None if k is None else require_whole_number("k", k), names),
        require_whole_number("seed", seed, least=0),
        None if max_tokens is None else require_whole_number("max_tokens", max_tokens),
    )
    prompts: dict[str, str] = {}
    for stem, targets in unanswered.items():
        if targets:
            prompts |= writer.write(stem, tuple(targets))
    return prompts


@dataclass(frozen=True)
class _PromptWriter:
    question: Question
    items: tuple[str, ...]
    k: int
    seed: int
    max_tokens: int | None

    def write(self, stem: str, targets: tuple[str, ...]) -> dict[str, str]:
        """Return the prompts of one rater: as few as possible, of about the same length."""
        items = shuffle_names(self.items, [self.seed, "items", stem])
        shuffled = shuffle_names(targets, [self.seed, "targets", stem])
        fixed = estimate_tokens(self.question.ask_many((), items, self.k))
        most = max(self._count_tokens([target]) for target in targets)
        limit = self.max_tokens or max(MAX_TOKENS, 2 * (fixed + most))
        room = limit - fixed
        if most > room:
            raise RankshotError(
                f"a prompt with {len(items):,} seen classes, and its answer, has about "
                f"{fixed + most:,} tokens; the limit is {limit:,} (max_tokens). Give fewer seen "
                "classes, for example those that WordNet ranks first, or raise the limit if the "
                "model accepts it"
            )
        # So many prompts are needed at least.
        count = max(self._count_tokens(targets) // room, 1)
        while max(map(self._count_tokens, parts := _divide(shuffled, count))) > room:
            count += 1
        prompts = [self.question.ask_many(part, items, self.k) for part in parts]
        if len(parts) == 1:
            return {f"{stem}.txt": prompts[0]}
        return {f"{stem}.part-{i}.txt": prompt for i, prompt in enumerate(prompts, 1)}

    def _count_tokens(self, targets: Sequence[str]) -> int:
        """Return about how many tokens some targets add to a prompt, with their answers."""
        return 2 * estimate_tokens(as_json(targets)) + ceil(len(targets) * self._tokens_per_answer)

    @cached_property
    def _tokens_per_answer(self) -> float:
        return self.k * estimate_tokens(as_json(self.items)) / len(self.items)


def _divide(names: Sequence[str], count: int) -> list[Sequence[str]]:
    """Return the names in at most this number of parts, of about the same size."""
    size = ceil(len(names) / count)
    return [names[i : i + size] for i in range(0, len(names), size)]
