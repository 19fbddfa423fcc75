"""Class names as they come: ``--seen``, ``--new``, and columns in another spelling."""

import json
from pathlib import Path

import pytest

import rankshot as rs
from command_line import LOGITS, SEEN, check_refused, run_well, write_scores

IMAGENET = rs.sources.read_class_labels("imagenet-1k")
SPELLINGS = {
    "senses": ["bus.n.01", "fox.n.01", "leopard.n.02", "tiger.n.02", "streetcar.n.01"],
    "synonyms": [
        "bus, autobus",
        "fox, Vulpes",
        "leopard,panther",
        "tiger",
        "trolley, tram",
    ],
    "case": ["Bus", "FOX", "Leopard", "tiger", "Tram"],
}
"""Two of those that tests/sources/test_names.py matches, and one for similarities."""


def rank(words):
    """Run the command, and return what it prints and the lines of its file."""
    out = run_well(["rank", *words, "-o", "out.jsonl"])
    return out, [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]


# ---- --seen and --new


def test_wordnet_ranks_imagenet_by_exact_synsets(folder):
    out, lines = rank(["--seen", "imagenet-1k", "--new", "okapi, menorah", "--source", "wordnet"])
    wordnet = rs.WordNet(senses=IMAGENET.senses)
    table = wordnet.similarity(["okapi", "menorah"], IMAGENET.names)
    rs.write_rankings(table.to_rankings(), folder / "expected.jsonl")
    assert Path("out.jsonl").read_text() == Path("expected.jsonl").read_text()
    # Only the new classes are guessed; senses of seen classes are no longer doubtful.
    assert "'crane" not in out
    assert [line["target"] for line in lines] == ["okapi", "menorah"]
    by_guess = rs.WordNet().similarity(["okapi", "menorah"], IMAGENET.names).to_rankings()
    assert by_guess.orders() != table.to_rankings().orders()


def test_words_and_senses_of_the_user_come_first(folder):
    Path("seen.txt").write_text("n02012849 crane\nbulldozer\nheron\n")
    Path("names.csv").write_text("class,look_up\ncrane (bird),bulldozer\n")
    given = ["--seen", "seen.txt", "--new", "excavator"]
    _, (plain,) = rank(given)
    assert plain["ranking"][0] == "bulldozer"
    _, (looked_up,) = rank([*given, "--names", "names.csv"])
    assert looked_up["ranking"][0] == ["crane (bird)", "bulldozer"]
    Path("names.csv").write_text("class,look_up\ncrane (bird),bulldozer.n.01\n")
    _, (pinned,) = rank([*given, "--names", "names.csv"])
    assert pinned["ranking"] == looked_up["ranking"]


def test_new_is_a_file_or_names(folder):
    Path("okapi").write_text("zebra\n")
    seen = ["--seen", "imagenet-1k", "--new"]
    for given, message in {
        # A file of that name comes before the name.
        "okapi": "classes are both seen and new: 'zebra'",
        # What looks like a file is one.
        "new.txt": "new.txt: No such file or directory",
        "folder/new": "folder/new: No such file or directory",
        "labels.json": "labels.json: No such file or directory",
        " , ": "--new ' , ': has no names",
        "cat, dog, cat": "'cat' is listed more than once",
        "yeti, n01440764": "both seen and new: 'tench'",
        "n01440764 Tinca": "both seen and new: 'Tinca'",
    }.items():
        check_refused(folder, ["rank", *seen, given, "-o", "out.jsonl"], {}, message)
    words = "rank --seen imagenet1k --new yak -o out.jsonl"
    check_refused(folder, words, {}, "did you mean 'imagenet-1k'")
    Path("okapi").unlink()
    out, lines = rank([*seen, "okapi, tree_frog"])
    assert lines[0]["target"] == "okapi"
    assert "warning: the new class 'tree_frog' may be the same as a seen class: 'tree frog'" in out


# ---- Columns in another spelling


@pytest.mark.parametrize(
    ("words", "spelling"),
    [
        ("--rankings rankings.jsonl --reference usual.csv", "senses"),
        ("--rankings rankings.jsonl --reference usual.csv", "synonyms"),
    ],
)
def test_columns_are_matched(folder, words, spelling):
    write_scores(folder / "exact.csv", LOGITS[:, ::-1], SEEN[::-1])
    run_well(f"classify exact.csv {words} -o expected.csv")
    write_scores(folder / "other.csv", LOGITS[:, ::-1], SPELLINGS[spelling][::-1])
    out = run_well(f"classify other.csv {words} -o out.csv")
    assert Path("out.csv").read_text() == Path("expected.csv").read_text()
    file = "similarity.csv" if "direct" in words else "rankings.jsonl"
    assert f"{file}: " in out
    assert " matched to the columns of other.csv, for example " in out


def test_a_new_class_is_not_a_seen_one_for_a_synonym(folder):
    """In WordNet, a panther is a leopard; as a target it is a new class."""
    text = Path("rankings.jsonl").read_text().replace('"cat"', '"panther"')
    Path("rankings.jsonl").write_text(text)
    write_scores(folder / "other.csv", LOGITS, ["bus", "fox", "leopard, panther", "Tiger", "tram"])
    run_well("classify other.csv --rankings rankings.jsonl -o out.csv")
    assert "P(panther)" in Path("out.csv").read_text()


def test_a_table_of_scores_names_the_seen_classes(folder):
    Path("seen.csv").write_text("\n".join(SEEN) + "\n")
    expected = rank(["--seen", "seen.csv", "--new", "cat"])
    for name in ("scores.csv", "scores.parquet"):
        assert rank(["--seen", name, "--new", "cat"]) == expected
    assert expected[1][0]["ranking"][0] in (["leopard", "tiger"], "leopard", "tiger")
