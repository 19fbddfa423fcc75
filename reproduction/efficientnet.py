"""EfficientNet-Lite0, trained on ImageNet, as a function from small images to features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError
from rankshot.core.validation import require_module
from rankshot.recognition.models import open_built_in

Images = NDArray[np.uint8]
Features = NDArray[np.float32]
N_FEATURES = 1280
"""The number of channels of the network's last feature map."""
SIDE = 32
"""The width and height of CIFAR's images, in pixels."""
ENLARGED = 224
"""The width and height of the images that the network was trained on, in pixels."""
BATCH = 16
"""Images per batch: on a CPU, larger batches do not fit its cache and are slower."""


class EfficientNetFeatures:
    """The spatial mean of the last feature map of EfficientNet-Lite0.

    An image x in [0, 1] is enlarged to 224 x 224 (bicubic) and clamped to [0, 1]; the input of
    the network is (255 x - 127) / 128. The network comes with the package: its weights have half
    precision, and it runs in single precision, on a GPU if onnxruntime finds one.

    Tan and Le (2019), "EfficientNet: rethinking model scaling for convolutional neural
    networks", ICML.
    """

    def __init__(self) -> None:
        self._network = open_built_in()

    def __call__(self, images: Images) -> Features:
        """Return the features of images."""
        images = np.asarray(images)
        if images.dtype != np.uint8 or images.ndim != 4 or images.shape[1:] != (SIDE, SIDE, 3):
            raise RankshotError(
                f"images must be uint8 of shape (n, {SIDE}, {SIDE}, 3), not {images.dtype} of "
                f"shape {images.shape}"
            )
        features = np.empty((len(images), N_FEATURES), dtype=np.float32)
        for start in range(0, len(images), BATCH):
            batch = slice(start, start + BATCH)
            features[batch] = self._features(images[batch])
        return features

    def _features(self, images: Images) -> Any:
        torch = require_module("torch", "features of images", "transformers")
        planes = np.ascontiguousarray(images.transpose(0, 3, 1, 2))
        x = torch.from_numpy(planes).to(torch.float32) / 255
        x = torch.nn.functional.interpolate(
            x, size=(ENLARGED, ENLARGED), mode="bicubic", align_corners=False
        )
        x = (255 * x.clamp(0, 1) - 127) / 128
        run = self._network.run_with_features
        assert run is not None
        return run(x.numpy())[1]
