"""One run of all experiments on a part of the embedded data, in seconds."""

from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from joblib import parallel_config
from reproduction.benchmark import load_benchmark
from reproduction.classifiers import LEAST_SQUARES
from reproduction.data import load_data
from reproduction.full_sum import full_sum_table
from reproduction.reproduction import Reproduction, reproduce
from reproduction.result_one import rater_table
from sklearn import config_context

from rankshot.datasets import LabelledData, load_cifar
from reproduction import peer_comparison, reproduction as module

GRID = {
    "one-vs-rest": (0.001,),
    "one-vs-one": (0.001,),
    "multiclass": (0.003, 0.03),
    LEAST_SQUARES: (0.001,),
}
ENCODER_WEIGHTS = (10.0,)
RATERS = ("lm1", "lm2", "lm3")
PARTS = {
    "seen_train": ("seen_train", 12),
    "seen_test": ("seen_validation", 6),
    "unseen_test": ("new", 20),
}
"""For each part of a feature file: its name in the embedded data, and the images per class."""


class SharedRun(NamedTuple):
    """The results of the run, what it was made from, and the folder of trained classifiers."""

    images: LabelledData
    directory: Path
    result: Reproduction


def without_images(name, seen, new):
    """Return data with names of classes alone."""
    nothing = np.zeros((0, 2), np.float32), np.array([], str)
    return LabelledData(name, *nothing * 3, seen_classes=seen, new_classes=new)


def write_features(path):
    """Write the first images of every class in the layout of the full file."""
    data = load_cifar()
    classes = {"seen": np.array(data.seen_classes), "unseen": np.array(data.new_classes)}
    arrays = {f"{kind}_classes": names for kind, names in classes.items()}
    for part, (name, n) in PARTS.items():
        labels, names = getattr(data, f"{name}_label"), classes[part.split("_")[0]]
        rows = np.sort(np.concatenate([np.flatnonzero(labels == one)[:n] for one in names]))
        arrays[part] = getattr(data, name)[rows].astype(np.float16)
        arrays[f"{part}_label"] = np.searchsorted(names, labels[rows]).astype(np.int16)
    path.parent.mkdir(parents=True)
    np.savez(path, **arrays)


@contextmanager
def small_grids():
    """Try few settings of the slowest peer."""
    with pytest.MonkeyPatch.context() as patch:
        grid = peer_comparison.SAE_GRID | {"encoder_weight": ENCODER_WEIGHTS}
        patch.setattr(peer_comparison, "SAE_GRID", grid)
        yield


def run_all(folder):
    data, directory = folder / "data", folder / "classifiers"
    write_features(data / "cifar" / "features.npz")
    images = load_data("cifar", data)
    # Of 4,950 support vector machines most of the time is spent around them.
    quickly = config_context(assume_finite=True, skip_parameter_validation=True)
    with (
        small_grids(),
        quickly,
        parallel_config("sequential"),
        pytest.MonkeyPatch.context() as patch,
    ):
        # Thirty inputs and three raters are enough to see that these tables, which take long, work.
        patch.setattr(module, "full_sum_table", partial(full_sum_table, n_inputs=30))
        patch.setattr(module, "rater_table", _few_raters)
        result = reproduce(load_benchmark(images), directory, str, GRID)
    return SharedRun(images, directory, result)


def _few_raters(benchmark):
    panel = benchmark.real.panel
    few = panel[np.isin(panel.raters, RATERS)]
    return rater_table(replace(benchmark, panels={"similar": few}))
