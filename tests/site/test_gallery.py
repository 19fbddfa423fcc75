"""What the examples of the gallery printed and drew when the site was built.

So each example runs once: in ``make docs``.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GALLERY = ROOT / "docs" / "gallery"
EXAMPLES = sorted(
    path.relative_to(ROOT / "examples").with_suffix("").as_posix()
    for path in (ROOT / "examples").rglob("*.py")
)
BUILT_PAGES = ROOT / "docs" / "_build" / "html" / "gallery"
pytestmark = pytest.mark.skipif(
    not BUILT_PAGES.exists(), reason="the gallery is not built: make docs"
)


def read_page(name):
    """Return the page of an example; it must come from the example as it is now."""
    now = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
    built = GALLERY / f"{name}.py"
    then = built.read_text(encoding="utf-8") if built.exists() else ""
    assert then == now, f"examples/{name}.py has changed since the site was built: make docs"
    return (GALLERY / f"{name}.rst").read_text(encoding="utf-8")


def test_a_download_needs_no_other_file():
    """Examples run in their own folder, which has only programs: data come with the package."""
    files = [path for path in (ROOT / "examples").rglob("*") if path.is_file()]
    others = {path.name for path in files if path.suffix not in {".py", ".pyc"}}
    assert others == {"GALLERY_HEADER.rst"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_has_a_title_plots_and_a_notebook_and_warns_of_nothing(name):
    page = read_page(name)
    title = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8").strip('"').split("\n")
    title = next(line for line in title if line)
    assert f"\n{title}\n{'=' * len(title)}\n" in page
    images = re.findall(r"/gallery/(\S+?\.png)", page)
    drawn = [image for image in images if "/thumb/" not in image]
    assert drawn
    assert all((GALLERY / image).stat().st_size > 1000 for image in drawn)
    built = (BUILT_PAGES / f"{name}.html").read_text(encoding="utf-8")
    assert f"{name.rpartition('/')[2]}.ipynb" in built
    outputs = re.findall(
        r"^\.\. rst-class:: sphx-glr-script-out\n\n \.\. code-block:: none\n\n((?:    .*\n|\n)+)",
        page,
        re.MULTILINE,
    )
    assert not re.search("Warning|Traceback", "".join(outputs))
