"""The gallery runs, and says what it should."""

import io
import runpy
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name):
    """Run an example in this process: a process of its own would import everything again."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert err.getvalue() == ""
    return out.getvalue()


def test_the_demo_finds_that_a_cat_looks_like_a_leopard():
    text = run("01_consensus.py")
    lines = {line.split()[0]: line for line in text.splitlines() if " > " in line}
    assert "leopard > tiger > lion" in lines["cat"]
    assert "pickup_truck > bus" in lines["truck"]
    assert "not proven" not in text
    assert text.count("80 of 80 right") == 2


def test_a_rehearsal_predicts_what_comes_out():
    text = run("02_zero_shot.py")
    held_out = float(text.split("default settings")[1].split()[0])
    assert 0.58 < held_out < 0.63
    predicted = text.split("predicted for the new classes: ")[1].splitlines()[0]
    low, high = map(float, predicted.split("[")[1].rstrip("]").split(", "))
    right = float(text.split("came out: ")[1].split()[0])
    assert 0.56 < right < 0.62
    assert low < right < high
    assert "why horse rather than the average class" in text
