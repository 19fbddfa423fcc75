"""What every other part of the package needs: errors, validation, names, files, tables, HTTP."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
