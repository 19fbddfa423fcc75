"""What the examples of the gallery printed when the site was built."""

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
GALLERY = ROOT / "docs" / "gallery"
BUILT = (ROOT / "docs" / "_build" / "html" / "gallery").exists()


def read_page(name):
    """Return the page of an example; it must come from the example as it is now."""
    now = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
    built = GALLERY / f"{name}.py"
    then = built.read_text(encoding="utf-8") if built.exists() else ""
    assert then == now, f"examples/{name}.py has changed since the site was built: make docs"
    return (GALLERY / f"{name}.rst").read_text(encoding="utf-8")


@cache
def read_output(name):
    """Return all that an example printed."""
    blocks = re.findall(
        r"^\.\. rst-class:: sphx-glr-script-out\n\n \.\. code-block:: none\n\n((?:    .*\n|\n)+)",
        read_page(name),
        re.MULTILINE,
    )
    return "".join(line[4:] for block in blocks for line in block.splitlines(keepends=True))
