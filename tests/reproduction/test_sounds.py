"""The tables of the sounds, from files as `make reproduce DATA=sounds` reads them."""

import numpy as np
import pytest
from reproduction.scored_tasks import SOUND_SPLITS
from reproduction.sounds import reproduce_sounds

import rankshot as rs
from rankshot.core.errors import RankshotError
from rankshot.datasets import load_sounds


@pytest.fixture
def folder(tmp_path):
    """A folder of splits: the sounds of the package, with made-up clips of seen classes."""
    data = load_sounds()
    seen = np.array(data.scores.items)
    rng = np.random.default_rng(0)
    made = np.eye(40, dtype=np.float32)[:, rng.permutation(40)] + np.eye(40, dtype=np.float32) * 2
    for scores, panel in SOUND_SPLITS.values():
        np.savez(
            tmp_path / scores,
            logits=np.concatenate([data.scores.values, made]),
            features=np.zeros((440, 3), np.float16),
            label=np.concatenate([data.labels, seen]),
            classes=seen,
        )
        rs.write_rankings(data.rankings, tmp_path / panel)
    return tmp_path


def test_tables_of_sounds(folder):
    networks, accuracy = reproduce_sounds(folder, print)
    data = load_sounds()
    assert networks.row("sounds ESC-10")[:2] == (40, 40)
    assert networks.row("sounds ESC-10")[2].estimate == 1
    plain = rs.WeightedMean().fit(data.rankings).predict(data.scores) == data.labels
    assert accuracy.row("panel")[0].estimate == pytest.approx(plain.mean())
    published = [row for row in accuracy.rows if row[0].startswith("denoising")]
    assert published[0][1:] == (None, None, 0.274, 0.274, 0.274)


def test_a_missing_split_is_named(folder):
    (folder / "published_split_2.npz").unlink()
    with pytest.raises(RankshotError, match=r"published_split_2.npz: no such file; the folder"):
        reproduce_sounds(folder, print)
