"""`export_onnx`: the head as a graph, alone and behind networks, gives the head's answers."""

import json
from dataclasses import replace
from itertools import product

import numpy as np
import onnx
import onnxruntime
import pytest
from head_cases import ITEMS, RANKINGS, TARGETS, random_scores
from onnx import helper, numpy_helper
from scipy.special import expit, softmax

import rankshot as rs
from rankshot import RankshotError
from rankshot.zeroshot import onnx_export
from rankshot.zeroshot.together import NEVER
from refusals import refuses


def run(path, **inputs):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


def fitted(**known):
    return rs.WeightedMean().fit(RANKINGS, **known)


def test_a_head_alone(tmp_path):
    """Usual, equal and tied scores, and large gaps, give the head's probabilities and labels."""
    values = np.random.default_rng(5).normal(size=(8, 5))
    values = np.concatenate([values, 0 * values, values.round(), 1000 * values]).astype(np.float32)
    head = fitted(reference=random_scores(np.random.default_rng(4), "multiclass", n=40))
    refined = rs.zeroshot.BatchRefinement(head).fit(random_scores(np.random.default_rng(1), n=40))
    both = rs.zeroshot.SeenAndNew(head).fit()
    for each in (fitted(), head, refined, both):
        assert rs.export_onnx(each, tmp_path / "head.onnx") <= 1e-5
        proba, label = run(tmp_path / "head.onnx", scores=values)
        expected = each.predict_proba(values.astype(np.float64))
        np.testing.assert_allclose(proba, expected, rtol=0, atol=1e-5)
        # Among equal probabilities, rounding may decide in a graph.
        chosen = np.take_along_axis(expected, label[:, None], axis=1)[:, 0]
        np.testing.assert_allclose(chosen, expected.max(axis=1), atol=1e-5)
    with refuses("head"):
        rs.export_onnx("head", tmp_path / "head.onnx")


@pytest.mark.parametrize("options", [{}, {"none": True}, {"seen": False}, {"labelled": 2}])
def test_seen_and_new_classes_alone_and_behind_a_network(tmp_path, options):
    """Groups of classes with and without examples, features, and "none of these"."""
    rng, n_labelled = np.random.default_rng(3), options.pop("labelled", 0)
    network = write_network(tmp_path / "network.onnx", end=["Softmax<axis=1>"])
    proba = softmax(rng.normal(size=(200, 3)) @ WEIGHTS, axis=1)
    features = rng.normal(size=(200, 3))
    reference = rs.Scores.from_probabilities(proba, ITEMS).with_blocks(features=features)
    examples = reference[:n_labelled], np.array(TARGETS[:n_labelled])
    examples = examples if n_labelled else None
    head = fitted(reference=reference, examples=examples)
    both = rs.zeroshot.SeenAndNew(head, seen_loss=0.1, **options).fit(reference, None, examples)
    assert both.head_.n_features == (3 if n_labelled else 0)
    assert len(both.head_.groups) == 1 + bool(n_labelled) + options.get("none", False)
    assert rs.export_onnx(both, tmp_path / "all.onnx", network=network) <= 1e-5
    found, label = run(tmp_path / "all.onnx", x=INPUTS)
    scores = rs.Scores.from_probabilities(softmax(INPUTS @ WEIGHTS, axis=1), ITEMS)
    scores = scores.with_blocks(features=INPUTS)
    np.testing.assert_allclose(found, both.predict_proba(scores), rtol=0, atol=1e-5)
    assert both.classes_[label].tolist() == both.predict(scores).tolist()
    rs.export_onnx(both, tmp_path / "head.onnx")
    inputs = {"scores": scores.values} | ({"features": INPUTS} if n_labelled else {})
    for rows in (slice(None), slice(1)):
        alone = run(tmp_path / "head.onnx", **{name: x[rows] for name, x in inputs.items()})[0]
        np.testing.assert_allclose(alone, found[rows], rtol=0, atol=1e-5)


@pytest.mark.parametrize(("threshold", "n_new"), [(NEVER, 0), (-NEVER, 50)])
def test_budgets_that_allow_no_new_class_or_all_keep_all_digits(tmp_path, threshold, n_new):
    both = rs.zeroshot.SeenAndNew(fitted()).fit().head_
    both = replace(both, thresholds=np.full(len(TARGETS), threshold))
    scores = random_scores(np.random.default_rng(3), n=50, dtype=np.float32)
    assert np.isin(both.predict(scores), TARGETS).sum() == n_new
    expected = both.predict_proba(scores.values.astype(np.float64))
    np.testing.assert_allclose(both.predict_proba(scores), expected, rtol=0, atol=2e-6)
    assert rs.export_onnx(both, tmp_path / "head.onnx") <= 2e-6


