"""The settings of a head, as a rehearsal chose them, in a JSON file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rankshot.core.errors import RankshotError, quote_names, short_repr, suggest_name
from rankshot.core.files import replace_file, require_ending
from rankshot.core.validation import require_number
from rankshot.zeroshot.heads.base import BaseHead
from rankshot.zeroshot.heads.conse import ConSE
from rankshot.zeroshot.heads.deterministic_ranking import DeterministicRanking
from rankshot.zeroshot.heads.direct_similarity import DirectSimilarity
from rankshot.zeroshot.heads.gate import Gate
from rankshot.zeroshot.heads.probabilistic_ranking import ProbabilisticRanking
from rankshot.zeroshot.heads.weighted_mean import WeightedMean

FORMAT = "rankshot settings 1"
HEADS: dict[str, type[Any]] = {
    "weighted-mean": WeightedMean,
    "probabilistic": ProbabilisticRanking,
    "deterministic": DeterministicRanking,
    "direct": DirectSimilarity,
    "conse": ConSE,
}
"""The heads by their names in the command and in files."""


@dataclass(frozen=True)
class HeadSettings:
    """What is needed to fit the head that a rehearsal chose, apart from rankings and reference.

    Attributes
    ----------
    head : str
        The name of the head, as in `HEADS`.
    parameters : dict
        The parameters of the head that differ from its defaults; the temperature is among them.
    reference : bool
        Whether the head is fitted with a reference.
    sources : tuple of str
        The sources whose rankings are used; rankings without a source have the name "".
    gate : dict or None
        What decides between seen and new classes: ``new`` and ``none`` of a `Gate`, and
        ``seen_temperature``.
    default_temperature : float or None
        The temperature that the head had before the rehearsal calibrated it.
    """

    head: str
    parameters: dict[str, Any]
    reference: bool
    sources: tuple[str, ...]
    gate: dict[str, Any] | None = None
    default_temperature: float | None = None

    @classmethod
    def of_head(
        cls,
        head: BaseHead,
        *,
        reference: bool,
        sources: tuple[str, ...],
        gate: dict[str, Any] | None = None,
        default_temperature: float | None = None,
    ) -> HeadSettings:
        """Return the settings of a head; a parameter that is no plain value is refused."""
        names = [name for name, kind in HEADS.items() if type(head) is kind]
        if not names:
            raise RankshotError(f"the settings of {type(head).__name__} cannot be stored")
        defaults = type(head)().get_params(deep=False)  # type: ignore[attr-defined]
        params = {
            name: value
            for name, value in head.get_params(deep=False).items()  # type: ignore[attr-defined]
            if value is not defaults[name] and value != defaults[name]
        }
        for name, value in params.items():
            if not isinstance(value, int | float | str | bool | None):
                raise RankshotError(f"{name}={short_repr(value)} cannot be stored in a file")
        return cls(names[0], params, reference, sources, gate, default_temperature)

    def build_gate(self) -> dict[str, Any]:
        """Return the parameters of `SeenAndNew` that are stored here."""
        if self.gate is None:
            return {}
        gate = Gate(self.gate.get("new"), self.gate.get("none"))  # type: ignore[arg-type]
        temperature = _require_positive("seen_temperature", self.gate.get("seen_temperature"))
        return {"gate": gate, "seen_temperature": temperature}

    def build_head(self) -> Any:
        """Return the head with these settings; not fitted."""
        return HEADS[self.head](**self.parameters)


def write_settings(
    settings: HeadSettings, path: str | Path, notes: Mapping[str, Any] | None = None
) -> None:
    """Write settings to a .json file, with notes for the reader."""
    require_ending(Path(path), (".json",))
    content = {"format": FORMAT, **asdict(settings), **({"notes": notes} if notes else {})}
    with replace_file(Path(path)) as stream:
        json.dump(content, stream, indent=2, ensure_ascii=False)
        stream.write("\n")


def read_settings(path: str | Path) -> HeadSettings:
    r"""Read settings that `write_settings` wrote.

    Examples
    --------
    >>> import tempfile
    >>> settings = HeadSettings("weighted-mean", {"k": 10, "temperature": 0.6}, True, ("WordNet",))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_settings(settings, Path(folder) / "settings.json")
    ...     read_settings(Path(folder) / "settings.json").build_head()
    WeightedMean(k=10, temperature=0.6)
    """
    path = Path(path)
    require_ending(path, (".json",))
    try:
        content = json.loads(path.read_bytes())
    except ValueError as error:
        raise RankshotError(f"{path}: is no JSON: {error}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise RankshotError(f"{path}: is no settings file; `rankshot rehearse -o` writes one")
    try:
        return parse_settings(content)
    except RankshotError as error:
        raise RankshotError(f"{path}: {error}") from None


def parse_settings(content: dict[str, Any]) -> HeadSettings:
    """Return the settings in the content of a file."""
    kinds = {"head": str, "parameters": dict, "reference": bool, "sources": list}
    for name, kind in kinds.items():
        if not isinstance(content.get(name), kind):
            raise RankshotError(
                f"{name!r} must be a {kind.__name__}, not {short_repr(content.get(name))}"
            )
    head, parameters = content["head"], content["parameters"]
    if head not in HEADS:
        raise RankshotError(
            f"there is no head {head!r}{suggest_name(head, HEADS)}; there are {quote_names(HEADS)}"
        )
    known = HEADS[head]().get_params()
    for name in parameters:
        if name not in known:
            raise RankshotError(f"{head} has no parameter {name!r}{suggest_name(name, known)}")
    sources = content["sources"]
    if not sources or not all(isinstance(source, str) for source in sources):
        raise RankshotError(f"'sources' must be names, not {short_repr(sources)}")
    gate = content.get("gate")
    if not isinstance(gate, dict | None):
        raise RankshotError(f"'gate' must be a dict, not {short_repr(gate)}")
    before = content.get("default_temperature")
    if before is not None:
        before = _require_positive("default_temperature", before)
    settings = HeadSettings(head, parameters, content["reference"], tuple(sources), gate, before)
    settings.build_gate()
    return settings


def _require_positive(what: str, value: Any) -> float:
    return require_number(what, value, above=0, below=math.inf)
