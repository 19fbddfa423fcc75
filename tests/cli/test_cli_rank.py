"""``rankshot rank``: names that a source does not know, what is printed, and similarity files."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import rankshot as rs
from command_line import check_refused, rankshot, run_well
from rankshot.sources import LanguageModel, read_similarity

SEEN = ["tiger", "wolf", "seal", "bus", "tram", "lorry", "crane", "crane_2"]
NEW = ["cat", "truck", "water_lilly"]
VECTORS = """\
cat 1 0 .1
truck -.2 1 0
water .3 .2 .9
lilly .1 .1 .8
lily .2 .1 1
tiger 1 .1 .1
wolf .9 .3 .2
seal .9 .1 .4
bus .1 1 .1
tram .2 1 .2
crane .3 .9 .5
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    write_names(tmp_path, SEEN, NEW)
    (tmp_path / "vectors.txt").write_text(VECTORS)
    return tmp_path


def write_names(folder, seen, new):
    (folder / "seen.txt").write_text("\n".join(seen))
    (folder / "new.txt").write_text("\n".join(new))


RANK = "rank --seen seen.txt --new new.txt -o out.jsonl"


def rank(words):
    return run_well(f"{RANK} {words}")


def read_file():
    """The rankings in the file, by source and new class."""
    lines = map(json.loads, Path("out.jsonl").read_text(encoding="utf-8").splitlines())
    return {(line["source"], line["target"]): line for line in lines}


def printed_cells(out):
    """The cells of the printed table, by source and new class."""
    rows = [re.split("[│┃]", line)[1:-1] for line in out.splitlines() if line[:1] in "│┃"]
    (_, *columns), *body = ([cell.strip() for cell in row] for row in rows)
    found, name = {}, ""
    for target, *cells in body:
        # With several sources, the class is in the first of its rows.
        name = target or name
        source, cell = cells if len(columns) > 1 else (columns[0], *cells)
        found[source, name] = cell
    return found


# ------------------------------------------------------------------ the printed table


def format_line(line, most=5):
    """The first classes of a line of the file, ties and all, as the table should show them."""
    groups, left, before = [], most, 0
    for group in line["ranking"]:
        names = group if isinstance(group, list) else [group]
        if before >= line.get("k", np.inf):
            break
        before += len(names)
        if left <= 0:
            continue
        more = [f"{len(names) - left} more"] if len(names) > left else []
        groups.append(" = ".join(names[:left] + more))
        shown, left = before, left - len(names)
    return " > ".join(groups + ([f"{before - shown} more"] if before > shown else []))


@pytest.mark.parametrize("k", [None, 3, 6])
def test_the_table_shows_what_is_in_the_file(folder, rng, k):
    """Of subset rankings as well: those of a source that does not know some seen classes."""
    seen = [f"s{i}" for i in range(9)]
    new = [f"z{i}" for i in range(12)]
    write_names(folder, seen, new)
    values = rng.integers(0, 6, (12, 9)).astype(float)
    values[::2] = rng.normal(size=(6, 9))
    values[::3, 2:4] = np.nan
    rs.sources.write_similarity(rs.Similarity(values, new, seen), folder / "t.csv")
    out = rank("--source table:t.csv" + (f" --k {k}" if k else ""))
    lines = read_file()
    assert printed_cells(out) == {key: format_line(line) for key, line in lines.items()}
    assert sum(line.get("kind") == "subset" for line in lines.values()) == 4
    kept = rs.read_rankings("out.jsonl", items=seen)
    assert set(kept.lengths[kept.is_subset].tolist()) == {min(k or 7, 7)}


def test_classes_that_cannot_be_told_apart_are_named(folder):
    write_names(folder, ["bicycle", "airplane", "wolf"], ["bus", "dog", "taxi", "van"])
    warning = "warning: 'bus', 'taxi', 'van' have the same ranking: nothing distinguishes them"
    assert warning in rank("--source wordnet")
    write_names(folder, ["bicycle", "airplane", "wolf"], ["bus", "dog"])
    assert "told apart" not in rank("--source wordnet")


def test_names_are_shown_as_they_are(folder):
    """Square brackets are not markup, and a # inside a name does not start a comment."""
    write_names(folder, ["[b]og", "[/red]x", "C#"], ["cat"])
    (folder / "table.csv").write_text("target,[b]og,[/red]x,C#\ncat,3,2,1\n")
    assert "[b]og > [/red]x > C#" in rank("--source table:table.csv")


