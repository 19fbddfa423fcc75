"""What the examples of the gallery printed and drew when the site was built.

So each example runs once: in ``make docs``. The examples of rankings and of sources have their
numbers in ``test_gallery_rankings.py``.
"""

import re

import pytest
from gallery_pages import BUILT, GALLERY, ROOT, number_after, read_output, read_page

EXAMPLES = sorted(
    path.relative_to(ROOT / "examples").with_suffix("").as_posix()
    for path in (ROOT / "examples").rglob("*.py")
)
pytestmark = pytest.mark.skipif(not BUILT, reason="the gallery is not built: make docs")


# ---- All examples


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_a_question_with_pictures(name):
    page = read_page(name)
    title = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8").strip('"').split("\n")
    title = next(line for line in title if line)
    assert f"\n{title}\n{'=' * len(title)}\n" in page
    pictures = re.findall(r"/gallery/(\S+?\.png)", page)
    drawn = [picture for picture in pictures if "/thumb/" not in picture]
    assert drawn
    assert all((GALLERY / picture).stat().st_size > 1000 for picture in drawn)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_warns_of_nothing(name):
    text = read_output(name)
    assert text
    assert "Warning" not in text
    assert "Traceback" not in text


# ---- New classes


def test_a_network_for_imagenet_recognises_other_classes():
    text = read_output("new_classes/01_imagenet_network")
    assert "30 pictures, 1000 scores each" in text
    assert 0.7 < number_after(text, "right: ") < 0.9
    assert 0.38 < number_after(text, "WordNet  ") < 0.42
    assert 0.55 < number_after(text, "language model  ") < 0.59
    assert 0.62 < number_after(text, "language model, reference ") < 0.66
    assert "the loaded head gives the same probabilities: True" in text


def test_a_pipeline_of_texts_recognises_new_intents():
    text = read_output("new_classes/02_new_intents")
    assert 0.85 < number_after(text, "requests of 120 seen intents: ") < 0.87
    assert 0.73 < number_after(text, "requests of new intents: ") < 0.75
    assert "(chance: 0.03)" in text
    assert "pipeline: sync_device; new intent: make_call (right)" in text
    assert 0.43 < number_after(text, "GloVe ") < 0.47
    # The page says that a reference does not help, and names the most difficult intent.
    assert number_after(text, "panel, reference ") <= number_after(text, "panel ")
    assert "interest_rate: 20% are right" in text
    assert "routing (15)" in text


def test_a_rehearsal_predicts_what_comes_out():
    text = read_output("new_classes/03_rehearsal")
    assert 0.58 < number_after(text, "rehearsed classes: ") < 0.63
    assert "chosen: k=15, decay=0.5" in text
    low, high = re.search(r"predicted for the new classes: \.\d+ \[(\S+), (\S+)\]", text).groups()
    right = number_after(text, "came out: ")
    assert 0.56 < right < 0.62
    assert float(low) < right < float(high)
    assert "inside their intervals: 8 of 8; predicted too high: 6" in text
    predicted, came_out = re.search(r"WordNet +predicted (\S+) .*, came out (\S+)", text).groups()
    assert float(predicted) - float(came_out) == pytest.approx(0.15, abs=0.02)


def test_a_rehearsal_calibrates_where_the_default_does_not():
    text = read_output("new_classes/04_calibration")
    before, after = (
        [float(number) for number in re.findall(rf"{name}: .* predicted class (\S+)", text)]
        for name in ("default", "rehearsed")
    )
    right = [float(number) for number in re.findall(r"^right: (\S+)", text, re.MULTILINE)]
    assert right == pytest.approx([0.56, 0.36, 0.71], abs=0.02)
    # Good already; too sure; far too unsure.
    assert abs(before[0] - after[0]) <= 0.02
    assert before[1] > right[1] + 0.15
    assert abs(after[1] - right[1]) < 0.1
    assert before[2] < 0.1
    assert abs(after[2] - right[2]) < 0.06


def test_an_explanation_finds_the_rocket():
    text = read_output("new_classes/05_explain")
    assert text.splitlines()[1].startswith("horse 65%, deer 26%")
    assert "airplane 80%, ship 19%" in text
    assert number_after(text, "141 of 400 ships were taken for airplanes\nwith rocket: ship ") < 0.5
    rows = re.findall(r"rocket: ship (\S+), airplane (\S+), all (\S+)", text)
    (ship, airplane, total), (ship_after, airplane_after, total_after) = (
        map(float, row) for row in rows
    )
    assert ship_after > ship + 0.08
    assert airplane_after < airplane - 0.08
    assert total_after == pytest.approx(total, abs=0.005)


def test_seen_and_new_intents_compete():
    text = read_output("new_classes/06_seen_and_new")
    assert "right, if the kind is known: seen 0.86, new 0.74" in text
    assert 0.6 < number_after(text, "harmonic mean ") < 0.65
    assert 0.38 < number_after(text, "labelled 'none of these': ") < 0.48
    plain, best = number_after(text, "a constant: "), number_after(text, "65 constants: ")
    assert 0.62 < plain <= best < plain + 0.01


def test_a_network_of_torch_and_a_head_become_one_onnx_file():
    text = read_output("new_classes/07_onnx_and_gpu")
    device = text.split("scores on ")[1].split(",")[0]
    assert f"log-probabilities on {device}\n" in text
    assert 0.54 < number_after(text, "right: ") < 0.62
    assert "classes: airplane, automobile, bird, cat, deer, dog, frog, horse, ship, truck" in text
    assert number_after(text, "the same answers as torch: ") > 99.9
    for name in ("NumPy", "torch", "onnxruntime"):
        assert number_after(text, f"{name}: largest difference of a probability ") < 1e-5


def test_the_times_on_a_gpu_are_those_of_the_guide():
    page = (ROOT / "docs" / "guide" / "devices.md").read_text(encoding="utf-8")
    (row,) = (line for line in page.splitlines() if line.startswith("| `WeightedMean`, 80 lists"))
    assert "200,000 x 100" in row
    example = read_page("new_classes/07_onnx_and_gpu")
    for pattern in (r"16 cores +(\S+) ms", r"H200 +(\S+) ms", r"compile``\) +(\S+) ms"):
        shown = float(re.search(pattern, example)[1])
        numbers = [float(number) for number in re.findall(r"([\d.]+) ms", row)]
        assert any(shown == pytest.approx(number, abs=0.006) for number in numbers)
