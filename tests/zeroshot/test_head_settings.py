"""The settings of a head survive a file; bad files are named."""

import json

import pytest

import rankshot as rs
from rankshot import RankshotError
from rankshot.zeroshot.files.head_settings import (
    HEADS,
    HeadSettings,
    read_settings,
    write_settings,
)


@pytest.mark.parametrize(
    "head",
    [
        rs.WeightedMean(k=3, temperature=0.25),
        rs.WeightedMean(k=None),
        rs.ProbabilisticRanking(posterior="consensus", decay=0),
        rs.DeterministicRanking(temperature=2.0),
        rs.DirectSimilarity(n_similar=2),
        rs.ConSE(temperature=0.3),
    ],
    ids=str,
)
def test_a_head_survives_a_file(tmp_path, head):
    path = tmp_path / "settings.json"
    gate = {"new": [1.0, -1.0, 0.5], "none": None, "seen_temperature": 0.5}
    settings = HeadSettings.of_head(head, reference=True, sources=("WordNet", ""), gate=gate)
    write_settings(settings, path, {"rehearsed classes": ["bear"]})
    found = read_settings(path)
    assert found == settings
    assert type(found.build_head()) is type(head)
    assert found.build_head().get_params() == head.get_params()


def test_what_cannot_be_stored_is_refused():
    head = rs.ProbabilisticRanking(prior=rs.Mallows())
    with pytest.raises(RankshotError, match=r"prior=.*cannot be stored"):
        HeadSettings.of_head(head, reference=False, sources=())
    with pytest.raises(RankshotError, match="the settings of BatchRefinement cannot be stored"):
        HeadSettings.of_head(rs.BatchRefinement(rs.ConSE()), reference=False, sources=())


GOOD = {
    "format": "rankshot settings 1",
    "head": "weighted-mean",
    "parameters": {"k": 4},
    "reference": False,
    "sources": [""],
}
BAD = {
    "no JSON": ("{", "is no JSON"),
    "another file": ("[1]", "is no settings file"),
    "another format": (json.dumps(GOOD | {"format": "x"}), "is no settings file"),
    "no such head": (json.dumps(GOOD | {"head": "weighted"}), "did you mean 'weighted-mean'"),
    "no such parameter": (json.dumps(GOOD | {"parameters": {"K": 4}}), "has no parameter 'K'"),
    "no sources": (json.dumps(GOOD | {"sources": None}), "'sources' must be a list, not None"),
    "odd source": (json.dumps(GOOD | {"sources": [3]}), r"'sources' must be names, not \[3\]"),
    "reference": (json.dumps(GOOD | {"reference": "yes"}), "'reference' must be a bool"),
    "gate": (json.dumps(GOOD | {"gate": 3}), "'gate' must be a dict, not 3"),
    "empty gate": (json.dumps(GOOD | {"gate": {}}), "new must be three finite numbers, not None"),
    "temperature of the gate": (
        json.dumps(GOOD | {"gate": {"new": [1, -1, 0], "seen_temperature": "x"}}),
        "seen_temperature must be a number",
    ),
}


@pytest.mark.parametrize(("content", "message"), BAD.values(), ids=BAD)
def test_a_bad_file_is_named(tmp_path, content, message):
    path = tmp_path / "settings.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(RankshotError, match=message) as error:
        read_settings(path)
    assert str(error.value).startswith(str(path))


def test_every_head_of_the_command_has_a_name():
    from rankshot.cli.head_options import Head

    assert set(HEADS) == {head.value for head in Head}