@pytest.mark.parametrize("n_items", [2, 3, 6, 9])
def test_few_classes_and_tied_scores(tmp_path, n_items):
    """Tied scores share the bonus of their places, whatever they are tied for."""
    items = [f"i{j}" for j in range(n_items)]
    lists = rs.Rankings.from_orders([items[:2], items[:0:-1]], items=items, targets=["p", "q"])
    head = rs.WeightedMean().fit(lists)
    assert head.head_.rank_slopes.any()
    rs.export_onnx(head, tmp_path / "head.onnx")
    levels = np.array(list(product(range(3), repeat=min(n_items, 6))), np.float32)
    values = np.column_stack([levels, np.zeros((len(levels), n_items - levels.shape[1]))])
    values = values.astype(np.float32)
    proba, _ = run(tmp_path / "head.onnx", scores=values)
    np.testing.assert_allclose(proba, head.predict_proba(values), rtol=0, atol=1e-5)


def test_one_vs_one_scores_are_summed_before(tmp_path):
    table = random_scores(np.random.default_rng(4), "one-vs-one", n=40)
    head = fitted(reference=table)
    rs.export_onnx(head, tmp_path / "head.onnx")
    proba, _ = run(tmp_path / "head.onnx", scores=table.values.astype(np.float32))
    np.testing.assert_allclose(proba, head.predict_proba(table), rtol=0, atol=1e-5)


