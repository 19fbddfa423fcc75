"""A `LinearHead` as an ONNX graph, alone or behind the network whose scores it takes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import InputError, RankshotError, quote_names
from rankshot.core.files import replace_file, require_ending
from rankshot.core.validation import require_choice
from rankshot.zeroshot.decide import EQUAL_LOG_PROBA
from rankshot.zeroshot.default_head import PLACE_BONUS
from rankshot.zeroshot.linear_head import LinearHead, Predictor
from rankshot.zeroshot.onnx_networks import (
    CLASS_KEYS,
    ZIPMAP_HINT,
    add_last_layers,
    check_classes,
    describe_value,
    find_maker,
    import_onnx,
    inputs_of,
    is_float,
    load_network,
    open_session,
    shape_of,
)
from rankshot.zeroshot.scores import (
    KINDS,
    LEAST_PROBABILITY,
    ROUNDING_UNITS,
    Kind,
    Scores,
    are_probabilities,
    n_columns,
    pair_columns,
)
from rankshot.zeroshot.seen_and_new import SeenAndNew

if TYPE_CHECKING:
    from onnx import ModelProto

SCORES, FEATURES, EVIDENCE, PROBABILITIES, LABEL = (
    *("scores", "features", "evidence"),
    *("probabilities", "label"),
)
MAKES_PROBABILITIES = {"multiclass": "Softmax", "one-vs-rest": "Sigmoid", "one-vs-one": "Sigmoid"}
OPSET, OLDEST_OPSET = 17, 13
"""The operators of a head alone, and the oldest ones that a network may have: older networks are
converted to these."""
TOLERANCE = 1e-5
"""The largest difference of a probability from that of the head in Python."""
Inputs = dict[str, NDArray[np.generic]]


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

    Examples
    --------
    >>> from rankshot.zeroshot import Exported
    >>> Exported._fields
    ('model', 'from_probabilities', 'difference')
    """

    model: ModelProto
    from_probabilities: bool
    difference: float


