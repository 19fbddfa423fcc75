"""The definition of a study: reading and writing study.toml."""

from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from rankshot_survey.study import (
    ItemImage,
    QualityRules,
    Question,
    Study,
    Translation,
)
from rankshot_survey.study_files import format_study, read_study
from refusals import refuses

TEXT = '''\
title = "Which animals are similar?"
prompt = "What is most like {target}?"
consent = """
First.

Second."""

[plan]
answers_per_question = 50
questions_per_participant = 2
repeats = 1
return_after_minutes = 12.5

[items]
names = ["leopard", "tiger", "fox", "whale"]
unshown = "after"

[platform]
name = "prolific"
completion_url = "https://app.prolific.com/submissions/complete?cc=C1"

[quality]
seconds = 2
repeat_distance = 0.3
consensus_distance = 0.35
gold_failures = 1

[[questions]]
target = "cat"
items = ["leopard", "tiger", "fox"]

[[questions]]
target = "dolphin"
items = ["whale", "fox"]

[[gold]]
target = "wolf"
items = ["dog", "bus", "rose"]
first = ["dog"]
'''

STUDY = Study(
    title="Which animals are similar?",
    prompt="What is most like {target}?",
    consent="First.\n\nSecond.",
    items=("leopard", "tiger", "fox", "whale"),
    unshown="after",
    questions=(
        Question("cat", ("leopard", "tiger", "fox")),
        Question("dolphin", ("whale", "fox")),
    ),
    gold=(Question("wolf", ("dog", "bus", "rose"), ("dog",)),),
    answers_per_question=50,
    questions_per_participant=2,
    repeats=1,
    return_after_minutes=12.5,
    platform="prolific",
    completion_url="https://app.prolific.com/submissions/complete?cc=C1",
    quality=QualityRules(2, 0.3, 0.35, 1),
)


def read(folder, text):
    """Read a text, or bytes, as study.toml."""
    path = folder / "study.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_study(path)


def test_a_key_is_the_hash_of_the_question_whatever_the_order_of_its_items():
    # printf '["cat", ["fox", "tiger"], []]' | sha256sum
    assert Question("cat", ("tiger", "fox")).key == "632bf74fc5ea250a"
    keys = {
        Question("wolf", items, first).key
        for items in permutations(("dog", "fox", "bus"))
        for first in permutations(("dog", "fox"))
    }
    assert len(keys) == 1
    assert Question("wolf", ("dog", "fox", "bus"), ("dog",)).key not in keys


# ---- Reading


def test_a_file_is_read_as_it_says(tmp_path):
    assert read(tmp_path, TEXT) == STUDY
    assert read(tmp_path, b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode()) == STUDY


# ---- Writing

LINE = st.text(
    st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=200
).filter(lambda text: text == text.strip() and text)
TRICKY = st.sampled_from(['"', '""', '"""', "\\", "'''", "\\u0041", "# x", "{0}", "]", "a\n\tb"])


@st.composite
def studies(draw):
    target, other, *items = draw(st.lists(LINE, min_size=6, max_size=12, unique=True))
    paragraphs = draw(st.lists(LINE | TRICKY, min_size=1, max_size=5))
    return replace(
        STUDY,
        title=draw(LINE),
        prompt=f"{draw(LINE)}{{target}}{draw(LINE)}",
        consent="".join(paragraphs),
        items=items,
        questions=(Question(target, items),),
        gold=(Question(other, items, items[: draw(st.integers(1, 3))]),),
        return_after_minutes=draw(st.floats(0.01, 10_080)),
    )


@given(study=studies())
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_study_is_read_back_as_it_was_written(tmp_path_factory, study):
    path = tmp_path_factory.mktemp("study") / "study.toml"
    path.write_text(format_study(study), encoding="utf-8", newline="\n")
    assert read_study(path) == study


# ---- What else participants see

MORE = """
contact = "Jane Doe, jane@example.org"
instructions = "Take *your* time."

[plan]
answers_per_question = 30

[platform]
name = "prolific"

[access]
allowed = "ids.txt"
starts_per_hour = 5

[language]
of_texts = "en"
offered = ["en", "de"]

[translations.de]
prompt = "Was ist wie {target}?"
names = { fox = "Fuchs" }
alts = { fox = "Ein roter Fuchs" }
contact = "Ada"

[items]
names = ["fox", "wolf", "bus"]
unshown = "after"

[[images]]
name = "fox"
file = "images/fox.JPG"
alt = "A red fox"

[[questions]]
target = "cat"
items = ["fox", "wolf", "bus"]
"""


def write_more(folder, text=MORE):
    (folder / "images").mkdir(exist_ok=True)
    (folder / "images/fox.JPG").write_bytes(b"x")
    (folder / "ids.txt").write_text("p1\np2\n", encoding="utf-8")
    if text.startswith("\ncontact"):
        text = f'title = "T"\nconsent = "C"\n{text}'
    (folder / "study.toml").write_text(text, encoding="utf-8")
    return folder / "study.toml"


