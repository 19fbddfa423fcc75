"""Class names as they come: ``--seen``, ``--new``, and columns in another spelling."""

import json
from pathlib import Path

import pytest

import rankshot as rs
from command_line import LOGITS, SEEN, rankshot, run_well, write_scores
from rankshot.sources.wordnet_nouns import load_nouns

IMAGENET = rs.sources.read_class_labels("imagenet-1k")
SENSES = ["bus.n.01", "fox.n.01", "leopard.n.02", "tiger.n.02", "streetcar.n.01"]
IDS = [load_nouns().id(load_nouns().synset(sense)) for sense in SENSES]
SPELLINGS = {
    "ids": IDS,
    "ids and words": [f"{id_} {name}" for id_, name in zip(IDS, SEEN, strict=True)],
    "synonyms": [
        "bus, autobus",
        "fox, Vulpes",
        "leopard,Panthera pardus",
        "tiger",
        "trolley, tram",
    ],
    "case": ["Bus", "FOX", "Leopard", "tiger", "Tram"],
    "senses": SENSES,
}


def rank(words):
    """Run the command, and return what it prints and the lines of its file."""
    out = run_well(["rank", *words, "-o", "out.jsonl"])
    return out, [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]


def refused(words):
    done = rankshot(["rank", *words, "-o", "out.jsonl"])
    assert done.status == 2
    assert "Traceback" not in done.err
    return done.err


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
    # A file of that name comes first; then names.
    assert "classes are both seen and new: 'zebra'" in refused([*seen, "okapi"])
    Path("okapi").unlink()
    assert rank([*seen, "okapi"])[1][0]["target"] == "okapi"
    # What looks like a file is one.
    for missing in ("new.txt", "folder/new", "labels.json"):
        assert f"{missing}: No such file or directory" in refused([*seen, missing])
    assert "--new ' , ': no names in it" in refused([*seen, " , "])
    assert "did you mean 'imagenet-1k'" in refused(["--seen", "imagenet1k", "--new", "okapi"])
    assert "'cat' occurs more than once" in refused([*seen, "cat, dog, cat"])


def test_new_classes_that_are_seen(folder):
    seen = ["--seen", "imagenet-1k", "--new"]
    assert "both seen and new: 'tench'" in refused([*seen, "okapi, n01440764"])
    assert "both seen and new: 'Tinca'" in refused([*seen, "n01440764 Tinca"])
    out, _ = rank([*seen, "okapi, tree_frog"])
    assert "warning: the new class 'tree_frog' may be the same as the seen 'tree frog'" in out


# ---- Columns in another spelling


@pytest.mark.parametrize(
    ("words", "spelling"),
    [
        *(("--rankings rankings.jsonl --reference usual.csv", name) for name in SPELLINGS),
        ("--head direct --rankings similarity.csv", "case"),
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


@pytest.mark.parametrize("name", ["scores.csv", "scores.parquet", "scores.npz"])
def test_a_table_of_scores_names_the_seen_classes(folder, name):
    Path("seen.csv").write_text("\n".join(SEEN) + "\n")
    expected = rank(["--seen", "seen.csv", "--new", "cat"])
    assert rank(["--seen", name, "--new", "cat"]) == expected
    assert expected[1][0]["ranking"][0] in (["leopard", "tiger"], "leopard", "tiger")
