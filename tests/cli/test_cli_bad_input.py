"""Bad input ends every command with status 2 and a message to act on, never a traceback."""

import os

import pytest

from command_line import IDS, check_refused, rankshot

CLASSIFY = "classify scores.csv --rankings rankings.jsonl -o out.parquet"
REPORT = "report predictions.csv --truth truth.csv -o out.html"
EXPLAIN = "explain scores.csv --rankings rankings.jsonl"
CONSENSUS = "consensus rankings.jsonl"
WITH_REFERENCE = f"{CLASSIFY} --reference usual.csv"


@pytest.fixture
def folder(folder):
    rows = "".join(f"{name},cat,.7,.7,.2,.1\n" for name in IDS)
    header = "id,label,probability,P(cat),P(dog),P(truck)\n"
    (folder / "predictions.csv").write_text(header + rows)
    return folder


# The command; files that are put in place of good ones; what the message says.
CASES = [
    # Scores and their types
    (CLASSIFY.replace("scores", "scors"), {}, "scors.csv: No such file or directory (did you me"),
    (
        CLASSIFY,
        {"scores.csv": ",bus,fox\nx1,1,2\n"},
        "scores.csv: column 1 has no name. If it is the index of pandas, write it with index_label",
    ),
    (CLASSIFY + " --score-type probabilities", {}, "scores.csv:2, column 'bus': -1.0 is no"),
    (
        CLASSIFY.replace("scores.csv", "pairs.parquet") + " --score-type one-vs-rest-logits",
        {},
        "one column per pair of classes, which does not match the score type one-vs-rest-logits",
    ),
    # Rankings and similarities
    (
        CLASSIFY,
        {"scores.csv": "id,bus,fox,leopard,tiger,tram\nx1,20,0,30,49.7,0\nx2,100,0,0,0,0\n"},
        "scores.csv: the scores look like percentages, from 0 to 100 with a sum of 100: divide",
    ),
    # Options
    (CLASSIFY + " --reject-below 2", {}, "--reject-below must be from 0 to 1, not 2.0"),
    (CLASSIFY + " --set decay=-0.5", {}, "rankshot: decay must be 0 or more and finite, not -0.5"),
    ("classify scores.csv --rankings rankings.jsonl", {}, "Missing option '--output' / '-o'"),
    ("clasify scores.csv", {}, "No such command 'clasify'. Did you mean 'classify'?"),
    # Outputs
    (
        CLASSIFY.replace(".parquet", ".xlsx"),
        {},
        "an unknown file extension '.xlsx'; expected .csv",
    ),
    (
        CLASSIFY.replace("out.parquet", "./scores.csv"),
        {},
        "scores.csv: is also an input file; give another output file",
    ),
    (CONSENSUS + " -o rankings.jsonl", {}, "rankings.jsonl: is also an input file"),
    # Folders in place of files
    (CLASSIFY.replace("out.parquet", "a_folder.csv"), {}, "a_folder.csv: is a folder; a file is"),
    (CONSENSUS + " -o a_folder.csv", {}, "is a folder; a file is expected (.jsonl, .ndjson, .par"),
    (CLASSIFY.replace("rankings.jsonl", "."), {}, ".: is a folder; a file is expected (.jsonl,"),
    (CLASSIFY + " --evidence a_folder.csv", {}, "a_folder.csv: no parts (.parquet) of a table of"),
    (CONSENSUS + " --seen a_folder.csv", {}, "--seen a_folder.csv: a folder needs the config.json"),
    ("report a_folder.csv -o out.html", {}, "is a folder; a file is expected (.csv, .parquet)"),
    ("survey status study.toml", {}, "pip install rankshot-survey"),
    # consensus, explain and report
    (CONSENSUS + " --k 2 --k 3", {}, "--k is given more than once; give one value"),
    (
        EXPLAIN + " --id x99 --id x2 --id x98",
        {},
        "input 'x99', 'x98' not found in scores.csv; the first ids are 'x1', 'x2', 'x3'",
    ),
    (
        REPORT,
        {"truth.csv": "id,label\nx9,cat\nx1, \n"},
        "truth.csv: no label for 7 of the 7 inputs: 'x1', 'x2'",
    ),
    (
        REPORT,
        {"truth.csv": "label\n" + "cat\n" * 6 + "trukc\n"},
        (
            "truth.csv: the true class 'trukc' of input 'x7' is not one of the predicted classes "
            "(did you mean 'truck'?): 'cat', 'dog', 'truck'"
        ),
    ),
    (REPORT + " --scores scores.csv", {}, "--scores needs --rankings as well"),
    # References
    (
        WITH_REFERENCE,
        {"usual.csv": "id,bus,fox,leopard,tigre,tram\nx1,1,2,3,4,5\n"},
        "a reference needs the columns of scores.csv; only one of the two files has 'tiger', 'tig",
    ),
    (
        CLASSIFY + " --reference usual_pairs.parquet",
        {},
        "has one-vs-one scores, b",
    ),
    (
        CLASSIFY + " --reference usual_probabilities.csv",
        {},
        "usual_probabilities.csv: the scores look like probabilities, and those of scores.csv like",
    ),
    (WITH_REFERENCE.replace("out.parquet", "usual.csv"), {}, "usual.csv: is also an input file"),
    (REPORT + " --rankings rankings.jsonl --reference usual.csv", {}, "--reference needs --scores"),
]


@pytest.mark.parametrize(
    ("words", "files", "message"), CASES, ids=[message[:60] for _, _, message in CASES]
)
def test_bad_input_is_named_and_nothing_is_written(folder, words, files, message):
    (folder / "a_folder.csv").mkdir()
    check_refused(folder, words, files, message)


def test_a_folder_without_permission(folder, monkeypatch):
    monkeypatch.setattr(os, "access", lambda _path, mode: mode != os.W_OK)
    done = rankshot(CLASSIFY)
    assert (done.status, f"no permission for {folder}" in done.err) == (2, True)
