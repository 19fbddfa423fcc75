"""``rankshot ask``, ``rank --source answers:FILE`` and ``--rehearse``: from prompts to rankings."""

import errno
import io
import json
import re
import sys
from contextlib import redirect_stderr, suppress
from pathlib import Path
from unittest.mock import Mock

import pytest

import rankshot as rs
from command_line import check_refused, rankshot, run_well
from rankshot.cli import main
from rankshot.sources import choose_rehearsed

SEEN = [
    "tiger", "wolf", "seal", "bus", "tram", "lorry", "crane", "sea_lion", "fox", "rabbit", "mouse",
    "tractor", "tank", "whale", "mushroom", "oak", "rose",
]  # fmt: skip
NEW = ["cat", "truck", "dog"]
LISTS = {
    "cat": ["tiger", "fox", "rabbit", "wolf", "mouse"],
    "truck": ["lorry", "bus", "tram", "tractor", "tank"],
    "dog": ["wolf", "fox", "rabbit", "seal", "tiger"],
}
ASK = "ask --seen seen.txt --new new.txt -o prompts"
RANK = "rank --seen seen.txt --new new.txt --source answers:answers --k 5 -o out.jsonl"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "seen.txt").write_text("\n".join(SEEN))
    (tmp_path / "new.txt").write_text("\n".join(NEW))
    return tmp_path


def save_answers(folder, **answers):
    (folder / "answers").mkdir(exist_ok=True)
    for name, answer in answers.items():
        text = answer if isinstance(answer, str) else json.dumps(answer)
        (folder / "answers" / f"{name.replace('_', '-')}.txt").write_text(text, encoding="utf-8")


def read_prompt(path):
    """The items and the classes of a prompt, as a person reads them."""
    text = Path(path).read_text(encoding="utf-8")
    items = json.loads(re.search(r"^Items: (\[.*\])$", text, re.MULTILINE)[1])
    return items, json.loads(
        re.search(r"each of these new classes: (\[.*\])$", text, re.MULTILINE)[1]
    )


# ------------------------------------------------------------------ prompts


def test_prompts_differ_in_their_order_alone(folder):
    out = run_well(ASK)
    assert "4 prompts written to prompts, up to " in out
    files = sorted(path.name for path in Path("prompts").iterdir())
    assert files == ["READ-ME-FIRST.txt", "answers", *(f"rater-{i}.txt" for i in range(1, 5))]
    prompts = [read_prompt(f"prompts/rater-{i}.txt") for i in range(1, 5)]
    assert all(sorted(items) == sorted(SEEN) for items, _ in prompts)
    assert all(sorted(classes) == sorted(NEW) for _, classes in prompts)
    assert len({tuple(items) for items, _ in prompts}) == 4
    text = Path("prompts/rater-1.txt").read_text()
    assert "Give the 15 items that it will predict most often" in text
    guide = Path("prompts/READ-ME-FIRST.txt").read_text()
    command = (
        "rankshot rank --seen seen.txt --new new.txt --source answers:prompts/answers "
        "-o rankings.jsonl"
    )
    assert f"       {command}\n" in guide
    assert out.endswith(f"  {command}\n")


def test_a_question_about_any_inputs(folder):
    run_well([*ASK.split(), "--question", "any:sound recordings", "--k", "4"])
    text = Path("prompts/rater-1.txt").read_text()
    assert "a classifier that was trained on sound recordings to distinguish" in text
    assert "image" not in text.partition("Items:")[0]


def test_a_question_of_ones_own(folder):
    (folder / "question.txt").write_text("Rank {items} for {target}: {k} of them, {{so}}.")
    run_well(f"{ASK} --question question.txt --k 4")
    text = Path("prompts/rater-1.txt").read_text()
    assert text.startswith("Rank [")
    assert "for the new class: 4 of them, {so}.\n" in text
    assert "Give such a list of 4 items for each new class." in text
    assert "--question question.txt --k 4" in Path("prompts/READ-ME-FIRST.txt").read_text()


