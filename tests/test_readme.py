"""What the README claims beyond its code, which tests/site/test_commands.py and doctests run."""

import re
import tomllib
from pathlib import Path

import numpy as np

import rankshot as rs

ROOT = Path(__file__).parents[1]


def test_the_percentages_in_the_image_come_from_its_scores_and_rankings():
    image = (ROOT / "docs" / "images" / "idea.svg").read_text(encoding="utf-8")
    text = re.sub(r"<[^>]+>", "", image.replace("</text>", "\n").replace("&gt;", ">"))
    orders = {
        target: [item.strip() for item in order.split(">")]
        for target, order in re.findall(r"^\s*(\w+): (.+ > .+)$", text, re.MULTILINE)
    }
    shares = {"leopard": 46, "tiger": 28, "wolf": 15, "bus": 5, "tank": 4, "lawn mower": 2}
    rankings = rs.Rankings.from_orders(list(orders.values()), items=shares, targets=list(orders))
    head = rs.WeightedMean().fit(rankings)
    proba = head.predict_proba(np.log([list(shares.values())]))[0]
    assert head.classes_.tolist() == ["cat", "dog", "truck"]
    for share in (*shares.values(), *(100 * proba)):
        assert f">{share:.0f}%<" in image


def test_every_link_and_image_leads_to_a_file_wherever_the_page_is_read():
    """PyPI shows the page without the files beside it, so no link is relative."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    repository = project["urls"]["Repository"].removeprefix("https://github.com")
    links = [a or b for a, b in re.findall(r"\]\(([^)#]+)|(?:href|src|srcset)=\"([^\"]+)\"", text)]
    base = (
        rf"https://(?:github\.com{repository}/blob|raw\.githubusercontent\.com{repository})/main/"
    )
    files = [re.sub(base, "", link) for link in links if re.match(base, link)]
    assert len(files) > 20
    assert [file for file in files if not (ROOT / file).is_file()] == []
    assert [link for link in links if not link.startswith("https://")] == []
