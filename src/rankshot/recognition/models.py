"""Models of any kind and library: a file, a folder, a name, or an object.

No file is ever unpickled: a pickle can run any code. ONNX files are run by onnxruntime; one of
these, EfficientNet-Lite0, comes with the package.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import InputError, RankshotError, quote_names, short_repr, suggest_name
from rankshot.core.files import parse_json, require_regular
from rankshot.core.validation import require_module
from rankshot.recognition.images import CONFIG_FILE, PRESETS, Preprocessing
from rankshot.recognition.inputs import (
    Model,
    Takes,
    fingerprint_files,
    join_lines,
    name_outputs,
)
from rankshot.recognition.torch_networks import (
    open_pipeline,
    open_torch,
    open_transformers,
)
from rankshot.sources.names import IMAGENET
from rankshot.zeroshot.estimator_scores import scores_of
from rankshot.zeroshot.onnx_export import CLASS_KEYS, ZIPMAP_HINT, add_last_layers
from rankshot.zeroshot.scores import Kind, n_columns

BUILT_IN = "efficientnet-lite0"
BUILT_IN_FILE = Path(__file__).parent / "data" / f"{BUILT_IN}.onnx"
PREPROCESSING_KEY = "preprocessor_config"
"""The entry of the metadata of an ONNX file that may hold a ``preprocessor_config.json``."""
EXTERNAL_FOLDER = "session.model_external_initializers_file_folder_path"
"""The setting of onnxruntime that says where the files with weights are."""
_FLOATS = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
}
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
        function: Any = model
        name = getattr(model, "__name__", type(model).__name__)
        return Model(name, "values", lambda batch: np.asarray(function(batch)))
    rule = "must be a file, a name, a torch network, a pipeline, a classifier or a function"
    raise InputError("model", model, rule)


def _open_named(model: str | Path) -> Model:
    path = Path(model)
    require_regular(path, "model")
    if str(model) == BUILT_IN and not path.exists():
        return open_built_in()
    if path.suffix in {".onnx", ".skops"} and path.is_file():
        return open_onnx(path) if path.suffix == ".onnx" else _open_skops(path)
    if path.suffix in PICKLE_ENDINGS:
        hint = "export the network to ONNX (torch.onnx.export), or save the pipeline with skops"
        rule = "is a pickle, which can run any code, and is not read"
        raise InputError("model", str(path), rule, hint=hint)
    if path.is_dir() or (isinstance(model, str) and model.count("/") == 1 and model[0] not in "./"):
        return open_transformers(model)
    hint = "give a file (.onnx, .skops), a transformers folder, a name on the hub with its owner, "
    hint += f"or {BUILT_IN}"
    rule = f"does not exist{suggest_name(model, [BUILT_IN])}"
    raise InputError("model", str(model), rule, hint=hint)


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

    def run_with_features(batch: Any) -> tuple[NDArray[Any], Any]:
        scores = scores_of(estimator, batch, features=True)
        return np.asarray(scores.columns), scores.features

    return Model(
        f"{name or type(estimator).__name__} (scikit-learn)",
        "texts" if reads_texts else "values",
        lambda batch: np.asarray(scores_of(estimator, batch).columns),
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


_OPENERS: list[tuple[str, str, Callable[[Any], Model]]] = [
    ("transformers.pipelines.", "model", open_pipeline),
    ("torch.nn.", "forward", open_torch),
    ("", "fit", open_estimator),
]
"""How the module of a base class begins, an attribute, and what opens such an object. By names, so
that no library is imported."""


# -------------------------------------------------------------------- ONNX files


def open_onnx(path: Path) -> Model:
    """Open an ONNX file: a network for images, or for texts if its input is text."""
    onnx = require_module("onnx", "ONNX files", "onnx")
    try:
        network = onnx.load(path, load_external_data=False)
    except Exception as error:  # noqa: BLE001 - protobuf has several error classes
        raise InputError("model", str(path), f"cannot be read ({join_lines(error)})") from None
    data_files = _find_data_files(network, path)
    # The output of the last layer for each other one.
    features = add_last_layers(network)
    session = _start_session(network, path)
    found = _choose_input(session.get_inputs(), path)
    outputs = [one for one in session.get_outputs() if one.name not in features.values()]
    output = _choose_output(outputs, path)
    last_layer = features.get(output.name)
    metadata = session.get_modelmeta().custom_metadata_map
    takes: Takes = "values"
    if found.type == "tensor(string)":
        takes = "texts"
    elif len(found.shape) == 4:
        takes = "images"
    classes, odd = _find_classes(metadata, path)
    preprocessing = None
    try:
        preprocessing = _find_preprocessing(metadata, path) if takes == "images" else None
    except RankshotError as error:
        odd += f" ({error})"
    run = _runner(session, found)

    def run_with_features(batch: Any) -> tuple[NDArray[Any], Any]:
        scores, layer = run([output.name, cast("str", last_layer)], batch)
        return scores, layer.mean(axis=1) if layer.ndim == 3 else layer

    return Model(
        path.name,
        takes,
        lambda batch: run([output.name], batch)[0],
        None if last_layer is None else run_with_features,
        classes=classes,
        preprocessing=preprocessing,
        odd=odd,
        input_shape=tuple(found.shape),
        n_outputs=next((width for width in output.shape[1:] if isinstance(width, int)), None),
        fingerprint=fingerprint_files([path, *data_files]),
        device="CUDA" if session.get_providers()[0] == "CUDAExecutionProvider" else "CPU",
    )


def open_built_in() -> Model:
    """Open EfficientNet-Lite0, trained on ImageNet's 1,000 classes; the file is in the package."""
    preprocessing = PRESETS["efficientnet-lite"]
    opened = open_onnx(BUILT_IN_FILE)
    return replace(opened, name=BUILT_IN, classes=IMAGENET, preprocessing=preprocessing)


