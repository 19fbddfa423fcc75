"""Zero-shot classification with semantic rankings, and the statistics of rankings.

``import rankshot as rs`` loads nothing else: each public name is imported when it is first used.
The names are listed in ``__init__.pyi``, here and in each subpackage.
"""

import lazy_loader

__version__ = "0.2.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
