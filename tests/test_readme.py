"""What the README claims beyond its code, which tests/site/test_commands.py and doctests run."""

import re
from pathlib import Path

import numpy as np

import rankshot as rs

ROOT = Path(__file__).parents[1]


def test_the_percentages_in_the_picture_come_from_its_scores_and_rankings():
    picture = (ROOT / "docs" / "images" / "idea.svg").read_text(encoding="utf-8")
    text = re.sub(r"<[^>]+>", "", picture.replace("</text>", "\n").replace("&gt;", ">"))
    orders = {
        target: [item.strip() for item in order.split(">")]
        for target, order in re.findall(r"^\s*(\w+): (.+ > .+)$", text, re.MULTILINE)
    }
    shares = {"leopard": 46, "tiger": 28, "wolf": 15, "bus": 5, "tank": 4, "lawn mower": 2}
    for share in (*shares.values(), 56, 42, 2):
        assert f">{share} %<" in picture
    rankings = rs.Rankings.from_orders(list(orders.values()), items=shares, targets=list(orders))
    head = rs.WeightedMean().fit(rankings)
    proba = head.predict_proba(np.log([list(shares.values())]))[0]
    assert head.classes_.tolist() == ["cat", "dog", "truck"]
    assert (100 * proba).round().tolist() == [56, 42, 2]


def test_every_link_and_picture_leads_to_a_file():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#]+)|(?:href|src)=\"([^\"]+)\"", text)
    local = [a or b for a, b in links if not (a or b).startswith("https:")]
    assert len(local) > 20
    assert [link for link in local if not (ROOT / link).exists()] == []