def test_what_the_file_says(tmp_path):
    rs.export_onnx(fitted(), tmp_path / "head.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "head.onnx"))
    ends = [*session.get_inputs(), *session.get_outputs()]
    assert [(one.name, one.shape, one.type) for one in ends] == [
        ("scores", ["inputs", 5], "tensor(float)"),
        ("probabilities", ["inputs", 4], "tensor(float)"),
        ("label", ["inputs"], "tensor(int64)"),
    ]
    metadata = session.get_modelmeta().custom_metadata_map
    assert json.loads(metadata["classes"]) == list(TARGETS)
    assert json.loads(metadata["seen_classes"]) == list(ITEMS)
    assert metadata["head"] == "LinearHead"
    onnx.checker.check_model(onnx.load(tmp_path / "head.onnx"), full_check=True)


def test_an_old_file_stays_if_the_graph_differs(tmp_path, monkeypatch):
    path = tmp_path / "head.onnx"
    path.write_text("old")
    monkeypatch.setattr(onnx_export, "TOLERANCE", -1.0)
    with pytest.raises(RankshotError, match=r"differs from the head .*nothing was written"):
        rs.export_onnx(fitted(), path)
    assert [file.name for file in tmp_path.iterdir()] == ["head.onnx"]
    assert path.read_text() == "old"


# ------------------------------------------------------------------ behind a network

NEWEST = min(onnx.defs.onnx_opset_version(), 23)
"""The newest opset that onnxruntime is sure to run."""
WEIGHTS = np.random.default_rng(1).normal(scale=2, size=(3, 5)).astype(np.float32)
INPUTS = np.random.default_rng(2).normal(size=(7, 3)).astype(np.float32)


def write_network(path, *, opset=17, end=(), names=("y",), columns=5, metadata=()):
    """Write a linear network, ``end`` of nodes and all outputs the same."""
    last, nodes = "wide", ["wide = MatMul(x, w)"]
    for i, node in enumerate(end):
        nodes.append(f"t{i} = {node}({last})")
        last = f"t{i}"
    nodes += [f"{name} = Identity({last})" for name in names]
    outputs = ", ".join(f"float[b, {columns}] {name}" for name in names)
    head = f'<ir_version: 10, opset_import: ["" : {opset}]> network (float[b, 3] x) => ({outputs})'
    model = onnx.parser.parse_model(f"{head} {{{' '.join(nodes)}}}")
    model.graph.initializer.append(numpy_helper.from_array(np.resize(WEIGHTS, (3, columns)), "w"))
    helper.set_model_props(model, {key: json.dumps(value) for key, value in dict(metadata).items()})
    onnx.save(model, path)
    return path


def attach(tmp_path, head, output=None, **options):
    network = write_network(tmp_path / "network.onnx", **options)
    path = tmp_path / "zero-shot.onnx"
    assert rs.export_onnx(head, path, network=network, output=output) <= 1e-5
    return path


@pytest.mark.slow
@pytest.mark.parametrize("opset", [11, NEWEST])
def test_a_head_behind_a_network_of_any_opset(tmp_path, opset):
    head = fitted()
    path = attach(tmp_path, head, opset=opset, metadata={"author": "me"})
    expected = head.predict_proba(INPUTS @ WEIGHTS)
    for n in (1, 4, 7):
        proba, label = run(path, x=INPUTS[:n])
        np.testing.assert_allclose(proba, expected[:n], atol=1e-5)
        assert label.tolist() == expected[:n].argmax(axis=1).tolist()
    session = onnxruntime.InferenceSession(str(path))
    assert [(one.name, one.shape) for one in session.get_inputs()] == [("x", ["b", 3])]
    assert json.loads(session.get_modelmeta().custom_metadata_map["author"]) == "me"


@pytest.mark.parametrize("is_joint", [False, True])
@pytest.mark.parametrize(
    ("end", "kind"),
    [
        (["Softmax<axis=1>", "Cast<to=1>"], "multiclass"),
        (["LogSoftmax", "Exp"], "multiclass"),
        (["Sigmoid"], "one-vs-rest"),
    ],
)
def test_probabilities_become_logarithms_or_log_odds(tmp_path, end, kind, is_joint):
    """A softmax is found in the graph, or by its values; a joint head has their temperature."""
    head = rs.zeroshot.SeenAndNew(fitted()).fit().head_ if is_joint else fitted()
    path = attach(tmp_path, head, end=end)
    f = (INPUTS @ WEIGHTS).astype(np.float32)
    p = softmax(f, axis=1) if kind == "multiclass" else expit(f)
    expected = head.predict_proba(rs.Scores.from_probabilities(p, ITEMS, kind))
    np.testing.assert_allclose(run(path, x=INPUTS)[0], expected, rtol=0, atol=1e-5)


def test_a_head_for_other_scores_takes_the_output_as_it_is(tmp_path):
    head = fitted(reference=random_scores(np.random.default_rng(4), "multiclass", n=40))
    path = attach(tmp_path, head, end=["Sigmoid"])
    expected = head.predict_proba(expit(INPUTS @ WEIGHTS))
    np.testing.assert_allclose(run(path, x=INPUTS)[0], expected, atol=1e-5)


@pytest.mark.slow
def test_a_network_with_several_outputs(tmp_path):
    head = fitted()
    with refuses("output", None):
        attach(tmp_path, head, names=("y", "other"))
    path = attach(tmp_path, head, names=("y", "other"), output="other")
    expected = head.predict_proba(INPUTS @ WEIGHTS)
    np.testing.assert_allclose(run(path, x=INPUTS)[0], expected, atol=1e-5)
    for options in ({"output": "z"}, {"columns": 6}):
        with refuses("output", options.get("output")) as caught:
            attach(tmp_path, head, **options)
        assert f"[FLOAT, bx{options.get('columns', 5)}]" in caught.value.hint


def test_a_network_of_classical_machine_learning_alone(tmp_path):
    """It needs no operator of ONNX itself, so the head adds their version."""
    weights = ", ".join(map(str, WEIGHTS.T.ravel().tolist()))
    text = f"""<ir_version: 10, opset_import: ["ai.onnx.ml" : 1]>
    network (float[b, 3] x) => (float[b, 5] y)
    {{ y = ai.onnx.ml.LinearRegressor<coefficients=[{weights}], targets=5>(x) }}"""
    network, head, path = tmp_path / "network.onnx", fitted(), tmp_path / "zero-shot.onnx"
    onnx.save(onnx.parser.parse_model(text), network)
    rs.export_onnx(head, path, network=network)
    expected = head.predict_proba(INPUTS @ WEIGHTS)
    np.testing.assert_allclose(run(path, x=INPUTS)[0], expected, atol=1e-5)


@pytest.mark.slow
def test_class_names_of_the_network_are_checked(tmp_path):
    head = fitted()
    path = attach(tmp_path, head, metadata={"names": dict(enumerate(ITEMS))})
    metadata = {entry.key: entry.value for entry in onnx.load(path).metadata_props}
    assert json.loads(metadata["classes"]) == list(TARGETS)
    assert "names" not in metadata
    for names, value in ((ITEMS[::-1], "e"), (ITEMS[:4], None)):
        with refuses("network", value):
            attach(tmp_path, head, metadata={"names": dict(enumerate(names))})


def test_a_network_that_names_a_built_in_list_of_classes(tmp_path):
    seen = rs.sources.read_class_labels("imagenet-1k").names
    network = write_network(tmp_path / "network.onnx", columns=1000)
    model = onnx.load(network)
    entry = model.metadata_props.add(key="classes", value="imagenet-1k")
    onnx.save(model, network)
    slopes = np.random.default_rng(0).normal(size=(2, 1000))
    head = rs.LinearHead(seen, ["cat", "dog"], slopes, [0, 0])
    assert rs.export_onnx(head, tmp_path / "new.onnx", network=network) <= 1e-5
    with refuses("network", seen[0]):
        rs.export_onnx(replace(head, seen=seen[::-1]), tmp_path / "new.onnx", network=network)
    entry.value = str(tmp_path / "names.txt")
    (tmp_path / "names.txt").write_text("\n".join(seen))
    onnx.save(model, network)
    with pytest.raises(RankshotError, match="class names in its metadata are damaged"):
        rs.export_onnx(head, tmp_path / "new.onnx", network=network)


def test_files_that_are_no_networks(tmp_path):
    head, path = fitted(), tmp_path / "zero-shot.onnx"
    network = write_network(tmp_path / "network.onnx")
    with pytest.raises(FileNotFoundError, match=r"no\.onnx"):
        rs.export_onnx(head, path, network=tmp_path / "no.onnx")
    for content in (b"", b"hello", network.read_bytes()[:40]):
        network.write_bytes(content)
        with pytest.raises(RankshotError, match=r"network\.onnx: is not an ONNX file"):
            rs.export_onnx(head, path, network=network)
    assert [file.name for file in tmp_path.iterdir()] == ["network.onnx"]


@pytest.mark.slow
def test_labels_follow_the_rule_for_equal_classes(tmp_path):
    """The same lists in another order differ by rounding only: the first name wins."""
    lists = [["a", "b"], ["c", "a"], ["b", "d"]]
    rankings = rs.Rankings.from_orders(
        [*lists, *lists[::-1]], items=ITEMS, targets=["y"] * 3 + ["x"] * 3
    )
    head = rs.WeightedMean().fit(rankings)
    rs.export_onnx(head, tmp_path / "head.onnx")
    scores = np.random.default_rng(0).normal(size=(200, 5)).astype(np.float32)
    labels = run(tmp_path / "head.onnx", scores=scores)[1]
    assert head.classes_[labels].tolist() == head.predict(scores).tolist() == ["x"] * 200


def test_features_of_a_head_behind_a_network_are_those_of_its_last_layer(tmp_path):
    write_network(tmp_path / "net.onnx")
    scores = rs.Scores(INPUTS @ WEIGHTS, ITEMS, features=INPUTS)
    lists = rs.Rankings.from_orders([["a", "b"], ["c"]], items=ITEMS, targets=["p", "q"])
    examples = scores[:4], ["p", "q", "p", "q"]
    opinion = rs.Scores(INPUTS[:, :2], ["p", "q"])
    inputs = rs.Scores(scores.values, ITEMS, features=INPUTS, evidence=opinion)
    head = rs.WeightedMean().fit(lists, examples=examples, evidence=inputs)
    rs.export_onnx(head, tmp_path / "new.onnx", network=tmp_path / "net.onnx")
    written = onnx.load(tmp_path / "new.onnx")
    assert {one.name for one in written.graph.input} == {"x", "evidence"}
    few = opinion.values.astype(np.float32)
    proba, _ = run(tmp_path / "new.onnx", x=INPUTS, evidence=few)
    np.testing.assert_allclose(proba, head.predict_proba(inputs), atol=1e-5)
    # A network whose last layer has another width leaves the features to the user.
    wide = rs.Scores(scores.values, ITEMS, features=np.hstack([INPUTS, INPUTS[:, :1]]))
    head = rs.WeightedMean().fit(lists, examples=(wide[:4], examples[1]))
    rs.export_onnx(head, tmp_path / "wide.onnx", network=tmp_path / "net.onnx")
    features = wide.features.astype(np.float32)
    proba, _ = run(tmp_path / "wide.onnx", x=INPUTS, features=features)
    np.testing.assert_allclose(proba, head.predict_proba(wide), atol=1e-5)
