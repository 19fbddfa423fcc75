"""Data that comes with the package, and loaders for the full CIFAR, Animals and CLINC150."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
