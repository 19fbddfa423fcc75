"""
Export a zero-shot classifier to ONNX and torch
===============================================

You have a network in torch and want to deploy it with the new classes: as one file, without your
own Python code, on a CPU or a GPU. Here a small network for CIFAR-100's classes and a head with
rankings of CIFAR-10's classes become one torch module and one ONNX file. We compare the times of
NumPy, torch and onnxruntime. If there is a GPU, network and head run on it.

Install: ``pip install torch 'rankshot[cli,onnx]'``
"""

# %%
# A network in torch
# ------------------
#
# It has one hidden layer and learns 100 classes from 256 features of each image, which come with
# rankshot. Yours may be larger; the steps are the same.

import json
import time
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnxruntime
import torch
from matplotlib import pyplot as plt
from torch import nn

import rankshot as rs
from rankshot.datasets import load_cifar, load_panel

device = "cuda" if torch.cuda.is_available() else "cpu"
data = load_cifar()
x_train, x_reference, x_new = (
    torch.tensor(x, dtype=torch.float32, device=device)
    for x in (data.seen_train, data.seen_validation, data.new)
)
y_train = torch.tensor(np.searchsorted(data.seen_classes, data.seen_train_label), device=device)

torch.manual_seed(0)
network = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Dropout(0.5), nn.Linear(256, 100))
network.to(device)
optimizer = torch.optim.AdamW(network.parameters(), lr=2e-3, weight_decay=0.05)
for _ in range(5):
    for batch in torch.randperm(len(x_train), device=device).split(250):
        loss = nn.functional.cross_entropy(network(x_train[batch]), y_train[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
network = network.eval().requires_grad_(requires_grad=False)

# %%
# The head takes tensors
# ----------------------
#
# Scores go in as a tensor, and log-probabilities come out as a tensor on the same device. Nothing
# is copied to main memory in between.

head = rs.WeightedMean().fit(load_panel(), reference=network(x_reference))
scores = network(x_new)
log_proba = head.log_proba(scores)
print(f"scores on {scores.device.type}, log-probabilities on {log_proba.device.type}")
labels = head.classes_[log_proba.argmax(dim=1).cpu().numpy()]
print(f"accuracy on {len(labels)} images of new classes: {np.mean(labels == data.new_label):.2f}")

# %%
# One module
# ----------
#
# ``to_torch`` turns the head into a module. Together with the network, it forms one module from
# features to new classes, which can be compiled, trained further and exported.

zero_shot = nn.Sequential(network, head.to_torch()).to(device)
print(zero_shot)

# %%
# One file
# --------
#
# :func:`~rankshot.export_onnx` appends the head to a network that is already an ONNX file. The file
# is run before it is kept: if a probability differs from that of the head by more than 0.00001,
# nothing is written.

with TemporaryDirectory() as folder:
    network_file, path = Path(folder) / "network.onnx", Path(folder) / "zero-shot.onnx"
    with warnings.catch_warnings():
        # The older torch exporter needs no other package.
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.onnx.export(
            network.cpu(),
            (torch.zeros(2, 256),),
            network_file,
            dynamo=False,
            input_names=["features"],
            output_names=["scores"],
            dynamic_axes={"features": {0: "inputs"}, "scores": {0: "inputs"}},
        )
    network.to(device)
    rs.export_onnx(head, path, network=network_file)
    print(f"zero-shot.onnx: {path.stat().st_size / 1e3:.0f} kB")
    session = onnxruntime.InferenceSession(path)

# %%
# From here on, neither torch nor rankshot is needed: these lines run wherever ONNX runs. The names
# of the classes are in the metadata of the file.

classes = np.array(json.loads(session.get_modelmeta().custom_metadata_map["classes"]))
features = data.new.astype(np.float32)
proba, numbers = session.run(["probabilities", "label"], {"features": features})
print(f"classes: {', '.join(classes)}")
print(f"the same predictions as torch: {np.mean(classes[numbers] == labels):.2%}")

# %%
# The probabilities are those of the head in Python, up to rounding:

difference = np.abs(proba - head.predict_proba(scores.cpu().numpy())).max()
print(f"largest difference of a probability: {difference:.0e}")

# %%
# How long does an input take?
# ----------------------------
#
# The time of the whole path, from features to probabilities of new classes, per input. A large
# batch shares the cost of a call among many inputs. Your numbers will differ.


def run_numpy(x):
    return head.predict_proba(network(x).cpu().numpy())


def run_torch(x):
    return zero_shot(x).exp().cpu()


def run_onnx(x):
    return session.run(["probabilities"], {"features": x.cpu().numpy()})


ways = {
    f"torch ({device}), then NumPy": run_numpy,
    f"one torch module ({device})": run_torch,
    "one ONNX file (CPU)": run_onnx,
}
sizes = [1, 4, 16, 64, 256, 1024]
_, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for name, way in ways.items():
    times = []
    for size in sizes:
        batch = x_new[:size]
        way(batch)
        laps = []
        for _ in range(5):
            begin = time.perf_counter()
            way(batch)
            laps.append(time.perf_counter() - begin)
        times.append(1e6 * min(laps) / size)
    ax.plot(sizes, times, "o-", label=name)
ax.set(xscale="log", yscale="log", xlabel="inputs per call", ylabel="microseconds per input")
ax.legend()
ax.grid(alpha=0.3, which="both")
plt.show()

# %%
# How much faster is a GPU?
# -------------------------
#
# The head is small compared with most networks. A GPU helps if the scores are already on it and if
# there are many inputs. Measured with scores of 200,000 inputs and 100 seen classes, for
# ``WeightedMean`` with 80 rankings:
#
# ========================================  =======
# NumPy, on an Intel Xeon with 16 cores     69 ms
# torch, on an NVIDIA H200                  0.59 ms
# the same, compiled (``torch.compile``)    0.12 ms
# ========================================  =======
#
# Where to go next
# ----------------
#
# - :doc:`GPUs, torch and ONNX </guide/devices>`: all heads, half precision, CuPy,
#   JAX, Dask, and ``rankshot export``.
# - :doc:`Benchmarks </project/benchmarks>`.
# - :ref:`sphx_glr_gallery_new_classes_01_imagenet_network.py`: a network that starts from pixels.
