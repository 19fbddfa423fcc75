"""The questions that a language model is asked, and the prompts that contain them.

What a classifier would *say* is a better question than what a class is *similar to*: with
language-model panels, it raised the accuracy more than any choice of the model that merges answers.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from string import Formatter

from rankshot.core.errors import RankshotError, quote_names, short_repr, suggest_name

DEFAULT_K = 15
"""Lists of 15 gave a higher accuracy than lists of 10, on seen classes that played new ones."""
BYTES_PER_TOKEN = 2.7
"""Measured on prompts and answers with the 100 class names of CIFAR-100: 2.7 to 3.0 with each of
three tokenizers (cl100k_base, o200k_base, Anthropic's published one)."""
PROMPT_END = "(This is the end of the question.)"
"""The last line of a prompt to paste: all before it is not part of an answer."""
IMAGES = """Imagine an image classifier that was trained on {inputs} to tell just the items below \
apart. It has never been shown {target}. Now it is shown many {inputs} of {target}. Which items \
will it say most often? Think about what such {inputs} really show: outline and pose, colour and \
texture, the usual background and setting; and about what the words name."""
TEXT = """Imagine a text classifier that was trained on {inputs} to tell just the items below \
apart. It has never been given {inputs} of {target}. Now it is given many of them. Which items \
will it say most often? Think about what such {inputs} really say: their words and phrases, their \
topic and purpose; and about what the names mean."""
SIMILAR = """Which of the items below are most similar to {target}? Judge by what the words name \
and by how it looks in a photograph."""
OFTEN_SAID = "{k} items that it will say most often, the most frequent first"
MOST_SIMILAR = "{k} most similar items, the most similar first"
TEXTS = {
    "images": (IMAGES, OFTEN_SAID, "ordinary photographs"),
    "text": (TEXT, OFTEN_SAID, "texts"),
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
FIELDS = ("target", "items", "k")


@dataclass(frozen=True)
class Question:
    """A question about one target, or about several at once.

    ``template`` asks for one list. It has the fields {target}, {items} and {k}. ``text`` and
    ``order`` are its parts where the question is not the user's own: the question itself, and the
    list that is wanted.

    Examples
    --------
    >>> print(make_question("similar").ask_one("cat", ["tiger", "bus"], 1))
    Which of the items below are most similar to "cat"? Judge by what the words name and by how it
    looks in a photograph. Answer with the 1 most similar items, the most similar first, as one JSON
    list of strings, spelled as below, and with nothing else.
    <BLANKLINE>
    Items: ["tiger", "bus"]
    """

    template: str
    text: str | None = None
    order: str | None = None

    def ask_one(self, target: str, items: Sequence[str], k: int) -> str:
        """Return the prompt that asks for the list of one target."""
        return format_prompt(self.template, target, items, k)

    def ask_many(self, targets: Sequence[str], items: Sequence[str], k: int) -> str:
        """Return the prompt that asks for the lists of several targets, for a chat window."""
        fields = {"target": "the new class", "items": as_json(items), "k": k}
        if self.text is None or self.order is None:
            question, order = self.template.format(**fields), f"such a list of {k} items"
        else:
            question = f"{self.text.format(**fields)}\n\nItems: {fields['items']}"
            order = f"the {self.order.format(k=k)},"
        return MANY_LISTS.format(
            question=question, targets=as_json(targets), order=order, end=PROMPT_END
        )


def make_question(question: str, inputs: str | None = None) -> Question:
    """Return one of the questions of rankshot, or the user's own, after a check of its fields.

    Parameters
    ----------
    question : str
        ``"images"``, ``"text"``, ``"similar"``, or a template with {target}, {items} and {k}.
    inputs : str, optional
        What the classifier gets, in the plural, such as ``"X-ray images of hands"``. A template
        that has the field {inputs} needs it.

    Examples
    --------
    >>> make_question("Rank {items} for {targe}, {k} of them")
    Traceback (most recent call last):
        ...
    rankshot.core.errors.RankshotError: question: the template lacks {target}, and has the unknown
    field {targe}; a literal brace is written twice
    """
    if not isinstance(question, str):
        raise RankshotError(f"question must be text, not {short_repr(question)}")
    if inputs is not None and (not isinstance(inputs, str) or not inputs.strip()):
        raise RankshotError(f"inputs must be words such as 'photographs', not {short_repr(inputs)}")
    text, order, usual = TEXTS.get(question, (question, None, ""))
    if order is None and "{" not in text:
        raise RankshotError(
            f"no question {short_repr(question)}{suggest_name(question, TEXTS)}; give one of "
            f"{quote_names(TEXTS)}, or a template with {{target}}, {{items}} and {{k}}"
        )
    whole = text if order is None else ONE_LIST.format(text=text, order=order)
    if inputs is not None and "{inputs}" not in text:
        raise RankshotError(f"inputs={short_repr(inputs)}: this question has no field {{inputs}}")
    _check_fields(whole, inputs or usual)
    template = _fill_inputs(whole, inputs or usual)
    return Question(template, None if order is None else _fill_inputs(text, inputs or usual), order)


def _check_fields(template: str, inputs: str) -> None:
    try:
        parts = [part for part in Formatter().parse(template) if part[1] is not None]
    except ValueError as error:
        raise RankshotError(
            f"question: the template is not valid ({error}); a literal brace is written twice"
        ) from None
    # A field with a conversion or a format is unknown as well, as in {k:3} or {items!r}.
    found = {
        f"{name}{'!' if conversion else ''}{conversion or ''}{':' if form else ''}{form}"
        for _, name, form, conversion in parts
    }
    faults = []
    if lacking := [f"{{{name}}}" for name in FIELDS if name not in found]:
        faults.append(f"lacks {' and '.join(lacking)}")
    if odd := sorted(found - {*FIELDS, "inputs"}):
        faults.append(f"has the unknown field {{{odd[0]}}}")
    if faults:
        raise RankshotError(
            f"question: the template {', and '.join(faults)}; a literal brace is written twice"
        )
    if "inputs" in found and not inputs:
        raise RankshotError("question: the template has the field {inputs}; give inputs as well")


def _fill_inputs(template: str, inputs: str) -> str:
    """Replace the field {inputs}, and leave the others."""
    filled = ""
    for literal, name, _, _ in Formatter().parse(template):
        filled += _escape(literal)
        if name is not None:
            filled += _escape(inputs) if name == "inputs" else f"{{{name}}}"
    return filled


def _escape(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def format_prompt(template: str, target: str, items: Sequence[str], k: int) -> str:
    """Return the prompt of a template; names are quoted as in JSON."""
    return template.format(target=as_json(target), k=k, items=as_json(items))


def as_json(value: object) -> str:
    """Return JSON that a person can read: letters of all languages as they are."""
    return json.dumps(value, ensure_ascii=False)


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text has."""
    return ceil(len(text.encode(errors="replace")) / BYTES_PER_TOKEN)


def choose_length(k: int | None, items: Sequence[str]) -> int:
    """Return how many items a list should have: 15 unless told otherwise, or all if fewer exist."""
    if k is None:
        return min(DEFAULT_K, len(items))
    if k > len(items):
        raise RankshotError(f"k={k} is more than the {len(items)} items")
    return k
