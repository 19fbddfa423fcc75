"""The same jobs on Dask, on one machine or many: classify, score, fit and merge in parts."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
