"""Zero-shot methods of others, for comparison with our heads.

`ESZSL`, `SAE`, `VectorRegression` (in ``linear``) and `DAP` (in ``attributes``) are trained on
features: ``fit(X, y, vectors)`` and ``predict(X, targets)``. Vectors and targets are
`ClassVectors`: those of ``reproduction.class_vectors.load_class_vectors()``, or the attributes of
``rankshot.datasets.load_animals(path)``. `IAP` (in ``attributes``) takes the probabilities of a
classifier instead. Penalties are not scaled; how features are centred and scaled, and how
penalties are chosen, is in ``reproduction.peer_comparison``.
"""
