"""`HeadSettings`: a head and its settings, as commands, files and rehearsals exchange them.

Importing this module loads neither NumPy nor any head: the commands read their options from it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rankshot.core.errors import RankshotError, prefix_errors, quote_names, short_repr, suggest_name
from rankshot.core.files import replace_file, require_ending

FORMAT = "rankshot settings 2"


class HeadKind(NamedTuple):
    """A head: its class, what it is fitted to, and the settings that it has."""

    name: str
    semantics: Literal["rankings", "similarities", "head"]
    settings: tuple[str, ...]


HEADS = {
    "weighted-mean": HeadKind(
        "WeightedMean",
        "rankings",
        ("k", "decay", "temperature", "evidence_weight", "reference", "source_weights"),
    ),
    "probabilistic": HeadKind(
        "ProbabilisticRanking",
        "rankings",
        ("k", "decay", "posterior", "prior", "temperature", "reference"),
    ),
    "deterministic": HeadKind("DeterministicRanking", "rankings", ("k", "prior", "temperature")),
    "direct": HeadKind("DirectSimilarity", "similarities", ("temperature",)),
    "conse": HeadKind("ConSE", "similarities", ("temperature",)),
    "seen-and-new": HeadKind("SeenAndNew", "head", ("none", "gate", "seen_temperature")),
    "batch-refinement": HeadKind("BatchRefinement", "head", ("temperature",)),
}
"""All heads, by their names in commands and files."""
RANKING_HEADS = tuple(name for name, kind in HEADS.items() if kind.semantics == "rankings")
METHODS = tuple(name for name, kind in HEADS.items() if kind.semantics != "head")
"""The heads over new classes that a command can fit."""
REFERENCE_HEADS = tuple(name for name, kind in HEADS.items() if "reference" in kind.settings)
"""The heads that can be fitted with a reference."""
PARAMETERS = ("k", "decay", "posterior", "prior", "temperature", "evidence_weight")
"""The settings that are parameters of a head over new classes."""
PRIORS = {"plackett-luce": "PlackettLuce", "mallows": "Mallows"}
"""The models that merge rankings, by their names in commands and files."""
MODELS = (*PRIORS.values(), "BabingtonSmith")
"""The models that a file can hold."""


def _option(
    kind: type[Any], about: str = "", *, default: Any = None, choices: tuple[str, ...] = ()
) -> Any:
    """Return a field with what a command needs to make an option of it, if it has a text."""
    return field(default=default, metadata={"type": kind, "help": about, "choices": choices})


@dataclass(frozen=True, kw_only=True)
class HeadSettings:
    """A head with its settings; None stands for the default of the head.

    The metadata of each field have its ``type``, its allowed values (``choices``) and a ``help``
    for people.

    Attributes
    ----------
    head : str
        The name of the head, as in `HEADS`.
    k, decay, posterior, prior, temperature, evidence_weight, others
        Parameters of the head; ``others`` has those that are not fields.
    reference : bool
        Whether the head is fitted with a reference.
    source_weights : dict of str to float, optional
        How much the rankings of each source count; "" for rankings without a source. A source with
        the weight 0, or that is not named, counts only for classes that no other ranks.
    classes : {"new", "all"}
        Whether seen classes may be predicted as well, by a `SeenAndNew`.
    none, gate, seen_temperature
        Parameters of this `SeenAndNew`.
    default_temperature : float, optional
        The temperature that the head had before a rehearsal calibrated it.

    Examples
    --------
    >>> import rankshot as rs
    >>> from rankshot.zeroshot import HeadSettings, build_head
    >>> settings = HeadSettings.from_head(rs.WeightedMean(k=10, temperature=0.6))
    >>> settings.to_json()
    {'head': 'weighted-mean', 'k': 10, 'temperature': 0.6}
    >>> build_head(settings)
    WeightedMean(k=10, temperature=0.6)
    """

    head: str = _option(
        str, "The method that decides between new classes.", default=METHODS[0], choices=METHODS
    )
    k: int | None = _option(
        int,
        "How many places of each ranking are used. The default is 15 for the method "
        "weighted-mean, and 10 for the others.",
    )
    decay: float | None = _option(
        float,
        "How fast the weight of a place decreases: place r has the weight r^-decay, and 0 gives "
        "all places the same weight. For the methods weighted-mean and probabilistic. The default "
        "is 0.5.",
    )
    posterior: Literal["mean", "consensus", "sum"] | None = _option(
        str,
        "How the method probabilistic combines the rankings of a new class: take the mean over "
        "them, merge them into a consensus, or sum over all possible rankings. The default is "
        "mean.",
        choices=("mean", "consensus", "sum"),
    )
    prior: Literal["plackett-luce", "mallows"] | None = _option(
        str,
        "The model that merges the rankings of a new class, for the method deterministic, and for "
        "probabilistic with a consensus or a sum. The default is plackett-luce.",
        choices=tuple(PRIORS),
    )
    temperature: float | None = _option(
        float,
        "The number by which log-probabilities are divided: a larger one makes the probabilities "
        "of the classes more equal, and changes no prediction. The default depends on the method.",
    )
    evidence_weight: float | None = _option(
        float,
        "How much the evidence of another model counts relative to the rankings, for the method "
        "weighted-mean. The default follows from how often the two agree.",
    )
    classes: Literal["new", "all"] = _option(
        str,
        "Predict new classes only, or new and seen classes together. With a reference, it is "
        "better known what is usual for seen classes.",
        default="new",
        choices=("new", "all"),
    )
    none: bool = _option(
        bool,
        "An input that is of no class gets the class `none of these`. With seen and new classes "
        "together, this needs a reference.",
        default=False,
    )
    gate: dict[str, Any] | None = _option(dict)  # noqa: RUF009
    seen_temperature: float | None = _option(float)
    reference: bool = _option(bool, default=False)
    source_weights: dict[str, float] | None = _option(dict)  # noqa: RUF009
    default_temperature: float | None = _option(float)
    others: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if value is not None and each.name not in {"head", "others"}:
                self._require(each.name, value, each.metadata)

    def _require(self, name: str, value: Any, about: Mapping[str, Any]) -> None:
        """Raise unless a value is one that the field, and the head, can have."""
        from rankshot.core.validation import (  # noqa: PLC0415
            require_choice,
            require_number,
            require_whole_number,
        )

        if name in PARAMETERS and self.head in HEADS and name not in HEADS[self.head].settings:
            heads = " and ".join(head for head, kind in HEADS.items() if name in kind.settings)
            raise RankshotError(f"{name} is for {heads}, not for {self.head}: leave it out")
        if about["choices"]:
            require_choice(name, value, about["choices"])
        elif about["type"] is int:
            require_whole_number(name, value)
        elif about["type"] is float:
            bound = {"least": 0} if name in {"decay", "evidence_weight"} else {"above": 0}
            require_number(name, value, below=math.inf, **bound)
        elif not isinstance(value, about["type"]) or value == {}:
            raise RankshotError(
                f"{name} must be a {about['type'].__name__}, not {short_repr(value)}"
            )

    # ---- From and to a head

    @classmethod
    def from_head(cls, head: Any, **more: Any) -> HeadSettings:
        """Return the settings of a head; ``more`` are fields that are not its parameters."""
        kind = type(head)
        name = next((name for name, it in HEADS.items() if it.name == kind.__name__), kind.__name__)
        given = head.get_params(deep=False)
        inner = {"head": given.pop("head")} if "head" in given else {}
        defaults = kind(**inner).get_params(deep=False)
        plain = {
            key: _encode(value)
            for key, value in given.items()
            if value is not defaults[key] and value != defaults[key]
        }
        own = {
            each.name: plain.pop(each.name)
            for each in fields(cls)
            if name in HEADS
            and each.name in HEADS[name].settings
            # None, and a model with parameters, are values of the head, but not of the field.
            and isinstance(
                plain.get(each.name), dict if each.metadata["type"] is dict else int | float | str
            )
        }
        return cls(head=name, others=plain, **own, **more)

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the head that differ from its defaults, as plain values."""
        own = {
            each.name: getattr(self, each.name)
            for each in fields(self)
            if self.head in HEADS
            and each.name in HEADS[self.head].settings
            and each.name != "reference"
            and getattr(self, each.name) != each.default
        }
        return own | self.others

    # ---- From and to JSON

    def to_json(self) -> dict[str, Any]:
        """Return what differs from the defaults, as JSON holds it."""
        found = {"head": self.head}
        for each in fields(self):
            value = getattr(self, each.name)
            default = each.default if each.default is not MISSING else {}
            if value != default:
                found[each.name] = require_plain(each.name, value)
        return found

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> HeadSettings:
        """Return settings from ``content``, which `to_json` returned."""
        known = tuple(each.name for each in fields(cls))
        given = {key: value for key, value in content.items() if key not in {"format", "notes"}}
        for what, name, names in (
            *(("setting", name, known) for name in given),
            ("head", given.get("head"), tuple(HEADS)),
        ):
            if name not in names:
                raise RankshotError(
                    f"there is no {what} {short_repr(name)}{suggest_name(name, names)}; there are "
                    f"{quote_names(names)}"
                )
        return cls(**given)

    @classmethod
    def read(cls, path: str | Path) -> HeadSettings:
        """Read settings from ``path``, a .json file that `write` wrote."""
        path = Path(path)
        require_ending(path, (".json",))
        content = None
        with suppress(ValueError):
            content = json.loads(path.read_bytes())
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise RankshotError(f"{path}: is not a settings file; `rankshot rehearse` writes one")
        with prefix_errors(path):
            return cls.from_json(content)

    def write(self, path: str | Path, notes: Mapping[str, Any] | None = None) -> None:
        """Write the settings to ``path``, a .json file, with ``notes`` for the reader."""
        require_ending(Path(path), (".json",))
        content = {"format": FORMAT, **self.to_json(), **({"notes": notes} if notes else {})}
        with replace_file(Path(path)) as stream:
            json.dump(content, stream, indent=2, ensure_ascii=False)
            stream.write("\n")


def _encode(value: Any) -> Any:
    """Return a gate or a ranking model as plain values, and all else as it is."""
    if is_dataclass(value) and not isinstance(value, type):
        return require_plain("gate", asdict(value))
    kind = type(value).__name__
    if kind not in MODELS:
        return value
    parameters = value.get_params()
    short = next((name for name, model in PRIORS.items() if model == kind), None)
    if short is not None and parameters == type(value)().get_params():
        return short
    return {"model": kind, "parameters": parameters}


def require_plain(name: str, value: Any) -> Any:
    """Return a value as JSON holds it; objects are refused."""
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: require_plain(f"{name}[{key!r}]", each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [require_plain(name, each) for each in value]
    raise RankshotError(f"{name}={short_repr(value)} cannot be stored in a file")
