"""What the examples of the gallery printed and drew when the site was built.

So each example runs once: in ``make docs``.
"""

import re

import pytest
from gallery_pages import BUILT, GALLERY, ROOT, read_output, read_page

EXAMPLES = sorted(
    path.relative_to(ROOT / "examples").with_suffix("").as_posix()
    for path in (ROOT / "examples").rglob("*.py")
)
BUILT_PAGES = ROOT / "docs" / "_build" / "html" / "gallery"
pytestmark = pytest.mark.skipif(not BUILT, reason="the gallery is not built: make docs")


def test_a_download_needs_no_other_file():
    """Examples run in their own folder, which has only programs: data come with the package."""
    files = [path for path in (ROOT / "examples").rglob("*") if path.is_file()]
    others = {path.name for path in files if path.suffix not in {".py", ".pyc"}}
    assert others == {"GALLERY_HEADER.rst"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_has_a_title_plots_and_a_notebook_and_warns_of_nothing(name):
    page, printed = read_page(name), read_output(name)
    title = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8").strip('"').split("\n")
    title = next(line for line in title if line)
    assert f"\n{title}\n{'=' * len(title)}\n" in page
    images = re.findall(r"/gallery/(\S+?\.png)", page)
    drawn = [image for image in images if "/thumb/" not in image]
    assert drawn
    assert all((GALLERY / image).stat().st_size > 1000 for image in drawn)
    built = (BUILT_PAGES / f"{name}.html").read_text(encoding="utf-8")
    assert f"{name.rpartition('/')[2]}.ipynb" in built
    assert "Warning" not in printed
    assert "Traceback" not in printed
