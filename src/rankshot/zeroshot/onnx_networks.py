"""ONNX networks: load them, find their outputs, and the features before their last layer."""

from __future__ import annotations

import json
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankshot.core.errors import InputError, RankshotError
from rankshot.core.validation import require_module
from rankshot.sources.names import read_class_labels

if TYPE_CHECKING:
    from onnx import ModelProto, ValueInfoProto

CLASS_KEYS = ("classes", "labels", "names", "class_names", "id2label")
"""Entries of the metadata of an ONNX file that may hold the names of the classes, as JSON."""
ZIPMAP_HINT = '. With skl2onnx, options={"zipmap": False} writes probabilities as a table'
KEEPS_VALUES = {"Identity", "Cast", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Dropout"}
"""Nodes that may follow a softmax, and leave probabilities as they are."""
WEIGHTS_OF: dict[str, int | None] = {
    **dict.fromkeys(("Gemm", "MatMul", "FusedMatMul", "MatMulInteger", "MatMulNBits"), 1),
    **dict.fromkeys(("DynamicQuantizeMatMul", "MatMulIntegerToFloat"), 1),
    **dict.fromkeys(("QLinearMatMul", "QGemm", "QLinearConv"), 3),
    **dict.fromkeys(("Conv", "FusedConv", "ConvInteger"), 1),
    **dict.fromkeys(("LinearClassifier", "SVMClassifier"), None),
}
"""Linear layers, with the place of the weights among their inputs; None for attributes."""
QUANTIZES = {"QuantizeLinear", "DynamicQuantizeLinear"}


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


def check_classes(metadata: dict[str, str], items: tuple[str, ...], where: str) -> None:
    """Refuse a network whose metadata names other classes than those of the head, or in disorder.

    Other spellings of the same class are accepted.
    """
    text = next((metadata[key] for key in CLASS_KEYS if key in metadata), None)
    if text is None:
        return
    try:
        names = json.loads(text)
        labels = read_class_labels(names if isinstance(names, dict) else list(names))
    except (TypeError, ValueError) as error:
        raise RankshotError(
            f"{where}: the class names in its metadata are damaged: {error}"
        ) from None
    for i, (item, name) in enumerate(zip_longest(items, labels.names)):
        if item is None or (name != item and name not in labels.match(item)):
            same = "in another order" if set(labels.names) == set(items) else "others"
            raise InputError(
                "network",
                name,
                f"is class number {i} of its metadata, which is {item!r} in the head",
                where=where,
                hint=f"its classes are {same}: fit the head with the classes of the network",
            )


def inputs_of(network: ModelProto) -> list[ValueInfoProto]:
    """The inputs of a network without those that have a value already."""
    given = {tensor.name for tensor in network.graph.initializer}
    return [value for value in network.graph.input if value.name not in given]


def find_maker(network: ModelProto, output: str) -> str | None:
    """The kind of node that computes an output, before nodes that keep its values."""
    makers = {name: node for node in network.graph.node for name in node.output}
    while (node := makers.get(output)) is not None and node.op_type in KEEPS_VALUES:
        output = node.input[0]
    return None if node is None else str(node.op_type)


def is_float(value: ValueInfoProto) -> bool:
    """Whether an input or output has floating-point numbers."""
    tensor = import_onnx("onnx").TensorProto
    floats = {tensor.FLOAT, tensor.DOUBLE, tensor.FLOAT16, tensor.BFLOAT16}
    return value.type.HasField("tensor_type") and value.type.tensor_type.elem_type in floats


def shape_of(value: ValueInfoProto) -> tuple[int | None, ...] | None:
    """The shape of an input or output; None where it is not known."""
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        return None
    return tuple(dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim)


def describe_value(value: ValueInfoProto) -> str:
    """The type and the shape of an input or output of a graph."""
    tensor = value.type.tensor_type
    if not value.type.HasField("tensor_type"):
        return "a sequence"
    shape = [str(dim.dim_value or dim.dim_param or "any") for dim in tensor.shape.dim]
    kind = import_onnx("onnx").TensorProto.DataType.Name(tensor.elem_type).lower()
    return f"{kind} ({', '.join(shape)})"


def open_session(model: ModelProto) -> Any:
    """A session of onnxruntime, on the CPU."""
    return import_onnx("onnxruntime").InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )


def import_onnx(name: str) -> Any:
    """A module of the extra ``onnx``."""
    return require_module(name, "exported heads", "onnx")


# ---- The input of the last layer of a network: features by which examples are compared


def add_last_layers(network: ModelProto) -> dict[str, str]:
    """Add the input of the last layer before each output of a network as a further output.

    The last layer is the last linear one on the way to the output whose weights are constant.
    Return the names of the new outputs, by those of the outputs. They are single precision, and
    averaged over the positions of a convolution: one row per input for most networks.
    """
    onnx = import_onnx("onnx")
    makers = {name: node for node in network.graph.node for name in node.output}
    constants = _find_constants(network)
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
        name = added[output] = f"rankshot.features.{output}"
        steps = [("Cast", {"to": onnx.TensorProto.FLOAT})]
        if "Conv" in layer.op_type:
            steps += [("GlobalAveragePool", {}), ("Flatten", {})]
        for i, (step, options) in enumerate(steps):
            result = name if i == len(steps) - 1 else f"{name}.{i}"
            node = onnx.helper.make_node(step, [found], [result], name=f"{name}.{step}", **options)
            network.graph.node.append(node)
            found = result
        kind = onnx.TensorProto.FLOAT
        network.graph.output.append(onnx.helper.make_tensor_value_info(name, kind, None))
    return added


def _find_constants(network: ModelProto) -> set[str]:
    """The names of all values that do not depend on the inputs."""
    graph = network.graph
    found = {"", *(tensor.name for tensor in graph.initializer)}
    found |= {tensor.values.name for tensor in graph.sparse_initializer}
    for node in graph.node:
        if node.op_type == "Constant" or (node.input and found.issuperset(node.input)):
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
        if node.op_type not in WEIGHTS_OF or node.input[0] in constants:
            continue
        place = WEIGHTS_OF[node.op_type]
        if place is None or (place < len(node.input) and node.input[place] in constants):
            return node
    return None
