"""``rankshot ask``, ``rank --source answers:FILE`` and ``--rehearse``: from prompts to rankings."""

import json
import re
from pathlib import Path

import pytest

import rankshot as rs
from command_line import check_refused, rankshot
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


def run_well(words):
    done = rankshot(words)
    assert (done.status, done.err) == (0, "")
    return done.out


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
    assert "Give the 15 items that it will say most often" in text
    guide = Path("prompts/READ-ME-FIRST.txt").read_text()
    command = (
        "rankshot rank --seen seen.txt --new new.txt --source answers:prompts/answers "
        "-o rankings.jsonl"
    )
    assert f"       {command}\n" in guide
    assert out.endswith(f"  {command}\n")


def test_the_same_seed_writes_the_same_prompts(folder):
    contents = []
    for words in ("-o a", "-o b", "-o c --seed 1"):
        run_well(f"ask --seen seen.txt --new new.txt {words}")
        contents.append([path.read_text() for path in sorted(Path(words[3]).glob("rater*"))])
    assert contents[0] == contents[1]
    assert contents[0] != contents[2]


def test_many_new_classes_are_divided(folder):
    new = [f"some new class {i}" for i in range(60)]
    (folder / "new.txt").write_text("\n".join(new))
    run_well(f"{ASK} --max-tokens 1000 --raters 2 --k 3")
    for rater in (1, 2):
        parts = sorted(Path("prompts").glob(f"rater-{rater}.part-*.txt"))
        assert len(parts) > 1
        classes = [read_prompt(path)[1] for path in parts]
        assert sorted(name for part in classes for name in part) == sorted(new)
        assert max(map(len, classes)) - min(map(len, classes)) < 10
        # The estimate is of the prompt and its answer.
        assert all(len(path.read_text()) / 2.7 < 1000 for path in parts)


def test_a_question_of_ones_own(folder):
    (folder / "question.txt").write_text("Rank {items} for {target}: {k} of them, {{so}}.")
    run_well(f"{ASK} --question question.txt --k 4")
    text = Path("prompts/rater-1.txt").read_text()
    assert text.startswith("Rank [")
    assert "for the new class: 4 of them, {so}.\n" in text
    assert "Give such a list of 4 items for each new class." in text
    assert "--question question.txt --k 4" in Path("prompts/READ-ME-FIRST.txt").read_text()


@pytest.mark.parametrize(
    ("words", "files", "message"),
    [
        ("ask --seen seen.txt -o p", {}, "give --new NAMES (or a file), or --rehearse to rank for"),
        (f"{ASK} --rehearse 3", {}, "--rehearse ranks for seen classes alone: leave out --new"),
        (f"{ASK} --k 18", {}, "--k must be a whole number from 1 to 17, not 18"),
        (f"{ASK} --raters 0", {}, "raters must be a whole number from 1 on, not 0"),
        (f"{ASK} --question imges", {}, "no such question (did you mean 'images'?), and no such"),
        (f"{ASK} --question q.txt", {"q.txt": "{target}?"}, "the template lacks {items} and {k}"),
        (f"{ASK} --question q.txt", {"q.txt": b"\xff{target}"}, "q.txt: not UTF-8 text"),
        (f"{ASK} --question similar --inputs maps", {}, "this question has no field {inputs}"),
        (f"{ASK} --max-tokens 300", {}, "with 17 seen classes, and its answer, has about"),
        (
            f"{ASK} --seed 1",
            {
                "seen.txt": "\n".join(f"class {i}" for i in range(10_000)),
                "new.txt": "\n".join(f"new {i}" for i in range(1000)),
            },
            "the limit is 8,000 (max_tokens). Give fewer seen classes",
        ),
        (f"{ASK}", {"prompts": "a file"}, "prompts: is a file, not a folder"),
        ("ask --seen seen.txt --rehearse tigre -o p", {}, "no seen class 'tigre' (did you mean"),
        ("ask --seen seen.txt --rehearse 16 -o p", {}, "16 of 17 seen classes cannot be rehearsed"),
        ("ask --seen seen.txt --rehearse , -o p", {}, "the classes to rehearse is empty"),
    ],
)
def test_what_cannot_be_asked(folder, words, files, message):
    check_refused(folder, words, files, message)


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


def test_files_are_raters_wherever_they_are(folder):
    save_answers(folder, a=LISTS)
    (folder / "b.json").write_text(json.dumps(LISTS), encoding="utf-16")
    run_well(f"{RANK} --source answers:b.json --source wordnet")
    found = rs.read_rankings("out.jsonl", items=SEEN)
    assert sorted(found.source_names) == ["answers", "wordnet-path"]
    assert sorted(set(found.select(source="answers").raters)) == ["a", "b"]


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
        "  'truck': not usable: 1 known name, 5 were asked for\n",
        "  no answer for 'dog'\n",
        "  lists for other names, left out: 'dgo' (did you mean 'dog'?)\n",
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