def test_all_that_participants_see_is_read_from_the_file(tmp_path):
    study = read_study(write_more(tmp_path))
    assert study.n_spare == 15
    assert study.allowed == {"p1", "p2"}
    assert study.languages == ("en", "de")
    assert study.translations == {
        "de": Translation(
            prompt="Was ist wie {target}?",
            contact="Ada",
            names={"fox": "Fuchs"},
            alts={"fox": "Ein roter Fuchs"},
        )
    }
    assert study.images == (ItemImage("fox", tmp_path / "images/fox.JPG", "A red fox"),)
    german = replace(study.translations["de"], alts={})
    plain = replace(study, allowed=None, images=(), translations={"de": german})
    write_more(tmp_path).write_text(format_study(plain), encoding="utf-8")
    assert read_study(tmp_path / "study.toml") == plain


def test_a_question_about_all_items_needs_neither_target_in_the_prompt_nor_unshown(tmp_path):
    text = 'title = "T"\nconsent = "C"\nprompt = "Which is best?"\n[plan]\n'
    text += "questions_per_participant = 1\n[items]\n"
    text += 'names = ["tea", "beer"]\n[[questions]]\ntarget = "drinks"\nitems = ["beer", "tea"]\n'
    study = read(tmp_path, text)
    assert (study.prompt, study.unshown) == ("Which is best?", None)
    assert read(tmp_path, format_study(study)) == study
    gold = '[[gold]]\ntarget = "food"\nitems = ["rye", "sand"]\nfirst = ["rye"]\n'
    with refuses("prompt", "Which is best?"):
        read(tmp_path, text + gold)


# ---- What is wrong is named, in one table for all checks

WRONG = [
    # unknown keys, keys in the wrong place, and what only version 0.3 has
    ('title = "W', 'titel = "W', "titel", ""),
    ("[items]\n", "[items]\nrepeats = 1\n", "items.repeats", ""),
    ("[plan]", '[conditions]\nlook = "Which {target}?"\n[plan]', "conditions", ""),
    ("repeats = 1", 'rank = "best-worst"', "plan.rank", ""),
    # what is missing
    ('title = "Which animals are similar?"', "", "title", ""),
    ('target = "cat"\n', "", "target", "[[questions]] number 1"),
    ('first = ["dog"]', "", "first", "[[gold]] number 1"),
    ('["whale", "fox"]', '["whale", "fox"]\nfirst = ["fox"]', "first", "[[questions]] number 2"),
    ('["whale", "fox"]', '["whale", "fox"]\nshow = 1', "show", "[[questions]] number 2"),
    ('["whale", "fox"]', '["whale", "fox"]\nshow = 2', "show", "[[questions]] number 2"),
    ('first = ["dog"]', 'first = ["dog"]\nshow = 2', "show", "[[gold]] number 1"),
    # types and limits
    ('title = "Which animals are similar?"', "title = 3", "title", ""),
    ("question = 50", "question = 5.5", "plan.answers_per_question", ""),
    ("= 0.3\n", "= 1.5\n", "quality.repeat_distance", ""),
    ("[plan]", "[[plan]]", "plan", ""),
    # words and texts
    ("{target}", "it", "prompt", ""),
    ('unshown = "after"', "", "items.unshown", ""),
    ("repeats = 1", "repeats = 2", "plan.repeats", ""),
    ("https://app", "http://app", "platform.completion_url", ""),
    # names
    ('"fox", "whale"]', '"fox", "fox"]', "items.names", ""),
    ('["whale", "fox"]', '["whale", "foxes"]', "items", "[[questions]] number 2"),
    ('first = ["dog"]', 'first = ["dg"]', "first", "[[gold]] number 1"),
    ('target = "wolf"', 'target = "bus"', "items", "[[gold]] number 1"),
    (
        'target = "dolphin"\nitems = ["whale", "fox"]',
        'target = "cat"\nitems = ["fox", "tiger", "leopard"]',
        "items",
        "[[questions]] number 2",
    ),
    # what else participants see
    ('"fox"\nfile', '"fux"\nfile', "images", ""),
    ("[[images]]", "[[extra]]\nname = 'age'\n[[images]]", "extra", ""),
    ('unshown = "after"', 'unshown = "after"\nhide_names = true', "items.hide_names", ""),
]


@pytest.mark.parametrize(("old", "new", "key", "table"), WRONG)
def test_what_is_wrong_in_a_file_is_named(tmp_path, old, new, key, table):
    text = TEXT if old in TEXT else MORE
    assert old in text
    path = write_more(tmp_path, text.replace(old, new))
    with refuses(key, where=f"{path}, {table}" if table else str(path)):
        read_study(path)


@pytest.mark.parametrize("text", ["prompt = What?\n", "a = " + "[" * 5000])
def test_what_is_not_toml_is_named(tmp_path, text):
    with refuses("study", where=f"{tmp_path}/study.toml"):
        read(tmp_path, text)


def test_values_are_checked_like_files_and_named_by_their_fields():
    with refuses("target", " cat"):
        Question(" cat", ("fox", "bus"))
    with refuses("target"):
        Question("c\ud800t", ("fox", "bus"))
    with refuses("questions"):
        replace(STUDY, questions=[Question(f"t{i}", ("fox", "whale")) for i in range(10_001)])
    question = Question("cat", ["tiger", "fox"], ["tiger"])
    assert {question: 1}[Question("cat", ("tiger", "fox"), ("tiger",))] == 1
