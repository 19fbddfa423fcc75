"""The numbers of the examples of rankings and of their sources, as the built gallery has them."""

import re

import pytest
from gallery_pages import BUILT, number_after, read_output

pytestmark = pytest.mark.skipif(not BUILT, reason="the gallery is not built: make docs")


def intervals(text):
    """Return estimates and their ends, by what stands before them: ``name .42 [.30, .54]``."""
    found = re.findall(r"^(.+?) *(\.\d+) \[(\.\d+), (\.\d+)\]$", text, re.MULTILINE)
    return {name: tuple(map(float, numbers)) for name, *numbers in found}


# ---- Rankings


def test_the_rules_do_not_agree_on_the_winner():
    text = read_output("rankings/01_election")
    everybody, complete = text.split("Condorcet winner: candidate 3")
    for rule in ("Kemeny", "Schulze", "Copeland"):
        assert f"{rule:<14}3 > 1 > 5 > 4 > 2\n" in everybody
    for rule in ("Borda", "Plackett-Luce"):
        assert f"{rule:<14}1 > 3 > 5 > 4 > 2\n" in everybody
    assert len(re.findall(r"^[A-Z]\S+ +1 > 3 > 5 > ", complete, re.MULTILINE)) == 5
    # Diaconis (1989): the candidate who is first most often is the last nearly as often.
    assert "candidate 3:  28%   17%   14%   18%   23%" in text
    assert number_after(text, "Kendall's W: ") < 0.02


def test_the_voters_are_two_groups():
    text = read_output("rankings/02_groups_of_raters")
    bic = {int(n): float(x) for n, x in re.findall(r"^ +(\d) .* (\d+\.\d+)$", text, re.MULTILINE)}
    # More than 1,000 and about 90, as the text says.
    assert bic[1] - bic[2] > 1000
    assert 50 < bic[2] - bic[3] < 130
    # As Diaconis found: voters of 4 and 5, and voters of 3 and 1.
    shares = dict(re.findall(r"(\d+)% of the voters: (\d > \d)", text))
    assert sorted(shares.values()) == ["3 > 1", "4 > 5"]
    assert 25 < int(next(n for n, first in shares.items() if first == "3 > 1")) < 31
    assert 50 < float(text.split("% of the ballots are clear")[0].split()[-1]) < 70


def test_an_order_is_proven_to_be_the_best():
    text = read_output("rankings/03_kemeny_proof")
    best = number_after(text, "best of 40,320 orders: ")
    assert f"kemeny: score {best:g}, bound {best:g}, optimal: True" in text
    assert number_after(text, "bound from pairs: ") == best - 1
    assert "fox before bear before lion before fox" in text
    rows = re.findall(r"^(\S.*?) +score +(\S+)  bound +(\S+)  (\w+)$", text, re.MULTILINE)
    scores = {name: float(score.replace(",", "")) for name, score, _, _ in rows}
    bounds = {name: float(bound.replace(",", "")) for name, _, bound, _ in rows}
    assert [row[3] for row in rows] == ["False", "False", "False", "True"]
    assert scores["exact"] == bounds["exact"] == min(scores.values()) == scores["insertion"] - 1
    assert max(bounds.values()) == bounds["exact"]


def test_a_leaderboard_says_how_sure_it_is():
    text = read_output("rankings/04_leaderboard")
    ranks = dict(re.findall(r"(model \w) .* (\d+ to \d+)$", text, re.MULTILINE))
    assert all(ranks[f"model {name}"].startswith("1 to") for name in "ABC")
    assert ranks["model J"] == "10 to 10"
    assert number_after(text, "bootstrap  mean width of an interval ") > 2 * number_after(
        text, "simulation mean width of an interval "
    )
    # Davidson (1970) found that the brands do not differ.
    brands = re.findall(r"brand (\d) .* 1 to 6$", text, re.MULTILINE)
    assert brands == ["6", "2", "4", "3", "5", "1"]
    assert number_after(text, "hold the true rank: ") >= 95


def test_the_kind_of_a_list_decides():
    text = read_output("rankings/05_kinds_of_rankings")
    assert number_after(text, "kind='subset': correlation with the truth ") > 0.98
    assert number_after(text, "kind='top': correlation with the truth ") < -0.8
    assert "top     Kemeny: 3 > 1 > 5 > 4 > 2\n" in text
    assert "subset  Kemeny: 3 > 4 > 5 > 1 > 2\n" in text
    assert "5,141 of 15,449 ballots say nothing" in text
    assert "bear = lizard = turtle = trout" in text
    # 40 wins, 20 losses, 30 ties: two thirds without the ties; 4/9 and 1/3 with them.
    assert "as unknown order: green wins 0.67" in text
    assert "as equal:         green wins 0.44, tie 0.33" in text


# ---- Sources


def test_the_panel_is_the_best_source_in_the_rehearsal_and_afterwards():
    text = read_output("sources/01_which_source")
    rehearsed, came_out = text.split("WordNet - word2vec")
    found, later = intervals(rehearsed), intervals(came_out)
    assert len(found) == len(later) == 7
    for results in (found, later):
        assert sorted(results, key=lambda name: results[name])[-2:] == [
            "panel, similar",
            "panel, photographs",
        ]
    low, high = found["panel, photographs"][1:]
    assert low < later["panel, photographs"][0] < high
    gain = text.split("panel, similar - WordNet + GloVe: ")[1]
    assert float(re.match(r"\S+ \[(\S+),", gain)[1]) > 0.05


def test_a_survey_ends_in_a_consensus():
    text = read_output("sources/02_survey")
    assert "The last page: Thank you" in text
    counts = [(name, 18) for name in ("cat", "deer", "dog", "horse", "ship", "truck")]
    assert str(counts) in text
    flagged = re.findall(r"^person (\d+), distance", text, re.MULTILINE)
    assert flagged == ["5", "13"]
    table = text.split("W, without flags   consensus\n")[1]
    agreement = [list(map(float, line.split()[1:3])) for line in table.splitlines()[:6]]
    assert all(everybody < kept for everybody, kept in agreement)
    assert re.search(r"cat .* (leopard|tiger) > ", table)


def test_answers_of_chat_windows_become_rankings():
    text = read_output("sources/03_language_model")
    assert "'bird': not among the items, left out: 'lynx'" in text
    assert "no answer for 'horse', 'ship', 'truck'" in text
    assert "asked again: ['rater-4.again-1.txt']" in text
    assert "40 rankings, of 4 raters" in text
    results = intervals(text)
    assert len(results) == 5
    alone = [interval[0] for name, interval in results.items() if name.endswith("alone")]
    # About as good as the best of them, as the text says.
    assert results["all four raters"][0] > max(alone) - 0.015
    assert 0.55 < results["all four raters"][0] < 0.61
