"""`zero_shot`: a model of one's own, with the interface of transformers' zero-shot pipeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rankshot.core.errors import InputError, count_others, suggest_name
from rankshot.core.validation import as_names
from rankshot.ranking.rankings import Rankings
from rankshot.recognition.images import Preprocessing
from rankshot.recognition.inputs import Model
from rankshot.recognition.recognition import rank_new
from rankshot.recognition.scoring import Classes, prepare_model, score_inputs
from rankshot.sources.named_rankings import Source
from rankshot.zeroshot.class_rankings import as_rankings
from rankshot.zeroshot.knowledge import Knowledge
from rankshot.zeroshot.linear_head import Predictor
from rankshot.zeroshot.scores import Scores
from rankshot.zeroshot.settings import Settings

REMEDY = "pass rankings={name: [classes of the model]} or source='llm:MODEL'"


class ZeroShot:
    """A callable from inputs and candidate labels to scores; `zero_shot` makes it.

    Parameters
    ----------
    model : Model
        What classifies inputs.
    source : source, str or list of these, optional
        What ranks labels that have no ranking.
    rankings : Rankings, optional
        Rankings of the model's classes for candidate labels.

    Examples
    --------
    >>> import rankshot as rs
    >>> zs = rs.zero_shot(lambda texts: [[len(text), 3] for text in texts], seen=["long", "short"])
    >>> zs
    ZeroShot: <lambda>
    """

    def __init__(
        self,
        model: Model,
        source: Source | str | Sequence[Source | str] | None,
        rankings: Rankings | None,
    ) -> None:
        self._model, self._source, self._rankings = model, source, rankings
        self._heads: dict[object, Predictor] = {}

    def __repr__(self) -> str:
        return f"ZeroShot: {self._model.name}"

    def __call__(
        self,
        inputs: Any,
        candidate_labels: str | Sequence[str],
        *,
        with_seen: bool = False,
    ) -> dict[str, Any] | list[dict[str, Any]]:
        """The candidate labels of each input, most probable first, and their probabilities.

        Parameters
        ----------
        inputs : text, path, image, or list of these
            What the model takes. A list gives a list of results.
        candidate_labels : list of str, or str
            The new classes; a text is divided at commas.
        with_seen : bool
            Whether the model's own classes compete as well.

        Returns
        -------
        dict or list of dict
            ``sequence`` (the input), ``labels`` and ``scores``.
        """
        names: Sequence[str] = candidate_labels
        if isinstance(candidate_labels, str):
            names = candidate_labels.split(",")
        labels = as_names([str(name).strip() for name in names], "candidate_labels")
        head = self._find_head(labels, with_seen=with_seen)
        is_single = isinstance(inputs, (str, Path)) or not isinstance(inputs, Sequence | np.ndarray)
        given = [inputs] if is_single else list(inputs)
        proba = np.asarray(head.predict_proba(score_inputs(self._model, given).scores))
        found = []
        for one, row in zip(given, proba, strict=True):
            order = np.argsort(-row, kind="stable")
            names, shares = head.classes_[order].tolist(), row[order].tolist()
            found.append({"sequence": one, "labels": names, "scores": shares})
        return found[0] if is_single else found

    def _find_head(self, labels: tuple[str, ...], *, with_seen: bool) -> Predictor:
        key = labels, with_seen
        if key not in self._heads:
            items = self._model.classes.names
            known = Knowledge(self._rank(labels), batch=Scores(np.zeros((0, len(items))), items))
            wanted = Settings(classes="all" if with_seen else "new", batch=False)
            self._heads[key] = known.fit(wanted)
        return self._heads[key]

    def _rank(self, labels: tuple[str, ...]) -> Rankings:
        """Rankings of all labels: those that were given, and the source's of the others."""
        given, classes = self._rankings, self._model.classes
        known = () if given is None else given.target_names
        parts = [] if given is None else [given[np.isin(given.targets.astype(str), labels)]]
        missing = tuple(name for name in labels if name not in known)
        takes_texts = self._model.takes == "texts"
        if missing and self._source is None and (given is not None or takes_texts):
            rule = f"has no ranking{suggest_name(missing[0], known)}{count_others(missing)}"
            raise InputError("candidate_labels", missing[0], rule, hint=REMEDY)
        if missing:
            found, _ = rank_new(self._source, missing, None, classes, what="candidate_labels")
            if unknown := [name for name in missing if name not in found.target_names]:
                rule = f"is not known to the source{count_others(unknown)}"
                raise InputError("candidate_labels", unknown[0], rule, hint=REMEDY)
            parts.append(found)
        return Rankings.concatenate(parts)


def zero_shot(
    model: object,
    source: Source | str | Sequence[Source | str] | None = None,
    rankings: Rankings | Mapping[str, Any] | str | Path | None = None,
    *,
    seen: Classes | None = None,
    preprocessing: Preprocessing | str | Path | Mapping[str, object] | None = None,
) -> ZeroShot:
    """A callable with the interface of transformers' zero-shot pipeline, for a model of your own.

    The standard pipeline runs a network that was trained on entailment, once per candidate label.
    This one runs your own model, once per input; further labels cost one matrix product.

    Parameters
    ----------
    model : str, Path or object
        What classifies inputs: see `rankshot.recognition.open_model`.
    source : source, str or list of these, optional
        What ranks the model's classes for a candidate label, such as ``"llm:gpt-4o"``. For images
        by default the dictionary of look-alikes; for texts there is no default.
    rankings : Rankings, dict or file, optional
        Rankings of the model's classes for candidate labels.
    seen, preprocessing
        As for `recognise`.

    Examples
    --------
    >>> import rankshot as rs
    >>> count = lambda texts: [[text.count(word) for word in ("song", "clock")] for text in texts]
    >>> zs = rs.zero_shot(
    ...     count, rankings={"volume": ["music"], "timer": ["alarm"]}, seen=["music", "alarm"])
    >>> zs("play a song", candidate_labels=["volume", "timer"])["labels"]
    ['volume', 'timer']
    """
    ready = prepare_model(model, seen, preprocessing, features=False)
    named = None if rankings is None else as_rankings(rankings, ready.classes.names)
    return ZeroShot(ready, source, named)
