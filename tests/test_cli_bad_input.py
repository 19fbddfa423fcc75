"""Bad input ends every command with status 2 and a message to act on, never a traceback."""

import io
import os
import zipfile

import numpy as np
import pytest

from command_line import (
    IDS,
    RANKINGS,
    SEEN,
    SIMILARITY,
    check_refused,
    rankshot,
    write_small_run,
)

CLASSIFY = "classify scores.csv --rankings rankings.jsonl -o out.parquet"
REPORT = "report predictions.csv --truth truth.csv -o out.html"
EXPLAIN = "explain scores.csv --rankings rankings.jsonl"
CONSENSUS = "consensus rankings.jsonl"

HEADER = "id,bus,fox,leopard,tiger,tram\n"
ROW = "x1,1,2,3,4,5\n"
PREDICTIONS = "id,label,probability,P(cat),P(dog),P(truck)\n"
PREDICTED = "x1,cat,.7,.7,.2,.1\n"


def archive(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def parquet(**columns):
    import pyarrow as pa
    from pyarrow import parquet as files

    stream = io.BytesIO()
    files.write_table(pa.table(columns), stream)
    return stream.getvalue()


def empty_archive():
    stream = io.BytesIO()
    zipfile.ZipFile(stream, "w").close()
    return stream.getvalue()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_small_run(tmp_path)
    (tmp_path / "predictions.csv").write_text(
        PREDICTIONS + "".join(f"{name},cat,.7,.7,.2,.1\n" for name in IDS)
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


# The command; files that are put in place of good ones; what the message says.
SCORES = [
    (CLASSIFY.replace("scores.csv", "none.csv"), {}, "none.csv: No such file or directory"),
    (CLASSIFY.replace("scores.csv", "a_folder.csv"), {}, "a_folder.csv: a dataset needs a fitted"),
    (
        CLASSIFY.replace("scores.csv", "scores.txt"),
        {"scores.txt": HEADER + ROW},
        "scores.txt: unknown ending '.txt'; known are .csv, .parquet, .npz",
    ),
    (CLASSIFY, {"scores.csv": ""}, "scores.csv: the file is empty; its first line must name"),
    (CLASSIFY, {"scores.csv": HEADER}, "scores.csv: the table has no rows"),
    (CLASSIFY, {"scores.csv": "id\nx1\n"}, "scores.csv: expected one column per seen class"),
    (
        CLASSIFY,
        {"scores.csv": HEADER + ROW + "x2,1,2,3\n"},
        "scores.csv:3: 4 cells, but the first line names 6 columns",
    ),
    (
        CLASSIFY,
        {"scores.csv": HEADER + ROW + "x2,1,2,nan,4,5\n"},
        "scores.csv:3: 'leopard' is nan; scores must be finite numbers",
    ),
    (
        CLASSIFY,
        {"scores.csv": HEADER + ROW + "x2,1,2,3,-inf,5\n"},
        "scores.csv:3: 'tiger' is -inf; scores must be finite numbers",
    ),
    (CLASSIFY, {"scores.csv": HEADER + "x1,1,2,,4,5\n"}, "scores.csv:2: 'leopard' is empty"),
    (CLASSIFY, {"scores.csv": HEADER + "x1,1,2,three,4,5\n"}, "scores.csv:2: 'leopard' is 'three'"),
    (CLASSIFY, {"scores.csv": HEADER + ROW + ",1,2,3,4,5\n"}, "scores.csv:3: 'id' is empty"),
    (
        CLASSIFY,
        {"scores.csv": HEADER.replace("tram", "bus") + ROW},
        "scores.csv: the header names 'bus' more than once",
    ),
    (CLASSIFY, {"scores.csv": "id," + HEADER + "x0," + ROW}, "at most one named 'id'"),
    (
        CLASSIFY,
        {"scores.csv": HEADER.replace("fox", "") + ROW},
        "scores.csv: the header must be non-empty",
    ),
    (CLASSIFY, {"scores.csv": b"id,bus\nx1,\xff\n"}, "scores.csv:2: not UTF-8 text"),
    (CLASSIFY, {"scores.csv": 'id,bus\n"x1,1\n'}, "scores.csv:2: not CSV (unexpected end of data)"),
    (
        CLASSIFY.replace(".csv", ".parquet"),
        {"scores.parquet": HEADER + ROW},
        "scores.parquet: not a complete Parquet file",
    ),
    (
        CLASSIFY.replace(".csv", ".parquet"),
        {"scores.parquet": parquet(**{name: [1.0, 2.0, None] for name in SEEN})},
        "scores.parquet: row 2: 'bus' is nan; scores must be finite",
    ),
    (
        CLASSIFY.replace(".csv", ".parquet"),
        {"scores.parquet": parquet(**{name: ["high"] for name in SEEN})},
        "scores.parquet: column 'bus' holds string, not numbers",
    ),
    (
        CLASSIFY.replace(".csv", ".parquet"),
        {"scores.parquet": parquet(**{name: np.zeros(0) for name in SEEN})},
        "scores.parquet: the table has no rows",
    ),
    (CLASSIFY.replace(".csv", ".npz"), {"scores.npz": b"PK\3\4junk"}, "scores.npz: not a complete"),
    (CLASSIFY.replace(".csv", ".npz"), {"scores.npz": empty_archive()}, "no array 'scores'; the"),
    (
        CLASSIFY.replace(".csv", ".npz"),
        {"scores.npz": archive(scores=np.zeros((2, 5)), classes=np.array(SEEN, object))},
        "scores.npz: 'classes' must be numbers or text in C order",
    ),
    (
        CLASSIFY.replace(".csv", ".npz"),
        {"scores.npz": archive(scores=np.zeros((2, 7)), classes=np.array(SEEN))},
        "'scores' has float64 of shape (2, 7); expected numbers of shape (n, 5)",
    ),
    (
        CLASSIFY.replace("scores.csv", "pairs.npz"),
        {"pairs.npz": archive(scores=np.full((2, 10), np.inf), classes=np.array(SEEN))},
        "pairs.npz: row 0: column 'bus' against 'fox' is inf; scores must be finite",
    ),
]

SCORE_TYPES = [
    (
        CLASSIFY + " --score-type probabilities",
        {},
        (
            "scores.csv: row 0, column 'bus': -1.0 is not a probability; give the right "
            "score type (one-vs-rest-probabilities if each answers a separate yes-no question)"
        ),
    ),
    (
        # Inferred from the first rows; a later row contradicts. Rows count through all batches.
        CLASSIFY + " --batch-rows 2",
        {"scores.csv": HEADER + 3 * "a,.2,.2,.2,.2,.2\n" + "b,.2,.2,.2,.2,.9\n"},
        (
            "scores.csv: row 3: multiclass probabilities must add up to one, not 1.7; give the "
            "right score type (one-vs-rest-probabilities if"
        ),
    ),
    (
        CLASSIFY.replace("scores.csv", "pairs.npz") + " --score-type one-vs-rest-logits",
        {},
        "one column per pair of classes, which the score type one-vs-rest-logits does not fit",
    ),
    (
        EXPLAIN + " --score-type probabilities --id x3",
        {},
        "scores.csv: row 2, column 'bus': 3.0 is not a probability",
    ),
]

SEMANTICS = [
    (CLASSIFY.replace("--rankings rankings.jsonl", ""), {}, "--head weighted-mean needs --rank"),
    (CLASSIFY + " --head direct", {}, "--head direct needs --similarity FILE"),
    (CLASSIFY + " --head conse", {}, "--head conse needs --similarity FILE"),
    (CLASSIFY.replace("rankings.jsonl", "no.jsonl"), {}, "no.jsonl: No such file or directory"),
    (CLASSIFY.replace("rankings.jsonl", "scores.csv"), {}, "scores.csv: unknown ending '.csv'"),
    (CLASSIFY, {"rankings.jsonl": ""}, "rankings.jsonl: no rankings in it"),
    (
        CLASSIFY,
        {"rankings.jsonl": RANKINGS.replace('"tram"', '"tramp"')},
        "rankings.jsonl:6: unknown item 'tramp' (did you mean 'tram'?)",
    ),
    (
        CLASSIFY,
        {"rankings.jsonl": RANKINGS + '{"target": "cat", "ranking": ["fox"\n'},
        "rankings.jsonl:8: not JSON",
    ),
    (CLASSIFY, {"rankings.jsonl": b"\x89PNG\r\n\x1a\n\xff"}, "rankings.jsonl:1: not UTF-8 text"),
    (CLASSIFY, {"rankings.jsonl": "\0\0\0\n"}, "rankings.jsonl:1: not JSON"),
    (
        CLASSIFY,
        {"rankings.jsonl": '{"ranking": ["fox", "bus"]}\n'},
        "rankings.jsonl: ranking 0 has no target",
    ),
    (
        CLASSIFY,
        {"rankings.jsonl": '{"targte": "cat", "ranking": ["fox"]}\n'},
        "rankings.jsonl:1: field 'targte': did you mean 'target'?",
    ),
    (
        CLASSIFY,
        {"rankings.jsonl": '{"target": "cat", "ranking": ["fox", "fox"]}\n'},
        "rankings.jsonl:1: item 'fox' is listed more than once",
    ),
    (
        CLASSIFY,
        {"rankings.jsonl": '{"target": "cat", "ranking": ["fox"], "weight": 0}\n'},
        "rankings.jsonl: there are no rankings (or all have weight 0)",
    ),
    (
        CLASSIFY,
        {"rankings.jsonl": '{"target": "cat", "ranking": ["fox"], "kind": "subset"}\n'},
        "rankings.jsonl: the rankings of 'cat' prefer no seen class to another",
    ),
    (
        CLASSIFY + " --head direct --similarity similarity.csv",
        {"similarity.csv": SIMILARITY.replace("tram", "trams")},
        "similarity.csv: no 'tram' in the table (did you mean 'trams'?); scores.csv has scores of",
    ),
    (
        CLASSIFY + " --head direct --similarity similarity.csv",
        {"similarity.csv": SIMILARITY.replace("cat,.1,.5,.9,.8,.05", "cat,-.1,,-1,-.8,-2")},
        "similarity.csv: all similarities of 'cat' by similarity are negative",
    ),
    (
        CLASSIFY + " --head conse --similarity similarity.csv",
        {"similarity.csv": SIMILARITY + "bird,,,,,\n"},
        "similarity.csv: similarity has no similarities of 'bird': leave them out",
    ),
    (
        CLASSIFY + " --head conse --similarity similarity.csv",
        {"similarity.csv": SIMILARITY.replace(".9", "high")},
        "similarity.csv:2: 'bus' is 'high'; similarities must be finite numbers",
    ),
    (
        CLASSIFY.replace("scores.csv", "pairs.npz") + " --head direct --similarity similarity.csv",
        {},
        "pairs.npz: has one column per pair of classes, and --head direct needs one per class",
    ),
]

OPTIONS = [
    (CLASSIFY + " --k 0", {}, "rankshot: --k must be a whole number from 1 on, not 0"),
    (CLASSIFY + " --k -1", {}, "rankshot: --k must be a whole number from 1 on, not -1"),
    (REPORT + " --k 0", {}, "rankshot: --k must be a whole number from 1 on, not 0"),
    (CLASSIFY + " --k four", {}, "Invalid value for '--k'"),
    (CLASSIFY + " --batch-rows 0", {}, "--batch-rows must be a whole number from 1 on, not 0"),
    (CLASSIFY + " --reject-below 2", {}, "--reject-below must be a probability, not 2.0"),
    (CLASSIFY + " --reject-below nan", {}, "--reject-below must be a probability, not nan"),
    (
        CLASSIFY + " --head probabilistik",
        {},
        "--head 'probabilistik': no such method (did you mean 'probabilistic'?); the methods are",
    ),
    (CLASSIFY + " --prior borda", {}, "'borda' is not one of 'plackett-luce', 'mallows'"),
    (CLASSIFY + " --posterior median", {}, "'median' is not one of 'mean', 'consensus', 'sum'"),
    (CLASSIFY + " --decay -0.5", {}, "rankshot: --decay must be 0 or more and finite, not -0.5"),
    (CLASSIFY + " --decay nan", {}, "rankshot: --decay must be 0 or more and finite, not nan"),
    (CLASSIFY + " --decay inf", {}, "rankshot: --decay must be 0 or more and finite, not inf"),
    (CLASSIFY + " --decay fast", {}, "Invalid value for '--decay'"),
    (EXPLAIN + " --decay -1", {}, "rankshot: --decay must be 0 or more and finite, not -1.0"),
    (
        CLASSIFY + " --prior mallows",
        {},
        (
            "--prior mallows: these options do not merge rankings; use --head "
            "probabilistic --posterior consensus, or leave out --prior"
        ),
    ),
    (
        EXPLAIN + " --head probabilistic --prior plackett-luce",
        {},
        "--prior plackett-luce: these options do not merge rankings",
    ),
    (
        CLASSIFY + " --posterior consensus",
        {},
        "--posterior consensus is for --head probabilistic, not weighted-mean",
    ),
    (CLASSIFY + " --temperature 0", {}, "rankshot: --temperature must be positive and finite, not"),
    (EXPLAIN + " --temperature nan", {}, "rankshot: --temperature must be positive and finite,"),
    (CLASSIFY + " --temperature hot", {}, "Invalid value for '--temperature'"),
    (
        REPORT + " --rankings rankings.jsonl --scores scores.csv --head deterministic",
        {},
        "--head deterministic is not explained in a report: leave out --scores",
    ),
    (
        REPORT + " --rankings rankings.jsonl --scores scores.csv --prior mallows",
        {},
        "--prior mallows: these options do not merge rankings",
    ),
    (CLASSIFY + " --score-type odds", {}, "'odds' is not one of 'auto', 'logits',"),
    (CLASSIFY + " --rejekt-below 1", {}, "No such option: --rejekt-below"),
    ("classify scores.csv --rankings rankings.jsonl", {}, "Missing option '--output' / '-o'"),
    ("clasify scores.csv", {}, "No such command 'clasify'. Did you mean 'classify'?"),
    (CONSENSUS + " --k 0", {}, "rankshot: --k must be a whole number from 1 on, not 0"),
]

OUTPUTS = [
    (CLASSIFY.replace(".parquet", ".xlsx"), {}, "out.xlsx: unknown ending '.xlsx'; known are .csv"),
    (CLASSIFY.replace("out", "no/out"), {}, "no/out.parquet: cannot write there: "),
    (CLASSIFY.replace("out", "truth.csv/out"), {}, "truth.csv/out.parquet: cannot write there: "),
    (CLASSIFY.replace("out.parquet", "a_folder.csv"), {}, "cannot write there: it is a folder"),
    (
        CLASSIFY.replace("out.parquet", "./scores.csv"),
        {},
        "scores.csv: is an input file as well; give another file to write",
    ),
    (
        CLASSIFY.replace("out.parquet", "similarity.csv") + " --similarity similarity.csv",
        {},
        "similarity.csv: is an input file as well",
    ),
    (CONSENSUS + " -o rankings.jsonl", {}, "rankings.jsonl: is an input file as well"),
    (CONSENSUS + " -o out.json", {}, "out.json: unknown ending '.json'; known are .jsonl"),
    (CONSENSUS + " -o no/out.jsonl", {}, "no/out.jsonl: cannot write there: "),
    (REPORT.replace(".html", ".pdf"), {}, "out.pdf: unknown ending '.pdf'; known are .html, .htm"),
    (REPORT.replace("out", "no/out"), {}, "no/out.html: cannot write there: "),
    ("demo -o out.pdf", {}, "out.pdf: unknown ending '.pdf'; known are .html, .htm"),
    ("demo -o no/out.html", {}, "no/out.html: cannot write there: "),
]

CONSENSUSES = [
    (CONSENSUS.replace("rankings", "none"), {}, "none.jsonl: No such file or directory"),
    (CONSENSUS + " --seen none.txt", {}, "none.txt: No such file or directory"),
    (
        CONSENSUS + " --seen seen.txt",
        {"seen.txt": "bus\nfox\nleopard\ntigger\ntram\n"},
        "rankings.jsonl:1: unknown item 'tiger' (did you mean 'tigger'?)",
    ),
    (
        CONSENSUS,
        {"rankings.jsonl": RANKINGS + '{"ranking": ["fox"]}\n'},
        "rankings.jsonl: ranking 7 has no target, but others have",
    ),
    (CONSENSUS + " --k 2 --k 3", {}, "--k is given more than once; give one value"),
    (CONSENSUS.replace("jsonl", "soc"), {"rankings.soc": "no PrefLib\n"}, "rankings.soc"),
]

EXPLANATIONS = [
    (EXPLAIN + " --id x99", {}, "no input 'x99'; the first ids are 'x1', 'x2', 'x3'"),
    (
        "explain plain.csv --rankings rankings.jsonl --id x1",
        {"plain.csv": "bus,fox,leopard,tiger,tram\n1,2,3,4,5\n"},
        "plain.csv: there is no input 'x1'; without a column id, inputs are numbered from 0",
    ),
    (EXPLAIN + " --new-class catt", {}, "no class 'catt' (did you mean 'cat'?)"),
    (EXPLAIN + " --against dgo", {}, "no class 'dgo' (did you mean 'dog'?)"),
    (EXPLAIN + " --head deterministic", {}, "--head deterministic cannot be explained"),
]

REPORTS = [
    (REPORT.replace("predictions", "none"), {}, "none.csv: No such file or directory"),
    (REPORT.replace("truth.csv", "none.csv"), {}, "none.csv: No such file or directory"),
    (
        REPORT,
        {"predictions.csv": "id,label\nx1,cat\n"},
        "predictions.csv: no columns such as 'P(cat)'; the columns are 'id', 'label'",
    ),
    (
        REPORT,
        {"predictions.csv": PREDICTIONS.replace("label", "lable") + PREDICTED},
        "predictions.csv: no column 'label' (did you mean 'lable'?); the columns are 'id', 'lable'",
    ),
    (
        REPORT,
        {"predictions.csv": PREDICTIONS + PREDICTED.replace("cat", "cut")},
        "predictions.csv:2: no column 'P(cut)' for this label (did you mean 'cat'?)",
    ),
    (
        REPORT,
        {"predictions.csv": PREDICTIONS + PREDICTED.replace(".2", "1.2")},
        "predictions.csv:2: 'P(dog)' is 1.2, which is not a probability",
    ),
    (REPORT, {"predictions.csv": PREDICTIONS}, "predictions.csv: the table has no rows"),
    (REPORT.replace("predictions.csv", "scores.npz"), {}, "scores.npz: unknown ending '.npz'"),
    (
        REPORT.replace("predictions.csv", "predictions.parquet"),
        {"predictions.parquet": b"PAR1 and no more"},
        "predictions.parquet: not a complete Parquet file",
    ),
    (
        REPORT,
        {"truth.csv": "id,class\nx1,cat\n"},
        "truth.csv: no column 'label'; the columns are 'id', 'class'",
    ),
    (
        REPORT,
        {"truth.csv": "id,label\n" + "".join(f"{name},cat\n" for name in IDS[:-2])},
        "truth.csv: no label for 2 of the 7 inputs: 'x6', 'x7'",
    ),
    (
        REPORT,
        {"truth.csv": "id,label\nx1,cat\nx2,dog\nx1,dog\n"},
        "truth.csv:4: the id 'x1' is also in truth.csv:2",
    ),
    (
        REPORT,
        {"truth.csv": "label\n" + "cat\n" * 6},
        "truth.csv: 6 labels for 7 inputs; without a column 'id' there must be one label per",
    ),
    (
        REPORT,
        {"truth.csv": "label\n" + "cat\n" * 6 + "trukc\n"},
        (
            "truth.csv: the true class 'trukc' of input 'x7' is none of the predicted classes "
            "(did you mean 'truck'?)"
        ),
    ),
    (REPORT, {"truth.csv": "id,label\nx1,cat\nx2, \n"}, "truth.csv:3: the label is empty"),
    (REPORT, {"truth.csv": ""}, "truth.csv: the file is empty"),
    (REPORT + " --scores scores.csv", {}, "--scores needs --rankings as well"),
    (
        REPORT + " --rankings rankings.jsonl --scores scores.csv",
        {},
        (
            "input 'x2' is 'cat' in the predictions, but 'dog' with these --scores and this head: "
            "give the files and options that `classify` had"
        ),
    ),
    (
        REPORT + " --rankings rankings.jsonl",
        {"rankings.jsonl": RANKINGS + '{"ranking": ["fox"]}\n'},
        "rankings.jsonl: ranking 7 has no target: name the target of each ranking",
    ),
    (
        REPORT + " --rankings rankings.jsonl",
        {"rankings.jsonl": RANKINGS + "[]\n"},
        'rankings.jsonl:8: expected an object with a list "ranking", not []',
    ),
]

CASES = [
    *SCORES,
    *SCORE_TYPES,
    *SEMANTICS,
    *OPTIONS,
    *OUTPUTS,
    *CONSENSUSES,
    *EXPLANATIONS,
    *REPORTS,
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
    assert (done.status, f"you may not write in {folder}" in done.err) == (2, True)
