"""Features: the input of a model's last layer, found in networks of all kinds."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankshot as rs
from rankshot.recognition import open_model
from tiny_models import CLASSES, write_graph

RNG = np.random.default_rng(5)
A = RNG.normal(size=(6, 4)).astype(np.float32)
W = RNG.normal(size=(4, 3)).astype(np.float32)
B = RNG.normal(size=3).astype(np.float32)
X = RNG.normal(size=(5, 6)).astype(np.float32)
IMAGES = RNG.normal(size=(5, 4, 3, 3)).astype(np.float32)
HIDDEN = np.maximum(X @ A, 0)
POOLED = IMAGES.mean(axis=(2, 3))
SCALE, ZERO = np.float32(0.1), np.uint8(0)
QUANTIZED = np.clip(np.round(W / SCALE), -128, 127).astype(np.int8)
CONSTANTS = {
    "A": A,
    "W": W,
    "Wt": W.T.copy(),
    "B": B,
    "kernel": W.T.reshape(3, 4, 1, 1).copy(),
    "rows": np.array([-1, 3]),
    "table": np.array([-1, 4]),
    "scale": SCALE,
    "zero": ZERO,
    "signed_zero": np.int8(0),
    "Q": QUANTIZED,
    "wide": np.array([128.0], np.float32),
}


def nodes(text):
    """Make nodes from a text such as ``h = Relu(a); y = MatMul(h, W)``."""
    found = []
    for line in text.split("; "):
        left, right = line.split(" = ")
        kind, inputs = right.rstrip(")").split("(")
        found.append(helper.make_node(kind, inputs.split(", "), left.split(", ")))
    return found


HIDDEN_LAYER = "a = MatMul(x, A); h = Relu(a); "
POOLING = "p = GlobalAveragePool(x); "
TOKENS = IMAGES.reshape(5, 9, 4)
NETWORKS = {
    "gemm, softmax": (X, HIDDEN_LAYER + "z = Gemm(h, W, B); y = Softmax(z)", HIDDEN),
    "matmul, add, log-softmax, reshape": (
        X,
        HIDDEN_LAYER + "z = MatMul(h, W); b = Add(z, B); s = LogSoftmax(b); y = Reshape(s, rows)",
        HIDDEN,
    ),
    "transposed weights": (
        X,
        HIDDEN_LAYER + "V = Transpose(Wt); U = Identity(V); y = MatMul(h, U)",
        HIDDEN,
    ),
    "global pooling, gemm": (IMAGES, POOLING + "f = Flatten(p); y = Gemm(f, W, B)", POOLED),
    "convolution, global pooling": (
        IMAGES,
        "c = Conv(x, kernel, B); p = GlobalAveragePool(c); y = Flatten(p)",
        POOLED,
    ),
    "global pooling, convolution": (
        IMAGES,
        POOLING + "c = Conv(p, kernel, B); y = Reshape(c, rows)",
        POOLED,
    ),
    "tokens, mean": (
        TOKENS,
        "t = MatMul(x, W); r = Transpose(t); p = GlobalAveragePool(r); y = Flatten(p)",
        TOKENS.mean(axis=1),
    ),
    "quantised": (
        X,
        HIDDEN_LAYER + "q = QuantizeLinear(h, scale, zero); "
        "m = QLinearMatMul(q, scale, zero, Q, scale, signed_zero, scale, zero); "
        "y = DequantizeLinear(m, scale, zero)",
        HIDDEN,
    ),
    "quantised when it runs": (
        X,
        HIDDEN_LAYER
        + "q, s, o = DynamicQuantizeLinear(h); m = MatMulInteger(q, Q, o); y = Cast(m)",
        HIDDEN,
    ),
    "quantised weights": (
        X,
        HIDDEN_LAYER + "V = DequantizeLinear(Q, scale, signed_zero); y = MatMul(h, V)",
        HIDDEN,
    ),
}


def write_network(path, x, text, *, others=(), name="y"):
    made = nodes(text)
    for node in made:
        if node.op_type == "Cast":
            node.attribute.append(helper.make_attribute("to", TensorProto.FLOAT))
        if node.op_type == "Transpose" and node.input[0] == "t":
            node.attribute.append(helper.make_attribute("perm", [0, 2, 1]))
    write_graph(
        path,
        made,
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", *x.shape[1:]]),
        [
            helper.make_tensor_value_info(one, TensorProto.FLOAT, ["n", width])
            for one, width in ((name, 3), *others)
        ],
        [numpy_helper.from_array(np.asarray(value), key) for key, value in CONSTANTS.items()],
        {"classes": CLASSES},
    )
    return path


@pytest.mark.parametrize("kind", NETWORKS)
def test_the_last_layer_of_an_onnx_network(tmp_path, kind):
    x, text, expected = NETWORKS[kind]
    path = write_network(tmp_path / "net.onnx", x, text)
    model = open_model(path)
    scores, features = model.run_with_features(x)
    np.testing.assert_allclose(features, expected, atol=1e-6)
    np.testing.assert_array_equal(scores, model.run(x))
    if kind == "convolution, global pooling":
        np.testing.assert_allclose(scores, expected @ W + B, atol=1e-5)
    # Images would need preprocessing.
    if x.ndim == 2:
        found = rs.recognition.score(path, x, batch_size=2).scores
        np.testing.assert_allclose(found.features, expected, atol=1e-6)
        assert found.features.dtype == np.float32
        assert rs.recognition.score(path, x, features=False).scores.features is None


def test_the_last_layer_is_that_of_the_scores(tmp_path):
    """Other heads come after it in the file, or are behind it."""
    text = HIDDEN_LAYER + "logits = Gemm(h, W, B); other = Tanh(a); age = MatMul(other, W); "
    text += "embedding = Identity(h)"
    others = (("age", 3), ("embedding", 4))
    path = write_network(tmp_path / "net.onnx", X, text, others=others, name="logits")
    _, features = open_model(path).run_with_features(X)
    np.testing.assert_allclose(features, HIDDEN, atol=1e-6)


def test_a_network_without_a_last_layer_has_no_features(tmp_path):
    """Products of two values that depend on the input are not layers."""
    text = "s = Softmax(x); t = Transpose(s); m = MatMul(s, t); y = MatMul(m, x)"
    x = X[:, :3]
    path = write_network(tmp_path / "net.onnx", x, text)
    assert open_model(path).run_with_features is None
    assert rs.recognition.score(path, x).scores.features is None


def test_torch_networks():
    import torch
    from torch import nn

    torch.manual_seed(0)
    x = torch.from_numpy(IMAGES)

    class TwoHeads(nn.Module):
        """The head that is not used is the last part."""

        def __init__(self):
            super().__init__()
            self.hidden, self.fc, self.unused = nn.Linear(36, 4), nn.Linear(4, 3), nn.Linear(9, 3)

        def forward(self, x):
            return torch.softmax(self.fc(torch.relu(self.hidden(x.flatten(1)))), dim=1)

    network = TwoHeads()
    with torch.no_grad():
        hidden = torch.relu(network.hidden(x.flatten(1))).numpy()
    found = rs.recognition.score(network, IMAGES, CLASSES, batch_size=2).scores
    np.testing.assert_allclose(found.features, hidden, atol=1e-6)
    assert not any(part._forward_hooks for part in network.modules())
    squeeze = nn.Sequential(nn.Conv2d(4, 3, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    found = rs.recognition.score(squeeze, IMAGES, CLASSES).scores
    np.testing.assert_allclose(found.features, POOLED, atol=1e-6)
    assert rs.recognition.score(nn.Flatten(), X[:, :3], CLASSES).scores.features is None


def test_tokens_that_are_scored_have_their_mean_as_features():
    from torch import nn

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.score = nn.Linear(4, 3, bias=False)

        def forward(self, x):
            return self.score(x)[:, -1]

    found = rs.recognition.score(Decoder(), TOKENS, CLASSES).scores
    np.testing.assert_allclose(found.features, TOKENS.mean(axis=1), atol=1e-6)


def test_pipelines_and_functions():
    y = np.arange(5) % 3
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    found = rs.recognition.score(pipeline, X, batch_size=2).scores
    np.testing.assert_allclose(found.features, pipeline[0].transform(X), atol=1e-5)
    texts = ["play music", "set alarm", "play a song", "stop the alarm", "music"]
    words = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, y)
    found = rs.recognition.score(words, texts, batch_size=2).scores
    expected = words[0].transform(texts).toarray()
    np.testing.assert_allclose(found.features.toarray(), expected, atol=1e-6)
    count = rs.recognition.score(lambda some: [[len(text), 1] for text in some], texts, ["a", "b"])
    assert count.scores.features is None


def test_an_infinite_feature_is_skipped():
    def run(batch):
        return np.zeros((len(batch), 3)), np.where(np.arange(len(batch)) == 1, np.inf, 1.0)[:, None]

    model = rs.recognition.Model("net", "values", run, run, classes=CLASSES)
    found = rs.recognition.score(model, X, on_error="skip")
    assert [(one.id, one.reason) for one in found.skipped] == [
        ("1", "a feature of the model is not finite")
    ]
    assert len(found.scores) == len(found.scores.features) == 4
