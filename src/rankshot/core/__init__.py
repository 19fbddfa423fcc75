"""What every other part of the package needs: errors, validation, names, files, tables.

The names here are those that the commands use, which import NumPy only when they run.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
