"""The loop: order, batches, what is skipped, memory, and decoding beside the model."""

import gc
import threading
import warnings
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import rankshot as rs
from peak_memory import peak_of
from rankshot.recognition import Preprocessing
from rankshot.recognition.scoring import AHEAD, prepare_model
from refusals import refuses
from tiny_models import CLASSES, PLAIN, mean_colors, write_images

PLAIN = Preprocessing(**PLAIN)


def count_letters(texts):
    return [[text.count(letter) for letter in "abc"] for text in texts]


@pytest.mark.parametrize("batch_size", [1, 4])
def test_every_input_once_in_order(batch_size):
    texts = ["a" * i + "bb" for i in range(10)]
    sizes = []

    def model(batch):
        sizes.append(len(batch))
        return count_letters(batch)

    found = rs.recognition.score(model, texts, CLASSES, batch_size=batch_size)
    assert found.scores.values[:, 0].tolist() == list(range(10))
    assert found.ids.tolist() == [str(i) for i in range(10)]
    assert max(sizes) <= batch_size
    assert sum(sizes) == 10


def test_bad_inputs_are_skipped_and_named_or_fatal(tmp_path):
    pixels = write_images(tmp_path, 9)
    (tmp_path / "0004.png").write_bytes(b"damaged")
    (tmp_path / "0007.png").unlink()
    (tmp_path / "0007.png").symlink_to(tmp_path / "nowhere.png")
    (tmp_path / "notes.txt").touch()
    found = rs.recognition.score(
        mean_colors, tmp_path, CLASSES, preprocessing=PLAIN, batch_size=2, on_error="skip"
    )
    good = [name for name in pixels if name not in {"0004.png", "0007.png"}]
    assert found.ids.tolist() == good
    wanted = mean_colors([PLAIN(Image.fromarray(pixels[name])) for name in good])
    np.testing.assert_allclose(found.scores.values, wanted, atol=1e-5)
    assert {one.id: one.reason.partition(" (")[0] for one in found.skipped} == {
        "0004.png": "not an image",
        "0007.png": "No such file or directory",
        "notes.txt": "not named like an image",
    }
    with refuses("inputs", "0004.png"):
        rs.recognition.score(mean_colors, tmp_path, CLASSES, preprocessing=PLAIN)


def test_scores_that_are_not_finite_belong_to_their_input():
    def model(batch):
        return [[1.0, 2.0, np.nan if text == "bad" else 3.0] for text in batch]

    found = rs.recognition.score(model, ["a", "bad", "b"], CLASSES, on_error="skip")
    assert found.ids.tolist() == ["0", "2"]
    assert found.skipped[0].reason == "the model's score is nan (column 'blue')"
    with refuses("inputs", "1"):
        rs.recognition.score(model, ["a", "bad"], CLASSES)


def test_no_input_at_all(tmp_path):
    folder, model = tmp_path / "photos", prepare_model(mean_colors, CLASSES, PLAIN)
    folder.mkdir()
    for is_broken in (False, True):
        if is_broken:
            (folder / "a.png").touch()
        with refuses("inputs"):
            rs.recognition.score(model, folder, CLASSES, on_error="skip")
        with refuses("inputs"):
            rs.recognition.write_scores(model, folder, tmp_path / "s.csv", CLASSES, on_error="skip")


def test_outputs_of_another_shape():
    for output in (np.zeros(2), [["a"] * 3] * 2):
        with refuses("model"):
            rs.recognition.score(lambda _, output=output: output, ["a", "b"], CLASSES)


def test_probabilities_are_recognised_once(rng):
    """Rows that happen to add up to one among logits stay logits."""
    proba = rng.dirichlet(np.ones(3), size=6)
    rows = iter(proba)
    found = rs.recognition.score(lambda batch: [next(rows) for _ in batch], list("abcdef"), CLASSES)
    np.testing.assert_allclose(found.scores.values, np.log(proba))
    logits = iter([[[5.0, 1, 0]], [[1.0, 0, 0]]])
    found = rs.recognition.score(lambda _: next(logits), ["a", "b"], CLASSES, batch_size=1)
    assert found.scores.values.tolist() == [[5, 1, 0], [1, 0, 0]]


