"""Parameters of models as in scikit-learn, without the time to import it.

scikit-learn's ``clone``, grids and nested names (``model__tol``) work with these classes.
"""

from __future__ import annotations

import warnings
from copy import deepcopy
from inspect import signature
from typing import Any, Self, TypeVar

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
    def _get_param_names(cls) -> list[str]:
        return sorted(name for name in signature(cls.__init__).parameters if name != "self")

    def _settings(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._get_param_names()}

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: FBT001, FBT002 (scikit-learn's)
        """Settings.

        Parameters
        ----------
        deep : bool
            Whether to include the settings of nested models, such as ``model__tol``.
        """
        return dict(_base_estimator().get_params(self, deep))

    def set_params(self, **params: Any) -> Self:
        """Set the given settings.

        Parameters
        ----------
        **params
            The new values, by name.
        """
        _base_estimator().set_params(self, **params)
        return self

    def __repr__(self) -> str:
        parameters = signature(type(self).__init__).parameters
        own = self._settings().items()
        # By their text, as in scikit-learn: a value from a file is equal, but another object.
        shown = ((name, repr(value), repr(parameters[name].default)) for name, value in own)
        changed = (f"{name}={text}" for name, text, default in shown if text != default)
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        return _base_estimator().__sklearn_tags__(self)


def _base_estimator() -> Any:
    from sklearn.base import BaseEstimator  # noqa: PLC0415

    return BaseEstimator


def clone(model: Model) -> Model:
    """Model with the same settings that is not fitted, as scikit-learn's ``clone``."""
    if not isinstance(model, Estimator):
        return deepcopy(model)
    return type(model)(**{name: clone(value) for name, value in model._settings().items()})


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
