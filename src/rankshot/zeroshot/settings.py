"""`Settings`: everything about a prediction that a user may choose, declared once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rankshot.core.errors import InputError, prefix_errors, quote_names, suggest_name
from rankshot.core.files import parse_json, replace_file, require_ending, require_regular
from rankshot.core.validation import require_choice, require_number
from rankshot.sources.prompts import LIST_LENGTH
from rankshot.zeroshot.class_rankings import DECAY
from rankshot.zeroshot.head_files import require_plain
from rankshot.zeroshot.weighted_mean import WeightedMean

FORMAT = "rankshot settings 4"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How new classes are predicted from what is known of them.

    Options of the command, files of settings and their help are made from this class.

    Parameters
    ----------
    classes : {"new", "all"}
        What may be predicted: new classes only, or new and seen classes.
    seen_loss : float or None
        With classes="all": how much accuracy on seen classes may be lost, as a share of all their
        inputs. By default .02 with a reference. Without one, it needs ``batch=True``, and limits
        the share of the batch that is predicted as new.
    none : bool
        Whether "none of these" may be predicted.
    batch : {True, False, "auto"}
        Whether all inputs of a batch are classified jointly; with "auto" if there are five or more
        per class. Most new classes should occur among them. If seen classes or "none of these" may
        be predicted, "auto" uses the batch only as the reference, if there is none.
    use_reference : bool
        Whether scores are compared with those of the reference, if there is one.
    k : int or None
        The number of places of each ranking that are used; None means all.
    decay : float
        How fast the weights of the places decrease: place r has the weight r^-decay.
    temperature : float or None
        Log-probabilities are divided by it: a larger one makes the probabilities of the classes
        more equal. By default 1.
    source_weights : dict of str to float, optional
        The weight of each source; "" stands for rankings without a source. A source that has
        weight 0 or is not named is used only for classes that no other source ranks.
    evidence_weight : float or None
        The weight of another model's scores. By default it is estimated without labels.

    Examples
    --------
    >>> import rankshot as rs
    >>> settings = rs.zeroshot.Settings(k=10, temperature=0.6)
    >>> settings.to_json()
    {'k': 10, 'temperature': 0.6}
    """

    classes: Literal["new", "all"] = "new"
    seen_loss: float | None = None
    none: bool = False
    batch: bool | Literal["auto"] = "auto"
    use_reference: bool = True
    k: int | None = LIST_LENGTH
    decay: float = DECAY
    temperature: float | None = None
    source_weights: Mapping[str, float] | None = None
    evidence_weight: float | None = None

    def __post_init__(self) -> None:
        """Check the values."""
        require_choice("classes", self.classes, ("new", "all"))
        if not isinstance(self.batch, bool | np.bool_) and self.batch != "auto":
            raise InputError("batch", self.batch, 'must be True, False or "auto"')
        if self.seen_loss is not None:
            require_number("seen_loss", self.seen_loss, above=0, below=1)
            if not self.has_gate:
                raise InputError("seen_loss", self.seen_loss, "needs classes='all'")
        self.make_estimator().require_parameters()

    @property
    def has_gate(self) -> bool:
        """Whether seen classes or "none of these" may be predicted."""
        return self.classes == "all" or self.none

    def make_estimator(self) -> WeightedMean:
        """The head over new classes with its parameters, not fitted."""
        names = WeightedMean().get_params()
        return WeightedMean(**{name: getattr(self, name) for name in names})

    # ---- As plain values, text and files

    def to_json(self) -> dict[str, object]:
        """The settings that differ from the defaults, as values for JSON."""
        return {
            each.name: require_plain(each.name, getattr(self, each.name))
            for each in fields(self)
            if getattr(self, each.name) != each.default
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Settings:
        """The settings in ``content``, which `to_json` returned; unknown names are refused."""
        known = [each.name for each in fields(cls)]
        if unknown := [name for name in content if name not in known]:
            rule = f"is not a setting{suggest_name(unknown[0], known)}"
            hint = f"the settings are {quote_names(known, 20)}"
            raise InputError("settings", unknown[0], rule, hint=hint)
        return cls(**content)

    @classmethod
    def read(cls, path: str | Path) -> Settings:
        """Read settings from ``path``, a .json file that `write` wrote."""
        path = Path(path)
        require_ending(path, (".json",))
        require_regular(path)
        content = parse_json(path.read_bytes())
        if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
            rule, hint = "is not a file of settings of this version", "a rehearsal writes one"
            raise InputError("settings", str(path), rule, hint=hint)
        with prefix_errors(path):
            return cls.from_json(content)

    def write(self, path: str | Path) -> None:
        """Write the settings to ``path``, a .json file."""
        require_ending(Path(path), (".json",))
        with replace_file(Path(path)) as stream:
            json.dump({"format": FORMAT, **self.to_json()}, stream, indent=2, ensure_ascii=False)
            stream.write("\n")
