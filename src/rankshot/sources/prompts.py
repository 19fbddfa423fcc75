"""The questions that a language model is asked, and prompts to paste into a chat window.

What a classifier would *predict* is a better question than what a class is *similar to*: with
language-model panels, it raised the accuracy more than any choice of the model that merges answers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import ceil
from string import Formatter

from rankshot.core.errors import InputError, quote_names, suggest_name
from rankshot.core.validation import as_names, require_whole_number, shuffle_names

LIST_LENGTH = 15
"""The number of places that prompts ask for, and that heads use by default. Lists of 15 gave a
higher accuracy than lists of 10, on held-out seen classes."""
MOST_TARGETS = 25
"""New classes of one prompt: longer answers are often cut off. With a thousand class names of
seen classes, such a prompt and its answer have about 8,000 tokens."""
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
SIMILAR = """Which of the items below are most similar to {target}? Judge by what the words name \
and by how it looks in a photograph."""
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
MOST_SIMILAR = "{k} most similar items, the most similar first"
TEXTS = {
    "images": (IMAGES, OFTEN_PREDICTED, "ordinary photographs"),
    "text": (TEXT, OFTEN_PREDICTED, "texts"),
    "any": (ANY, OFTEN_PREDICTED, "inputs"),
    "contrast": (CONTRAST, MORE_OFTEN_PREDICTED, "ordinary photographs"),
    "similar": (SIMILAR, MOST_SIMILAR, ""),
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
FIELDS, FIELD_NAMES = {"target", "items", "k"}, "{target}, {items} and {k}"


@dataclass(frozen=True)
class Question:
    """A question about one target, or about several at once.

    ``template`` asks for one list. It has the fields {target}, {items} and {k}. ``text`` and
    ``order`` are its parts where the question is not the user's own: the question itself, and the
    list that is wanted.
    """

    template: str
    text: str | None = None
    order: str | None = None

    def ask_many(self, targets: Sequence[str], items: Sequence[str], k: int) -> str:
        """Return the prompt that asks for the lists of several targets, for a chat window."""
        own = {*targets} & {*items}
        k = min(k, len(items) - bool(own))
        fields = {"target": "the new class", "items": as_json(items), "k": k}
        if self.text is None or self.order is None:
            question, order = self.template.format(**fields), f"such a list of {k} items"
        else:
            question = f"{self.text.format(**fields)}\n\nItems: {fields['items']}"
            order = f"the {self.order.format(k=k)},"
        question += OWN_ITEMS if own else ""
        return MANY_LISTS.format(
            question=question, targets=as_json(targets), order=order, end=PROMPT_END
        )


def make_question(
    question: str, inputs: str | None = None, classes: Sequence[str] = ()
) -> Question:
    """Return one of the questions of rankshot, or the user's own, after a check of its fields.

    ``inputs`` are what the classifier gets, in the plural, such as ``"X-ray images of hands"``. A
    template that has the field {inputs} needs them. ``classes`` are all that are asked about: the
    question ``contrast`` names them.
    """
    text, order, usual = TEXTS.get(question, (question, None, ""))
    if question == "contrast" and len(classes) == 1:
        problem = f"compares new classes, but there is only {classes[0]!r}"
        raise InputError("question", question, problem)
    if order is None and "{" not in text:
        problem = f"is not a question{suggest_name(question, TEXTS)}"
        hint = f"give one of {quote_names(TEXTS)}, or a template with {FIELD_NAMES}"
        raise InputError("question", question, problem, hint=hint)
    whole = text if order is None else ONE_LIST.format(text=text, order=order)
    problem = ""
    if ("{inputs}" in text) != bool(inputs or usual):
        problem = "has no {inputs}, but inputs are given" if inputs else "needs inputs"
    for field, words in (("{inputs}", inputs or usual), ("{classes}", as_json(classes))):
        # Braces in the words are literal.
        literal = words.replace("{", "{{").replace("}", "}}")
        whole, text = whole.replace(field, literal), text.replace(field, literal)
    fields: set[str | None] = set()
    with suppress(ValueError):
        fields = {field for _, field, _, _ in Formatter().parse(whole)} - {None}
    if fields != FIELDS:
        problem = f"must have the fields {FIELD_NAMES}, and may have {{classes}}"
    if problem:
        raise InputError("question", question, problem, hint="a literal brace is written twice")
    return Question(whole, None if order is None else text, order)


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
    r"""Return prompts that ask for the lists of all targets, as a dict by file name.

    Each rater gets the items and the targets in a different order. More than 25 targets are divided
    among several prompts of a rater, ``rater-1.part-1.txt`` and ``rater-1.part-2.txt``.
    `read_answer_files` reads answers that are saved under the same names.

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
    names, wanted = as_names(items), as_names(targets, "targets")
    length = choose_length(k, names)
    seed = require_whole_number("seed", seed, least=0)
    asked = make_question(question, inputs, wanted)
    n_parts = ceil(len(wanted) / MOST_TARGETS)
    size = ceil(len(wanted) / n_parts)
    prompts: dict[str, str] = {}
    for rater in range(1, require_whole_number("raters", raters) + 1):
        stem = f"rater-{rater}"
        shuffled_items = shuffle_names(names, [seed, "items", stem])
        shuffled = shuffle_names(wanted, [seed, "targets", stem])
        for part in range(n_parts):
            number = f".part-{part + 1}" if n_parts > 1 else ""
            some = shuffled[part * size : (part + 1) * size]
            prompts[f"{stem}{number}.txt"] = asked.ask_many(some, shuffled_items, length)
    return prompts
