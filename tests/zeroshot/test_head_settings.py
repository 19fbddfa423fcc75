"""The settings of a head survive a file; bad files are named."""

import json

import pytest

import rankshot as rs
from rankshot import RankshotError
from rankshot.zeroshot import HeadSettings, build_head

GATE = rs.zeroshot.Gate((1.5, -2.0, 0.25))
HEADS = [
    rs.WeightedMean(k=3, temperature=0.25),
    rs.WeightedMean(k=None),
    rs.ProbabilisticRanking(posterior="consensus", decay=0, prior=rs.Mallows()),
    rs.DeterministicRanking(temperature=2.0, prior=rs.PlackettLuce(regularization=0.5)),
    rs.DirectSimilarity(n_similar=2),
    rs.ConSE(temperature=0.3),
    rs.SeenAndNew(rs.ConSE(), gate=GATE, none=True, seen_temperature=0.5),
    rs.BatchRefinement(rs.ConSE(), class_prior="equal"),
]


@pytest.mark.parametrize("head", HEADS, ids=str)
def test_a_head_survives_a_file(tmp_path, head):
    settings = HeadSettings.from_head(
        head, reference=True, sources=("WordNet", ""), default_temperature=0.75
    )
    settings.write(tmp_path / "settings.json", {"rehearsed classes": ["bear"]})
    found = HeadSettings.read(tmp_path / "settings.json")
    assert found == settings
    again = build_head(found, *([head.head] if hasattr(head, "head") else []))
    assert type(again) is type(head)
    assert str(again) == str(head)


def test_what_cannot_be_stored_is_refused(tmp_path):
    settings = HeadSettings.from_head(rs.ProbabilisticRanking(prior=object()))
    with pytest.raises(RankshotError, match=r"prior.*cannot be stored"):
        settings.write(tmp_path / "settings.json")


GOOD = {"format": "rankshot settings 2", "head": "weighted-mean", "k": 4}
BAD = {
    "not JSON": ("{", "is not a settings file"),
    "another format": (GOOD | {"format": "x"}, "is not a settings file"),
    "no such head": (GOOD | {"head": "weighted"}, "did you mean 'weighted-mean'"),
    "no such setting": (GOOD | {"K": 4}, "there is no setting 'K'"),
    "of another head": (GOOD | {"posterior": "sum"}, "posterior is for probabilistic, not"),
    "no places": (GOOD | {"k": 0}, "k must be a whole number from 1 on, not 0"),
    "no source": (GOOD | {"sources": []}, r"sources must be a tuple, not \(\)"),
    "reference": (GOOD | {"reference": "yes"}, "reference must be a bool"),
    "gate": (GOOD | {"gate": 3}, "gate must be a dict, not 3"),
    "temperature": (GOOD | {"temperature": 0}, "temperature must be positive"),
}


@pytest.mark.parametrize(("content", "message"), BAD.values(), ids=BAD)
def test_a_bad_file_is_named(tmp_path, content, message):
    path = tmp_path / "settings.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    with pytest.raises(RankshotError, match=message) as error:
        HeadSettings.read(path)
    assert str(error.value).startswith(str(path))
