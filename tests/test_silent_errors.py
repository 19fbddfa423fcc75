"""Input that was once read wrongly without a word: each is refused, or read as it was meant."""

import numpy as np
import pytest

import rankshot as rs
from command_line import LOGITS, SEEN, rankings
from rankshot.core.errors import RankshotError
from rankshot.sources import read_look_up
from refusals import refuses

WIDE = "tea,beer,rum\n1,2,3\n{},2,1\n"
LONG = "rater,item,rank\na,tea,1\na,beer,2\na,rum,3\nb,beer,{}\nb,tea,1\n"


def write(folder, text):
    (folder / "table.csv").write_text(text)
    return folder / "table.csv"


@pytest.mark.parametrize("text", [WIDE, LONG])
@pytest.mark.parametrize("place", ["-1", "-2"])
def test_a_negative_place_is_not_the_best_one(tmp_path, text, place):
    assert len(rs.read_rankings(write(tmp_path, text.format("3")), layout="places")) == 2
    with pytest.raises(RankshotError):
        rs.read_rankings(write(tmp_path, text.format(place)), layout="places")


def test_short_lists_of_places_are_top_k_lists(tmp_path):
    text = "rater,item,rank\na,tea,1\na,beer,2\na,rum,3\nb,rum,1\nb,tea,2\n"
    read = rs.read_rankings(write(tmp_path, text))
    assert read.orders() == [["tea", "beer", "rum"], ["rum", "tea"]]
    assert read.is_subset.tolist() == [False, False]


@pytest.mark.parametrize("weight", ["1", True, np.True_, b"1"])
def test_weights_are_numbers(weight):
    with refuses("weights", weight):
        rs.Rankings.from_orders([["a", "b"], ["b", "a"]], weights=[1.0, weight])


def test_a_class_without_words_to_look_up_is_named(tmp_path):
    path = write(tmp_path, "class,look_up\ncat,\ndog,hound\n")
    with refuses("class", "cat", f"{path}:2"):
        read_look_up(path, ["cat", "dog"])


def test_an_explanation_is_of_the_classes_that_were_asked_for():
    head = rs.WeightedMean().fit(rankings())
    scores = rs.Scores(LOGITS[:1], SEEN)
    found = {
        (target, rival): rs.explain(head, scores, target=target, against=rival)[0]
        for target, rival in (("cat", "dog"), ("cat", "truck"), ("truck", "dog"))
    }
    shares = {pair: tuple(value for _, value in why.items) for pair, why in found.items()}
    assert len(set(shares.values())) == 3
    for (target, rival), why in found.items():
        assert (why.target, why.rival) == (target, rival)
        row = head.predict_proba(scores)[0]
        assert why.probability == pytest.approx(row[head.classes_.tolist().index(target)])
