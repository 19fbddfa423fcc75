"""Zero-shot classification with semantic rankings, and the statistics of rankings.

``import rankshot as rs`` loads nothing else: each public name is imported when it is first used.
The names are listed in ``__init__.pyi``, here and in each subpackage. ``__all__`` has what a person
types; the subpackages (``rs.pages``, ``rs.zeroshot``, …) have the rest.
"""

import lazy_loader

__version__ = "0.4.0"

_MODULES = {
    *("datasets", "recognition", "jobs", "leaderboards", "pages", "ranking", "sources"),
    "zeroshot",
}
_import, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ = [name for name in __all__ if name not in _MODULES]


def __getattr__(name: str) -> object:
    """Import a public name; a name that is not one gets a hint at a similar one."""
    if name in _MODULES or name in __all__:
        return _import(name)
    from rankshot.core.errors import suggest_name  # noqa: PLC0415 (until then, nothing is loaded)

    hint = suggest_name(name, __all__)
    raise AttributeError(f"module 'rankshot' has no attribute {name!r}{hint}")
