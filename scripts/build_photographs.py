"""Make the photographs in the package, and the scores of a network for them, again.

    pip download --no-deps --dest DIR scikit-image==0.26.0
    pip download --no-deps --dest DIR --only-binary :all: --python-version 3.10 scipy==1.9.3
    python scripts/build_photographs.py DIR

Each is the middle square of an image that comes with scikit-image, SciPy or scikit-learn, at 224
pixels. The last table of ``photographs.md`` has their origins and licences. The network
comes with ``rankshot[onnx]``; its scores may differ in the last digits.
"""

import bz2
import sys
from io import BytesIO
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

import numpy as np
import sklearn.datasets
from PIL import Image

import rankshot

DATA = Path(__file__).parents[1] / "src" / "rankshot" / "datasets" / "data"
FOLDER = DATA / "photographs"
SIZE, QUALITY = 224, 82
CC0 = "[CC0 1.0](https://creativecommons.org/publicdomain/zero/1.0/)"
CC_BY = "[CC BY 2.0](https://creativecommons.org/licenses/by/2.0/)"
PUBLIC = "public domain"


class Photograph(NamedTuple):
    """Where a photograph comes from, and who may use it how."""

    package: str
    file: str
    origin: str
    licence: str


PHOTOGRAPHS = {
    "astronaut": Photograph("scikit-image", "astronaut.png", "Eileen Collins, by NASA", PUBLIC),
    "brick_wall": Photograph("scikit-image", "brick.png", "CC0Textures", CC0),
    "cat": Photograph("scikit-image", "chelsea.png", "Stéfan van der Walt", CC0),
    "coffee": Photograph("scikit-image", "coffee.png", "Rachel Michetti", CC0),
    "coins": Photograph(
        "scikit-image", "coins.png", "Brooklyn Museum Collection", "no known restrictions"
    ),
    "dahlia": Photograph(
        "scikit-learn",
        "flower.jpg",
        "[vultilion](https://www.flickr.com/photos/vultilion/6056698931/)",
        CC_BY,
    ),
    "galaxies": Photograph("scikit-image", "hubble_deep_field.jpg", "NASA and ESA", PUBLIC),
    "lawn": Photograph("scikit-image", "grass.png", "linolafett on DeviantArt", CC0),
    "photographer": Photograph("scikit-image", "camera.png", "Lav Varshney", CC0),
    "raccoon": Photograph("SciPy", "face.dat", "publicdomainpictures.net, image 52692", CC0),
    "rocket": Photograph("scikit-image", "rocket.jpg", "Launch of DSCOVR, by SpaceX", PUBLIC),
    "temple": Photograph(
        "scikit-learn",
        "china.jpg",
        "[danielbuechele](https://www.flickr.com/photos/danielbuechele/6061409035/)",
        CC_BY,
    ),
}
HEADER = "| file | from | by | licence |\n|---|---|---|---|\n"
"""Of the last table of the page about the photographs, which this script writes."""


def main(wheels: Path) -> None:
    """Write the photographs and their licences."""
    FOLDER.mkdir(exist_ok=True)
    for name, found in PHOTOGRAPHS.items():
        image = open_image(found, wheels).convert("RGB")
        side = min(image.size)
        left, top = ((length - side) // 2 for length in image.size)
        square = image.crop((left, top, left + side, top + side))
        square.resize((SIZE, SIZE), Image.Resampling.LANCZOS).save(
            FOLDER / f"{name}.jpg", quality=QUALITY, optimize=True
        )
    rows = [
        f"| {name}.jpg | {found.package}, `{found.file}` | {found.origin} | {found.licence} |"
        for name, found in PHOTOGRAPHS.items()
    ]
    page = DATA / "photographs.md"
    before = page.read_text("utf-8").partition(HEADER)[0]
    page.write_text(before + HEADER + "\n".join(rows) + "\n", encoding="utf-8")
    scored = rankshot.recognition.score("efficientnet-lite0", FOLDER)
    np.savez_compressed(
        DATA / "photographs_scores.npz",
        logits=np.asarray(scored.scores.values, np.float16),
        name=np.array([Path(name).name for name in scored.ids]),
    )
    total = sum(path.stat().st_size for path in FOLDER.iterdir())
    print(f"{len(PHOTOGRAPHS)} photographs, {total / 1000:.0f} kB")


def open_image(found: Photograph, wheels: Path) -> Image.Image:
    """Open an image in a wheel, or in the installed scikit-learn."""
    if found.package == "scikit-learn":
        return Image.open(Path(sklearn.datasets.__file__).parent / "images" / found.file)
    prefix = found.package.lower().replace("-", "_")
    (wheel,) = wheels.glob(f"{prefix}-*.whl")
    with ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(f"/{found.file}"))
        content = archive.read(name)
    if found.package == "SciPy":
        return Image.frombytes("RGB", (1024, 768), bz2.decompress(content))
    return Image.open(BytesIO(content))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
