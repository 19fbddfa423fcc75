"""``rankshot fit`` and ``rankshot head``, and ``--head FILE`` of the commands that use a head."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import rankshot as rs
from command_line import LOGITS, SEEN, USUAL, check_refused, pairs_of, rankings, rankshot, run_well

FIT = "fit --rankings rankings.jsonl -o head.rankshot"
SETTINGS = {
    "format": "rankshot settings 3",
    "head": "weighted-mean",
    "parameters": {"k": 2, "temperature": 0.7},
    "seen_temperature": 0.6,
    "reference": True,
    "source_weights": {"zoo": 1.0},
    "gate": {"new": [1.0, -2.0, 0.5], "none": [0.1, -1.0, -1.0]},
    "default_temperature": 0.5,
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
    f"{RANKINGS} --head probabilistic --set posterior=sum --set k=2",
    f"{RANKINGS} --head deterministic --set k=3",
    "--rankings similarity.csv --head direct",
    f"{RANKINGS} --classes all-or-none --reference usual.csv",
    f"{RANKINGS} --settings settings.json --reference usual.csv --classes all-or-none",
]
CANNOT_EXPLAIN = "--head deterministic"


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
    if CANNOT_EXPLAIN in options:
        done = rankshot("explain scores.csv --head head.rankshot")
        assert "--head deterministic cannot be explained" in done.err
        return
    why = run_well("explain scores.csv --head head.rankshot").split("x1: ")[1]
    assert why == run_well(f"explain scores.csv {options}").split("x1: ")[1]


def test_the_seen_classes_come_from_the_reference_or_a_list_of_names(folder):
    """Of the reference, their order is that of its columns: answers differ by rounding only."""
    run_well(f"{FIT} --reference usual.parquet")
    assert rs.load_head("head.rankshot").items_ == tuple(SEEN[::-1])
    run_well(f"{FIT} --seen seen.txt --reference usual.parquet")
    head = rs.load_head("head.rankshot")
    assert head.items_ == tuple(SEEN)
    expected = rs.WeightedMean().fit(rankings(), reference=USUAL).predict_proba(LOGITS)
    np.testing.assert_allclose(head.predict_proba(LOGITS), expected, rtol=1e-12)
    assert head.provenance_["score_type"] == "logits"
    run_well(f"{FIT} --seen seen.txt")
    assert "score_type" not in rs.load_head("head.rankshot").provenance_
    run_well(f"{FIT} --seen seen.txt --set k=3 --reference usual_pairs.parquet")
    expected = (
        rs.WeightedMean(k=3).fit(rankings(), reference=pairs_of(USUAL)).predict(pairs_of(LOGITS))
    )
    assert rs.load_head("head.rankshot").predict(pairs_of(LOGITS)).tolist() == expected.tolist()


def test_a_report_with_a_saved_head_is_the_same(folder):
    """Only the list of files differs."""
    options = OPTIONS[1]
    run_well(f"classify scores.csv {options} -o predictions.csv")
    run_well(f"fit --seen scores.csv {options} -o head.rankshot")
    report = "report predictions.csv --scores scores.csv"
    run_well(f"{report} {options} -o full.html")
    run_well(f"{report} --head head.rankshot -o short.html")
    full, short = (Path(f"{name}.html").read_text("utf-8") for name in ("full", "short"))
    assert "head.rankshot" in short

    def without_files(page):
        files = r"<div><dt>(head|rankings|reference)</dt><dd>[^<]*\.(rankshot|jsonl|csv|parquet)<"
        return re.sub(rf"{files}/dd></div>\n", "", page)

    assert without_files(short) == without_files(full)


# ---- What is in a file


def test_head_shows_what_is_in_a_file(folder):
    run_well(
        f"{FIT} --seen scores.csv --settings settings.json --reference usual.csv "
        "--classes all-or-none"
    )
    shown = run_well("head head.rankshot")
    assert "head.rankshot" in shown.splitlines()[0]
    words = " ".join(re.sub("[│┃]", " ", shown).split())
    for text in (
        "head SeenAndNew of WeightedMean(k=2, source_weights={'zoo': 1.0}, temperature=0.7)",
        "new classes 3: 'cat', 'dog', 'truck'",
        "seen classes 5: 'bus', 'fox', 'leopard', 'tiger', 'tram'",
        "predicts new and seen classes, or 'none of these'",
        "scores logits",
        "reference yes, as means and standard deviations",
        "temperature 0.7",
        "Gate(new=(1.0, -2.0, 0.5)",
        "rankings 6 ('zoo')",
        "file of rankings rankings.jsonl (SHA-256",
        "predicted mean accuracy 0.6, 0.5, 0.7",
        f"written by rankshot {rs.__version__}",
    ):
        assert text in words, text


def test_provenance_names_files_without_their_folders(folder):
    run_well(f"fit --rankings {folder / 'rankings.jsonl'} --seen seen.txt -o head.rankshot")
    found = rs.load_head("head.rankshot").provenance_
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
        ("classify scores.csv --head settings.json -o out.csv", "saved head ends in .rankshot"),
        ("head settings.json", "unknown file extension '.json'; expected .rankshot"),
        (f"{CLASSIFY} --score-type probabilities", "score type probabilities: the head in head."),
        (
            "classify probabilities.csv --head head.rankshot -o out.csv",
            "probabilities.csv: the scores look like probabilities, and the head in head.rankshot",
        ),
        (
            "classify other.csv --head head.rankshot -o out.csv",
            "head.rankshot was fitted for: it has no column 'tram'",
        ),
        (
            "fit --rankings rankings.jsonl -o out.rankshot",
            "give --seen, which names the seen classes",
        ),
        ("fit --seen seen.txt -o out.rankshot", "--head weighted-mean needs --rankings FILE"),
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
