"""The report at forty classes in a browser: accessible and not clipped."""

import numpy as np
import pytest

import rankshot as rs
from axe import check
from chromium import opening_pages
from rankshot.pages import Outcomes, build_report, render_report

pytestmark = pytest.mark.slow
OPEN = "() => document.querySelectorAll('details').forEach(fold => { fold.open = true; })"
CLIPPED = """() => [...document.querySelectorAll('.scroll')]
  .filter(box => box.scrollWidth > box.clientWidth)
  .map(box => box.querySelector('table').getAttribute('class'))"""


@pytest.fixture
def open_page(browser):
    with opening_pages(browser) as open_new_page:
        yield open_new_page


@pytest.fixture(scope="module")
def pages():
    """Return pages with true classes, forty and eight, and one without, of random predictions.

    A table of forty by forty classes has nothing for axe-core that one of eight by eight lacks.
    """
    known, unknown = build_pages(40)
    return {"known": known, "few": build_pages(8)[0], "unknown": unknown}


def build_pages(n_new):
    rng, n = np.random.default_rng(0), 15 * n_new
    seen = [f"seen class {i}" for i in range(100)]
    new = [f"a new class {i}" for i in range(n_new)]
    vectors, centers = rng.normal(size=(100, 5)), rng.normal(size=(n_new, 5))
    rankings = rs.Rankings.concatenate(
        rs.Rankings.from_scores(
            (centers + 0.4 * rng.normal(size=centers.shape)) @ vectors.T,
            items=seen,
            targets=new,
            sources=f"source {s}",
        ).top(5)
        for s in range(3)
    )
    truth = rng.integers(0, n_new, n)
    scores = (centers[truth] + rng.normal(size=(n, 5))) @ vectors.T
    head = rs.WeightedMean(k=5).fit(rankings).head_
    labels, proba = np.array(new)[truth], head.predict_proba(scores)
    predicted = head.predict(scores)
    # The first of three sources stands for the consensus, to save the time of merging.
    consensus = rankings.select(source="source 0")
    ids = [f"input {i}" for i in range(n)]
    outcomes = Outcomes(ids, predicted, proba, labels, head.classes_.tolist())
    pixels = rng.integers(0, 256, size=(n, 32, 32, 3), dtype=np.uint8)
    known = build_report(
        "Forty classes",
        outcomes,
        head=head,
        scores=rs.Scores(scores, rankings.items),
        images=dict(enumerate(pixels)),
        rankings=rankings,
        consensus=consensus,
        n_places=5,
        settings=(("--k", "5"),),
    )
    unknown = build_report("Predictions", outcomes._replace(truth=None))
    return render_report(known), render_report(unknown)


@pytest.mark.parametrize(
    ("name", "scheme"), [("few", "light"), ("few", "dark"), ("unknown", "light")]
)
def test_a_report_is_accessible_folded_and_open(open_page, pages, name, scheme):
    page = open_page(color_scheme=scheme)
    page.set_content(pages[name])
    check(page)
    page.evaluate(OPEN)
    check(page)


@pytest.mark.parametrize("width", [320, 360, 1280])
def test_the_page_does_not_scroll_sideways_and_on_a_phone_only_matrices_do(open_page, pages, width):
    page = open_page(viewport={"width": width, "height": 800})
    page.set_content(pages["known"])
    page.evaluate(OPEN)
    clipped = {kind.split()[0] for kind in page.evaluate(CLIPPED)}
    if width == 360:
        assert clipped == {"matrix"}
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    shown = page.evaluate("() => [...document.images].map(i => [i.naturalWidth, i.width])")
    assert len(shown) > 50
    assert {natural for natural, _ in shown} == {32}
    assert {wide for _, wide in shown} == {72, 96}


def test_a_link_opens_the_fold_that_it_leads_to(open_page, pages):
    page = open_page()
    page.set_content(pages["known"])
    assert not page.locator("#consensus .card").first.is_visible()
    page.get_by_role("link", name="Consensus").click()
    page.locator("#consensus .card").first.wait_for()
