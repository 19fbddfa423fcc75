"""Class names as they come: ``--seen``, ``--new``, and columns in another spelling."""

import json
from pathlib import Path

import numpy as np
import pytest

import rankshot as rs
from command_line import LOGITS, SEEN, rankshot, run_well, write_scores, write_small_run
from rankshot.sources.wordnet_nouns import load_nouns

IMAGENET = rs.sources.read_class_labels("imagenet-1k")
LISTS = [", ".join(words) for words in IMAGENET.synonyms]
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


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


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


@pytest.mark.parametrize(
    "labels",
    [
        {"model_type": "vit", "id2label": {str(i): name for i, name in enumerate(LISTS)}},
        [[id_, words[0]] for id_, words in zip(IMAGENET.synsets, IMAGENET.synonyms, strict=True)],
        IMAGENET.synsets,
    ],
    ids=["transformers", "keras", "ids"],
)
def test_all_forms_of_imagenet_give_the_same_rankings(folder, labels):
    _, expected = rank(["--seen", "imagenet-1k", "--new", "okapi"])
    Path("labels.json").write_text(json.dumps(labels))
    out, lines = rank(["--seen", "labels.json", "--new", "okapi"])
    assert lines == expected
    assert "labels.json: " in out
    assert "is 'tench'" in out


def test_word_vectors_look_up_the_synonyms(folder):
    Path("vectors.txt").write_text("tinca 1 0\nokapi 1 .1\nbus 0 1\ncrane .5 .5\n")
    Path("seen.txt").write_text("tench, Tinca tinca\nbus\nn02012849\n")
    out, lines = rank(
        ["--seen", "seen.txt", "--new", "okapi", "--source", "vectors:vectors.txt", "--notes"]
    )
    assert lines[0]["ranking"] == ["tench", "crane (bird)", "bus"]
    assert "knows 100% of all pairs" in out
    assert "seen.txt: 2 labels now have readable names: " in out


def test_a_table_may_spell_the_classes_in_another_way(folder):
    Path("seen.txt").write_text("tench, Tinca tinca\nbus\nn02012849\n")
    Path("table.csv").write_text('target,"tench, Tinca tinca",Bus,n02012849\nOkapi,.2,.1,.3\n')
    _, lines = rank(["--seen", "seen.txt", "--new", "okapi", "--source", "table:table.csv"])
    assert lines[0]["ranking"] == ["crane (bird)", "tench", "bus"]


def test_words_and_senses_of_the_user_come_first(folder):
    Path("seen.txt").write_text("n02012849 crane\nbulldozer\nheron\n")
    Path("names.csv").write_text("class,look_up\ncrane (bird),bulldozer\n")
    given = ["--seen", "seen.txt", "--new", "excavator"]
    _, (plain,) = rank(given)
    assert plain["ranking"][0] == "bulldozer"
    _, (looked_up,) = rank([*given, "--names", "names.csv"])
    assert looked_up["ranking"][0] == ["crane (bird)", "bulldozer"]
    _, (pinned,) = rank([*given, "--sense", "crane (bird)=bulldozer.n.01"])
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


def test_rehearsed_classes_in_any_spelling(folder):
    words = ["--seen", "imagenet-1k", "--rehearse", "n01440764, great_white_shark, crane.n.05"]
    _, lines = rank([*words, "--k", "3"])
    assert [line["target"] for line in lines] == ["tench", "great white shark", "crane (bird)"]


def test_prompts_have_readable_names(folder):
    Path("labels.json").write_text(json.dumps(LISTS))
    run_well(["ask", "--seen", "labels.json", "--new", "okapi, menorah", "-o", "prompts"])
    text = "\n".join(path.read_text() for path in Path("prompts").glob("rater-*.txt"))
    assert "crane (bird)" in text
    assert "Tinca tinca" not in text


def test_consensus_of_imagenet(folder):
    rank(["--seen", "imagenet-1k", "--new", "okapi", "--k", "5"])
    assert "okapi" in run_well("consensus out.jsonl --seen imagenet-1k --k 3")


def test_an_output_is_not_a_file_of_labels(folder):
    Path("seen.jsonl").write_text("a\nb\n")
    done = rankshot("rank --seen seen.jsonl --new c -o seen.jsonl")
    assert "seen.jsonl: is an input file as well" in done.err


# ---- Columns in another spelling


@pytest.fixture
def small(folder):
    write_small_run(folder)
    return folder


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize(
    "words",
    [
        "--rankings rankings.jsonl",
        "--rankings rankings.jsonl --reference usual.csv",
        "--head direct --similarity similarity.csv",
    ],
)
def test_columns_are_matched(small, spelling, words):
    write_scores(small / "exact.csv", LOGITS[:, ::-1], SEEN[::-1])
    run_well(f"classify exact.csv {words} -o expected.csv")
    write_scores(small / "other.csv", LOGITS[:, ::-1], SPELLINGS[spelling][::-1])
    out = run_well(f"classify other.csv {words} -o out.csv")
    assert Path("out.csv").read_text() == Path("expected.csv").read_text()
    file = "similarity.csv" if "direct" in words else "rankings.jsonl"
    assert f"{file}: " in out
    assert " matched to the columns of other.csv, for example " in out


