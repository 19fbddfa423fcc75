"""The parameters of heads, as their constructors declare them: in text, and as plain values.

A parameter is declared once, in the constructor of its head: the annotation says what it may be,
and the docstring what it means. Options, files and help texts are made from that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from inspect import Parameter, signature
from typing import Any, Literal, get_args, get_origin, get_type_hints

from sklearn.base import BaseEstimator

from rankshot.core.errors import RankshotError, quote_names, short_repr, suggest_name
from rankshot.core.estimators import Estimator
from rankshot.core.validation import require_choice

MODEL, PARAMETERS = "model", "parameters"
"""What a file says of a parameter that is a ranking model."""


def list_settable(kind: type) -> dict[str, tuple[str, ...]]:
    """Return the parameters of a head that can be written as text, with the choices of some."""
    values = {name: _Values(kind, name) for name in _list_hints(kind)}
    return {name: (*it.choices, *it.models) for name, it in values.items() if it.are_texts}


def parse_parameter(kind: type, name: str, text: str) -> object:
    """Return the value of a parameter that a user wrote."""
    values = _Values(kind, name)
    if text.lower() == "none" and type(None) in values.allowed:
        return None
    if values.choices:
        return require_choice(name, text, values.choices)
    if values.models:
        return values.models[require_choice(name, text, tuple(values.models))]()
    try:
        return (int if int in values.allowed else float)(text)
    except ValueError:
        raise RankshotError(f"{text!r} is not a number") from None


def encode_parameters(head: BaseEstimator | Estimator) -> dict[str, object]:
    """Return the parameters of a head or a model that are not the defaults, as JSON holds them.

    The head inside a head, which has no default, is left out.
    """
    found = {}
    given = head.get_params(deep=False)
    for name, default in _list_defaults(type(head)).items():
        value = given[name]
        if value is default or (not isinstance(value, Estimator) and value == default):
            continue
        if isinstance(value, Estimator):
            value = {MODEL: type(value).__name__, PARAMETERS: encode_parameters(value)}
        elif is_dataclass(value) and not isinstance(value, type):
            value = asdict(value)
        found[name] = require_plain(name, value)
    return found


def decode_parameters(kind: type, plain: Mapping[str, object]) -> dict[str, object]:
    """Return the parameters of a head that `encode_parameters` returned."""
    known = tuple(_list_defaults(kind))
    found = {}
    for name, value in plain.items():
        if name not in known:
            raise RankshotError(
                f"{kind.__name__} has no parameter {short_repr(name)}{suggest_name(name, known)}; "
                f"it has {quote_names(known)}"
            )
        values = _Values(kind, name)
        found[name] = value
        if isinstance(value, Mapping) and value.keys() == {MODEL, PARAMETERS}:
            models = {each.__name__: each for each in values.models.values()}
            model = models[require_choice(name, value[MODEL], tuple(models))]
            found[name] = model(**decode_parameters(model, value[PARAMETERS]))
        elif isinstance(value, Mapping) and values.record is not None:
            found[name] = values.record(**value)
    return found


class _Values:
    """What a parameter may be, by its annotation."""

    def __init__(self, kind: type, name: str) -> None:
        hint = _list_hints(kind)[name]
        is_choice = get_origin(hint) is Literal
        self.allowed = () if is_choice else (get_args(hint) or (hint,))
        self.choices: tuple[str, ...] = get_args(hint) if is_choice else ()
        types = [each for each in self.allowed if isinstance(each, type)]
        self.models = {
            _split_words(each.__name__): each for each in types if issubclass(each, Estimator)
        }
        self.record = next((each for each in types if is_dataclass(each)), None)
        self.are_texts = bool(self.choices or self.models or {int, float} & {*types})


def _list_defaults(kind: type) -> dict[str, object]:
    parameters = signature(kind).parameters.items()
    return {name: each.default for name, each in parameters if each.default is not Parameter.empty}


def _list_hints(kind: type) -> dict[str, object]:
    hints = get_type_hints(kind.__init__)  # type: ignore[misc]
    return {name: hints[name] for name in _list_defaults(kind)}


def _split_words(name: str) -> str:
    """Return ``plackett-luce`` for ``PlackettLuce``."""
    return "".join(f"-{c.lower()}" if c.isupper() else c for c in name).lstrip("-")


def require_plain(name: str, value: object) -> Any:
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
