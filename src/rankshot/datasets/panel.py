"""The language-model panel: what a new class looks most like, in eight opinions."""

from __future__ import annotations

from importlib.resources import as_file, files

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
    data = files("rankshot.datasets") / "data"
    items = (data / "cifar100_classes.txt").read_text(encoding="utf-8").split()
    with as_file(data / "language_model_panel.jsonl") as path:
        return read_rankings(path, items=items)