def test_a_folder_with_files_is_left_alone(folder):
    run_well(ASK)
    done = rankshot(ASK)
    assert done.status == 2
    assert "prompts: is not empty (" in done.err
    before = Path("prompts/rater-1.txt").read_text()
    run_well(f"{ASK} --overwrite --k 3 --raters 1")
    assert Path("prompts/rater-1.txt").read_text() != before
    assert not Path("prompts/rater-2.txt").exists()
    Path("prompts/answers/rater-1.txt").write_text("precious")
    done = rankshot(f"{ASK} --overwrite")
    assert "is not empty ('answers' is in it)" in done.err
    assert Path("prompts/answers/rater-1.txt").read_text() == "precious"
    # A folder of another kind is never replaced.
    Path("mine").mkdir()
    Path("mine/rater-9.txt").write_text("precious")
    done = rankshot("ask --seen seen.txt --new new.txt -o mine --overwrite")
    assert "mine: is not empty ('rater-9.txt' is in it)" in done.err
    assert sorted(path.name for path in folder.iterdir()) == [
        "mine", "new.txt", "prompts", "seen.txt",
    ]  # fmt: skip


def test_a_full_disk_is_named(folder, monkeypatch):
    full = OSError(errno.ENOSPC, "No space left on device")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", Mock(side_effect=full))
        done = rankshot(ASK)
    assert done.err == "rankshot: prompts: cannot be written: No space left on device\n"
    err = io.StringIO()
    # To close the file fails as well.
    with suppress(OSError), Path("/dev/full").open("w") as stream, redirect_stderr(err):
        monkeypatch.setattr(sys, "argv", ["rankshot", *ASK.split()])
        monkeypatch.setattr(sys, "stdout", stream)
        with pytest.raises(SystemExit, match="2"):
            main()
    assert err.getvalue() == "rankshot: standard output: No space left on device\n"


# ------------------------------------------------------------------ answers


def test_answers_become_rankings_of_raters(folder):
    run_well(f"{ASK} --k 5")
    Path("prompts/answers/rater-1.txt").write_text(json.dumps(LISTS))
    Path("prompts/answers/Claude.md").write_text(
        "\n\n".join(f"## {name}\n" + "\n".join(f"1. {x}" for x in order[::-1])
                    for name, order in LISTS.items())
    )  # fmt: skip
    Path("prompts/answers/photo.png").write_bytes(b"\x89PNG")
    out = run_well(f"{RANK.replace('answers:answers', 'answers:prompts/answers')}")
    assert "6 rankings written to out.jsonl\n" in out
    assert "missing" not in out
    found = rs.read_rankings("out.jsonl", items=SEEN)
    assert set(found.sources) == {"answers"}
    assert found.select(rater="rater-1").orders() == list(LISTS.values())
    assert found.select(rater="Claude").orders() == [order[::-1] for order in LISTS.values()]


def test_folders_of_answers_to_two_questions_are_two_sources(folder):
    for question, order in (("images", 1), ("contrast", -1)):
        run_well(f"{ASK}-{question} --question {question} --k 5")
        lists = {name: some[::order] for name, some in LISTS.items()}
        Path(f"prompts-{question}/answers/rater-1.txt").write_text(json.dumps(lists))
    text = Path("prompts-contrast/rater-1.txt").read_text()
    assert (
        '["cat", "truck", "dog"]. The new classes are to be distinguished by what it predicts'
        in text
    )
    folders = " ".join(f"--source answers:prompts-{q}/answers" for q in ("images", "contrast"))
    words = RANK.replace("--source answers:answers", folders)
    assert "prompts-contrast, rater-1: 3 usable lists" in run_well(words)
    found = rs.read_rankings("out.jsonl", items=SEEN)
    assert found.select(source="prompts-images").orders() == list(LISTS.values())
    assert found.select(source="prompts-contrast").orders()[0] == LISTS["cat"][::-1]
    assert set(found.raters) == {"prompts-images/rater-1", "prompts-contrast/rater-1"}
    done = rankshot(f"{words} --follow-up again")
    assert "--follow-up needs exactly one --source answers:FOLDER" in done.err
    paths = [f"prompts-{name}/answers" for name in ("images", "contrast")]
    with pytest.raises(rs.RankshotError, match="answers to two questions are two sources"):
        rs.sources.read_answer_files(paths, NEW, SEEN, 5)
    alone = rs.sources.read_answer_files(paths[0], NEW, SEEN, 5)
    assert alone.rankings.orders() == list(LISTS.values())
    with pytest.raises(rs.RankshotError, match="there is only 'cat'"):
        rs.sources.make_prompts(["cat"], SEEN, question="contrast")