def test_seen_classes_keep_the_names_of_the_columns(small):
    write_scores(small / "other.csv", LOGITS, IDS)
    run_well("classify other.csv --rankings rankings.jsonl --classes all -o out.csv")
    header = Path("out.csv").read_text().splitlines()[0]
    assert all(f"P({id_})" in header for id_ in IDS)
    assert IDS[2] in run_well("explain other.csv --rankings rankings.jsonl --id x1")
    # The rankings of a class that is seen are left out, whatever its name.
    with Path("rankings.jsonl").open("a") as stream:
        stream.write('{"target": "fox", "ranking": ["tiger", "leopard"]}\n')
    out = run_well("classify other.csv --rankings rankings.jsonl -o out.csv")
    assert f"rankings of '{IDS[1]}' are left out: they are seen classes" in out


def test_a_new_class_is_not_a_seen_one_for_a_synonym(small):
    """In WordNet, a panther is a leopard; as a target it is a new class."""
    text = Path("rankings.jsonl").read_text().replace('"cat"', '"panther"')
    Path("rankings.jsonl").write_text(text)
    write_scores(small / "other.csv", LOGITS, ["bus", "fox", "leopard, panther", "Tiger", "tram"])
    run_well("classify other.csv --rankings rankings.jsonl -o out.csv")
    assert "P(panther)" in Path("out.csv").read_text()


def test_the_report_matches_columns_once(small):
    write_scores(small / "other.csv", LOGITS, IDS)
    run_well("classify other.csv --rankings rankings.jsonl -o p.csv")
    words = "--truth truth.csv --rankings rankings.jsonl --scores other.csv -o page.html"
    out = run_well(f"report p.csv {words}")
    assert out.count("matched to the columns") == 1
    assert "page.html" in out


def test_exact_names_are_not_parsed(small, monkeypatch):
    def refuse(*_):
        raise AssertionError

    monkeypatch.setattr("rankshot.sources.names.labels._build", refuse)
    out = run_well("classify scores.csv --rankings rankings.jsonl --reference usual.csv -o o.csv")
    assert "matched" not in out


def test_names_that_cannot_be_matched(small):
    write_scores(small / "other.csv", LOGITS, [*IDS[:4], "yeti"])
    done = rankshot("classify other.csv --rankings rankings.jsonl -o out.csv")
    assert "unknown item 'tram'; the items are 'n02924116'" in done.err
    write_scores(small / "other.csv", LOGITS, ["Bus", "BUS", "leopard", "tiger", "tram"])
    done = rankshot("classify other.csv --rankings rankings.jsonl -o out.csv")
    assert "unknown item 'fox'" in done.err
    text = Path("rankings.jsonl").read_text().replace('["bus"', '["n02924116"', 1)
    Path("rankings.jsonl").write_text(text)
    write_scores(small / "other.csv", LOGITS, [IDS[0], *SEEN[1:]])
    done = rankshot("classify other.csv --rankings rankings.jsonl -o out.csv")
    assert "both mean the class 'n02924116'" in done.err


def test_rehearsal_matches_rankings_and_true_classes(folder):
    seen = list(IMAGENET.names[280:300])
    columns = list(IMAGENET.synsets[280:300])
    rng = np.random.default_rng(0)
    table = rs.WordNet(senses=dict(zip(seen, columns, strict=True))).similarity(seen, seen)
    values = 6 * table.values.repeat(6, axis=0) + rng.normal(size=(120, 20))
    names = [f"x{i}" for i in range(120)]

    def run(items, labels):
        write_scores(folder / "seen.csv", values, items, names)
        pairs = zip(names, np.repeat(labels, 6), strict=True)
        Path("truth.csv").write_text("id,label\n" + "".join(f'{a},"{b}"\n' for a, b in pairs))
        run_well("rehearse seen.csv --truth truth.csv --rankings out.jsonl -o settings.json")
        settings = json.loads(Path("settings.json").read_text())
        # The accuracy is measured in folds, which depend on the order of the names.
        return [settings["temperature"], *settings["gate"]["new"]]

    Path("seen.json").write_text(json.dumps(columns))
    rank(["--seen", "seen.json", "--rehearse", "8"])
    expected = run(seen, seen)
    assert run(columns, LISTS[280:300]) == pytest.approx(expected)
    assert run(LISTS[280:300], columns) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["scores.csv", "scores.parquet", "scores.npz"])
def test_a_table_of_scores_names_the_seen_classes(folder, name):
    write_small_run(folder)
    Path("seen.csv").write_text("\n".join(SEEN) + "\n")
    expected = rank(["--seen", "seen.csv", "--new", "cat"])
    assert rank(["--seen", name, "--new", "cat"]) == expected
    assert expected[1][0]["ranking"][0] in (["leopard", "tiger"], "leopard", "tiger")
