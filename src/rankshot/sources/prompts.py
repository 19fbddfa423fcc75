"""The questions that a language model is asked, and prompts to paste into a chat window.

What a classifier would *predict* is a better question than what a class is *similar to*: with
language-model panels, it raised the accuracy more than any choice of the model that merges answers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil

from rankshot.core.errors import RankshotError, quote_names, short_repr, suggest_name
from rankshot.core.validation import as_names, require_whole_number, shuffle_names

LIST_LENGTH = 15
"""Lists of 15 gave a higher accuracy than lists of 10, on held-out seen classes."""
MAX_TOKENS = 16_000
"""Tokens of a prompt and its answer together. A prompt about 40 classes and the 1,000 of ImageNet
is one file, and an answer stays short enough for a model to complete it."""
BYTES_PER_TOKEN = 2.7
"""Measured on prompts and answers with the 100 class names of CIFAR-100: 2.7 to 3.0 with each of
three tokenizers (cl100k_base, o200k_base, Anthropic's published one)."""
PROMPT_END = "(This is the end of the question.)"
"""The last line of a prompt to paste: all before it is not part of an answer."""
IMAGES = """Imagine an image classifier that was trained on {inputs} to distinguish only the \
items below. It has never been shown {target}. Now it is shown many {inputs} of {target}. Which \
items will it predict most often? Think about what such {inputs} really show: outline and pose, \
colour and texture, the usual background and setting; and about what the words name."""
TEXT = """Imagine a text classifier that was trained on {inputs} to distinguish only the items \
below. It has never been given {inputs} of {target}. Now it is given many of them. Which items \
will it predict most often? Think about what such {inputs} really say: their words and phrases, \
their topic and purpose; and about what the names mean."""
ANY = """Imagine a classifier that was trained on {inputs} to distinguish only the items below. \
It has never been given {inputs} of {target}. Now it is given many of them. Which items will it \
predict most often? Think about what such {inputs} really contain, and about what the words \
name."""
CONTRAST = """Imagine a classifier that was trained on {inputs} to distinguish only the items \
below. Now it is given many {inputs} of each of these new classes, none of which it knows: \
{classes}. The new classes are to be distinguished by what it predicts. Which items will it \
predict for {target} clearly more often than for the other new classes? An item that it also \
predicts for several of the others is of little use. Think about what such {inputs} really show, \
and about what the words name."""
OFTEN_PREDICTED = "{k} items that it will predict most often, the most frequent first"
MORE_OFTEN_PREDICTED = (
    "{k} items that it will predict more often than for the others, the clearest first"
)
TEXTS = {
    "images": (IMAGES, OFTEN_PREDICTED, "ordinary photographs"),
    "text": (TEXT, OFTEN_PREDICTED, "texts"),
    "any": (ANY, OFTEN_PREDICTED, "inputs"),
    "contrast": (CONTRAST, MORE_OFTEN_PREDICTED, "ordinary photographs"),
}
"""For each question: its text, the list that is wanted, and the usual inputs of the classifier."""
ONE_LIST = """{text} Answer with the {order}, as one JSON list of strings, spelled as below, \
and with nothing else.

Items: {{items}}"""
MANY_LISTS = """{question}

Answer this question for each of these new classes: {targets}

Give {order} for each new class. Use only items of the list above, each at most once, and spell \
all names exactly as above. Answer with one JSON object in one code block, of this form, and with \
nothing else:

```json
{{"<new class>": ["<item>", "<item>", "<item>"],
 "<new class>": ["<item>", "<item>", "<item>"]}}
```

{end}
"""
OWN_ITEMS = """

Some of the new classes below are items themselves. For each of these, imagine that the classifier \
was trained without it, and list only other items."""


@dataclass(frozen=True)
class Question:
    """A question about one target, or about several at once.

    ``text`` is the question itself, with the field {target}, and ``order`` the list that is wanted,
    with the field {k}.
    """

    text: str
    order: str

    @property
    def template(self) -> str:
        """The question for one list, with the fields {target}, {items} and {k}."""
        return ONE_LIST.format(text=self.text, order=self.order)

    def ask_many(self, targets: Sequence[str], items: Sequence[str], k: int) -> str:
        """Return the prompt that asks for the lists of several targets, for a chat window."""
        own = {*targets} & {*items}
        order = self.order.format(k=min(k, len(items) - bool(own)))
        question = f"{self.text.format(target='the new class')}\n\nItems: {as_json(items)}"
        return MANY_LISTS.format(
            question=question + OWN_ITEMS * bool(own),
            targets=as_json(targets),
            order=f"the {order},",
            end=PROMPT_END,
        )


def make_question(
    question: str, inputs: str | None = None, classes: Sequence[str] = ()
) -> Question:
    """Return one of the questions.

    ``inputs`` are what the classifier gets, in the plural, such as ``"X-ray images of hands"``.
    ``classes`` are all that are asked about: the question ``contrast`` names them.
    """
    if question not in TEXTS:
        raise RankshotError(
            f"no question {short_repr(question)}{suggest_name(question, TEXTS)}; give one of "
            f"{quote_names(TEXTS)}"
        )
    if question == "contrast" and len(classes) == 1:
        raise RankshotError(
            f"the question 'contrast' compares new classes, and there is only {classes[0]!r}"
        )
    text, order, usual = TEXTS[question]
    for field, words in (("{inputs}", inputs or usual), ("{classes}", as_json(classes))):
        # Braces in the words are literal.
        text = text.replace(field, words.replace("{", "{{").replace("}", "}}"))
    return Question(text, order)


def as_json(value: object) -> str:
    """Return JSON that a person can read: letters of all languages as they are."""
    return json.dumps(value, ensure_ascii=False)


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text has."""
    return ceil(len(text.encode(errors="replace")) / BYTES_PER_TOKEN)


def choose_length(k: int | None, items: Sequence[str]) -> int:
    """Return how many items a list should have: 15 unless told otherwise, or all if fewer exist."""
    if k is None:
        return min(LIST_LENGTH, len(items))
    return require_whole_number("k", k, len(items))


# ---- Prompts to paste into a chat window


def make_prompts(
    targets: Iterable[object],
    items: Iterable[object],
    *,
    question: str = "images",
    inputs: str | None = None,
    k: int | None = None,
    raters: int = 4,
    seed: int = 0,
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

    Examples
    --------
    >>> from rankshot.sources import make_prompts
    >>> prompts = make_prompts(["cat", "truck"], ["tiger", "bus", "whale"], raters=2)
    >>> list(prompts)
    ['rater-1.txt', 'rater-2.txt']
    >>> print(prompts["rater-2.txt"].split("\n\n")[2])
    Answer this question for each of these new classes: ["truck", "cat"]
    """
    names = as_names(items)
    length = choose_length(k, names)
    seed = require_whole_number("seed", seed, least=0)
    wanted = as_names(targets, "targets")
    asked = make_question(question, inputs, wanted)
    per_answer = length * estimate_tokens(as_json(names)) / len(names)

    def count_tokens(some: Sequence[str]) -> int:
        """Return about how many tokens some targets add to a prompt, with their answers."""
        return 2 * estimate_tokens(as_json(some)) + ceil(len(some) * per_answer)

    prompts: dict[str, str] = {}
    for number in range(1, require_whole_number("raters", raters) + 1):
        stem = f"rater-{number}"
        shuffled_items = shuffle_names(names, [seed, "items", stem])
        shuffled = shuffle_names(wanted, [seed, "targets", stem])
        fixed = estimate_tokens(asked.ask_many((), shuffled_items, length))
        # A prompt about one class may be longer.
        room = max(MAX_TOKENS - fixed, *(count_tokens([target]) for target in wanted))
        # As few prompts as possible, of about the same length.
        count = max(count_tokens(wanted) // room, 1)
        while max(map(count_tokens, parts := _divide(shuffled, count))) > room:
            count += 1
        for i, part in enumerate(parts, 1):
            name = f"{stem}.part-{i}.txt" if len(parts) > 1 else f"{stem}.txt"
            prompts[name] = asked.ask_many(part, shuffled_items, length)
    return prompts


def _divide(names: Sequence[str], count: int) -> list[Sequence[str]]:
    """Return the names in at most this number of parts, of about the same size."""
    size = ceil(len(names) / count)
    return [names[i : i + size] for i in range(0, len(names), size)]
