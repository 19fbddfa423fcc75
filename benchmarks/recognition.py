"""How long `rankshot score` takes, against the bare network on arrays that are ready in memory.

The network is the built-in EfficientNet-Lite0. The images are
JPEG files of the size of photographs on the web; they are read and decoded while the network
computes.
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np
from PIL import Image

from rankshot.core.images import read_image
from rankshot.datasets import load_thumbnails
from rankshot.recognition import write_scores
from rankshot.recognition.scoring import BATCH, prepare_model

N_IMAGES = 256
N_RUNS = 4
SIZE = 500, 375
LIMIT = 1.15


def write_photographs(folder: Path) -> None:
    folder.mkdir()
    images = load_thumbnails().images
    for i in range(N_IMAGES):
        image = Image.fromarray(images[i % len(images)]).resize(SIZE, Image.Resampling.BICUBIC)
        image.save(folder / f"{i:04d}.jpg", quality=90)


def measure(work: Callable[[], object]) -> float:
    begin = perf_counter()
    work()
    return perf_counter() - begin


def compare(model: str, folder: Path) -> float:
    """Print how many times as long as the bare network the whole takes, and return it."""
    ready = prepare_model(model, "imagenet-1k", "efficientnet-lite")
    prepare = ready.preprocessing
    assert prepare is not None
    photos = folder / "photos"
    given = ready, photos, folder / "scores.parquet"

    def decode() -> list[np.ndarray]:
        return [prepare(read_image(file)) for file in sorted(photos.iterdir())]

    arrays = np.stack(decode())
    batches = [arrays[i : i + BATCH] for i in range(0, N_IMAGES, BATCH)]
    # They take turns, so that a busy machine slows down all; the quickest runs count.
    runs = [
        (
            measure(lambda: write_scores(*given, overwrite=True)),
            measure(lambda: [ready.run(batch) for batch in batches]),
            measure(decode),
        )
        for _ in range(N_RUNS)
    ]
    seconds, bare, decoding = map(min, zip(*runs, strict=True))
    print(
        f"score, {Path(model).name}: {N_IMAGES / seconds:.1f} images per second, "
        f"{seconds / bare:.2f} times the bare network; at most {LIMIT:g} times are allowed "
        f"(decoding alone takes {decoding / bare:.2f} times)"
    )
    return seconds / bare


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_photographs(folder / "photos")
        if compare("efficientnet-lite0", folder) > LIMIT:
            sys.exit("too slow")


if __name__ == "__main__":
    main()
