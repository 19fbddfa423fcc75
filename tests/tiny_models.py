"""Tiny models of each kind, whose scores a few lines of NumPy give as well."""

import json

import numpy as np

CLASSES = ["red", "green", "blue"]
PLAIN = {"size": (8, 8), "mean": 0.5, "std": 0.25, "resize": 8}
"""A preprocessing for images of 8 x 8 pixels."""
CONFIG = {
    "size": {"shortest_edge": 8},
    "do_center_crop": True,
    "crop_size": 8,
    "image_mean": [0.5] * 3,
    "image_std": [0.25] * 3,
    "resample": 2,
}
"""The same as transformers writes it."""
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "play", "music", "set", "alarm", "weather", "##s"]


def mean_colors(batch):
    """Return the mean of each channel: the scores of the tiny networks."""
    return np.asarray(batch).mean(axis=(2, 3))


def write_onnx(path, *, shape=("n", 3, 8, 8), softmax=False, extra=0, metadata=None, outputs=1):
    """Write a network that returns the mean of each channel, after ``extra`` zeros."""
    from onnx import TensorProto, helper, numpy_helper

    axes = [2, 3] if shape[1] == 3 else [1, 2]
    weights = np.eye(3, 3 + extra, extra, dtype=np.float32)
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["m"], axes=axes, keepdims=0),
        helper.make_node("MatMul", ["m", "w"], ["wide"]),
        helper.make_node("Softmax" if softmax else "Identity", ["wide"], ["y"]),
    ]
    names = ["y", *(f"y{i}" for i in range(1, outputs))]
    nodes += [helper.make_node("Identity", ["wide"], [name]) for name in names[1:]]
    write_graph(
        path,
        nodes,
        helper.make_tensor_value_info("x", TensorProto.FLOAT, shape),
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, [shape[0], 3 + extra])
            for name in names
        ],
        [numpy_helper.from_array(weights, "w")],
        metadata,
    )
    return path


def write_text_onnx(path):
    """Write a network that takes texts and returns 1 and 2 for each."""
    from onnx import TensorProto, helper, numpy_helper

    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Expand", ["row", "shape"], ["y"]),
    ]
    write_graph(
        path,
        nodes,
        helper.make_tensor_value_info("x", TensorProto.STRING, ["n", 1]),
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2])],
        [numpy_helper.from_array(np.array([[1, 2]], np.float32), "row")],
        {"labels": ["one", "two"]},
    )
    return path


def write_graph(path, nodes, source, results, constants, metadata):
    import onnx
    from onnx import helper

    graph = helper.make_graph(nodes, "tiny", [source], results, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    for key, value in (metadata or {}).items():
        entry = model.metadata_props.add()
        raw = isinstance(value, str) and type(value) is not str
        entry.key, entry.value = key, str(value) if raw else json.dumps(value)
    onnx.save(model, path)


def write_image_transformer(folder):
    """Save a tiny vision transformer with random weights and its processor."""
    import torch
    from transformers import ViTConfig, ViTForImageClassification
    from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

    torch.manual_seed(1)
    config = ViTConfig(
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        image_size=16,
        patch_size=8,
        id2label=dict(enumerate(CLASSES)),
        label2id={name: i for i, name in enumerate(CLASSES)},
    )
    ViTForImageClassification(config).save_pretrained(folder)
    ViTImageProcessorPil(size={"height": 16, "width": 16}, resample=3).save_pretrained(folder)
    return folder


def write_text_transformer(folder, labels=("play_music", "set_alarm")):
    """Save a tiny BERT with random weights and its tokenizer."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    torch.manual_seed(2)
    config = BertConfig(
        vocab_size=len(WORDS),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=16,
        **({"id2label": dict(enumerate(labels))} if labels else {"num_labels": 2}),
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    BertTokenizerFast(vocab={word: i for i, word in enumerate(WORDS)}).save_pretrained(folder)
    return folder


RED, BLUE = (250, 10, 20), (10, 20, 250)


def two_halves(width=40, height=20):
    """Return an image whose left half is red and whose right half is blue."""
    from PIL import Image

    image = Image.new("RGB", (width, height), RED)
    image.paste(BLUE, (width // 2, 0, width, height))
    return image


def write_images(folder, n=5, size=(12, 10), seed=0):
    """Write n PNG files of noise with different mean colours; return their pixels by name."""
    from PIL import Image

    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    pixels = {}
    for i in range(n):
        top = rng.integers(40, 256, size=3)
        array = (rng.random((size[1], size[0], 3)) * top).astype(np.uint8)
        name = f"{i:04d}.png"
        Image.fromarray(array).save(folder / name)
        pixels[name] = array
    return pixels
