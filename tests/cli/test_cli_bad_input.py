"""Bad input ends every command with status 2 and a message to act on, never a traceback."""

import os

import pytest

from command_line import IDS, RANKINGS, check_refused, rankshot

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
    (CLASSIFY.replace("--rankings rankings.jsonl", ""), {}, "--head weighted-mean needs --rank"),
    ("classify scores.csv --head conse -o o.csv", {}, "--head conse needs --rankings FILE"),
    (
        CLASSIFY,
        {"rankings.jsonl": RANKINGS.replace('"tram"', '"tramp"')},
        "rankings.jsonl:6: unknown item 'tramp' (did you mean 'tram'?)",
    ),
    (
        CLASSIFY,
        {"scores.csv": "id,bus,fox,leopard,tiger,tram\nx1,20,0,30,49.7,0\nx2,100,0,0,0,0\n"},
        "scores.csv: the scores look like percentages, from 0 to 100 with a sum of 100: divide",
    ),
    (
        CLASSIFY,
        {"rankings.jsonl": '{"ranking": ["fox", "bus"]}\n'},
        "rankings.jsonl: ranking 0 has no target",
    ),
    (
        CLASSIFY.replace("scores.csv", "pairs.parquet") + " --head direct",
        {},
        "pairs.parquet: has one column per pair of classes, and this head needs one per class",
    ),
    # Options
    (CLASSIFY + " --reject-below 2", {}, "--reject-below must be from 0 to 1, not 2.0"),
    (CLASSIFY + " --head probabilistik", {}, "--head 'probabilistik': no such method (did you m"),
    (CLASSIFY + " --set decay=-0.5", {}, "rankshot: decay must be 0 or more and finite, not -0.5"),
    (CLASSIFY + " --set decay=half", {}, "--set decay=half: 'half' is not a number"),
    (
        CLASSIFY + " --set decya=1",
        {},
        "--set decya=1: give a setting as name=value (did you mean 'decay'?); the",
    ),
    (
        CLASSIFY + " --head probabilistic --set prior=mallows",
        {},
        (
            "rankshot: posterior='mean' does not merge rankings, so it needs no prior: use "
            "posterior='consensus' or 'sum', or leave out the prior"
        ),
    ),
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
    (
        CONSENSUS + " --seen seen.txt",
        {"seen.txt": "bus\nfox\nleopard\ntigger\ntram\n"},
        "rankings.jsonl:1: unknown item 'tiger' (did you mean 'tigger'?)",
    ),
    (CONSENSUS + " --k 2 --k 3", {}, "--k is given more than once; give one value"),
    (
        EXPLAIN + " --id x99 --id x2 --id x98",
        {},
        "input 'x99', 'x98' not found in scores.csv; the first ids are 'x1', 'x2', 'x3'",
    ),
    (EXPLAIN + " --new-class catt", {}, "no class 'catt' (did you mean 'cat'?)"),
    (EXPLAIN + " --head deterministic", {}, "--head deterministic cannot be explained"),
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
    (
        REPORT + " --rankings rankings.jsonl --scores scores.csv",
        {},
        (
            "input 'x2' is 'cat' in the predictions, but 'dog' with these scores and this head: "
            "give those that made the predictions"
        ),
    ),
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
    (
        WITH_REFERENCE + " --head probabilistic --set posterior=sum",
        {},
        "--head probabilistic uses no reference with these settings",
    ),
    (
        WITH_REFERENCE + " --head deterministic",
        {},
        "--head deterministic uses no reference with",
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