def test_whoever_asked_about_many_classes_can_ask_again(folder):
    """Where prompts of the usual length are too short."""
    seen = [*SEEN, *(f"one more class with number {i}" for i in range(2000))]
    (folder / "seen.txt").write_text("\n".join(seen))
    done = rankshot(f"{ASK} --k 5")
    assert "about 2" in done.err
    assert "tokens; the limit is 8,000" in done.err
    run_well(f"{ASK} --k 5 --max-tokens 50000 --raters 1")
    save_answers(folder, r={"cat": LISTS["cat"]})
    assert "missing: 2 lists; paste the 1 prompt in again" in run_well(f"{RANK} --follow-up again")


def test_words_of_a_name_are_asked_and_read(folder):
    (folder / "names.csv").write_text("class,look_up\ntruck,delivery van\nlorry,Lastwagen\n")
    run_well(f"{ASK} --names names.csv --k 5")
    items, classes = read_prompt("prompts/rater-1.txt")
    assert "Lastwagen" in items
    assert "delivery van" in classes
    save_answers(
        folder, r="delivery van: Lastwagen, bus, tram, tractor, tank\n" + json.dumps(
            {name: LISTS[name] for name in ("cat", "dog")})
    )  # fmt: skip
    run_well(f"{RANK} --names names.csv")
    assert dict(zip(NEW, rs.read_rankings("out.jsonl").orders(), strict=True)) == LISTS


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("", "r.txt: is empty; copy the answer of the chat window into it"),
        ("\ufeff \n", "r.txt: is empty; copy"),
        (
            json.dumps({"Katze": ["Löwe", "Fuchs", "Hase", "Maus", "Hund"]}),
            (
                "no usable list in it (no answer for 'cat', 'truck', 'dog'; lists for other names, "
                "left out: 'Katze'). It must be the answer to a prompt with these classes, with"
            ),
        ),
        ("I cannot help with that.", "r.txt: no usable list in it"),
        (json.dumps({"ship": LISTS["truck"]}), "no usable list in it"),
        (b"\xff\xfe\x00", "r.txt: not UTF-8 text; save it as plain text"),
        (b"PK\x03\x04\xff", "r.txt: not UTF-8 text; save it as plain text"),
    ],
)
def test_a_file_without_an_answer_is_named_and_nothing_is_written(folder, answer, message):
    save_answers(folder, good=LISTS)
    content = answer.encode() if isinstance(answer, str) else answer
    check_refused(folder, f"{RANK} --follow-up again", {"answers/r.txt": content}, message)


def test_a_prompt_that_was_saved_in_place_of_the_answer(folder):
    run_well(ASK)
    save_answers(folder, r=Path("prompts/rater-1.txt").read_text())
    assert "r.txt: holds a prompt and no answer; copy the answer" in rankshot(RANK).err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--source answers", "source 'answers' needs a file, as in answers:FILE"),
        ("--source answers:none.txt", "none.txt: No such file or directory"),
        ("--source answers:more", "two files of one rater; rename one of them"),
        ("--source answers:void", "void: no answers in this folder"),
        ("--similarity-out sim.csv", "--similarity-out: a language model gives rankings"),
        ("--log answers/log.jsonl", "do not write into the folder of answers"),
        ("--follow-up answers", "answers: is not empty ('good.txt' is in it)"),
        ("--follow-up seen.txt", "seen.txt: is a file, not a folder"),
        ("--parallel 0 --source model:m", "parallel must be a whole number from 1 on, not 0"),
    ],
)
def test_bad_options(folder, words, message):
    save_answers(folder, good=LISTS)
    (folder / "more").mkdir()
    (folder / "void").mkdir()
    (folder / "more" / "good.txt").write_text("x")
    check_refused(folder, f"{RANK} {words}", {}, message)


def test_a_follow_up_is_for_answers(folder):
    done = rankshot("rank --seen seen.txt --new new.txt -o out.jsonl --follow-up again")
    assert "--follow-up is for --source answers:FILE" in done.err


# ------------------------------------------------------------------ rehearsal


def test_all_sources_rehearse_the_same_classes(folder):
    chosen, others = choose_rehearsed(SEEN, 4, seed=5)
    options = "--seen seen.txt --rehearse 4 --seed 5"
    out = run_well(f"ask {options} -o prompts --k 5")
    assert "4 of the 17 seen classes play new ones; the other 13 are ranked for them: " in out
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


@pytest.mark.parametrize("given", ["wolf, bus", "some.txt"])
def test_classes_to_rehearse_may_be_named(folder, given):
    (folder / "some.txt").write_text("# two\nbus\nwolf\n")
    run_well(["rank", "--seen", "seen.txt", "--rehearse", given, "-o", "out.jsonl"])
    found = rs.read_rankings("out.jsonl")
    assert set(found.target_names) == {"wolf", "bus"}
    assert {len(flatten(order)) for order in found.orders()} == {15}
