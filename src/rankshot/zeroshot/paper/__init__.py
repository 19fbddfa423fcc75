"""The methods of Hamm and Belkin (2015) and ConSE, as printed, on NumPy arrays.

They take rankings or similarities, and scores, and have ``fit``, ``predict`` and
``predict_proba``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
