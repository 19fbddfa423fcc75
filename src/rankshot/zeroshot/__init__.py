"""From a classifier's scores to new classes: scores, heads, the classifier, metrics, files."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