def test_images_are_decoded_beside_the_model(tmp_path):
    """While the model computes the first batch, the next ones are read, but no more than those."""
    write_images(tmp_path, 40)
    begun = []
    enough = threading.Event()

    def prepare(image):
        begun.append(1)
        if len(begun) >= 4 * (AHEAD + 1):
            enough.set()
        return PLAIN(image)

    counts = []

    def model(batch):
        assert enough.wait(timeout=300)
        counts.append(len(begun))
        return mean_colors(batch)

    ready = replace(prepare_model(model, CLASSES, PLAIN), prepare=prepare)
    rs.recognition.score(ready, tmp_path, CLASSES, batch_size=4)
    assert counts[0] == 4 * (AHEAD + 1)
    assert counts[1] <= 4 * (AHEAD + 2)
    assert len(begun) == 40


def test_no_thread_is_left_after_an_error(tmp_path):
    write_images(tmp_path, 20)

    def fail(batch):
        raise RuntimeError("out of memory")

    before = threading.active_count()
    with refuses("model"):
        rs.recognition.score(fail, tmp_path, CLASSES, preprocessing=PLAIN, batch_size=2)
    assert threading.active_count() == before


@pytest.mark.slow
def test_memory_does_not_grow_with_the_images(tmp_path):
    """The difference between two sizes has no batches in it: less than a tenth of each image."""
    write_images(tmp_path / "real", 4, size=(64, 64))

    def measure(n):
        folder = tmp_path / str(n)
        folder.mkdir()
        for i in range(n):
            (folder / f"{i:05d}.png").symlink_to(tmp_path / "real" / f"{i % 4:04d}.png")
        gc.collect()
        prepare, output = Preprocessing(64, 0, 1), tmp_path / f"{n}.csv"
        options = {"preprocessing": prepare, "batch_size": 4}
        return peak_of(
            lambda: rs.recognition.write_scores(mean_colors, folder, output, CLASSES, **options)
        )[0]

    measure(10)  # imports modules
    few, many = measure(200), measure(2200)
    assert (many - few) / 2000 < 64 * 64 * 3 * 4 / 10


ITEMS = ("leopard", "tiger", "bus")
ROWS = [
    ([0.2, 0.3, 0.5], True),
    ([0, 1, 0], True),
    ([1.0001, 0.00005, 0], True),
    ([0.33, 0.33, 0.33], True),
    ([0.3, 0.3, 0.37], False),
    ([0.5, 0.6, 0.2], False),
    ([1.2, 0, -0.2], False),
    ([0, 0, 0], False),
    ([3, 1, 0], False),
]


@pytest.mark.parametrize(("row", "answer"), ROWS)
def test_every_way_gives_the_same_answer(row, answer):
    rankings = rs.Rankings.from_orders([ITEMS, ITEMS[::-1]], targets=["cat", "truck"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rs.WeightedMean().fit(rankings).predict(np.array([row, row]))
        rs.WeightedMean().fit(rankings).predict(100 * np.array([row, row]))
    for total in (1, 100):
        assert any(f"add up to {total}," in str(one.message) for one in caught) == answer
    found = rs.recognition.score(lambda batch: [row] * len(batch), ["a", "b"], ITEMS)
    assert repr(found) == "ScoredInputs: Scores: 2 x 3 classes, multiclass, float64; 0 skipped"
    assert np.array_equal(found.scores.values, [row, row]) != answer
    if answer:
        assert len(rs.Scores.from_probabilities([row], ITEMS)) == 1
    else:
        with pytest.raises(rs.RankshotError):
            rs.Scores.from_probabilities([row], ITEMS)
