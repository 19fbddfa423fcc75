"""Sounds: scores of a network that knows 40 classes, for clips of the ten classes of ESC-10."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.datasets.embedded import embedded_arrays, embedded_rankings, read_only
from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.scores import Scores

SOUNDS_FILE = "sounds_scores.npz"
SOUNDS_PANEL_FILE = "sounds_panel.jsonl"


class SoundScores(NamedTuple):
    """Scores and features of a network that knows 40 sounds, for clips of ten other sounds.

    Attributes
    ----------
    scores : Scores
        The network's logits of 400 clips, 40 of each new class, with ``features``: the 256 numbers
        that its last layer gets.
    labels : ndarray of str
        The new class of each clip.
    clips : ndarray of str
        The file of each clip in ESC-50; the second number in its name is the clip's number at
        freesound.org, which has its author.
    rankings : Rankings
        For each new class the first twelve seen classes, by four raters, large language models.

    Examples
    --------
    >>> from rankshot.datasets import load_sounds
    >>> data = load_sounds()
    >>> data.scores.values.shape, data.scores.features.shape, str(data.labels[0])
    ((400, 40), (400, 256), 'dog')
    """

    scores: Scores
    labels: NDArray[np.str_]
    clips: NDArray[np.str_]
    rankings: Rankings


def load_sounds() -> SoundScores:
    """Return the scores of a network for recordings of ten sounds, and rankings of their classes.

    The recordings are those of ESC-10, a part of ESC-50 (Piczak 2015). The network was trained on
    the other 40 classes of ESC-50. There is no reference: the recordings of these classes may not
    be used commercially, so their scores are not included. ``sounds.md``, in the folder of the
    data, describes the network, the raters and the licences.

    Examples
    --------
    >>> import rankshot as rs
    >>> from rankshot.datasets import load_sounds
    >>> data = load_sounds()
    >>> data.rankings.select(target="dog", rater="rater-1")
    Rankings: 1 ranking of 40 items, 1 target, 1 source, 1 rater
      dog: crow > coughing > hen > cat > laughing > sheep > door_wood_knock > can_opening > …
    >>> head = rs.WeightedMean().fit(data.rankings)
    >>> accuracy = (head.predict(data.scores) == data.labels).mean()
    >>> print(f"{accuracy:.2f}, where chance is {1 / len(head.classes_):.2f}")
    0.56, where chance is 0.10
    """
    with embedded_arrays(SOUNDS_FILE) as arrays:
        seen = tuple(arrays["classes"].tolist())
        values = arrays["logits"].astype(np.float32)
        # The file has whole steps, one row per dimension.
        features = np.multiply(arrays["features"].T, arrays["step"], order="C")
        labels, clips = (read_only(arrays[name]) for name in ("label", "clip"))
    rankings = embedded_rankings(SOUNDS_PANEL_FILE, seen)
    return SoundScores(Scores(values, seen, features=features), labels, clips, rankings)
