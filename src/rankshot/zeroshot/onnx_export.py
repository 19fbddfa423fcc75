"""A `LinearHead` as an ONNX graph, alone or behind the network whose scores it takes."""

from __future__ import annotations

import json
from importlib.metadata import version
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.core.arrays import Library, log_softmax
from rankshot.core.errors import InputError, RankshotError, quote_names
from rankshot.core.files import replace_file, require_ending
from rankshot.sources.names import IMAGENET, read_class_labels
from rankshot.zeroshot.decide import find_best
from rankshot.zeroshot.linear_head import Head, Predictor
from rankshot.zeroshot.onnx_arrays import RecordedArray, Recorder, import_onnx
from rankshot.zeroshot.scores import Kind, are_probabilities, log_probabilities

if TYPE_CHECKING:
    from onnx import ModelProto, ValueInfoProto

CLASS_KEYS = ("classes", "labels", "names", "class_names", "id2label")
"""Entries of the metadata of an ONNX file that may hold the names of the classes, as JSON."""
ZIPMAP_HINT = '. With skl2onnx, options={"zipmap": False} writes probabilities as a table'
KEEPS_VALUES = {"Identity", "Cast", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Dropout"}
"""Nodes that may follow a softmax, and leave probabilities as they are."""
LINEAR = {
    *("Gemm", "MatMul", "FusedMatMul", "MatMulInteger", "MatMulNBits", "DynamicQuantizeMatMul"),
    *("MatMulIntegerToFloat", "QLinearMatMul", "QGemm", "QLinearConv", "Conv", "FusedConv"),
    *("ConvInteger", "LinearClassifier", "SVMClassifier"),
}
"""Linear layers: weights, which are other inputs or attributes, multiply their first input."""
QUANTIZES = {"QuantizeLinear", "DynamicQuantizeLinear"}
MAKERS: dict[str | None, Kind] = {"Softmax": "multiclass", "Sigmoid": "one-vs-rest"}
"""The last nodes of networks that give probabilities."""
OPSET, OLDEST_OPSET = 17, 13
"""The operators of a head alone, and the oldest ones that a network may have: older networks are
converted to these."""
TOLERANCE = 1e-5
"""The largest difference of a probability from that of the head in Python."""
N_INPUTS = 4
"""How many random inputs a graph is tried with."""
PREFIX = "network/"
Inputs = dict[str, NDArray[Any]]


def export_onnx(
    head: Predictor,
    path: str | Path,
    *,
    network: str | Path | None = None,
    output: str | None = None,
) -> float:
    """Write a fitted head as an ONNX file, alone or behind a network.

    The outputs are ``probabilities``, with one column per class, and ``label``, the index of the
    most probable class of each input. The names of the classes are in the metadata, as JSON under
    ``classes``. The graph computes the head's formula in single precision, by operators of ONNX
    alone. Before the file is written, the graph is run on random inputs, and its probabilities must
    agree with the head's.

    Parameters
    ----------
    head : LinearHead, or an estimator such as WeightedMean
        A fitted head.
    path : str or Path
        The file to write (.onnx).
    network : str or Path, optional
        An ONNX file that outputs the scores of the seen classes, in the order of ``head.seen``;
        the order is checked if the metadata names the classes. If it ends with a softmax (a
        sigmoid), the head uses the logarithms (the log-odds). The new file has the inputs of the
        network. Without a network, its input is ``scores``, with one column per seen class. If the
        head needs features, they are taken from the input of the network's last layer; if that
        layer is not found, or without a network, they are an additional input ``features``. Another
        model's scores are always such an input, ``evidence``.
    output : str, optional
        The output of the network to use. By default the only one with as many columns as there are
        seen classes.

    Returns
    -------
    float
        The largest difference between a probability of the graph and that of the head in Python;
        NaN if the network cannot be run on random inputs.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import onnxruntime
    >>> import rankshot as rs
    >>> rankings = rs.Rankings.from_orders(
    ...     [["leopard", "tiger"], ["bus"]], items=["bus", "leopard", "tiger"],
    ...     targets=["cat", "truck"])
    >>> head = rs.WeightedMean().fit(rankings)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = rs.export_onnx(head, f"{folder}/head.onnx")
    ...     session = onnxruntime.InferenceSession(f"{folder}/head.onnx")
    >>> scores = np.array([[-2.0, 1.5, 1.0]], dtype=np.float32)
    >>> label = session.run(["label"], {"scores": scores})[0]
    >>> head.classes_[label]
    array(['cat'], dtype='<U5')
    """
    if not isinstance(head, Predictor):
        raise InputError("head", head, "must be a fitted head", hint="as WeightedMean makes")
    head, path = head.inner, Path(path)
    require_ending(path, (".onnx",))
    if network is None:
        front = _find_scores(_pass_scores(len(head.seen)), head, None, "")
    else:
        front = _find_scores(load_network(Path(network)), head, output, str(network))
    model, further = _attach(head, front)
    difference = _measure_difference(model, head, front, further)
    if difference > TOLERANCE:
        raise RankshotError(
            f"the exported head differs from the head by up to {difference:.2g} in a probability: "
            "nothing was written"
        )
    with replace_file(path) as stream:
        stream.buffer.write(model.SerializeToString())
    return difference


# ---- A network in front of the head


class _Front(NamedTuple):
    """A network, its outputs that the head takes, and what these are for random inputs.

    ``kind`` is that of the probabilities which the network gives; None if it gives scores.
    ``values`` is None if the network cannot be run.
    """

    network: ModelProto
    scores: str
    features: str | None
    kind: Kind | None
    inputs: Inputs
    values: list[NDArray[Any]] | None


def _pass_scores(n_items: int) -> Any:
    """A network that returns its input, the scores."""
    table = f"float[inputs, {n_items}]"
    graph = f"rankshot ({table} scores) => ({table} same) {{same = Identity(scores)}}"
    version = f'<ir_version: 8, opset_import: ["" : {OPSET}]>'
    return import_onnx("onnx.parser").parse_model(f"{version} {graph}")


def _find_scores(network: ModelProto, head: Head, output: str | None, where: str) -> _Front:
    """Find the scores that a head takes among the outputs of a network, and the features."""
    scores = _choose_output(network, len(head.seen), output, where)
    check_classes(network, head.seen, where)
    layer = add_last_layers(network).get(scores) if head.n_features else None
    inputs = _make_inputs(network)
    values = _run(network, [scores, layer] if layer else [scores], inputs)
    if layer and (values is None or values[1].shape[1:] != (head.n_features,)):
        layer, values = None, values and values[:1]
    kind = MAKERS.get(_find_maker(network, scores))
    if kind is None and values and are_probabilities(values[0]):
        kind = "multiclass"
    if head.kind not in {None, kind}:
        kind = None
    return _Front(network, scores, layer, kind, inputs, values)


def _choose_output(network: ModelProto, n_items: int, wanted: str | None, where: str) -> str:
    """The name of the output that has the scores."""
    outputs = network.graph.output
    fitting = [
        value.name
        for value in outputs
        if wanted in (None, value.name) and _is_float(value) and _has_columns(value, n_items)
    ]
    if len(fitting) == 1:
        return str(fitting[0])
    rule = f"must be one output of shape (inputs, {n_items}), the scores of the seen classes"
    described = ", ".join(map(import_onnx("onnx").helper.printable_value_info, outputs))
    hint = f"it has {described}{ZIPMAP_HINT}"
    if fitting:
        hint = f"several may be the scores ({quote_names(fitting)}): name one"
    raise InputError("output", wanted, rule, where, hint)


def _make_inputs(network: ModelProto) -> Inputs:
    """Random inputs of a network that are numbers; sizes that are not fixed are 1."""
    rng, inputs = np.random.default_rng(0), {}
    constants = {tensor.name for tensor in network.graph.initializer}
    for value in network.graph.input:
        if _is_float(value) and value.name not in constants:
            tensor = value.type.tensor_type
            dtype = import_onnx("onnx").helper.tensor_dtype_to_np_dtype(tensor.elem_type)
            n_rows, *others = (dim.dim_value for dim in tensor.shape.dim)
            shape = [n_rows or N_INPUTS, *(n or 1 for n in others)]
            inputs[value.name] = rng.normal(size=shape).astype(dtype)
    return inputs


def _run(network: ModelProto, outputs: list[str], inputs: Inputs) -> list[NDArray[Any]] | None:
    """Outputs of a network for some inputs; None if it cannot be run on them."""
    try:
        values: list[NDArray[Any]] = _open_session(network).run(outputs, inputs)
    except Exception:  # noqa: BLE001 (the errors of onnxruntime have no class in common)
        return None
    return values if np.isfinite(values[0]).all() else None


# ---- The head


def _prefix_names(network: ModelProto) -> Any:
    """A copy of a network whose names, but those of its inputs, cannot be those of the head."""
    onnx = import_onnx("onnx")
    versions = {one.domain: one.version for one in network.opset_import}
    try:
        if versions.get("", OPSET) < OLDEST_OPSET:
            network = onnx.version_converter.convert_version(network, OLDEST_OPSET)
        model = onnx.compose.add_prefix(network, PREFIX, rename_inputs=False)
    except Exception as error:  # noqa: BLE001 (errors of several libraries)
        problem = str(error).strip().partition("\n")[0]
        raise RankshotError(f"a head cannot be attached to the network: {problem}") from None
    if "" not in versions:
        model.opset_import.append(onnx.helper.make_opsetid("", OPSET))
    return model


def _attach(head: Head, front: _Front) -> tuple[ModelProto, Inputs]:
    """The graph of network and head, and random values of the inputs that the network lacks."""
    make, types = import_onnx("onnx").helper, import_onnx("onnx").TensorProto
    model = _prefix_names(front.network)
    graph, further, C = model.graph, {}, len(head.seen)
    xp = Recorder(graph, C)

    def add_input(name: str, n: int) -> RecordedArray:
        graph.input.append(make.make_tensor_value_info(name, types.FLOAT, ("inputs", n)))
        n_rows = len(front.values[0]) if front.values else 1
        further[name] = np.random.default_rng(n).standard_normal((n_rows, n), np.float32)
        return RecordedArray(xp, name)

    # The network may not say how many outputs it has.
    scores = xp.astype(RecordedArray(xp, PREFIX + front.scores), np.float32)
    scores = xp.add("Reshape", scores, np.array([-1, C]))
    features = evidence = None
    if front.features:
        features = RecordedArray(xp, PREFIX + front.features)
    elif head.n_features:
        features = add_input("features", head.n_features)
    if head.evidence:
        evidence = add_input("evidence", len(head.evidence))
    log_proba = _evaluate(head, front.kind, scores, features, evidence, xp)
    proba = xp.exp(log_proba), types.FLOAT, ("inputs", len(head.classes_))
    label = find_best(log_proba, xp), types.INT64, ("inputs",)
    del graph.output[:]
    for name, (array, dtype, shape) in {"probabilities": proba, "label": label}.items():
        graph.node.append(make.make_node("Identity", [array.name], [name]))
        graph.output.append(make.make_tensor_value_info(name, dtype, shape))
    metadata = {one.key: one.value for one in model.metadata_props if one.key not in CLASS_KEYS}
    metadata |= {
        "classes": json.dumps(head.classes_.tolist(), ensure_ascii=False),
        "seen_classes": json.dumps(head.seen, ensure_ascii=False),
        "head": type(head).__name__,
        "rankshot": version("rankshot"),
    }
    make.set_model_props(model, metadata)
    import_onnx("onnx").checker.check_model(model)
    return model, further


def _evaluate(
    head: Head, kind: Kind | None, scores: Any, features: Any, evidence: Any, xp: Library
) -> Any:
    """Log-probabilities by a head, behind a network that gives scores or probabilities."""
    if kind is not None:
        scores = log_probabilities(scores, kind, xp)
    constants = head.constants(head.kind or kind)
    return log_softmax(type(head).logits(scores, features, evidence, constants, xp), xp, 1)


def _measure_difference(model: ModelProto, head: Head, front: _Front, further: Inputs) -> float:
    """How far the graph is from network and head, one after the other."""
    if front.values is None:
        return float("nan")
    scores, *layer = (x.astype(np.float32) for x in front.values)
    scores = scores.reshape(-1, len(head.seen))
    features = layer[0] if layer else further.get("features")
    expected = _evaluate(head, front.kind, scores, features, further.get("evidence"), np)
    proba = _open_session(model).run(["probabilities"], front.inputs | further)[0]
    return float(np.abs(proba - np.exp(expected)).max())


# ---- ONNX files


def load_network(path: Path) -> Any:
    """An ONNX file, or raise an error that says what is wrong with it."""
    onnx = import_onnx("onnx")
    path.stat()
    try:
        network = onnx.load(str(path))
        onnx.checker.check_model(network)
    except Exception as error:  # noqa: BLE001 (errors of several libraries)
        problem = str(error).strip().partition("\n")[0]
        raise RankshotError(f"{path}: is not an ONNX file, or is damaged ({problem})") from None
    return network


def check_classes(network: ModelProto, items: tuple[str, ...], where: str) -> None:
    """Refuse a network whose metadata names other classes than those of the head, or in disorder.

    Other spellings of the same class are accepted.
    """
    metadata = {entry.key: entry.value for entry in network.metadata_props}
    text = next((metadata[key] for key in CLASS_KEYS if key in metadata), None)
    if text is None:
        return
    try:
        if text == IMAGENET:  # Any other text would be the name of a file.
            labels = read_class_labels(text)
        else:
            names = json.loads(text)
            labels = read_class_labels(names if isinstance(names, dict) else list(names))
    except (TypeError, ValueError) as error:
        problem = f"{where}: the class names in its metadata are damaged: {error}"
        raise RankshotError(problem) from None
    for i, (item, name) in enumerate(zip_longest(items, labels.names)):
        if item is None or (name != item and name not in labels.match(item)):
            rule = f"is class number {i} of its metadata, which is {item!r} in the head"
            hint = "fit the head with the classes of the network, in the same order"
            raise InputError("network", name, rule, where, hint)


def _find_maker(network: ModelProto, output: str) -> str | None:
    """The kind of node that computes an output, before nodes that keep its values."""
    makers = {name: node for node in network.graph.node for name in node.output}
    while (node := makers.get(output)) is not None and node.op_type in KEEPS_VALUES:
        output = node.input[0]
    return None if node is None else str(node.op_type)


def _is_float(value: ValueInfoProto) -> bool:
    """Whether an input or output has floating-point numbers."""
    tensor = import_onnx("onnx").TensorProto
    floats = {tensor.FLOAT, tensor.DOUBLE, tensor.FLOAT16, tensor.BFLOAT16}
    return value.type.tensor_type.elem_type in floats


def _has_columns(value: ValueInfoProto, n: int) -> bool:
    """Whether an output can be a table with n columns: its shape may not be known."""
    tensor = value.type.tensor_type
    sizes = [dim.dim_value for dim in tensor.shape.dim]
    return not tensor.HasField("shape") or (len(sizes) == 2 and sizes[1] in (n, 0))


def _open_session(model: ModelProto) -> Any:
    """A session of onnxruntime, on the CPU."""
    return import_onnx("onnxruntime").InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )


# ---- The input of the last layer of a network: features by which examples are compared


def add_last_layers(network: ModelProto) -> dict[str, str]:
    """Add the input of the last layer before each output of a network as a further output.

    The last layer is the last linear one on the way to the output whose weights are constant.
    Return the names of the new outputs, by those of the outputs. They are single precision, and
    averaged over the positions of a convolution: one row per input for most networks.
    """
    onnx = import_onnx("onnx")
    makers = {name: node for node in network.graph.node for name in node.output}
    constants, xp = _find_constants(network), Recorder(network.graph, prefix="rankshot.features")
    added: dict[str, str] = {}
    for output in [value.name for value in network.graph.output]:
        layer = _find_last_layer(network, output, constants)
        if layer is None:
            continue
        found = layer.input[0]
        # The numbers before they were rounded. Those that are left are integers: a shift and a
        # factor have no influence on what examples tell.
        while (maker := makers.get(found)) is not None and maker.op_type in QUANTIZES:
            found = maker.input[0]
        features = xp.astype(RecordedArray(xp, found), np.float32)
        if "Conv" in layer.op_type:
            features = xp.add("Flatten", xp.add("GlobalAveragePool", features))
        name = added[output] = features.name
        value = onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)
        network.graph.output.append(value)
    return added


def _find_constants(network: ModelProto) -> set[str]:
    """The names of all values that do not depend on the inputs."""
    graph = network.graph
    found = {tensor.name for tensor in graph.initializer}
    found |= {tensor.values.name for tensor in graph.sparse_initializer}
    for node in graph.node:
        if found.issuperset(filter(None, node.input)):
            found.update(node.output)
    return found


def _find_last_layer(network: ModelProto, output: str, constants: set[str]) -> Any:
    """The last linear layer that an output depends on; None if there is none."""
    needed = {output}
    # Nodes come after those that they depend on.
    for node in reversed(network.graph.node):
        if needed.isdisjoint(node.output):
            continue
        needed.update(node.input)
        if node.op_type in LINEAR and node.input[0] not in constants:
            others = node.input[1:]
            if not others or not constants.isdisjoint(others):
                return node
    return None
