"""Whether scores are probabilities has one answer, by whatever way they come in."""

import warnings

import numpy as np
import pytest

import rankshot as rs
from command_line import rankshot

ITEMS = ("leopard", "tiger", "bus")
ROWS = [
    ([0.2, 0.3, 0.5], True),
    ([0, 1, 0], True),
    ([0.33, 0.33, 0.33], True),
    ([0.34, 0.34, 0.335], True),
    ([0.3, 0.3, 0.37], False),
    ([0.5, 0.6, 0.2], False),
    ([-0.1, 0.6, 0.5], False),
    ([1.2, 0, -0.2], False),
    ([0, 0, 0], False),
    ([3, 1, 0], False),
]


@pytest.fixture
def head():
    rankings = rs.Rankings.from_orders(
        [["leopard", "tiger", "bus"], ["bus", "tiger", "leopard"]], targets=["cat", "truck"]
    )
    return rs.WeightedMean().fit(rankings)


def ask_scores(row, head, folder):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        head.predict(np.array([row, row]))
    return any("look like probabilities" in str(warning.message) for warning in caught)


def ask_command(row, head, folder):
    lines = [",".join(ITEMS), ",".join(map(str, row)), ",".join(map(str, row))]
    (folder / "scores.csv").write_text("\n".join(lines))
    (folder / "rankings.jsonl").write_text(
        '{"target": "cat", "ranking": ["leopard", "tiger", "bus"]}\n'
        '{"target": "truck", "ranking": ["bus", "tiger", "leopard"]}\n'
    )
    done = rankshot(
        f"classify {folder}/scores.csv --rankings {folder}/rankings.jsonl -o {folder}/out.csv"
    )
    assert done.status == 0
    return "interpreted as probabilities" in done.out


def ask_score(row, head, folder):
    found = rs.inference.score(lambda batch: [row] * len(batch), ["a", "b"], ITEMS)
    return not np.array_equal(found.scores.values, [row, row])


def ask_export(row, head, folder):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("ndonnx")
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    tensor = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "zeros"], ["product"]),
            helper.make_node("Add", ["product", "row"], ["y"]),
        ],
        "network",
        [helper.make_tensor_value_info("x", tensor, ["b", 4])],
        [helper.make_tensor_value_info("y", tensor, ["b", 3])],
        [
            numpy_helper.from_array(np.zeros((4, 3), np.float32), "zeros"),
            numpy_helper.from_array(np.array(row, np.float32), "row"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, folder / "network.onnx")
    exported = rs.export_onnx(head, folder / "head.onnx", network=folder / "network.onnx")
    return exported.from_probabilities


@pytest.mark.parametrize(
    "ask", [ask_scores, ask_command, ask_score, pytest.param(ask_export, marks=pytest.mark.slow)]
)
def test_every_way_gives_the_same_answer(tmp_path, head, ask):
    # An export takes a second.
    rows = ROWS[2:7:2] if ask is ask_export else ROWS
    assert [ask(row, head, tmp_path) for row, _ in rows] == [answer for _, answer in rows]


def test_what_is_found_to_be_probabilities_is_accepted_as_such():
    for row, answer in ROWS:
        if answer:
            assert len(rs.Scores.from_probabilities([row], ITEMS)) == 1
        else:
            with pytest.raises(rs.RankshotError):
                rs.Scores.from_probabilities([row], ITEMS)
