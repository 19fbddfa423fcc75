"""The predictions on real data do not change unless somebody means it.

``python tests/frozen/test_predictions.py DATA`` writes the file of predictions again; CHANGELOG
then says what changed, and why.
"""

import sys
from pathlib import Path

import numpy as np
import pytest

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))

from cases import DATASETS, predict

FILE = Path(__file__).parent / "predictions.npz"
TOLERANCE = {np.dtype(np.float64): 1e-7, np.dtype(np.float32): 1e-5}


@pytest.mark.shared_data
@pytest.mark.parametrize("name", DATASETS)
def test_predictions_are_those_of_the_last_version(shared_data, name):
    with np.load(FILE) as file:
        frozen = {key: file[key] for key in file.files if key.startswith(f"{name}/")}
    probabilities = predict(shared_data, name)
    assert {f"{name}/{way}" for way in probabilities} == set(frozen)
    for way, proba in probabilities.items():
        expected = frozen[f"{name}/{way}"]
        assert proba.dtype == expected.dtype
        np.testing.assert_allclose(
            proba, expected, rtol=0, atol=TOLERANCE[expected.dtype], err_msg=way
        )


if __name__ == "__main__":
    data = Path(sys.argv[1])
    np.savez_compressed(
        FILE,
        **{f"{name}/{way}": p for name in DATASETS for way, p in predict(data, name).items()},
    )
