"""``rankshot fit`` and ``rankshot head``, and ``--head FILE`` of the commands that use a head."""

import json
from pathlib import Path

import numpy as np
import pytest

import rankshot as rs
from command_line import LOGITS, SEEN, USUAL, check_refused, pairs_of, rankings, run_well

FIT = "fit --rankings rankings.jsonl -o head.rankshot"
SETTINGS = {
    "format": "rankshot settings 4",
    "k": 2,
    "temperature": 0.7,
    "source_weights": {"zoo": 1.0},
    "notes": {"predicted mean accuracy of the new classes, with 95% interval": [0.6, 0.5, 0.7]},
}


@pytest.fixture
def folder(folder):
    (folder / "seen.txt").write_text("\n".join(SEEN), encoding="utf-8")
    (folder / "settings.json").write_text(json.dumps(SETTINGS), encoding="utf-8")
    return folder


RANKINGS = "--rankings rankings.jsonl"
OPTIONS = [
    RANKINGS,
    f"{RANKINGS} --reference usual.csv",
    f"{RANKINGS} --set k=3",
    f"{RANKINGS} --classes all-or-none --reference usual.csv",
    f"{RANKINGS} --settings settings.json --reference usual.csv --classes all-or-none",
]


@pytest.mark.parametrize("options", OPTIONS)
def test_a_saved_head_gives_the_same_files_as_its_options(folder, options):
    """Predictions are the same to the last byte, and so are the explanations."""
    in_full = run_well(f"classify scores.csv {options} -o full.csv")
    done = run_well(f"fit --seen scores.csv {options} -o head.rankshot")
    assert "head for 3 new classes and 5 seen classes written to head.rankshot" in done
    short = run_well("classify scores.csv --head head.rankshot -o short.csv")
    assert Path("short.csv").read_bytes() == Path("full.csv").read_bytes()
    assert (
        short.split("Predicted classes")[1].replace("short", "full")
        == (in_full.split("Predicted classes")[1])
    )
    why = run_well("explain scores.csv --head head.rankshot").split("x1: ")[1]
    assert why == run_well(f"explain scores.csv {options}").split("x1: ")[1]


def test_the_seen_classes_come_from_the_reference_or_a_list_of_names(folder):
    """Of the reference, their order is that of its columns: answers differ by rounding only."""
    run_well(f"{FIT} --reference usual.parquet")
    assert rs.load_head("head.rankshot").inner.seen == tuple(SEEN[::-1])
    run_well(f"{FIT} --seen seen.txt --reference usual.parquet")
    head = rs.load_head("head.rankshot")
    assert head.inner.seen == tuple(SEEN)
    expected = rs.WeightedMean().fit(rankings(), reference=USUAL).predict_proba(LOGITS)
    np.testing.assert_allclose(head.predict_proba(LOGITS), expected, rtol=1e-12)
    assert head.inner.about["score_type"] == "logits"
    run_well(f"{FIT} --seen seen.txt")
    assert "score_type" not in rs.load_head("head.rankshot").inner.about
    run_well(f"{FIT} --seen seen.txt --set k=3 --reference usual_pairs.parquet")
    expected = (
        rs.WeightedMean(k=3).fit(rankings(), reference=pairs_of(USUAL)).predict(pairs_of(LOGITS))
    )
    assert rs.load_head("head.rankshot").predict(pairs_of(LOGITS)).tolist() == expected.tolist()


# ---- What is in a file


def test_head_shows_what_is_in_a_file(folder):
    run_well(f"{FIT} --seen scores.csv --reference usual.csv")
    shown = run_well("head head.rankshot")
    for text in (
        "cat",
        "leopard",
        "logits",
        "temperature",
        "usual.csv",
        f"rankshot {rs.__version__}",
    ):
        assert text in shown


def test_provenance_names_files_without_their_folders(folder):
    run_well(f"fit --rankings {folder / 'rankings.jsonl'} --seen seen.txt -o head.rankshot")
    found = rs.load_head("head.rankshot").inner.about
    assert found["files"]["rankings"]["name"] == "rankings.jsonl"
    assert str(folder).encode() not in Path("head.rankshot").read_bytes()
    assert (found["rankings"], found["sources"]) == (7, ["web", "zoo"])


# ---- What is refused

CLASSIFY = "classify scores.csv --head head.rankshot -o out.csv"
DECIDED = "head.rankshot: is a fitted head, which includes these settings; leave out"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (f"{CLASSIFY} --rankings rankings.jsonl", f"{DECIDED} --rankings"),
        (f"{CLASSIFY} --reference usual.csv --classes all", f"{DECIDED} --classes, --reference"),
        ("head settings.json", "unknown file extension '.json'; expected .rankshot"),
        (f"{CLASSIFY} --score-type probabilities", "score type probabilities: the head in head."),
        (
            "classify other.csv --head head.rankshot -o out.csv",
            "head.rankshot was fitted for: it has no column 'tram'",
        ),
        (
            "fit --rankings rankings.jsonl -o out.rankshot",
            "give --seen, which names the seen classes",
        ),
        (f"fit --seen few.txt {RANKINGS} -o out.rankshot", "items must be columns of few.txt"),
        (
            f"fit --seen scores.csv --reference usual_probabilities.csv {RANKINGS} -o out.rankshot",
            "usual_probabilities.csv: the scores look like probabilities",
        ),
    ],
)
def test_what_does_not_fit_is_named_and_nothing_is_written(folder, words, message):
    run_well(f"{FIT} --seen scores.csv")
    run_well("classify scores.csv --head head.rankshot -o predictions.csv")
    other = {"other.csv": "bus,fox,leopard,tiger,wolf\n1,2,3,4,5\n", "few.txt": "bus\n"}
    check_refused(folder, words, other, message)
