"""Zero-shot methods of others, to be measured beside our heads.

`eszsl.ESZSL`, `sae.SAE`, `dap.DAP` and `vector_regression.VectorRegression` train on features:
``fit(X, y, vectors)`` and ``predict(X, targets)``, where vectors and targets are `ClassVectors`,
those of ``rankshot.datasets.embedded.load_class_vectors()`` or the attributes of
``load_animals(path)``. `iap.IAP` takes the probabilities of a classifier instead. Penalties are
plain ones: how features are centred and scaled before, and how penalties are chosen, is in
``rankshot.experiments.peer_comparison``.
"""
