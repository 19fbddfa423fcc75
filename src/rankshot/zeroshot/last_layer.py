"""The input of the last layer of an ONNX network: features by which examples are compared."""

from __future__ import annotations

from typing import Any

from rankshot.core.validation import require_module

WEIGHTS_OF: dict[str, int | None] = {
    **dict.fromkeys(("Gemm", "MatMul", "FusedMatMul", "MatMulInteger", "MatMulNBits"), 1),
    **dict.fromkeys(("DynamicQuantizeMatMul", "MatMulIntegerToFloat"), 1),
    **dict.fromkeys(("QLinearMatMul", "QGemm", "QLinearConv"), 3),
    **dict.fromkeys(("Conv", "FusedConv", "ConvInteger"), 1),
    **dict.fromkeys(("LinearClassifier", "SVMClassifier"), None),
}
"""Linear layers, with the place of the weights among their inputs; None for attributes."""
QUANTIZES = {"QuantizeLinear", "DynamicQuantizeLinear"}


def add_last_layers(network: Any) -> dict[str, str]:
    """Add the input of the last layer before each output of a network as a further output.

    The last layer is the last linear one on the way to the output whose weights are constant.
    Return the names of the new outputs, by those of the outputs. They are single precision, and
    averaged over the positions of a convolution: one row per input for most networks.
    """
    onnx = require_module("onnx", "ONNX files", "onnx")
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


def _find_constants(network: Any) -> set[str]:
    """Return the names of all values that do not depend on the inputs."""
    graph = network.graph
    found = {"", *(tensor.name for tensor in graph.initializer)}
    found |= {tensor.values.name for tensor in graph.sparse_initializer}
    for node in graph.node:
        if node.op_type == "Constant" or (node.input and found.issuperset(node.input)):
            found.update(node.output)
    return found


def _find_last_layer(network: Any, output: str, constants: set[str]) -> Any:
    """Return the last linear layer that an output depends on; None if there is none."""
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
