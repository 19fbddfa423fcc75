"""Models of any kind and library: a file, a folder, a name, or an object.

No file is ever unpickled: a pickle can run any code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import InputError, quote_names, suggest_name
from rankshot.core.files import require_regular
from rankshot.core.validation import require_module
from rankshot.recognition.inputs import Model, fingerprint_files
from rankshot.recognition.onnx_networks import BUILT_IN, open_built_in, open_onnx
from rankshot.recognition.torch_networks import (
    open_pipeline,
    open_pretrained,
    open_torch,
    open_transformers,
)
from rankshot.zeroshot.estimator_scores import scores_of
from rankshot.zeroshot.scores import Kind, n_columns

PICKLE_ENDINGS = (".pkl", ".pickle", ".joblib", ".pt", ".pth", ".bin", ".ckpt")


def open_model(model: object) -> Model:
    """Open a model of any kind.

    Parameters
    ----------
    model : str, Path or object
        - ``"efficientnet-lite0"``: a network for ImageNet's 1,000 classes, which comes with the
          package.
        - A file ``.onnx``, which runs on CUDA where that is installed.
        - A folder, or a name on the Hugging Face hub such as ``microsoft/resnet-50``: a
          transformers model that classifies images or texts. Or its pipeline.
        - A ``torch.nn.Module``.
        - A fitted scikit-learn classifier or pipeline, or a file ``.skops`` with one.
        - Any function from a batch of inputs to an array of scores, one row per input.

    Returns
    -------
    Model

    Raises
    ------
    RankshotError
        If the file is invalid, a package is missing, or the model is not of a supported kind.

    Examples
    --------
    >>> from rankshot.recognition import open_model
    >>> model = open_model(lambda texts: [[len(text), text.count("a")] for text in texts])
    >>> model.takes, model.run(["banana"])
    ('values', array([[6, 3]]))
    """
    if isinstance(model, Model):
        return model
    if isinstance(model, (str, Path)):
        return _open_named(model)
    modules = [f"{base.__module__}." for base in type(model).__mro__]
    for start, attribute, opener in _OPENERS:
        if any(module.startswith(start) for module in modules) and hasattr(model, attribute):
            return opener(model)
    if callable(model):
        return _open_function(model)
    raise InputError(
        "model",
        model,
        "must be a file, a name, a torch network, a pipeline of transformers, a scikit-learn "
        "classifier or a function",
    )


def _open_named(model: str | Path) -> Model:
    path = Path(model)
    require_regular(path, "model")
    if str(model) == BUILT_IN and not path.exists():
        return open_built_in()
    if path.suffix in {".onnx", ".skops"} and path.is_file():
        return open_onnx(path) if path.suffix == ".onnx" else _open_skops(path)
    if path.suffix in PICKLE_ENDINGS:
        raise InputError(
            "model",
            str(path),
            "is a pickle, which can run any code, and is not read",
            hint="export the network to ONNX (torch.onnx.export), or save the pipeline with skops",
        )
    if path.is_dir() or (isinstance(model, str) and model.count("/") == 1 and model[0] not in "./"):
        return open_transformers(model)
    raise InputError(
        "model",
        str(model),
        f"does not exist{suggest_name(model, [BUILT_IN])}",
        hint="give a file (.onnx, .skops), a transformers folder, a name on the hub with its "
        f"owner, or {BUILT_IN}",
    )


def _open_skops(path: Path) -> Model:
    skops = require_module("skops.io", "skops files", "transformers")
    exceptions = require_module("skops.io.exceptions", "skops files", "transformers")
    try:
        # What skops trusts by itself are the types of scikit-learn, NumPy and SciPy that it has
        # reviewed. Trust by package name would let a file call any function of these packages.
        estimator = skops.load(path)
    except exceptions.UntrustedTypesFoundException:
        untrusted = skops.get_untrusted_types(file=path)
        raise InputError(
            "model",
            str(path),
            f"holds types that are not trusted: {quote_names(untrusted)}",
            hint="if you trust the file, load it in Python with skops.io.load(path, trusted=[…]) "
            "and pass the estimator",
        ) from None
    except Exception as error:  # noqa: BLE001 - a foreign file can raise anything
        raise InputError("model", str(path), f"is not a complete skops file ({error})") from None
    return replace(open_estimator(estimator, path.name), fingerprint=fingerprint_files([path]))


def open_estimator(estimator: object, name: str = "") -> Model:
    """Return a fitted scikit-learn classifier as a model.

    A pipeline that begins with a vectorizer of texts takes texts.
    """
    classes = getattr(estimator, "classes_", None)
    if classes is None:
        raise InputError("model", estimator, "is not fitted, or not a classifier: no classes_")
    # The vectorizers of scikit-learn, and those derived from them, have this method.
    reads_texts = hasattr(_first_step(estimator), "build_analyzer")
    # One-vs-one scores have other columns, so the kind must be known before the first batch.
    width: Any = getattr(estimator, "n_features_in_", None)
    kind: Kind = "multiclass"
    if reads_texts or width is not None:
        kind = scores_of(estimator, ["text"] if reads_texts else np.zeros((1, width))).kind

    def run(batch: Any) -> NDArray[Any]:
        return np.asarray(scores_of(estimator, batch).columns)

    def run_with_features(batch: Any) -> tuple[NDArray[Any], Any]:
        scores = scores_of(estimator, batch, features=True)
        return np.asarray(scores.columns), scores.features

    return Model(
        f"{name or type(estimator).__name__} (scikit-learn)",
        "texts" if reads_texts else "values",
        run,
        run_with_features,
        classes=[str(label) for label in classes],
        n_outputs=n_columns(len(classes), kind),
        kind=kind,
    )


def _first_step(estimator: object) -> object:
    while True:
        inner = getattr(estimator, "best_estimator_", None) or getattr(estimator, "estimator", None)
        steps = getattr(estimator, "steps", None) or getattr(estimator, "transformer_list", None)
        if steps:
            estimator = steps[0][1]
        elif inner is not None:
            estimator = inner
        else:
            return estimator


def _open_function(function: Callable[[object], object]) -> Model:
    def run(batch: Any) -> NDArray[Any]:
        return np.asarray(function(batch))

    return Model(getattr(function, "__name__", type(function).__name__), "values", run)


_OPENERS: list[tuple[str, str, Callable[[Any], Model]]] = [
    ("transformers.pipelines.", "model", open_pipeline),
    ("transformers.", "config", open_pretrained),
    ("torch.nn.", "forward", open_torch),
    ("", "fit", open_estimator),
]
"""How the module of a base class begins, an attribute, and what opens such an object. By names, so
that no library is imported."""
