"""The language-model panel: what a new class looks most like, in eight opinions."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import as_file, files

from rankshot.datasets.cifar import cifar100_classes
from rankshot.ranking.files import read_rankings
from rankshot.ranking.rankings import Rankings


def load_panel() -> Rankings:
    """Return 80 rankings: 8 raters on 10 targets (CIFAR-10's classes), top-10 of 100 items.

    Each rater is a large language model that was asked afresh to put in order the 10 of
    CIFAR-100's classes that look most like each target. They are a language-model panel, not
    people. ``language_model_panel.md`` beside the data says how they were asked.

    Examples
    --------
    >>> from rankshot.datasets.panel import load_panel
    >>> load_panel().select(target="cat", rater="lm1")
    Rankings: 1 ranking of 100 items, 1 target, 1 source, 1 rater
      cat: hamster > rabbit > fox > leopard > tiger > lion > raccoon > mouse > …
    """
    return _read("language_model_panel.jsonl", cifar100_classes())


def load_held_out_panel() -> Rankings:
    """Return 160 rankings: 8 raters on 20 *seen* classes played as unseen, top-10 of 80 items.

    The items are CIFAR-100's other 80 classes. Train on these alone and classify images of the
    20: this is where to choose K, a regulariser or weights without a look at unseen classes.

    Examples
    --------
    >>> from rankshot.datasets.panel import load_held_out_panel
    >>> load_held_out_panel().select(target="bear", rater="lm1")
    Rankings: 1 ranking of 80 items, 1 target, 1 source, 1 rater
      bear: wolf > lion > chimpanzee > raccoon > tiger > cattle > leopard > fox > …
    """
    file = "held_out_panel.jsonl"
    held_out = set(_read(file).target_names)
    return _read(file, [name for name in cifar100_classes() if name not in held_out])


def _read(file: str, items: Sequence[str] | None = None) -> Rankings:
    with as_file(files("rankshot.datasets") / "data" / file) as path:
        return read_rankings(path, items=items)
