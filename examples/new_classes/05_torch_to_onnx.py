"""How do a torch network and new classes become one ONNX file, and what stays on the GPU?
=======================================================================================

Install: pip install torch 'rankshot[onnx]'

A small network learns the 100 classes of CIFAR-100, from features that come with rankshot. A head
with the rankings of a language-model panel recognises the 10 classes of CIFAR-10. The network runs
on a GPU if there is one, and so does the head: tensors go in, and tensors on the same device come
out. Then both become one torch module, and one ONNX file that runs without torch and rankshot.
"""

import json
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnxruntime
import torch
from torch import nn

import rankshot as rs
from rankshot.datasets import ImageData, load_cifar, load_panel

N_EPOCHS = 8


def train(data: ImageData, device: str) -> nn.Module:
    """Return a network from 256 features to 100 scores; output i is ``data.seen_classes[i]``."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Dropout(0.5), nn.Linear(512, 100))
    network.to(device)
    x = torch.tensor(data.seen_train, dtype=torch.float32, device=device)
    numbers = [data.seen_classes.index(name) for name in data.seen_train_label]
    y = torch.tensor(numbers, device=device)
    optimizer = torch.optim.AdamW(network.parameters(), lr=2e-3, weight_decay=0.05)
    for _ in range(N_EPOCHS):
        for batch in torch.randperm(len(x), device=device).split(128):
            loss = nn.functional.cross_entropy(network(x[batch]), y[batch], label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return network.eval()


def write_onnx(network: nn.Module, path: Path) -> None:
    """Write the network alone, with any number of inputs at a time."""
    axes = {"features": {0: "inputs"}, "scores": {0: "inputs"}}
    with warnings.catch_warnings():
        # The older exporter of torch, without a further package. The newer one (dynamo=True, with
        # onnxscript) does as well.
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.onnx.export(
            network.cpu(),
            (torch.zeros(2, 256),),
            path,
            dynamo=False,
            input_names=["features"],
            output_names=["scores"],
            dynamic_axes=axes,
        )


def main(folder: Path) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    data = load_cifar()
    network = train(data, device)
    reference = torch.tensor(data.seen_validation, dtype=torch.float32, device=device)
    x = torch.tensor(data.new, dtype=torch.float32, device=device)

    with torch.inference_mode():
        # The columns of the scores are in the order of the items of the rankings: CIFAR-100's.
        # The reference: scores of other images of seen classes tell which scores are usual.
        head = rs.WeightedMean().fit(load_panel(), reference=network(reference))
        scores = network(x)
        log_proba = head.predict_log_proba(scores)
        print(f"scores on {scores.device}, log-probabilities on {log_proba.device}")
        labels = head.classes_[log_proba.argmax(dim=1).cpu().numpy()]
        right = np.mean(labels == data.new_label)
        print(f"new classes: {right:.2f} of {len(x)} images are right (chance: 0.10)")

        # One module. It can be trained further, compiled (torch.compile) and exported.
        zero_shot = nn.Sequential(network, head.to_torch()).to(device)
        difference = (zero_shot(x) - log_proba).abs().max().item()
        print(f"\nas one torch module, from features to new classes:\n{zero_shot}")
        print(f"largest difference of a log-probability: {difference:.1g}")

    write_onnx(network, folder / "network.onnx")
    rs.export_onnx(head, folder / "zero-shot.onnx", network=folder / "network.onnx")
    # From here on neither torch nor rankshot is needed: these lines run wherever ONNX runs.
    session = onnxruntime.InferenceSession(folder / "zero-shot.onnx")
    classes = json.loads(session.get_modelmeta().custom_metadata_map["classes"])
    features = data.new.astype(np.float32)
    proba, numbers = session.run(["probabilities", "label"], {"features": features})
    print(f"\nzero-shot.onnx has {(folder / 'zero-shot.onnx').stat().st_size / 1e3:.0f} kB")
    print(f"its classes: {', '.join(classes)}")
    print(f"the same answers: {np.mean(np.array(classes)[numbers] == labels):.2%}")
    difference = np.abs(proba - log_proba.exp().cpu().numpy()).max()
    print(f"largest difference of a probability: {difference:.1g}")


if __name__ == "__main__":
    with TemporaryDirectory() as directory:
        main(Path(directory))
