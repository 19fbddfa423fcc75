"""From your own model and a folder of images, or texts, to a table of scores."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
