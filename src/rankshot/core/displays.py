"""Displays that results of lower layers are drawn with.

`rankshot/__init__.py`, which may know every layer, registers them by the name of the result.
"""

from collections.abc import Callable
from typing import Any

DISPLAYS: dict[str, Callable[..., Any]] = {}