# ------------------------------------------------------------------ unknown names


def test_a_source_ranks_what_it_knows(folder):
    write_names(folder, SEEN, ["cat", "yeti"])
    (folder / "table.csv").write_text("target,bus,tiger\nyeti,1,2\ncat,1,3\n")
    out = rank("--source vectors:vectors.txt --source table:table.csv")
    lines = read_file()
    assert sorted(lines) == [("table", "cat"), ("table", "yeti"), ("vectors", "cat")]
    assert "lorry" not in lines["vectors", "cat"]["ranking"]
    assert lines["vectors", "cat"]["kind"] == "subset"
    assert lines["table", "yeti"] == {
        "target": "yeti", "ranking": ["tiger", "bus"], "kind": "subset", "source": "table",
    }  # fmt: skip
    assert printed_cells(out)["vectors", "yeti"] == "-"
    for line in (
        "vectors: covers 38% of all pairs\n",
        "  has no ranking for these new classes, which it does not know: 'yeti'\n",
        "  ranks without these seen classes, which it does not know: 'lorry', 'crane_2'\n",
        "  ranks without these seen classes, which it does not know: 'wolf', 'seal', 'tram'",
        "3 rankings written to out.jsonl\n",
    ):
        assert line in out
    assert "warning" not in out


VECTOR_SOURCE = "--source vectors:vectors.txt"
REFUSED = {
    "--source wordnt": "'wordnt' is not a source (did you mean 'wordnet'?)",
    "--source vectors": "needs a file, as in vectors:FILE",
    "--source llm": "needs a model, as in llm:MODEL",
    "--source glove:50": "source must be 'glove' alone",
    "--source glove --names-out n.csv": "--names-out needs --source wordnet",
    "--source wordnet --source wordnet": "given more than once: 'wordnet'",
    f"{VECTOR_SOURCE} --source vectors:more/vectors.txt": "two sources have the name 'vectors'",
    "--names odd.csv": "'sea' is not a class (did you mean 'seal'?)",
    "--names-out out.csv --similarity-out out.csv": "-out must be different files",
    "--k 9": "k must be a whole number from 1 to 8, not 9",
    # The misspelt name of a new class, and a source that knows none of the classes.
    "--source wordnet --new cat,gerenouk": "no source knows 'gerenouk'; 'gerenouk' may be 'gere",
    f"{VECTOR_SOURCE} --new yeti,kraken": (
        "vectors: has no similarity between a new class and a seen class, such as 'yeti' and "
        "'tiger'; leave out this source, or give words to look up with --names FILE"
    ),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_is_wrong_is_said_and_nothing_is_written(folder, words):
    (folder / "more").mkdir()
    (folder / "more/vectors.txt").write_text(VECTORS)
    (folder / "odd.csv").write_text("class,look_up\nseal,seal.n.09\nsea,seal.n.09\n")
    usual = RANK.replace("--new new.txt ", "") if "--new" in words else RANK
    check_refused(folder, f"{usual} {words}", {}, REFUSED[words])


# ------------------------------------------------------------------ words to look up


def test_words_are_looked_up_by_all_sources_and_the_output_keeps_the_names(folder):
    write_names(folder, ["tiger", "bus", "daisy_flower_3", "T9"], ["water_lilly", "x7"])
    (folder / "names.csv").write_text(
        "class,look_up\nwater_lilly,water lily\nx7,truck\ndaisy_flower_3,daisy\nT9,wolf\n"
    )
    (folder / "vectors.txt").write_text(VECTORS + "daisy .1 0 1\n")
    (folder / "table.csv").write_text(
        "target,tiger,bus,daisy_flower_3,wolf\nwater lily,1,0,3,2\nx7,1,3,0,2\ntruck,9,9,9,9\n"
    )
    out = rank(
        "--source wordnet --source vectors:vectors.txt --source table:table.csv --names names.csv"
    )
    assert "misspelt" not in out
    first = {key: line["ranking"][0] for key, line in read_file().items()}
    assert first == {
        ("wordnet-path", "water_lilly"): "daisy_flower_3",
        ("wordnet-path", "x7"): "bus",
        ("vectors", "water_lilly"): "daisy_flower_3",
        ("vectors", "x7"): "bus",
        ("table", "water_lilly"): "daisy_flower_3",
        ("table", "x7"): "bus",
    }
    by_words = rs.WordNet().similarity(["water lily", "truck"], ["tiger", "bus", "daisy", "wolf"])
    lines = rs.read_rankings("out.jsonl", items=["tiger", "bus", "daisy_flower_3", "T9"])
    found = lines.select(source="wordnet-path").positions()
    np.testing.assert_array_equal(found, by_words.to_rankings().positions())


def test_a_language_model_gets_the_words(folder, monkeypatch):
    asked = []

    def rankings(self, targets, items, *, verbose):
        asked.append((tuple(targets), tuple(items)))
        order = sorted(items)[:2]
        return rs.Rankings.from_orders(
            [order] * len(targets), items=items, targets=list(targets), sources=self.model
        )

    monkeypatch.setattr(LanguageModel, "rankings", rankings)
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    (folder / "names.csv").write_text("class,look_up\nwater_lilly,water lily\ncrane_2,a heron\n")
    words = "--source llm:m --names names.csv"
    # The number of calls is printed, and without an answer none is made.
    done = rankshot(f"{RANK} {words}")
    assert (done.status, "15 calls" in done.out) == (1, True)
    assert asked == []
    with monkeypatch.context() as without:
        without.delenv("OPENAI_API_KEY")
        done = rankshot(f"{RANK} {words}")
    assert "set the environment variable OPENAI_API_KEY" in done.err
    assert (done.status, "Continue?" in done.out) == (2, False)
    rank(f"{words} --yes")
    assert asked == [(("cat", "truck", "water lily"), (*SEEN[:-1], "a heron"))]
    assert read_file()["m", "water_lilly"]["ranking"] == ["crane_2", "bus"]
    (folder / "names.csv").write_text("class,look_up\ncrane_2,crane\n")
    message = "cannot distinguish 'crane' and 'crane_2': both are looked up as 'crane'"
    check_refused(folder, f"{RANK} {words} --yes", {}, message)


def test_senses_are_written_for_the_class_names_and_chosen_by_the_words(folder):
    write_names(folder, ["tiger", "T9", "daisy", "heron"], ["water_lilly", "crane", "qzx_7"])
    (folder / "names.csv").write_text(
        "class,look_up\nwater_lilly,water lily\nT9,swan\ncrane,crane.n.04\n"
    )
    words = "--names names.csv --names-out senses.csv"
    check_refused(folder, f"{RANK} {words}", {}, "no source knows 'qzx_7'. Correct the name")
    out = rank(f"{words} --skip-unknown")
    assert "warning: 'qzx_7' left out: no source knows these new classes" in out
    classes = ["tiger", "T9", "daisy", "heron", "water_lilly", "crane", "qzx_7"]
    found = rs.sources.read_look_up("senses.csv", classes)
    words = ["water lily", "tiger", "swan", "daisy", "heron"]
    chosen = {name: sense.name for name, sense in rs.WordNet().senses(words).items()}
    assert found == {
        "water_lilly": chosen["water lily"],
        "crane": "crane.n.04",
        "tiger": chosen["tiger"],
        "T9": chosen["swan"],
        "daisy": chosen["daisy"],
        "heron": chosen["heron"],
    }
    first = Path("out.jsonl").read_text()
    # The file replaces the words: all senses are given now.
    rank("--names senses.csv --skip-unknown")
    assert Path("out.jsonl").read_text() == first


# ------------------------------------------------------------------ similarities


def test_several_sources_are_averaged(folder):
    (folder / "table.csv").write_text("target,tiger,bus,lorry\ncat,4,2,0\ntruck,0,4,3\nyeti,,,\n")
    write_names(folder, SEEN, ["cat", "truck", "yeti"])
    out = rank(
        "--source vectors:vectors.txt --source table:table.csv --similarity-out sim.csv --k 2 "
        "--skip-unknown"
    )
    assert "sim.csv: the mean of vectors and table, each rescaled to [0, 1]" in out
    table = read_similarity(folder / "sim.csv")
    assert table.targets == ("cat", "truck")
    vectors = rs.WordVectors.from_file("vectors.txt").similarity(["cat", "truck"], SEEN).rescale()
    assert table["cat", "tiger"] == pytest.approx((vectors["cat", "tiger"] + 1) / 2)
    assert table["cat", "wolf"] == vectors["cat", "wolf"]
    assert table["truck", "lorry"] == 0.75
