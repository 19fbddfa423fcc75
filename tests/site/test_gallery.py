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
