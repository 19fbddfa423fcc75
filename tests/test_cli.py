"""The command, as a person types it."""

import subprocess
import sys

import pytest

import rankshot as rs


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "seen.txt").write_text("# animals\ntiger\nwolf\nseal\nbus\nlawn_mower\n\n")
    (tmp_path / "unseen.txt").write_text("cat  # the pet\ntruck\n")
    (tmp_path / "vectors.txt").write_text(
        "cat 1 0\ntruck 0 1\ntiger 1 .1\nwolf 1 .5\nseal 1 .9\nbus .1 1\nmower .5 1\nlawn .2 1\n"
    )
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "vectors.txt").write_text((tmp_path / "vectors.txt").read_text())
    (tmp_path / "table.csv").write_text(
        "target,tiger,wolf,seal,bus,lawn_mower\ncat,.9,.8,.3,,.1\ntruck,0,0,0,1,1\n"
    )
    return tmp_path


def run(folder, *words):
    command = [sys.executable, "-m", "rankshot.cli", *words]
    return subprocess.run(command, capture_output=True, cwd=folder, encoding="utf-8", check=False)


def rank(folder, *words):
    always = ("rank", "--seen", "seen.txt", "--unseen", "unseen.txt", "-o", "out.jsonl")
    return run(folder, *always, *words)


def test_rank_writes_the_rankings_of_every_source_and_shows_the_first(folder):
    done = rank(
        folder, "--source", "wordnet", "--source", "vectors:vectors.txt", "--source",
        "table:table.csv", "--notes",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    rankings = rs.read_rankings(
        folder / "out.jsonl", items=["tiger", "wolf", "seal", "bus", "lawn_mower"]
    )
    assert rankings.source_names == ("table", "vectors", "wordnet-path")
    assert rankings.target_names == ("cat", "truck")
    by_vectors = rankings.select(source="vectors", target="cat").orders()[0]
    assert by_vectors == ["tiger", "wolf", "seal", "lawn_mower", "bus"]
    by_table = rankings.select(source="table")
    assert by_table.orders() == [
        ["tiger", "wolf", "seal", "lawn_mower"],
        [["bus", "lawn_mower"], ["tiger", "wolf", "seal"]],
    ]
    assert by_table.is_subset.tolist() == [True, False]
    assert rankings.select(source="wordnet-path", target="cat").orders()[0][0] == "tiger"
    for text in (
        "knows 100% of all pairs",
        "knows 90% of all pairs",
        "seal: seal.n.09 (animal",
        "6 rankings written to out.jsonl",
        "tiger > wolf > seal",
    ):
        assert text in done.stdout, text


def test_k_pins_and_categories_reach_the_source(folder):
    done = rank(folder, "--k", "2", "--sense", "seal=seal.n.01", "--notes")
    assert "seal: sealing_wax.n.01" in done.stdout
    assert set(rs.read_rankings(folder / "out.jsonl").lengths) == {2}
    done = rank(folder, "--category", "animal")
    assert done.returncode == 2
    assert "'truck' has no sense in 'animal', only in 'artifact'" in done.stderr


def test_a_language_model_is_asked_only_after_its_estimate(folder):
    done = rank(folder, "--source", "model:some-model", "--base-url", "http://127.0.0.1:9/v1")
    assert done.returncode == 1
    assert "10 calls" in done.stdout
    assert not (folder / "out.jsonl").exists()


def test_help_shows_an_example():
    done = run(".", "rank", "--help")
    assert done.returncode == 0
    assert "rankshot rank --seen seen.txt --unseen unseen.txt" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--source", "wordnt"), "no source 'wordnt' (did you mean 'wordnet'?)"),
        (("--source", "vectors"), "source 'vectors' needs a file, as in vectors:FILE"),
        (("--source", "vectors:none.txt"), "none.txt: No such file or directory"),
        (("--source", "model"), "source 'model' needs a name, as in model:NAME"),
        (("--source", "glove:50"), "source 'glove' takes nothing behind it"),
        (("--source", "glove", "--sense", "seal=seal.n.09"), "are for --source wordnet"),
        (("--source", "wordnet", "--source", "wordnet"), "given more than once: 'wordnet'"),
        (
            ("--source", "vectors:vectors.txt", "--source", "vectors:more/vectors.txt"),
            "two sources have the name 'vectors'",
        ),
        (("--log", "out.jsonl"), "the log and the output must be two files"),
        (("--source", "wordnet:cosine"), "measure must be one of path"),
        (("--sense", "seal"), "a pin has the form seal=seal.n.09, not 'seal'"),
        (("--sense", "sea=sea.n.01"), "'sea' is pinned, but is neither a target nor an item"),
        (("--category", "beast"), "no category 'beast'"),
        (("--unseen", "none.txt"), "none.txt: No such file or directory"),
        (("--unseen", "seen.txt"), "both seen and unseen: 'tiger'"),
        (("-o", "out.txt"), "out.txt: unknown ending '.txt'"),
        (("-o", "nowhere/out.jsonl"), "out.jsonl: cannot write there"),
        (("--k", "9"), "k must be a whole number from 1 to 5, not 9"),
        (("--source", "table:seen.txt"), "seen.txt"),
    ],
)
def test_bad_input_ends_with_a_message_and_no_traceback(folder, words, message):
    done = rank(folder, *words)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert message in " ".join(done.stderr.split())
    assert not (folder / "out.jsonl").exists()


def test_names_are_shown_as_they_are(folder):
    """Square brackets are no markup, and a # inside a name is no remark."""
    (folder / "seen.txt").write_text("[b]og\n[/red]x\nC#\n")
    (folder / "unseen.txt").write_text("cat\n")
    (folder / "table.csv").write_text("target,[b]og,[/red]x,C#\ncat,3,2,1\n")
    done = rank(folder, "--source", "table:table.csv")
    assert done.returncode == 0, done.stderr
    assert "[b]og > [/red]x > C#" in done.stdout


def test_names_that_are_no_names(folder):
    (folder / "unseen.txt").write_text("cat\ncat\n")
    assert "unseen.txt: names names 'cat' more than once" in rank(folder).stderr
    (folder / "unseen.txt").write_text("# nothing\n")
    assert "unseen.txt: names is empty" in rank(folder).stderr
    (folder / "unseen.txt").write_bytes(b"cat\n\xff\n")
    assert "unseen.txt:2: not UTF-8 text" in rank(folder).stderr
    (folder / "unseen.txt").write_text("cat\nxyzzy\n")
    assert "WordNet has no noun for 'xyzzy'" in rank(folder).stderr
