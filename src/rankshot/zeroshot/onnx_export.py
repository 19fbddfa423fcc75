"""Heads as ONNX graphs, alone or behind the network whose scores they take."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import version
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from rankshot.core.arrays import Array, largest, log_softmax
from rankshot.core.errors import RankshotError, quote_names
from rankshot.core.files import replace_file, require_ending
from rankshot.core.validation import require_choice, require_module
from rankshot.sources.names import read_class_labels
from rankshot.zeroshot.decide import EQUAL_LOG_PROBA
from rankshot.zeroshot.heads.base import BaseHead
from rankshot.zeroshot.scores import KINDS, Kind, Scores, are_probabilities, n_columns

if TYPE_CHECKING:
    from onnx import ModelProto, ValueInfoProto

SCORES, FEATURES, PROBABILITIES, LABEL = "scores", "features", "probabilities", "label"
CLASS_KEYS = ("classes", "labels", "names", "class_names", "id2label")
"""Entries of the metadata of an ONNX file that may hold the names of the classes, as JSON."""
ZIPMAP_HINT = '. With skl2onnx, options={"zipmap": False} writes probabilities as a table'
KEEPS_VALUES = {"Identity", "Cast", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Dropout"}
"""Nodes that may follow a softmax, and leave probabilities as they are."""
MAKES_PROBABILITIES = {"multiclass": "Softmax", "one-vs-rest": "Sigmoid", "one-vs-one": "Sigmoid"}
WEIGHTS_OF: dict[str, int | None] = {
    **dict.fromkeys(("Gemm", "MatMul", "FusedMatMul", "MatMulInteger", "MatMulNBits"), 1),
    **dict.fromkeys(("DynamicQuantizeMatMul", "MatMulIntegerToFloat"), 1),
    **dict.fromkeys(("QLinearMatMul", "QGemm", "QLinearConv"), 3),
    **dict.fromkeys(("Conv", "FusedConv", "ConvInteger"), 1),
    **dict.fromkeys(("LinearClassifier", "SVMClassifier"), None),
}
"""Linear layers, with the place of the weights among their inputs; None for attributes."""
QUANTIZES = {"QuantizeLinear", "DynamicQuantizeLinear"}
TOLERANCE = 1e-5
"""The largest difference of a probability from that of the head in Python."""


class Probe(NamedTuple):
    """Random inputs of a graph, and the scores and features that the head gets of them."""

    inputs: dict[str, NDArray[np.generic]]
    scores: NDArray[np.floating]
    features: NDArray[np.floating] | None = None


class Exported(NamedTuple):
    """What `export_onnx` wrote.

    Attributes
    ----------
    model : onnx.ModelProto
        The graph.
    from_probabilities : bool
        Whether the network ends with a softmax (for binary classifiers, a sigmoid), so that the
        head uses the logarithms (the log-odds) of its output.
    difference : float
        The largest difference between a probability of the graph and that of the head in Python,
        for random inputs.
    n_features : int
        The number of columns of the input ``features``: features, then evidence. 0 if there is no
        such input.

    Examples
    --------
    >>> from rankshot.zeroshot import Exported
    >>> Exported._fields
    ('model', 'from_probabilities', 'difference', 'n_features')
    """

    model: ModelProto
    from_probabilities: bool
    difference: float
    n_features: int


def export_onnx(
    head: BaseHead,
    path: str | Path,
    *,
    kind: Kind = "multiclass",
    network: str | Path | None = None,
    output: str | None = None,
    metadata: Mapping[str, str] | None = None,
) -> Exported:
    """Write a fitted head as an ONNX file, alone or behind a network.

    The outputs are ``probabilities``, with one column per class, and ``label``, the index of the
    most probable class of each input. The names of the classes are in the metadata, as JSON under
    ``classes``. The graph computes the head's formula in single precision. Before the file is
    written, the graph is run on random inputs, and its probabilities must agree with the head's.

    Parameters
    ----------
    head : head
        A fitted head.
    path : str or Path
        The file to write (.onnx).
    kind : {"multiclass", "one-vs-rest", "one-vs-one"}
        The kind of the scores.
    network : str or Path, optional
        An ONNX file that outputs the scores of the seen classes, in the order of ``head.items_``;
        the order is checked if the metadata names the classes. The new file has the inputs of the
        network. Without a network, its input is ``scores``. If the head needs features, they are
        taken from the input of the network's last layer; if that layer is not found, or without a
        network, they are an additional input ``features``. Evidence is always such an input.
    output : str, optional
        The output of the network to use. By default the only one with as many columns as there are
        scores.
    metadata : mapping of str to str, optional
        Additional entries for the metadata of the file.

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
    ...     exported = rs.export_onnx(head, f"{folder}/head.onnx")
    ...     session = onnxruntime.InferenceSession(f"{folder}/head.onnx")
    >>> scores = np.array([[-2.0, 1.5, 1.0]], dtype=np.float32)
    >>> label = session.run(["label"], {"scores": scores})[0]
    >>> head.classes_[label]
    array(['cat'], dtype='<U5')
    """
    check_is_fitted(head, "classes_")
    require_choice("kind", kind, KINDS)
    require_ending(Path(path), (".onnx",))
    graph = _Graph(head, kind)
    if network is not None:
        graph.attach(Path(network), output)
    graph.metadata |= metadata or {}
    model = graph.build()
    difference = graph.measure_difference(model)
    if network is not None:
        alone = _Graph(head, kind)
        difference = max(difference, alone.measure_difference(alone.build()))
    if not difference <= TOLERANCE:
        raise RankshotError(
            f"the exported head differs from the head by up to {difference:.2g} in a probability: "
            "nothing was written"
        )
    content = model.SerializeToString()
    with replace_file(Path(path)) as stream:
        stream.buffer.write(content)
    return Exported(model, graph.from_probabilities, difference, graph.n_features)


class _Graph:
    """The graph of a head, from its scores or from the inputs of a network."""

    def __init__(self, head: BaseHead, kind: Kind) -> None:
        self._head, self._kind = head, kind
        self._xp, self._spox = _module("ndonnx"), _module("spox")
        self._columns = n_columns(len(head.items_), kind)
        shape = ("inputs", self._columns)
        scores = self._spox.argument(self._spox.Tensor(np.float32, shape))
        self._inputs: dict[str, object] = {SCORES: scores}
        self._scores = self._xp.asarray(scores)
        self._features: list[Array] = []
        self._take_features(head.n_extra_columns_)
        self.metadata: dict[str, str] = {}
        values = 5 * np.random.default_rng(0).standard_normal((16, self._columns), np.float32)
        self._probe: Probe | None = Probe({SCORES: values}, values)
        self.from_probabilities = False

    def _take_features(self, n: int) -> None:
        """Add an input of features, or of evidence, with n columns."""
        self.n_features = n
        if n:
            given = self._spox.argument(self._spox.Tensor(np.float32, ("inputs", n)))
            self._inputs[FEATURES] = given
            self._features.append(self._xp.asarray(given))

    def attach(self, path: Path, output: str | None) -> None:
        """Put a network in front of the head."""
        network = load_network(path)
        chosen = self._choose_output(network, path, output)
        layer = self._find_features(network, chosen)
        metadata = {entry.key: entry.value for entry in network.metadata_props}
        _check_classes(metadata, self._head.items_, path)
        # These are names of the outputs of the network, not of those of the new file.
        self.metadata = {key: text for key, text in metadata.items() if key not in CLASS_KEYS}
        self._inputs = {
            value.name: self._spox.argument(_type_of(value, self._spox))
            for value in _inputs_of(network)
        }
        try:
            outputs = self._spox.inline(network)(**self._inputs)
        except Exception as error:  # noqa: BLE001 (errors of several libraries)
            problem = str(error).strip().partition("\n")[0]
            raise RankshotError(f"{path}: a head cannot be attached to it: {problem}") from None
        scores = self._xp.astype(self._xp.asarray(outputs[chosen]), self._xp.float32)
        # The network may not say how many outputs it has.
        self._scores = self._xp.reshape(scores, (-1, self._columns))
        self._features = [] if layer is None else [self._xp.asarray(outputs[layer])]
        n_evidence = len(self._head.evidence_classes_)
        self._take_features(self._head.n_extra_columns_ if layer is None else n_evidence)
        self.from_probabilities = self._gives_probabilities(network, chosen)
        if self.from_probabilities:
            scores = Scores.from_probabilities(self._scores, self._head.items_, self._kind)
            self._scores = scores.values

    def _find_features(self, network: ModelProto, chosen: str) -> str | None:
        """Return the output of a network with the features that the head needs, if it is found.

        The network is run to see whether these are as many.
        """
        n, wanted = len(network.graph.output), self._head.n_features_
        layer = add_last_layers(network).get(chosen) if wanted else None
        self._probe = _try_network(network, chosen, layer)
        features = None if self._probe is None else self._probe.features
        if layer is not None and features is not None and features.shape[1:] == (wanted,):
            (value,) = (one for one in network.graph.output if one.name == layer)
            value.type.tensor_type.shape.dim.add(dim_param="inputs")
            value.type.tensor_type.shape.dim.add(dim_value=wanted)
            return layer
        del network.graph.output[n:]
        return None

    def _gives_probabilities(self, network: ModelProto, output: str) -> bool:
        """Tell by its last nodes, or by what it returns, whether a network gives probabilities."""
        if _find_maker(network, output) == MAKES_PROBABILITIES[self._kind]:
            return True
        if self._kind != "multiclass" or self._probe is None:
            return False
        return are_probabilities(self._probe.scores)

    def measure_difference(self, model: ModelProto) -> float:
        """Return how far the graph is from network and head, one after the other."""
        if self._probe is None:
            return 0.0
        (inputs, values, features), head = self._probe, self._head
        values = values.reshape(-1, self._columns).astype(np.float32)
        make = Scores.from_probabilities if self.from_probabilities else Scores
        scores = make(values, head.items_, self._kind)
        if head.n_extra_columns_:
            shape = len(scores), self.n_features
            given = np.random.default_rng(1).standard_normal(shape, np.float32)
            inputs = inputs | ({FEATURES: given} if self.n_features else {})
            own = [] if self.n_features == head.n_extra_columns_ else [cast("Any", features)]
            scores = scores._with_columns(np.hstack([*own, given]), head)
        found = _open_session(model).run([PROBABILITIES], inputs)[0]
        return float(np.abs(found - head.predict_proba(scores)).max())

    def _choose_output(self, network: ModelProto, path: Path, wanted: str | None) -> str:
        """Return the name of the output that has the scores."""
        outputs = network.graph.output
        shapes = {value.name: _shape(value) for value in outputs if _is_float(value)}
        fitting = [
            name
            for name, shape in shapes.items()
            if (shape is None or (len(shape) == 2 and shape[1] in (self._columns, None)))
            and wanted in (None, name)
        ]
        if len(fitting) == 1:
            return str(fitting[0])
        several = f"several outputs may be the scores ({quote_names(fitting)}): name one; "
        found = ", ".join(f"{value.name!r} {describe_value(value)}" for value in outputs)
        raise RankshotError(
            f"{path}: {several if fitting else ''}the head needs the scores of "
            f"{len(self._head.items_)} seen classes, one output of shape "
            f"(inputs, {self._columns}){'' if wanted is None else f' named {wanted!r}'}; found "
            f"{found}{ZIPMAP_HINT if 'a sequence' in found else ''}"
        )

    def build(self) -> Any:
        """Return the graph."""
        xp, head = self._xp, self._head
        constants = {
            name: xp.asarray(array.astype(np.float32) if array.dtype.kind == "f" else array)
            for name, array in head._constants(self._kind, np.dtype(np.float32), xp).items()
        }
        f = xp.concat([self._scores, *self._features], axis=1)
        log_posterior = head._log_posterior(f, self._kind, constants, xp, None)
        log_proba = log_softmax(log_posterior / head.temperature_, xp, 1)
        outputs = {PROBABILITIES: xp.exp(log_proba), LABEL: self._label(log_proba)}
        model = self._spox.build(
            self._inputs, {name: array.unwrap_spox() for name, array in outputs.items()}
        )
        # The shape of the result is known, though not to the library.
        n_classes = model.graph.output[0].type.tensor_type.shape.dim[1]
        n_classes.dim_value = len(head.classes_)
        own = {
            "classes": json.dumps(head.classes_.tolist(), ensure_ascii=False),
            "seen_classes": json.dumps(head.items_, ensure_ascii=False),
            "head": type(head).__name__,
            "rankshot": version("rankshot"),
        }
        for key, value in (self.metadata | own).items():
            model.metadata_props.add(key=key, value=value)
        return model

    def _label(self, log_proba: Array) -> Array:
        """Return the number of the most probable class; among equals, the first."""
        xp = self._xp
        top = largest(log_proba, xp, 1)
        tied = EQUAL_LOG_PROBA[np.dtype(np.float32)] * xp.where(top < -1, -top, 1.0)
        return xp.argmax(xp.astype(log_proba >= top - tied, xp.float32), axis=1)


def load_network(path: Path) -> Any:
    """Return an ONNX file, or raise an error that says what is wrong with it."""
    onnx = _module("onnx")
    path.stat()
    try:
        network = onnx.load(str(path))
        onnx.checker.check_model(network)
    except Exception as error:  # noqa: BLE001 (errors of several libraries)
        problem = str(error).strip().partition("\n")[0]
        raise RankshotError(f"{path}: is not an ONNX file, or is damaged ({problem})") from None
    return network


def _check_classes(metadata: dict[str, str], items: tuple[str, ...], path: Path) -> None:
    """Refuse a network whose metadata names other classes than those of the head, or in disorder.

    Other spellings of the same class are accepted.
    """
    found = next((metadata[key] for key in CLASS_KEYS if key in metadata), None)
    if found is None:
        return
    try:
        names = json.loads(found)
        labels = read_class_labels(names if isinstance(names, dict) else list(names))
    except (TypeError, ValueError) as error:
        raise RankshotError(
            f"{path}: the class names in its metadata are damaged: {error}"
        ) from None
    for i, (item, name) in enumerate(zip_longest(items, labels.names)):
        if item is None or (name != item and name not in labels.match(item)):
            same = "in another order" if set(labels.names) == set(items) else "others"
            raise RankshotError(
                f"{path}: the classes in its metadata are {same}: number {i} is {name!r}, and "
                f"{item!r} in the head. Fit the head with the seen classes in the order of the "
                "network's outputs"
            )


def _try_network(network: ModelProto, output: str, layer: str | None) -> Probe | None:
    """Run a network on random numbers; ``layer`` is the output with features, if there is one.

    None if the shapes of its inputs are not known, or if it cannot be run on such numbers.
    """
    rng, inputs = np.random.default_rng(0), {}
    for value in _inputs_of(network):
        batch, *rest = _shape(value) or (None, None)
        shape = [n for n in rest if n is not None]
        if len(shape) < len(rest) or not _is_float(value):
            return None
        elem_type = value.type.tensor_type.elem_type
        dtype = _module("onnx").helper.tensor_dtype_to_np_dtype(elem_type)
        inputs[value.name] = rng.normal(size=[batch or 4, *shape]).astype(dtype)
    try:
        names = [output] if layer is None else [output, layer]
        scores, *features = _open_session(network).run(names, inputs)
    except Exception:  # noqa: BLE001 (the errors of onnxruntime have no class in common)
        return None
    return Probe(inputs, scores, *features) if np.isfinite(scores).all() else None


def _inputs_of(network: ModelProto) -> list[ValueInfoProto]:
    """Return the inputs of a network without those that have a value already."""
    given = {tensor.name for tensor in network.graph.initializer}
    return [value for value in network.graph.input if value.name not in given]


def _find_maker(network: ModelProto, output: str) -> str | None:
    """Return the kind of node that computes an output, before nodes that keep its values."""
    makers = {name: node for node in network.graph.node for name in node.output}
    while (node := makers.get(output)) is not None and node.op_type in KEEPS_VALUES:
        output = node.input[0]
    return None if node is None else str(node.op_type)


def _is_float(value: ValueInfoProto) -> bool:
    tensor = _module("onnx").TensorProto
    floats = {tensor.FLOAT, tensor.DOUBLE, tensor.FLOAT16, tensor.BFLOAT16}
    return value.type.HasField("tensor_type") and value.type.tensor_type.elem_type in floats


def _shape(value: ValueInfoProto) -> tuple[int | None, ...] | None:
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        return None
    return tuple(dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim)


def describe_value(value: ValueInfoProto) -> str:
    """Return the type and the shape of an input or output of a graph."""
    tensor = value.type.tensor_type
    if not value.type.HasField("tensor_type"):
        return "a sequence"
    shape = [str(dim.dim_value or dim.dim_param or "any") for dim in tensor.shape.dim]
    kind = _module("onnx").TensorProto.DataType.Name(tensor.elem_type).lower()
    return f"{kind} ({', '.join(shape)})"


def _type_of(value: ValueInfoProto, spox: Any) -> Any:
    tensor = value.type.tensor_type
    dtype = _module("onnx").helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    if not tensor.HasField("shape"):
        return spox.Tensor(dtype)
    # A number, a name, or unknown.
    dims = (dim.dim_value or dim.dim_param or None for dim in tensor.shape.dim)
    return spox.Tensor(dtype, tuple(dims))


def _open_session(model: ModelProto) -> Any:
    return _module("onnxruntime").InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )


def _module(name: str) -> Any:
    return require_module(name, "exported heads", "onnx")


# ---- The input of the last layer of a network: features by which examples are compared


def add_last_layers(network: ModelProto) -> dict[str, str]:
    """Add the input of the last layer before each output of a network as a further output.

    The last layer is the last linear one on the way to the output whose weights are constant.
    Return the names of the new outputs, by those of the outputs. They are single precision, and
    averaged over the positions of a convolution: one row per input for most networks.
    """
    onnx = _module("onnx")
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
    """Return the names of all values that do not depend on the inputs."""
    graph = network.graph
    found = {"", *(tensor.name for tensor in graph.initializer)}
    found |= {tensor.values.name for tensor in graph.sparse_initializer}
    for node in graph.node:
        if node.op_type == "Constant" or (node.input and found.issuperset(node.input)):
            found.update(node.output)
    return found


def _find_last_layer(network: ModelProto, output: str, constants: set[str]) -> Any:
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
