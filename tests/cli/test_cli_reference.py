"""``--reference`` of ``classify``, ``explain`` and ``report``: scores of inputs of seen classes."""

import numpy as np
import pytest

import rankshot as rs
from command_line import (
    LOGITS,
    SEEN,
    USUAL,
    check_refused,
    rankings,
    run_well,
    softmax,
    write_small_run,
)
from rankshot.zeroshot.files.predictions import read_predictions

CLASSIFY = "classify scores.csv --rankings rankings.jsonl -o out.csv"
EXPLAIN = "explain scores.csv --rankings rankings.jsonl"
REPORT = "report predictions.csv --truth truth.csv -o out.html"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_small_run(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_classify(words):
    return run_well(words), read_predictions("out.csv")


# -------------------------------------------------------------------- classify


@pytest.mark.parametrize(
    ("options", "head"),
    [
        ("", rs.WeightedMean()),
        ("--head probabilistic", rs.ProbabilisticRanking()),
        (
            "--head probabilistic --set posterior=consensus",
            rs.ProbabilisticRanking(posterior="consensus"),
        ),
    ],
)
def test_a_reference_counts_as_in_python(folder, options, head):
    """Its columns are matched by name."""
    usual = "usual.parquet"
    done, found = run_classify(f"{CLASSIFY} {options} --reference {usual}")
    head.fit(rankings(), USUAL)
    np.testing.assert_allclose(found.proba, head.predict_proba(LOGITS), rtol=1e-9)
    assert found.labels.tolist() == head.predict(LOGITS).tolist()
    assert done.count("scores.csv: the scores are interpreted as logits (see --score-type)\n") == 1
    assert f"{usual}: the scores are interpreted as logits" in done
    _, without = run_classify(f"{CLASSIFY} {options}")
    assert not np.allclose(found.proba, without.proba, atol=0.05)


def test_a_reference_is_what_the_scores_are(folder):
    words = CLASSIFY.replace("scores.csv", "probabilities.csv") + " --reference"
    done, inferred = run_classify(f"{words} usual_probabilities.csv")
    assert done.count("the scores are interpreted as probabilities") == 2
    usual = rs.Scores.from_probabilities(softmax(USUAL), SEEN)
    head = rs.WeightedMean().fit(rankings(), usual)
    wanted = head.predict_proba(rs.Scores.from_probabilities(softmax(LOGITS), SEEN))
    np.testing.assert_allclose(inferred.proba, wanted, rtol=1e-9)
    done, given = run_classify(f"{words} usual_probabilities.csv --score-type probabilities")
    assert "interpreted as" not in done
    np.testing.assert_array_equal(given.proba, inferred.proba)
    _, as_logits = run_classify(f"{words} usual_probabilities.csv --score-type logits")
    head.fit(rankings(), rs.Scores(softmax(USUAL), SEEN))
    wanted = head.predict_proba(rs.Scores(softmax(LOGITS), SEEN))
    np.testing.assert_allclose(as_logits.proba, wanted, rtol=1e-9)


# -------------------------------------------------------------------- what is no reference

HEADER = "id,bus,fox,leopard,tiger,tram\n"
ROW = "x1,1,2,3,4,5\n"
FEW = "".join(f"x{row},1,2,3,4,{row}\n" for row in range(9))
REFERENCES = [
    (
        CLASSIFY + " --reference usual.csv",
        {"usual.csv": HEADER.replace("tiger", "tigre") + ROW},
        (
            "usual.csv: a reference needs the columns of scores.csv; only one of the two files has "
            "'tiger', 'tigre'"
        ),
    ),
    (
        CLASSIFY + " --reference usual_pairs.npz",
        {},
        (
            "usual_pairs.npz: has one-vs-one scores, and scores.csv has multiclass scores; a "
            "reference has scores of the same kind"
        ),
    ),
    (
        CLASSIFY + " --reference usual_probabilities.csv",
        {},
        (
            "usual_probabilities.csv: the scores look like probabilities, and those of scores.csv "
            "like logits; both must be the same: give --score-type"
        ),
    ),
    (
        CLASSIFY.replace("scores.csv", "probabilities.csv")
        + " --score-type probabilities --reference usual.csv",
        {
            "usual.csv": HEADER
            + "".join(f"a{i},.2,.2,.2,.2,.2\n" for i in range(10))
            + "b,.2,.2,.2,.2,.9\n"
        },
        "usual.csv: row 10: multiclass probabilities must add up to one, not 1.7",
    ),
    (
        CLASSIFY + " --head probabilistic --set posterior=sum --reference usual.csv",
        {},
        "--reference is for posterior=mean and consensus, not sum",
    ),
    *(
        (
            CLASSIFY + f" --head {head} --reference usual.csv",
            {},
            f"--reference is for --head weighted-mean and probabilistic, not {head}",
        )
        for head in ("deterministic", "direct", "conse")
    ),
    (
        CLASSIFY.replace("out.csv", "usual.csv") + " --reference usual.csv",
        {},
        "usual.csv: is an input file as well",
    ),
    (
        REPORT + " --rankings rankings.jsonl --reference usual.csv",
        {},
        "--reference needs --scores as well",
    ),
]


@pytest.mark.parametrize(("words", "files", "message"), REFERENCES)
def test_what_is_no_reference_is_named_and_nothing_is_written(folder, words, files, message):
    run_well("classify scores.csv --rankings rankings.jsonl -o predictions.csv")
    check_refused(folder, words, files, message)
