"""Plots of rankings, worths and results, in one style; they need the extra ``plot``."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
