"""Rankings from people: the design of a study, the web pages, the answers and their export."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
