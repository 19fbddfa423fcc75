"""Parameters of models as in scikit-learn, without the time to import it.

scikit-learn's ``clone``, grids and nested names (``model__tol``) work with these classes.
"""

from __future__ import annotations

import warnings
from copy import deepcopy
from inspect import signature
from typing import Any, Self, TypeVar

from rankshot.core.errors import RankshotError, quote_names, suggest_name

Model = TypeVar("Model")


class Estimator:
    """A model whose settings are its constructor's parameters; fitted attributes end in ``_``.

    Examples
    --------
    >>> import rankshot as rs
    >>> rs.PlackettLuce(regularization=0.1).get_params()["regularization"]
    0.1
    """

    @classmethod
    def _setting_names(cls) -> list[str]:
        return sorted(name for name in signature(cls.__init__).parameters if name != "self")

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: FBT001, FBT002 (scikit-learn's)
        """Settings.

        Parameters
        ----------
        deep : bool
            Whether to include the settings of nested models, such as ``model__tol``.
        """
        settings = {name: getattr(self, name) for name in self._setting_names()}
        nested = [(name, value) for name, value in settings.items() if isinstance(value, Estimator)]
        for name, value in nested if deep else ():
            settings |= {f"{name}__{inner}": each for inner, each in value.get_params().items()}
        return settings

    def set_params(self, **params: Any) -> Self:
        """Set the given settings.

        Parameters
        ----------
        **params
            The new values, by name.
        """
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                hint = suggest_name(name, known)
                raise RankshotError(
                    f"{type(self).__name__} has no setting {name!r}{hint}; it has "
                    f"{quote_names(known)}"
                )
            outer, _, inner = name.partition("__")
            if inner:
                getattr(self, outer).set_params(**{inner: value})
            else:
                setattr(self, outer, value)
        return self

    def __repr__(self) -> str:
        parameters = signature(type(self).__init__).parameters
        own = self.get_params(deep=False).items()
        # By their text, as in scikit-learn: a value from a file is equal, but another object.
        shown = ((name, repr(value), repr(parameters[name].default)) for name, value in own)
        changed = (f"{name}={text}" for name, text, default in shown if text != default)
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.base import BaseEstimator  # noqa: PLC0415

        return BaseEstimator.__sklearn_tags__(self)


def clone(model: Model) -> Model:
    """Model with the same settings that is not fitted, as scikit-learn's ``clone``."""
    settings = model.get_params(deep=False)  # type: ignore[attr-defined]
    copies = {
        name: clone(value) if isinstance(value, Estimator) else deepcopy(value)
        for name, value in settings.items()
    }
    return type(model)(**copies)


def check_is_fitted(model: Estimator, name: str | None = None) -> None:
    """Raise scikit-learn's ``NotFittedError`` for a model without fitted values, or without one."""
    own = vars(model)
    if name not in own if name else not any(x.endswith("_") and x[0] != "_" for x in own):
        from sklearn.exceptions import NotFittedError  # noqa: PLC0415

        raise NotFittedError(f"this {type(model).__name__} is not fitted: call fit first")


def warn_of_convergence(message: str, stacklevel: int) -> None:
    """Warn with scikit-learn's ``ConvergenceWarning``."""
    from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415

    warnings.warn(message, ConvergenceWarning, stacklevel=stacklevel + 1)