def test_what_is_missing_is_asked_again(folder):
    """Until nothing is missing: the answers to follow-ups belong to the same raters."""
    save_answers(
        folder,
        rater_1={"cat": LISTS["cat"], "truck": ["lorry", "unimog"], "dgo": LISTS["dog"]},
        rater_2=LISTS,
    )
    out = run_well(RANK)
    for line in (
        "answers, rater-1: 1 usable list for 3 classes\n",
        "  'truck': not among the items, left out: 'unimog'\n",
        "  'truck': not usable: 1 known name, 5 were asked for, and at least 3 are needed\n",
        "  no answer for 'dog'\n",
        "  lists that are not below the name of a class, left out: 'dgo' (did you mean 'dog'?)\n",
        "answers, rater-2: 3 usable lists for 3 classes\n",
        "missing: 2 lists; --follow-up FOLDER writes prompts that ask for them again\n",
    ):
        assert line in out
    out = run_well(f"{RANK} --follow-up again")
    assert "missing: 2 lists; paste the 1 prompt in again into a chat window" in out
    assert [path.name for path in Path("again").iterdir()] == ["rater-1.again-1.txt"]
    items, classes = read_prompt("again/rater-1.again-1.txt")
    assert (sorted(items), sorted(classes)) == (sorted(SEEN), ["dog", "truck"])
    save_answers(folder, **{"rater_1.again_1": {"truck": LISTS["truck"]}})
    out = run_well(f"{RANK} --follow-up once_more")
    assert read_prompt("once_more/rater-1.again-2.txt")[1] == ["dog"]
    save_answers(folder, **{"rater_1.again_2": "dog: " + ", ".join(LISTS["dog"])})
    assert "missing" not in run_well(RANK)
    found = rs.read_rankings("out.jsonl", items=SEEN)
    assert found.select(rater="rater-1").orders() == list(LISTS.values())
    assert sorted(set(found.raters)) == ["rater-1", "rater-2"]


def test_a_list_that_is_too_short_is_not_an_unknown_name(folder):
    save_answers(folder, rater_1=LISTS | {"truck": LISTS["truck"][:2]})
    message = (
        "no source has a usable list for 'truck', for the reasons above. Correct the answers, "
        "or use `rankshot rank`: --k accepts shorter lists"
    )
    check_refused(folder, RANK, {}, message)
    assert "3 usable lists" in run_well(RANK.replace("--k 5", "--k 4"))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("", "r.txt: answer is empty"),
        (
            json.dumps({"Katze": ["Löwe", "Fuchs", "Hase", "Maus", "Hund"]}),
            (
                "r.txt: answer has no usable list (no answer for 'cat', 'truck', 'dog'; lists that "
                "are not below the name of a class, left out: 'Katze'"
            ),
        ),
        (b"\xff\xfe\x00", "r.txt: answer is not UTF-8 text"),
    ],
)
def test_a_file_without_an_answer_is_named_and_nothing_is_written(folder, answer, message):
    save_answers(folder, good=LISTS)
    content = answer.encode() if isinstance(answer, str) else answer
    check_refused(folder, f"{RANK} --follow-up again", {"answers/r.txt": content}, message)


# ------------------------------------------------------------------ rehearsal


def test_all_sources_rehearse_the_same_classes(folder):
    chosen, others = choose_rehearsed(SEEN, 4, seed=5)
    options = "--seen seen.txt --rehearse 4 --seed 5"
    out = run_well(f"ask {options} -o prompts --k 5")
    assert "4 of the 17 seen classes are held out as new ones; the other 13 are ranked" in out
    items, classes = read_prompt("prompts/rater-3.txt")
    assert (sorted(items), sorted(classes)) == (sorted(others), sorted(chosen))
    assert "--rehearse 4 --seed 5 --k 5 --source" in Path("prompts/READ-ME-FIRST.txt").read_text()
    save_answers(folder, r={name: list(others[:5]) for name in chosen})
    words = "--source answers:answers --source wordnet --k 5 -o out.jsonl"
    out = run_well(f"rank {options} {words}")
    assert "most similar to each rehearsed class" in out
    found = rs.read_rankings("out.jsonl", items=SEEN)
    assert len(found) == 8
    assert set(found.target_names) == set(chosen)
    assert not {name for order in found.orders() for name in flatten(order)} & set(chosen)


def flatten(order):
    return [name for group in order for name in (group if isinstance(group, list) else [group])]