def _start_session(network: Any, path: Path) -> Any:
    """Return a network as a session of onnxruntime, on CUDA where that is installed."""
    runtime = require_module("onnxruntime", "ONNX files", "onnx")
    wanted = ["CUDAExecutionProvider", "CPUExecutionProvider"]
    available = runtime.get_available_providers()
    options = runtime.SessionOptions()
    # As torch and NumPy do; without it, onnxruntime takes all cores.
    if (threads := os.environ.get("OMP_NUM_THREADS", "")).isdecimal():
        options.intra_op_num_threads = int(threads)
    options.add_session_config_entry(EXTERNAL_FOLDER, str(path.parent))
    providers = [name for name in wanted if name in available]
    try:
        return runtime.InferenceSession(network.SerializeToString(), options, providers)
    except Exception as error:  # noqa: BLE001 - onnxruntime has no common error class
        raise InputError("model", str(path), f"cannot be read ({join_lines(error)})") from None


def _runner(session: Any, found: Any) -> Callable[[list[str], Any], list[NDArray[Any]]]:
    """Return a function from the names of outputs and a batch of inputs to these outputs."""

    def run_once(names: list[str], batch: Any) -> list[NDArray[Any]]:
        if found.type == "tensor(string)":
            values = np.array(batch, dtype=object).reshape(-1, *[1] * (len(found.shape) - 1))
        else:
            values = np.asarray(batch, _FLOATS[found.type])
        return [np.asarray(one) for one in session.run(names, {found.name: values})]

    def run_all(names: list[str], batch: Any) -> list[NDArray[Any]]:
        if found.shape[:1] != [1]:
            return run_once(names, batch)
        parts = [run_once(names, batch[i : i + 1]) for i in range(len(batch))]
        return [np.concatenate(some) for some in zip(*parts, strict=True)]

    return run_all


def _find_data_files(network: Any, path: Path) -> list[Path]:
    """Return the other files that hold weights of an ONNX file, which must be in its folder."""
    helper = require_module("onnx.external_data_helper", "ONNX files", "onnx")
    tensors = filter(helper.uses_external_data, helper._get_all_tensors(network))
    locations = sorted({helper.ExternalDataInfo(tensor).location for tensor in tensors})
    for location in locations:
        # By name only: caches of models are full of links to other folders.
        if Path(location).is_absolute() or ".." in Path(location).parts:
            raise InputError("model", location, "must be a file in the same folder", str(path))
        if not (path.parent / location).is_file():
            raise InputError("model", location, "is missing: it has the weights", str(path))
    return [path.parent / location for location in locations]


def _choose_input(inputs: Sequence[Any], path: Path) -> Any:
    found, *others = inputs
    size = found.shape[0] if found.shape else None
    is_known = found.type in {*_FLOATS, "tensor(string)"}
    if others or not is_known or (isinstance(size, int) and size != 1):
        rule = "must be one input, numbers or text, of any batch size"
        raise InputError("model", _describe(inputs), rule, str(path))
    return found


def _choose_output(outputs: Sequence[Any], path: Path) -> Any:
    tables = [one for one in outputs if one.type in _FLOATS and len(one.shape) in {0, 2}]
    if len(tables) > 1:
        tables = [one for one in tables if one.name.lower() in {"logits", "scores"}] or tables
    if len(tables) == 1:
        return tables[0]
    described = _describe(outputs)
    rule = "must have one output that is a table of scores, with one column per class"
    hint = ZIPMAP_HINT if "seq(" in described else ""
    raise InputError("model", described, rule + hint, str(path))


def _describe(values: Sequence[Any]) -> str:
    return ", ".join(f"{one.name!r} ({one.type} {one.shape})" for one in values)


def _find_preprocessing(metadata: dict[str, str], path: Path) -> Preprocessing | None:
    """Return what the file says itself, or a ``preprocessor_config.json`` beside it."""
    if PREPROCESSING_KEY in metadata:
        config = parse_json(metadata[PREPROCESSING_KEY])
        # A text would be the name of a file.
        values = config if isinstance(config, dict) else {}
        return Preprocessing.read(values, f"{PREPROCESSING_KEY!r} in it")
    beside = path.parent / CONFIG_FILE
    return Preprocessing.read(beside) if beside.is_file() else None


def _find_classes(metadata: dict[str, str], path: Path) -> tuple[Any, str]:
    """Return the class names in the metadata or beside the file, or what is there in their place.

    A text is never a name of a file, but may be ``imagenet-1k``.
    """
    odd = ""
    for key in CLASS_KEYS:
        if key in metadata:
            found = parse_json(metadata[key])
            if IMAGENET in (found, metadata[key]):
                return IMAGENET, ""
            is_list = isinstance(found, list) and all(isinstance(one, str) for one in found)
            if found and (is_list or isinstance(found, dict)):
                return found, ""
            text = short_repr(metadata[key])
            odd = odd or f" ({key!r} in it is not a JSON list of names: {text})"
    beside = path.parent / "config.json"
    config = parse_json(beside.read_bytes()) if beside.is_file() else None
    return name_outputs(config.get("id2label") if isinstance(config, dict) else None), odd
