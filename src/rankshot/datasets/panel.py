"""The language-model panel: what a new class looks most like, in eight opinions."""

from __future__ import annotations

from collections.abc import Sequence

from rankshot.datasets.class_names import class_names
from rankshot.datasets.embedded import embedded
from rankshot.ranking.files import read_rankings
from rankshot.ranking.rankings import Rankings

FILES = {"cifar": "language_model_panel.jsonl", "animals": "animals_panel.jsonl"}
HELD_OUT_FILES = {"cifar": "held_out_panel.jsonl", "animals": "animals_held_out_panel.jsonl"}


def load_panel(dataset: str = "cifar") -> Rankings:
    """Return 80 rankings: 8 raters on 10 unseen classes as targets, top-10 of the seen classes.

    Each rater is a large language model that was asked afresh to put in order the 10 of the seen
    classes that look most like each target. They are a language-model panel, not people.
    ``language_model_panel.md`` beside the data says how they were asked.

    Parameters
    ----------
    dataset : {"cifar", "animals"}
        CIFAR: the classes of CIFAR-10 as targets, the 100 of CIFAR-100 as items. Animals with
        Attributes: 10 animals as targets, the other 40 as items.

    Examples
    --------
    >>> from rankshot.datasets.panel import load_panel
    >>> load_panel().select(target="cat", rater="lm1")
    Rankings: 1 ranking of 100 items, 1 target, 1 source, 1 rater
      cat: hamster > rabbit > fox > leopard > tiger > lion > raccoon > mouse > …
    >>> load_panel("animals").select(target="persian+cat", rater="lm1")
    Rankings: 1 ranking of 40 items, 1 target, 1 source, 1 rater
      persian+cat: siamese+cat > chihuahua > hamster > rabbit > bobcat > collie > fox
        > dalmatian > …
    """
    seen = class_names(dataset).seen
    return _read(FILES[dataset], seen)


def load_held_out_panel(dataset: str = "cifar") -> Rankings:
    """Return 8 rankings each of some *seen* classes played as unseen, top-10 of the others.

    Train on the items alone and classify images of the targets: this is where to choose K, a
    regulariser or weights without a look at unseen classes.

    Parameters
    ----------
    dataset : {"cifar", "animals"}
        CIFAR: 20 of CIFAR-100's classes as targets, the other 80 as items. Animals with
        Attributes: 10 of the 40 seen animals as targets, the other 30 as items.

    Examples
    --------
    >>> from rankshot.datasets.panel import load_held_out_panel
    >>> load_held_out_panel().select(target="bear", rater="lm1")
    Rankings: 1 ranking of 80 items, 1 target, 1 source, 1 rater
      bear: wolf > lion > chimpanzee > raccoon > tiger > cattle > leopard > fox > …
    """
    seen, file = class_names(dataset).seen, HELD_OUT_FILES[dataset]
    held_out = set(_read(file).target_names)
    return _read(file, [name for name in seen if name not in held_out])


def _read(file: str, items: Sequence[str] | None = None) -> Rankings:
    with embedded(file) as path:
        return read_rankings(path, items=items)
