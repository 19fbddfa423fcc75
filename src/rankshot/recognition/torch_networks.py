"""Networks of torch, and models and pipelines of transformers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import InputError, RankshotError
from rankshot.core.validation import require_module
from rankshot.recognition.images import Preprocessing
from rankshot.recognition.inputs import (
    Model,
    Takes,
    fingerprint_files,
    join_lines,
    name_outputs,
)

KINDS: dict[str, tuple[Takes, str]] = {
    "ForImageClassification": ("images", "AutoImageProcessor"),
    "ForSequenceClassification": ("texts", "AutoTokenizer"),
}
"""How the names of classifiers of transformers end, what they take, and what prepares it: scores
depend on a tokenizer or an image processor as on the weights."""


def open_torch(module: Any) -> Model:
    """Return a torch module as a model; it runs where its parameters are."""
    torch = require_module("torch", "torch networks", "transformers")
    tensors = [*module.parameters(), *module.buffers()]
    device = tensors[0].device if tensors else torch.device("cpu")
    # Half precision is computed on GPUs, and its inputs must have the same type.
    floats = (tensor.dtype for tensor in tensors if tensor.is_floating_point())
    dtype = next(floats, torch.float32)

    def call(batch: Any) -> Any:
        if isinstance(batch[0], (str, Path)) or "PIL." in type(batch[0]).__module__:
            hint = "for images, give preprocessing, such as 'imagenet'; for texts, a pipeline"
            rule = "takes arrays, not texts, images or paths"
            raise InputError("model", type(module).__name__, rule, hint=hint)
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
        # Networks of transformers have a configuration.
        classes=name_outputs(getattr(getattr(module, "config", None), "id2label", None)),
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
    last: dict[int, tuple[Any, bool]] = {}

    def keep(part: object, given: tuple[object, ...], _output: object) -> None:
        if given:
            last[_width(part)] = given[0], hasattr(part, "out_channels")

    hooks = [part.register_forward_hook(keep) for part in module.modules() if _width(part)]
    try:
        scores = _as_array(call(batch))
    finally:
        for hook in hooks:
            hook.remove()
    if scores.ndim != 2 or scores.shape[1] not in last:
        return scores, None
    x, is_convolution = last[scores.shape[1]]
    x = _as_array(x.dequantize() if x.is_quantized else x)
    # Of places in an image, or of tokens, the mean.
    places = tuple(range(2, x.ndim)) if is_convolution else tuple(range(1, x.ndim - 1))
    return scores, x.mean(axis=places) if places else x


def _width(part: object) -> int:
    """Return the number of outputs of a linear layer or convolution; 0 for other parts."""
    return int(getattr(part, "out_features", None) or getattr(part, "out_channels", None) or 0)


def _fingerprint_state(module: Any) -> str:
    torch = require_module("torch", "torch networks", "transformers")
    digest = sha256(repr(module).encode())
    for name, tensor in module.state_dict().items():
        digest.update(name.encode())
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        digest.update(flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b"")
    return digest.hexdigest()


# -------------------------------------------------------------------- transformers


def open_transformers(source: str | Path) -> Model:
    """Open a folder, or a name on the hub, of transformers: a classifier of images or of texts."""
    library = require_module("transformers", "transformers models", "transformers")
    torch = require_module("torch", "transformers models", "transformers")
    place = str(source)
    config = _load(library.AutoConfig, place)
    if getattr(config, "auto_map", None):
        raise InputError("model", place, "needs custom code (auto_map), which is not run; use ONNX")
    kind = _find_kind(config.architectures or [], place)
    takes, tool = KINDS[kind]
    # Other files of weights are pickles.
    network = _load(getattr(library, f"AutoModel{kind}"), place, use_safetensors=True).eval()
    network = network.to("cuda" if torch.cuda.is_available() else "cpu")
    return _wrap(network, _load(getattr(library, tool), place), takes, place)


def open_pipeline(pipeline: Any) -> Model:
    """Return a pipeline of transformers that classifies images or texts as a model."""
    takes, _ = KINDS[_find_kind([type(pipeline.model).__name__], "the pipeline")]
    tool = pipeline.tokenizer if takes == "texts" else pipeline.image_processor
    return _wrap(pipeline.model, tool, takes, type(pipeline).__name__)


def _find_kind(names: list[str], where: str) -> str:
    """The kind of a classifier of transformers, by the names of its class."""
    for kind in KINDS:
        if any(name.endswith(kind) for name in names):
            return kind
    rule = "must be a transformers model for image or sequence classification"
    raise InputError("model", " ".join(names), rule, where)


def _wrap(network: Any, tool: Any, takes: Takes, name: str) -> Model:
    """Return a network of transformers, and its tokenizer or image processor, as a model."""
    torch = require_module("torch", "transformers models", "transformers")
    config, device = network.config, network.device
    # A tokenizer without a limit has an enormous number; a few positions may be reserved.
    longest = int(getattr(tool, "model_max_length", 0))
    if longest >= 10**6:
        longest = getattr(config, "max_position_embeddings", 514) - 2

    def call(batch: Any) -> Any:
        if takes == "images":
            inputs = {"pixel_values": torch.from_numpy(batch).to(device, network.dtype)}
        else:
            cut = {"padding": True, "truncation": True, "max_length": longest}
            inputs = tool(list(batch), return_tensors="pt", **cut).to(device)
        with torch.inference_mode(), _evaluation_mode(network):
            return network(**inputs)

    def prepare(image: Any) -> NDArray[Any]:
        return np.asarray(tool(images=image, return_tensors="np")["pixel_values"][0])

    described = None
    if takes == "images":
        with suppress(RankshotError):
            described = Preprocessing.read(json.loads(tool.to_json_string()))
    return Model(
        name,
        takes,
        lambda batch: _as_array(call(batch)),
        partial(_run_with_features, network, call),
        classes=name_outputs(config.id2label),
        preprocessing=described,
        prepare=prepare if takes == "images" else None,
        n_outputs=config.num_labels,
        max_tokens=longest if takes == "texts" else None,
        fingerprint=_fingerprint_state(network) + _fingerprint_settings(config, tool),
        device=device.type.upper(),
    )


def _fingerprint_settings(*parts: Any) -> str:
    with TemporaryDirectory() as folder:
        for part in parts:
            part.save_pretrained(folder)
        return fingerprint_files(sorted(one for one in Path(folder).rglob("*") if one.is_file()))


def _load(auto_class: Any, place: str, **options: Any) -> Any:
    try:
        # Without this, transformers asks whether to run the code of a model.
        return auto_class.from_pretrained(place, trust_remote_code=False, **options)
    except Exception as error:  # noqa: BLE001 - the library and its hub raise all kinds
        problem = f"cannot be loaded by transformers ({join_lines(error)})"
        raise InputError("model", place, problem) from None