def export_onnx(
    head: Predictor,
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
    ``classes``. The graph computes the head's formula in single precision, by operators of ONNX
    alone. Before the file is written, the graph is run on random inputs, and its probabilities must
    agree with the head's.

    Parameters
    ----------
    head : LinearHead, or an estimator such as WeightedMean
        A fitted head.
    path : str or Path
        The file to write (.onnx).
    kind : {"multiclass", "one-vs-rest", "one-vs-one"}
        The kind of the scores.
    network : str or Path, optional
        An ONNX file that outputs the scores of the seen classes, in the order of ``head.seen``;
        the order is checked if the metadata names the classes. The new file has the inputs of the
        network. Without a network, its input is ``scores``. If the head needs features, they are
        taken from the input of the network's last layer; if that layer is not found, or without a
        network, they are an additional input ``features``. Another model's scores are always such
        an input, ``evidence``.
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
    if not isinstance(head, Predictor) or isinstance(head, SeenAndNew):
        raise InputError("head", head, "must be a fitted LinearHead", hint="as WeightedMean makes")
    head = head.inner
    require_choice("kind", kind, KINDS)
    require_ending(Path(path), (".onnx",))
    graph = _Graph(head, kind)
    if network is None:
        graph.take_scores()
    else:
        graph.attach(Path(network), output)
    graph.compute()
    model = graph.build(metadata or {})
    difference = graph.measure_difference(model)
    if not difference <= TOLERANCE:
        raise RankshotError(
            f"the exported head differs from the head by up to {difference:.2g} in a probability: "
            "nothing was written"
        )
    with replace_file(Path(path)) as stream:
        stream.buffer.write(model.SerializeToString())
    return Exported(model, graph.from_probabilities, difference)


class _Graph:
    """The graph of a head, from its scores or from the inputs of a network."""

    def __init__(self, head: LinearHead, kind: Kind) -> None:
        self.head, self.kind, self.onnx = head, kind, import_onnx("onnx")
        self.n_columns = n_columns(len(head.seen), kind)
        self.model: Any = None
        self.nodes: list[Any] = []
        self.tensors: list[Any] = []
        self.inputs: list[Any] = []
        self.scores = self.features = ""
        self.metadata: dict[str, str] = {}
        self.from_probabilities = False
        # Random inputs, to compare the graph with the head; without a network, these are scores.
        self.probe: Inputs | None = {}

    # ---- Nodes

    def add(self, operator: str, *inputs: str | NDArray[Any] | float, **options: object) -> str:
        """Add a node; numbers and arrays become constants. The name of its output."""
        name = f"rankshot/{operator}_{len(self.nodes)}"
        names = [x if isinstance(x, str) else self.constant(x) for x in inputs]
        n_outputs = 2 if operator == "TopK" else 1
        outputs = [name, f"{name}_index"][:n_outputs]
        self.nodes.append(self.onnx.helper.make_node(operator, names, outputs, name, **options))
        return name

    def constant(self, values: NDArray[Any] | float) -> str:
        """Add a constant, in single precision unless it has whole numbers."""
        array = np.asarray(values)
        array = array.astype(np.float32) if array.dtype.kind == "f" else array
        name = f"rankshot/constant_{len(self.tensors)}"
        self.tensors.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def take(self, name: str, n: int) -> str:
        """Add an input with n columns."""
        kind = self.onnx.TensorProto.FLOAT
        self.inputs.append(self.onnx.helper.make_tensor_value_info(name, kind, ("inputs", n)))
        if self.probe is not None:
            rows = max((len(x) for x in self.probe.values()), default=16)
            shape = rows, n
            rng = np.random.default_rng(len(self.probe))
            self.probe[name] = 5 * rng.standard_normal(shape, np.float32)
        return name

    def take_scores(self) -> None:
        """Take scores as an input."""
        self.scores = self.take(SCORES, self.n_columns)

    # ---- The formula

    def compute(self) -> None:
        """Add the formula of the head, from the scores to the outputs."""
        head, block, slopes = self.head, self.head.blocks, self.head.slopes.T
        f, C = self.scores, len(head.seen)
        if self.from_probabilities:
            p, f = f, self._log_positive(f)
            if self.kind != "multiclass":
                f = self.add("Sub", f, self._log_positive(self.add("Sub", 1.0, p)))
        if self.kind == "one-vs-one":
            column, sign = pair_columns(C)
            of_pairs = np.zeros((self.n_columns, C))
            i, j = np.nonzero(sign)
            of_pairs[column[i, j], i] = sign[i, j]
            f = self.add("MatMul", f, of_pairs)
        share = np.full((C, 1), 1 / C)
        mean = self.add("MatMul", f, share)
        centered = self.add("Sub", f, mean)
        variance = self.add("MatMul", self.add("Mul", centered, centered), share)
        rounding = self.add("Mul", mean, ROUNDING_UNITS * float(np.finfo(np.float32).eps))
        has_spread = self.add("Greater", variance, self.add("Mul", rounding, rounding))
        scale = self.add("Div", 1.0, self.add("Sqrt", variance))
        scale = self.add("Where", has_spread, scale, 0.0)
        total = self.add("Mul", self.add("MatMul", centered, slopes[block["scores"]]), scale)
        total = self.add("Add", total, head.offsets)
        if head.rank_slopes.size:
            total = self.add(
                "Add", total, self.add("MatMul", self._rank_bonus(f), head.rank_slopes.T)
            )
        if n := head.n_features:
            x = self.add("Sub", self.features or self.take(FEATURES, n), head.usual_features)
            length = self.add("Sqrt", self.add("MatMul", self.add("Mul", x, x), np.ones((n, 1))))
            is_there = self.add("Greater", length, 0.0)
            x = self.add("Div", x, self.add("Where", is_there, length, 1.0))
            total = self.add("Add", total, self.add("MatMul", x, slopes[block["features"]]))
        if head.evidence:
            x = self.take(EVIDENCE, len(head.evidence))
            total = self.add("Add", total, self.add("MatMul", x, slopes[block["evidence"]]))
        log_proba = self.add("LogSoftmax", self.add("Div", total, head.temperature), axis=1)
        self._output("Exp", PROBABILITIES, log_proba)
        # The number of the most probable class; among equals, the first.
        top = self.add("TopK", log_proba, np.array([1]), axis=1)
        tied = self.add("Max", self.add("Abs", top), 1.0)
        tied = self.add("Mul", tied, EQUAL_LOG_PROBA[np.dtype(np.float32)])
        is_below = self.add("Less", log_proba, self.add("Sub", top, tied))
        is_best = self.add("Cast", self.add("Not", is_below), to=self.onnx.TensorProto.FLOAT)
        self._output("ArgMax", LABEL, is_best, axis=1, keepdims=0)

    def _rank_bonus(self, f: str) -> str:
        """The formula of `rank_bonus`: each place shares its bonus among equal scores."""
        C = len(self.head.seen)
        bonuses = PLACE_BONUS[:C]
        largest = self.add("TopK", f, np.array([len(bonuses)]), axis=1)
        total = ""
        for place, bonus in enumerate(bonuses):
            level = self.add("Gather", largest, np.array([place]), axis=1)
            at = self.add("Cast", self.add("Equal", f, level), to=self.onnx.TensorProto.FLOAT)
            size = self.add("MatMul", at, np.ones((C, 1)))
            share = self.add("Mul", at, self.add("Div", bonus, size))
            total = self.add("Add", total, share) if total else share
        return total

    def _output(self, operator: str, name: str, *inputs: str, **options: object) -> None:
        self.nodes.append(self.onnx.helper.make_node(operator, inputs, [name], **options))

    def _log_positive(self, p: str) -> str:
        """Log p; zeros are replaced by a value below all others of the row."""
        is_positive = self.add("Greater", p, 0.0)
        negative = self.add("Neg", self.add("Where", is_positive, p, 1.0))
        half = self.add("Mul", self.add("TopK", negative, np.array([1]), axis=1), -0.5)
        floor = self.add("Min", half, LEAST_PROBABILITY)
        floor = self.add("Max", floor, float(np.finfo(np.float32).tiny))
        return self.add("Log", self.add("Where", is_positive, p, floor))

    # ---- A network in front of the head

    def attach(self, path: Path, output: str | None) -> None:
        """Put a network in front of the head."""
        network = load_network(path)
        chosen = self._choose_output(network, path, output)
        layer = self._find_features(network, chosen)
        metadata = {entry.key: entry.value for entry in network.metadata_props}
        check_classes(metadata, self.head.seen, path)
        # These are names of the outputs of the network, not of those of the new file.
        self.metadata = {key: text for key, text in metadata.items() if key not in CLASS_KEYS}
        self.from_probabilities = self._gives_probabilities(network, chosen)
        own = {one.domain: one.version for one in network.opset_import}
        try:
            if own.get("", OPSET) < OLDEST_OPSET:
                network = self.onnx.version_converter.convert_version(network, OLDEST_OPSET)
            prefix = "network/"
            self.model = self.onnx.compose.add_prefix(network, prefix, rename_inputs=False)
        except Exception as error:  # noqa: BLE001 (errors of several libraries)
            problem = str(error).strip().partition("\n")[0]
            raise RankshotError(f"{path}: a head cannot be attached to it: {problem}") from None
        scores = self.add("Cast", prefix + chosen, to=self.onnx.TensorProto.FLOAT)
        # The network may not say how many outputs it has.
        self.scores = self.add("Reshape", scores, np.array([-1, self.n_columns]))
        self.features = "" if layer is None else prefix + layer

    def _find_features(self, network: ModelProto, chosen: str) -> str | None:
        """The output of a network with the features that the head needs, if it is found.

        The network is run to see whether these are as many.
        """
        n, wanted = len(network.graph.output), self.head.n_features
        layer = add_last_layers(network).get(chosen) if wanted else None
        self.probe = _make_probe(network)
        found = _run(network, [chosen, *([] if layer is None else [layer])], self.probe)
        if found is None or not np.isfinite(found[0]).all():
            self.probe = found = None
        self.network_outputs = found
        if layer is not None and found is not None and found[1].shape[1:] == (wanted,):
            return layer
        del network.graph.output[n:]
        self.network_outputs = found and found[:1]
        return None

    def _gives_probabilities(self, network: ModelProto, output: str) -> bool:
        """Whether a network gives probabilities, by its last nodes or by what it returns."""
        if find_maker(network, output) == MAKES_PROBABILITIES[self.kind]:
            return True
        if self.kind != "multiclass" or self.network_outputs is None:
            return False
        return are_probabilities(self.network_outputs[0])

    def _choose_output(self, network: ModelProto, path: Path, wanted: str | None) -> str:
        """The name of the output that has the scores."""
        outputs = network.graph.output
        shapes = {value.name: shape_of(value) for value in outputs if is_float(value)}
        fitting = [
            name
            for name, shape in shapes.items()
            if (shape is None or (len(shape) == 2 and shape[1] in (self.n_columns, None)))
            and wanted in (None, name)
        ]
        if len(fitting) == 1:
            return str(fitting[0])
        several = f"several may be the scores ({quote_names(fitting)}): name one"
        described = ", ".join(f"{value.name!r} {describe_value(value)}" for value in outputs)
        raise InputError(
            "output",
            wanted,
            f"must be one output of shape (inputs, {self.n_columns}), the scores of the "
            f"{len(self.head.seen)} seen classes",
            where=str(path),
            hint=several if fitting else f"it has {described}{ZIPMAP_HINT}",
        )

    # ---- The file

    def build(self, metadata: Mapping[str, str]) -> Any:
        """The graph, with the names of its classes."""
        make, head, onnx = self.onnx.helper, self.head, self.onnx
        n = ("inputs",)
        outputs = [
            make.make_tensor_value_info(
                PROBABILITIES, onnx.TensorProto.FLOAT, (*n, len(head.classes))
            ),
            make.make_tensor_value_info(LABEL, onnx.TensorProto.INT64, n),
        ]
        if self.model is None:
            graph = make.make_graph(self.nodes, "rankshot", self.inputs, outputs, self.tensors)
            opset = [make.make_opsetid("", OPSET)]
            model = make.make_model(graph, opset_imports=opset, ir_version=8)
        else:
            model = self.model
            if "" not in {one.domain for one in model.opset_import}:
                model.opset_import.append(make.make_opsetid("", OPSET))
            graph = model.graph
            graph.node.extend(self.nodes)
            graph.initializer.extend(self.tensors)
            graph.input.extend(self.inputs)
            del graph.output[:], model.metadata_props[:]
            graph.output.extend(outputs)
        own = {
            "classes": json.dumps(head.classes, ensure_ascii=False),
            "seen_classes": json.dumps(head.seen, ensure_ascii=False),
            "head": "LinearHead",
            "rankshot": version("rankshot"),
        }
        for key, value in (self.metadata | dict(metadata) | own).items():
            model.metadata_props.add(key=key, value=value)
        onnx.checker.check_model(model)
        return model

    def measure_difference(self, model: ModelProto) -> float:
        """How far the graph is from network and head, one after the other."""
        if self.probe is None:
            return 0.0
        inputs, head, features = dict(self.probe), self.head, None
        if self.model is None:
            values, features = inputs[SCORES], inputs.get(FEATURES)
        else:
            outputs: Any = self.network_outputs
            values, *layer = outputs
            features = inputs.get(FEATURES, layer[0] if layer else None)
        values = values.reshape(-1, self.n_columns).astype(np.float32)
        evidence = Scores(inputs[EVIDENCE], head.evidence) if head.evidence else None
        make = Scores.from_probabilities if self.from_probabilities else Scores
        scores = make(values, head.seen, self.kind).with_blocks(
            features=features, evidence=evidence
        )
        result = open_session(model).run([PROBABILITIES], inputs)[0]
        return float(np.abs(result - head.predict_proba(scores)).max())


def _make_probe(network: ModelProto) -> Inputs | None:
    """Random inputs of a network; None if their shapes are not known."""
    rng, inputs = np.random.default_rng(0), {}
    for value in inputs_of(network):
        batch, *rest = shape_of(value) or (None, None)
        shape = [n for n in rest if n is not None]
        if len(shape) < len(rest) or not is_float(value):
            return None
        elem_type = value.type.tensor_type.elem_type
        dtype = import_onnx("onnx").helper.tensor_dtype_to_np_dtype(elem_type)
        inputs[value.name] = rng.normal(size=[batch or 4, *shape]).astype(dtype)
    return inputs


def _run(network: ModelProto, outputs: list[str], inputs: Inputs | None) -> list[Any] | None:
    """Outputs of a network for some inputs; None if it cannot be run on them."""
    if inputs is None:
        return None
    try:
        found: list[Any] = open_session(network).run(outputs, inputs)
    except Exception:  # noqa: BLE001 (the errors of onnxruntime have no class in common)
        return None
    return found
