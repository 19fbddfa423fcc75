"""``rankshot export``: a saved head as an ONNX file, alone or behind a network."""

import json
import re

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import rankshot as rs
from command_line import LOGITS, SEEN, check_refused, run_well, softmax
from rankshot.recognition import Preprocessing, open_model
from tiny_models import CLASSES, write_onnx

FIT = "fit --rankings rankings.jsonl -o head.rankshot"


def write_network(path, *, names=None, end="Identity"):
    """Write a network that returns its input, or its softmax."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["z"]), helper.make_node(end, ["z"], ["y"])]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 5]) for name in "xy")
    weights = numpy_helper.from_array(np.eye(5, dtype=np.float32), "w")
    graph = helper.make_graph(nodes, "network", [x], [y], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    if names is not None:
        model.metadata_props.add(key="labels", value=json.dumps(names))
    onnx.save(model, path)


def run(path, **inputs):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(["probabilities"], inputs)[0]


def test_a_head_alone(folder):
    run_well(f"{FIT} --reference usual.csv")
    out = run_well("export head.rankshot -o head.onnx")
    assert "input 'scores': float (inputs, 5)" in out
    assert re.search(r"output 'probabilities': float \(\w+, 3\)", out)
    assert "output 'label': int64" in out
    assert "3 classes ('cat', 'dog', 'truck') written to head.onnx" in out
    assert "the input 'scores' expects logits, one column per seen class" in out
    assert re.search(r"largest difference from the head in a probability: \d.*e-0[78]", out)
    head = rs.load_head("head.rankshot")
    found = run("head.onnx", scores=LOGITS.astype(np.float32))
    np.testing.assert_allclose(found, head.predict_proba(LOGITS), atol=1e-5)


@pytest.mark.slow
def test_a_head_behind_a_network(folder):
    run_well(f"{FIT} --seen scores.csv --set k=3")
    write_network("network.onnx", names=SEEN, end="Softmax")
    out = run_well("export head.rankshot --attach network.onnx -o zero-shot.onnx")
    assert "input 'x': float (n, 5)" in out
    assert "3 classes (" in out
    assert "network.onnx outputs probabilities: the head uses their logarithms" in out
    scores = rs.Scores.from_probabilities(softmax(LOGITS), SEEN)
    expected = rs.load_head("head.rankshot").predict_proba(scores)
    found = run("zero-shot.onnx", x=LOGITS.astype(np.float32))
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize(
    ("words", "files", "message"),
    [
        ("-o head.onnx --network-output y", {}, "--network-output needs --attach FILE"),
        ("-o network.onnx --attach network.onnx", {}, "is also an input file"),
        ("-o head.onnx --attach network.onnx", {"network.onnx": "hello"}, "is not an ONNX file"),
    ],
)
def test_what_is_refused(folder, words, files, message):
    run_well(f"{FIT} --seen scores.csv")
    write_network("network.onnx")
    check_refused(folder, f"export head.rankshot {words}", files, message)


def test_heads_that_cannot_be_exported(folder):
    run_well(f"{FIT} --seen scores.csv --classes all")
    check_refused(folder, "export head.rankshot -o head.onnx", {}, "LinearHead")


def test_the_preprocessing_goes_with_the_network(folder):
    """The metadata say it, and the lines that are printed give the same numbers."""
    (folder / "colors.jsonl").write_text('{"target": "sky", "ranking": ["blue", "green"]}\n')
    (folder / "classes.txt").write_text("\n".join(CLASSES))
    run_well("fit --rankings colors.jsonl --seen classes.txt -o colors.rankshot")
    write_onnx(folder / "net.onnx", metadata={"classes": CLASSES})
    made = Preprocessing(8, 0.5, 0.25, resize=8)
    (folder / "preprocessor_config.json").write_text(json.dumps(made.to_config()))
    out = run_well("export colors.rankshot --attach net.onnx -o sky.onnx")
    assert f"preprocessing: {made}; the same in Python" in out
    assert "".join(f"  {line}\n" for line in made.to_python()) in out
    (folder / "preprocessor_config.json").unlink()
    assert open_model("sky.onnx").preprocessing == made
    alone = "export colors.rankshot -o x.onnx --preprocessing clip"
    check_refused(folder, alone, {}, "--preprocessing needs --attach FILE")
