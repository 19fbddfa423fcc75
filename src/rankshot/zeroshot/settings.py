"""`Plan`: settings for prediction, and how they or a file become a fitted head."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from sklearn.base import clone

from rankshot.core.errors import RankshotError, prefix_errors, quote_names, short_repr, suggest_name
from rankshot.core.files import replace_file, require_ending
from rankshot.core.validation import as_names, require_choice
from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.files.head_files import (
    INNER,
    PARAMETERS,
    HeadFile,
    decode_parameters,
    encode_parameters,
    read_head_file,
    require_part,
    require_plain,
)
from rankshot.zeroshot.heads.base import BaseHead, Semantics
from rankshot.zeroshot.heads.batch_refinement import BatchRefinement
from rankshot.zeroshot.heads.deterministic_ranking import DeterministicRanking
from rankshot.zeroshot.heads.probabilistic_ranking import ProbabilisticRanking
from rankshot.zeroshot.heads.seen_and_new import Gate, SeenAndNew
from rankshot.zeroshot.heads.semantic_head import Examples, SemanticHead
from rankshot.zeroshot.heads.similarity_heads import ConSE, DirectSimilarity
from rankshot.zeroshot.heads.weighted_mean import (
    WeightedMean,
    require_source_weights,
    weigh_sources,
)
from rankshot.zeroshot.scores import Scores, n_columns

FORMAT = "rankshot settings 3"
KINDS: tuple[type[BaseHead], ...] = (
    *(WeightedMean, ProbabilisticRanking, DeterministicRanking, DirectSimilarity, ConSE),
    *(SeenAndNew, BatchRefinement),
)
HEADS = {kind.name: kind for kind in KINDS}
"""All heads, by their names in commands and files."""
SEMANTIC = {name: kind for name, kind in HEADS.items() if issubclass(kind, SemanticHead)}
METHODS = tuple(SEMANTIC)
"""The heads over new classes."""
RANKING_HEADS = tuple(name for name, kind in SEMANTIC.items() if kind.semantics is Rankings)


def build_head(described: Mapping[str, object], *inner: BaseHead) -> BaseHead:
    """Return a head with its parameters, not fitted, from what `describe_head` returned."""
    name = described.get("head")
    if name not in HEADS:
        raise RankshotError(
            f"there is no head {short_repr(name)}{suggest_name(name, HEADS)}; there are "
            f"{quote_names(HEADS)}"
        )
    kind = HEADS[name]
    given = require_part({PARAMETERS: {}, **described}, PARAMETERS, dict)
    head: BaseHead = kind(*inner, **decode_parameters(kind, given))
    return head


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """Settings for prediction: the head with its parameters, and the classes that may be predicted.

    Attributes
    ----------
    head : head
        A head over new classes with its parameters; not fitted.
    reference : bool, optional
        Whether the head is fitted with the reference. By default, it is if the head supports this.
    source_weights : dict of str to float, optional
        The weight of each source; "" stands for rankings without a source. A source that has
        weight 0 or is not named is used only for classes that no other source ranks.
    classes : {"new", "all"}
        Whether seen classes may be predicted as well, by a `SeenAndNew`.
    none : bool
        Whether "none of these" may be predicted.
    gate, seen_temperature
        Parameters of this `SeenAndNew`.
    default_temperature : float, optional
        The temperature that the head had before a rehearsal calibrated it.

    Examples
    --------
    >>> import rankshot as rs
    >>> from rankshot.zeroshot import Plan
    >>> plan = Plan(head=rs.WeightedMean(k=10, temperature=0.6))
    >>> plan.to_json()
    {'head': 'weighted-mean', 'parameters': {'k': 10, 'temperature': 0.6}}
    >>> rankings = rs.Rankings.from_orders(
    ...     [["leopard"], ["bus"]], items=["bus", "leopard"], targets=["cat", "truck"])
    >>> plan.fit(rankings).predict([[4.0, 0.5]])
    array(['truck'], dtype='<U5')
    """

    head: SemanticHead = field(default_factory=WeightedMean)
    reference: bool | None = None
    source_weights: Mapping[str, float] | None = None
    classes: Literal["new", "all"] = "new"
    none: bool = False
    gate: Gate | None = None
    seen_temperature: float | None = None
    default_temperature: float | None = None

    def __post_init__(self) -> None:
        require_choice("classes", self.classes, ("new", "all"))

    # ---- Fitting

    @property
    def has_gate(self) -> bool:
        """Whether seen classes or "none of these" may be predicted."""
        return self.classes == "all" or self.none

    @property
    def uses_reference(self) -> bool:
        """Whether the head itself, not only the gate to the seen classes, uses a reference."""
        return self.head.takes_reference if self.reference is None else self.reference

    def fit(
        self,
        semantics: Semantics,
        reference: Scores | None = None,
        examples: Examples | None = None,
        evidence: Scores | None = None,
    ) -> BaseHead:
        """Return a fitted head that predicts the classes that the plan allows.

        Parameters
        ----------
        semantics, reference, examples, evidence
            As for the head: see `WeightedMean.fit`.
        """
        weights, head = self.source_weights, self.make_head()
        if weights is not None and isinstance(semantics, Rankings) and not head.weighs_sources:
            semantics = weigh_sources(semantics, require_source_weights(weights, semantics))
        used = reference if self.uses_reference else None
        fitted = head.fit(semantics, used, examples, evidence)
        return self.add_gate(fitted).fit(reference) if self.has_gate else fitted

    def make_head(self) -> SemanticHead:
        """Return the head over new classes with its parameters, not fitted."""
        head: SemanticHead = clone(self.head)
        if self.source_weights is not None and head.weighs_sources:
            head.set_params(source_weights=self.source_weights)
        return head

    def add_gate(self, head: BaseHead) -> SeenAndNew:
        """Return a `SeenAndNew` around a head, not fitted.

        If the plan is for new classes only, seen classes are "none of these".
        """
        return SeenAndNew(
            head,
            gate=self.gate,
            none=self.none,
            seen=self.classes == "all",
            seen_temperature=self.seen_temperature,
        )

    # ---- From and to heads and JSON

    @classmethod
    def from_head(cls, head: BaseHead) -> Plan:
        """Return the plan that a head was fitted with, as far as the head stores it."""
        inner = head.innermost
        gate = head.head if isinstance(head, BatchRefinement) else head
        more: dict[str, Any] = {}
        if isinstance(gate, SeenAndNew):
            more = {"classes": "all" if gate.seen else "new", "none": gate.none}
            more |= {"gate": gate.gate, "seen_temperature": gate.seen_temperature}
        return cls(head=clone(inner), reference=inner.reference_ is not None, **more)

    def to_json(self) -> dict[str, object]:
        """Return the settings that differ from the defaults, as values for JSON."""
        found: dict[str, object] = {"head": self.head.name}
        if parameters := encode_parameters(self.head):
            found[PARAMETERS] = parameters
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name != "head" and value != each.default:
                plain = asdict(value) if isinstance(value, Gate) else value
                found[each.name] = require_plain(each.name, plain)
        return found

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Plan:
        """Return the plan from ``content``, which `to_json` returned."""
        known = {each.name for each in fields(cls)}
        given = {key: value for key, value in content.items() if key in known - {"head"}}
        unknown = [key for key in content if key not in known | {PARAMETERS, "format", "notes"}]
        if unknown:
            raise RankshotError(
                f"there is no setting {unknown[0]!r}{suggest_name(unknown[0], known)}; there are "
                f"{quote_names(sorted(known))}"
            )
        if given.get("gate") is not None:
            given["gate"] = Gate(**require_part(given, "gate", dict))
        return cls(head=cast("SemanticHead", build_head(content)), **given)

    @classmethod
    def read(cls, path: str | Path) -> Plan:
        """Read a plan from ``path``, a .json file that `write` wrote."""
        path = Path(path)
        require_ending(path, (".json",))
        content = None
        with suppress(ValueError):
            content = json.loads(path.read_bytes())
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise RankshotError(
                f"{path}: is not a settings file of this version; `rankshot rehearse` writes one"
            )
        with prefix_errors(path):
            plan = cls.from_json(content)
            plan.head.require_parameters()
            return plan

    def write(self, path: str | Path, notes: Mapping[str, object] | None = None) -> None:
        """Write the plan to ``path``, a .json file, with ``notes`` for the reader."""
        require_ending(Path(path), (".json",))
        content = {"format": FORMAT, **self.to_json(), **({"notes": notes} if notes else {})}
        with replace_file(Path(path)) as stream:
            json.dump(content, stream, indent=2, ensure_ascii=False)
            stream.write("\n")


# ---- Heads from files


def load_head(path: str | Path) -> BaseHead:
    """Read a fitted head that ``head.save`` or ``rankshot fit`` wrote.

    It gives the same predictions and explanations as the saved head, and can be saved again.
    ``head.provenance_`` describes how it was made.

    Parameters
    ----------
    path : str or Path
        The file to read (.rankshot).

    Examples
    --------
    >>> import tempfile
    >>> import rankshot as rs
    >>> cosines = rs.Similarity(
    ...     [[.9, .8, .1], [.1, .2, .9]], ["cat", "truck"], ["leopard", "tiger", "bus"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rs.ConSE(n_classes=2).fit(cosines).save(folder + "/new-classes.rankshot")
    ...     head = rs.load_head(folder + "/new-classes.rankshot")
    >>> head, head.items_, head.classes_.tolist()
    (ConSE(n_classes=2), ('leopard', 'tiger', 'bus'), ['cat', 'truck'])
    """
    path = Path(path)
    file = read_head_file(path)
    try:
        items = as_names(require_part(file.manifest, "seen_classes", list), "seen_classes")
        # A forged file may have any numbers, but loading it must not warn.
        with np.errstate(all="ignore"):
            head = _build_head(file, require_part(file.manifest, "head", dict), "", items)
            _try_head(head)
    except Exception as error:  # noqa: BLE001 (anything, if the parts contradict each other)
        text = str(error) if isinstance(error, RankshotError) else repr(error)
        damaged = "" if text.startswith("is damaged") else "is damaged: "
        raise RankshotError(f"{path}: {damaged}{text}") from None
    head._loaded = head.classes_, file.manifest["provenance"]
    return head


def _build_head(
    file: HeadFile, described: dict[str, object], folder: str, items: tuple[str, ...]
) -> BaseHead:
    """Return the head that a part of the manifest describes."""
    settings = require_part(described, "settings", dict)
    inner = []
    if "head" in described:
        inner = [_build_head(file, require_part(described, "head", dict), folder + INNER, items)]
    head: BaseHead = build_head(settings, *inner)
    classes = as_names(require_part(described, "classes", list), "classes")
    head.items_, head.classes_ = items, np.array(classes)
    rankings = file.read_rankings(folder, items)
    values = require_part(described, "values", dict)
    head._restore_state({**values, **file.read_arrays(folder), **rankings})
    # Classes may have examples and no rankings.
    fitting = all({*found.target_names} <= {*classes} for found in rankings.values())
    if not fitting or head.classes_.tolist() != list(classes):
        raise RankshotError(f"the classes {quote_names(classes)} do not fit {short_repr(head)}")
    return head


def _try_head(head: BaseHead) -> None:
    """Raise unless a head gives probabilities: then its parts fit together."""
    kind = head._expected_kind() or "multiclass"
    scores = Scores(np.zeros((1, n_columns(len(head.items_), kind))), head.items_, kind)
    scores = scores._with_columns(np.zeros((1, head.n_extra_columns_)), head)
    if not np.isclose(head.predict_proba(scores).sum(), 1):
        raise RankshotError("its numbers do not define probabilities")
