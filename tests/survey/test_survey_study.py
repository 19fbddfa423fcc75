"""What a survey asks: reading and writing study.toml, and which items are shown."""

import re
import subprocess
import sys
import tomllib
from dataclasses import fields, replace
from itertools import permutations
from random import Random

import numpy as np
import pytest
from hypothesis import given, strategies as st

import rankshot as rs
from rankshot.core.errors import RankshotError
from rankshot.survey.design import new_study, select_nearest_items, split_pool
from rankshot.survey.presentation import Example, ExtraTranslation, Picture, Translation
from rankshot.survey.study import (
    CONSENT_PLACEHOLDER,
    DEFAULT_PROMPT,
    QualityRules,
    Question,
    Study,
)
from rankshot.survey.study_files import read_study
from rankshot.survey.study_text import format_study

TEXT = '''\
title = "Which animals are alike?"
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
    title="Which animals are alike?",
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


@pytest.fixture
def read(tmp_path):
    """Read a text, or bytes, as study.toml."""

    def read(text):
        path = tmp_path / "study.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_study(path)

    return read


# ---------------------------------------------------------------- values


def test_a_key_is_the_hash_of_the_question_whatever_the_order_of_its_items():
    # printf '["cat", ["fox", "tiger"], []]' | sha256sum
    assert Question("cat", ("tiger", "fox")).key == "632bf74fc5ea250a"
    keys = {
        Question("wolf", items, first).key
        for items in permutations(("dog", "fox", "bus"))
        for first in permutations(("dog", "fox"))
    }
    assert len(keys) == 1
    others = {
        Question("wolf", ("dog", "fox", "bus")).key,
        Question("wolf", ("dog", "fox", "bus"), ("dog",)).key,
        Question("bear", ("dog", "fox", "bus"), ("dog", "fox")).key,
        Question("wolf", ("dog", "fox", "cow"), ("dog", "fox")).key,
    }
    assert len(keys | others) == 5


def test_lists_become_tuples_so_that_values_can_be_keys():
    question = Question("cat", ["tiger", "fox"], ["tiger"])
    assert question == Question("cat", ("tiger", "fox"), ("tiger",))
    assert len({question, Question("cat", ("tiger", "fox"), ("tiger",))}) == 1
    again = replace(STUDY, items=list(STUDY.items), questions=list(STUDY.questions))
    assert {again: 1}[STUDY] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("cat", ("fox",)), "items has 1: a question shows from 2 to 50"),
        (("cat", tuple(f"item {i}" for i in range(51))), "items has 51"),
        (("cat", ("fox", "cat")), "items contains the target 'cat' itself"),
        (("cat", ("fox", "cow", "fox")), "items has 'fox' more than once"),
        (("cat", ("fox", "x" * 201)), "a name of items has 201 characters"),
        (("cat", ("fox", "co\tw")), r"'co\\tw' has the control character '\\t'"),
        (("cat", ("fox", "cow ")), "'cow ' begins or ends with a space"),
        (("cat", ("fox", "")), "a name of items is empty"),
        (("cat", ("fox", 3)), 'a name of items must be text in quotes, such as "cat", not 3'),
        (("cat", "fox"), "items must be a list of names, such as \\[\"cat\"\\], not 'fox'"),
        (("c\ud800t", ("fox", "cow")), "has the control character"),
        ((None, ("fox", "cow")), "target must be text in quotes.* not None"),
        (("wolf", ("dog", "bus"), ("dgo",)), "first has 'dgo', .* items .did you mean 'dog'"),
        (("wolf", ("dog", "bus"), ("bus", "dog")), "first has all items"),
    ],
)
def test_a_question_says_what_is_wrong_with_it(arguments, message):
    with pytest.raises(RankshotError, match=message):
        Question(*arguments)


def test_what_is_just_within_the_bounds_is_taken():
    names = tuple(f"{i}".rjust(200, "x") for i in range(50))
    question = Question("y" * 200, names)
    assert question.items == names
    longest = replace(
        STUDY,
        title="t" * 200,
        prompt="{target}".rjust(500, "p"),
        consent="c" * 20_000,
        items=names,
        questions=[Question(f"target {i}", names[:2]) for i in range(10_000)],
    )
    assert len(longest.questions) == 10_000
    for change, message in (
        ({"title": "t" * 201}, r"title has 201 characters .*at most 200"),
        ({"prompt": "{target}".rjust(501, "p")}, "prompt has 501 characters .*at most 500"),
        ({"consent": "c" * 20_001}, "consent has 20,001 characters .*at most 20,000"),
        (
            {"questions": (*longest.questions, Question("one more", names[:2]))},
            r"10,001 \[\[questions\]\] are too many: at most 10,000",
        ),
        ({"questions": ()}, "there is no question"),
    ):
        with pytest.raises(RankshotError, match=message):
            replace(longest, **change)


def test_questions_and_gold_questions_are_not_mixed_up():
    with pytest.raises(RankshotError, match=r"\[\[questions\]\] number 1 .*'wolf'.*\[\[gold\]\]"):
        replace(STUDY, questions=STUDY.gold, gold=())
    with pytest.raises(RankshotError, match=r"\[\[gold\]\] number 1 .*'cat'"):
        replace(STUDY, gold=STUDY.questions[:1], questions=STUDY.questions[1:])


# ---------------------------------------------------------------- reading


def test_a_file_is_read_as_it_says(read):
    assert read(TEXT) == STUDY


def test_line_ends_of_windows_and_a_byte_order_mark_make_no_difference(read):
    assert read(b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode()) == STUDY


def test_what_a_file_does_not_say_has_the_documented_default(read):
    study = read(
        'title = "T"\nconsent = "C"\n[items]\nnames = ["fox", "cow"]\nunshown = "after"\n'
        '[[questions]]\ntarget = "cat"\nitems = ["cow", "fox"]\n'
    )
    assert study.prompt == DEFAULT_PROMPT == "Which of these are most like “{target}”?"
    assert (study.answers_per_question, study.questions_per_participant) == (20, 10)
    assert (study.repeats, study.return_after_minutes) == (1, 30)
    assert (study.platform, study.completion_url, study.gold) == ("none", None, ())
    assert study.quality == QualityRules(3.0, 0.5, 0.4, 0)


def test_a_missing_file_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_study(tmp_path / "study.toml")


WRONG = [
    # unknown keys, and keys in the wrong place
    ('title = "W', 'titel = "W', "unknown key 'titel' .did you mean 'title'"),
    ("repeats = 1", "repeat = 1", r"\[plan\]: unknown key 'repeat' .did you mean 'repeats'"),
    ("repeats = 1", 'prompt = "p"', r"'prompt' .it belongs at the top of the file"),
    ("repeats = 1", "seconds = 1", r"\[plan\]: .*'seconds' .it belongs under \[quality\]"),
    ("seconds = 2", "repeats = 1", r"\[quality\]: .*'repeats' .it belongs under \[plan\]"),
    (
        '["whale", "fox"]',
        '["whale", "fox"]\nfirst = ["fox"]',
        r"\[\[questions\]\] number 2 .target 'dolphin'.: .*'first' .it belongs under \[\[gold\]\]",
    ),
    ('target = "cat"', 'Target = "cat"', r"\[\[questions\]\] number 1: unknown key 'Target'"),
    # what is missing
    ('title = "Which animals are alike?"', "", "title is missing"),
    ('unshown = "after"', "", r"unshown of \[items\] is missing.*'after'.*'unknown'"),
    ('names = ["leopard", "tiger", "fox", "whale"]', "", r"names of \[items\] is missing"),
    ('["leopard", "tiger", "fox", "whale"]', "[]", r"names of \[items\] is missing"),
    ('target = "cat"', "", r"\[\[questions\]\] number 1: target is missing"),
    ('items = ["whale", "fox"]', "", r"number 2 .target 'dolphin'.: items is missing"),
    ('first = ["dog"]', "", r"\[\[gold\]\] number 1 .target 'wolf'.: first is missing"),
    ('first = ["dog"]', "first = []", r"\[\[gold\]\] number 1 .target 'wolf'.: first is empty"),
    # wrong types
    ('title = "Which animals are alike?"', "title = 3", "title must be text in quotes.*not 3"),
    (
        "answers_per_question = 50",
        "answers_per_question = 5.5",
        r"\[plan\] answers.* must be a whole.* not 5.5",
    ),
    ("answers_per_question = 50", "answers_per_question = true", r"\[plan\] answers.*, not True"),
    ("answers_per_question = 50", "answers_per_question = 0", r"\[plan\] answers.* from 1 .*not 0"),
    (
        "questions_per_participant = 2",
        "questions_per_participant = -1",
        r"\[plan\] quest.*, not -1",
    ),
    ("repeats = 1", "repeats = -1", r"\[plan\] repeats must .*, not -1"),
    (
        "repeats = 1",
        "repeats = 3",
        r"repeats is 3, more than half of the 2 questions_per_participant",
    ),
    ("= 12.5", "= nan", r"\[plan\] return_after_minutes must .*, not nan"),
    ("= 12.5", "= inf", r"\[plan\] return_after_minutes must .*, not inf"),
    ("= 12.5", "= 0", r"\[plan\] return_after_minutes must .*, not 0"),
    ("= 12.5", '= "soon"', r"\[plan\] return_after_minutes must .*, not 'soon'"),
    ("= 12.5", '= "30"', r"\[plan\] return_after_minutes must be a number, not '30'"),
    ("seconds = 2", "seconds = -1", r"\[quality\] seconds must .*, not -1"),
    ("= 0.3\n", "= 1.5\n", r"\[quality\] repeat_distance must be 0 or more and at most 1, not 1.5"),
    ("= 0.35", "= true", r"\[quality\] consensus_distance must .*, not True"),
    ("gold_failures = 1", "gold_failures = 0.5", r"\[quality\] gold_failures must .*, not 0.5"),
    ("[plan]", "[[plan]]", r"plan is \[.*must be a table, \[plan\]"),
    ("[[gold]]", "[gold]", r"gold is \{.*write \[\[gold\]\] above each"),
    # words
    ('"after"', '"aftr"', r"\[items\] unshown must .*'unknown', not 'aftr' .did you mean 'after'"),
    (
        '"prolific"',
        '"Prolific"',
        r"\[platform\] name must .*, not 'Prolific' .did you mean 'prolific'",
    ),
    ('"prolific"', "2", r"\[platform\] name must be one of 'none', 'prolific', 'mturk', not 2"),
    ('"prolific"', '"mturk"', r"completion_url is .*remove it"),
    # texts
    ("{target}", "it", r"prompt 'What is most like it\?' does not contain \{target\}"),
    ("First.", r"F\u0007irst.", r"consent .* has the control character '\\x07'"),
    ("https://app", "http://app", r"completion_url is 'http://app.*begins with https://"),
    ('"https://app', '"//app', r"completion_url is '//app"),
    ("https://app.prolific.com", "https://", r"completion_url is 'https:///submissions"),
    ("https://app", "https://user@app", r"completion_url is 'https://user@app"),
    ("https://app", "https://[app", r"completion_url is 'https://\[app"),
    ("cc=C1", "cc=C 1", r"completion_url is 'https"),
    # names
    ('"fox", "whale"]', '"fox", "fox"]', r"\[items\] names has 'fox' more than once"),
    ('"fox", "whale"]', '"fox", 7]', r"a name of \[items\] names must be text.* not 7"),
    (
        'items = ["whale", "fox"]',
        'items = ["whale", "foxes"]',
        r"number 2 .target 'dolphin'.: items has 'foxes', .*\[items\] names .did you mean 'fox'",
    ),
    (
        'items = ["whale", "fox"]',
        'items = ["whale"]',
        r"\[\[questions\]\] number 2 .target 'dolphin'.: items has 1",
    ),
    ('first = ["dog"]', 'first = ["dg"]', r"\[\[gold\]\] number 1 .*first has 'dg'.*mean 'dog'"),
    ('target = "wolf"', 'target = "bus"', r"\[\[gold\]\] number 1 .*the target 'bus' itself"),
    # the same question twice
    (
        'target = "dolphin"\nitems = ["whale", "fox"]',
        'target = "cat"\nitems = ["fox", "tiger", "leopard"]',
        r"\[\[questions\]\] number 2 .* same items as \[\[questions\]\] number 1 .*remove one",
    ),
    (
        'target = "wolf"\nitems = ["dog", "bus", "rose"]\nfirst = ["dog"]',
        'target = "cat"\nitems = ["fox", "tiger", "leopard"]\nfirst = ["tiger"]',
        r"\[\[gold\]\] number 1 .* same items as \[\[questions\]\] number 1",
    ),
    # several sets of one target
    (
        'target = "dolphin"',
        'target = "cat"',
        r"\[\[questions\]\] number 2 .* shows other items than .*number 1 .*\"unknown\"",
    ),
]


@pytest.mark.parametrize(("old", "new", "message"), WRONG)
def test_what_is_wrong_in_a_file_is_named(read, old, new, message):
    assert TEXT.count(old) == 1
    with pytest.raises(RankshotError, match=rf"study\.toml: .*{message}"):
        read(TEXT.replace(old, new))


def test_a_target_may_have_several_sets_where_nothing_is_said_of_the_unshown(read):
    text = TEXT.replace('"dolphin"', '"cat"').replace('"after"', '"unknown"')
    assert [question.target for question in read(text).questions] == ["cat", "cat"]


def test_a_file_without_questions_says_how_to_write_one(read):
    begin, end = TEXT.index("[[questions]]"), TEXT.index("[[gold]]")
    with pytest.raises(RankshotError, match=r"study\.toml: there is no \[\[questions\]\]: write"):
        read(TEXT[:begin] + TEXT[end:])


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('title = "T"\nprompt = What?\n', 2),
        ('title = "T"\n\ntitle = "U"\n', 3),
        ('title = "T"\nconsent = """\nnever\nended\n', 4),
        ("title = '", 1),
        (b'title = "T"\nprompt = "\xff"\n', 2),
        ("a = " + "[" * 5000, None),
        ("a = " + "9" * 5000, None),
    ],
)
def test_what_is_not_toml_is_named_by_its_line(read, text, line):
    place = rf"study\.toml:{line}: not " if line else r"study\.toml: not TOML"
    with pytest.raises(RankshotError, match=place):
        read(text)


# ---------------------------------------------------------------- writing


LINE = st.text(
    st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=200
).filter(lambda text: text == text.strip() and text)
TRICKY = st.sampled_from(['"', '""', '"""', "\\", "'''", "\\u0041", "# x", "{target}", "{0}", "]"])
NAME = LINE | TRICKY | st.lists(TRICKY, min_size=2, max_size=4).map("".join)
PARAGRAPHS = st.lists(
    st.text(st.characters(exclude_categories=["Cc", "Cs"], include_characters="\n\t"))
    | TRICKY
    | st.sampled_from(["\n", "\n\n", "\t", " "])
).map("".join)


@st.composite
def studies(draw):
    names = draw(st.lists(NAME, min_size=6, max_size=12, unique=True))
    n_targets = draw(st.integers(2, 3))
    targets, items = names[:n_targets], names[n_targets:]
    some = st.lists(st.sampled_from(items), min_size=2, unique=True)
    n_gold = draw(st.integers(0, n_targets - 1))
    questions = [Question(target, draw(some)) for target in targets[n_gold:]]
    gold = []
    for target in targets[:n_gold]:
        shown = draw(some)
        gold.append(Question(target, shown, shown[: draw(st.integers(1, len(shown) - 1))]))
    per_participant = draw(st.integers(1, 1000))
    before, after = draw(st.tuples(LINE | TRICKY, LINE | TRICKY))
    share = st.floats(0, 1)
    platform = draw(st.sampled_from(["none", "prolific", "mturk"]))
    url = st.none() | st.just("https://example.org/?a=b&c=%22#d")
    return Study(
        title=draw(NAME),
        prompt=f"{before}{{target}}{after}",
        consent=draw(PARAGRAPHS.filter(lambda text: text.strip())),
        items=items,
        unshown=draw(st.sampled_from(["after", "unknown"])),
        questions=questions,
        gold=gold,
        answers_per_question=draw(st.integers(1, 1_000_000)),
        questions_per_participant=per_participant,
        repeats=draw(st.integers(0, per_participant // 2)),
        return_after_minutes=draw(st.floats(0.01, 10_080) | st.integers(1, 10_080)),
        platform=platform,
        completion_url=None if platform == "mturk" else draw(url),
        quality=QualityRules(
            draw(st.floats(0, 3600)), draw(share), draw(share), draw(st.integers(0, 9))
        ),
    )


@given(study=studies())
def test_any_study_is_read_back_as_it_was_written(tmp_path_factory, study):
    path = tmp_path_factory.mktemp("study") / "study.toml"
    path.write_text(format_study(study), encoding="utf-8", newline="\n")
    assert read_study(path) == study


@pytest.mark.parametrize("end", ['"', '""', "\\", '\\"', "\n", "\n\n", ' "quoted"', '"""\\"""'])
def test_a_consent_ends_as_it_ends(end):
    study = replace(STUDY, consent=f'{end}"Yes"{end}')
    assert tomllib.loads(format_study(study))["consent"] == study.consent


def test_every_key_of_a_written_study_is_explained_and_lines_are_short():
    many = tuple(f"animal number {i}" for i in range(50))
    study = replace(STUDY, items=many, questions=(Question("cat", many[:20]),), gold=())
    study = replace(study, completion_url=None, platform="none", spare_answers=7)
    lines = format_study(study).splitlines()
    assert max(map(len, lines)) <= 100
    explained = lines[: lines.index("[[questions]]")]
    keys = [i for i, line in enumerate(explained) if re.match(r"\w+ = ", line)]
    names = {line.split(" = ")[0] for i, line in enumerate(explained) if i in keys}
    rules = {rule.name for rule in fields(QualityRules)}
    plan = {"answers_per_question", "questions_per_participant", "repeats", "return_after_minutes"}
    plan |= {"spare_answers", "starts_per_hour", "invitations", "of_texts", "offered"}
    assert names == {"title", "prompt", "consent", "names", "unshown", "name"} | plan | rules
    assert all(explained[i - 1].startswith("# ") for i in keys)


@pytest.mark.parametrize(("answers", "spare"), [(1, 2), (4, 2), (5, 3), (50, 25)])
def test_a_new_study_gets_places_for_replacements_with_its_platform(tmp_path, answers, spare):
    study = new_study(["cat"], ["fox", "bus"], answers_per_question=answers)
    text = format_study(study)
    assert "\n# spare_answers = 0\n" in text
    path = tmp_path / "study.toml"
    path.write_text(text.replace('name = "none"', 'name = "prolific"'), encoding="utf-8")
    assert read_study(path).spare_answers == spare
    assert "\nspare_answers = 1\n" in format_study(replace(study, spare_answers=1))


# ---------------------------------------------------------------- what else participants see

MORE = """
contact = "Jane Doe, jane@example.org"
instructions = "Take *your* time."

[plan]
answers_per_question = 30

[platform]
name = "prolific"
full_url = "https://app.prolific.com/submissions/complete?cc=FULL"

[access]
allowed = "ids.txt"
starts_per_hour = 5

[language]
of_texts = "en"
offered = ["en", "de"]
catalogues = ["fr.toml"]

[translations.de]
prompt = "Was ist wie {target}?"
names = { fox = "Fuchs" }
alts = { fox = "Ein roter Fuchs" }
contact = "Ada"

[translations.de.extra.tongue]
text = "Welche Sprache?"
choices = ["Deutsch", "andere"]

[example]
target = "violin"
items = ["cello", "drum"]
order = ["cello"]

[items]
names = ["fox", "wolf", "bus"]
unshown = "after"

[[pictures]]
name = "fox"
file = "pictures/fox.JPG"
alt = "A red fox"

[[extra]]
name = "age"
text = "How old are you?"
type = "number"
least = 18

[[extra]]
name = "tongue"
text = "Which language do you speak at home?"
type = "choice"
choices = ["German", "other"]
required = true

[[questions]]
target = "cat"
items = ["fox", "wolf", "bus"]
"""


def write_more(folder, text=MORE):
    (folder / "pictures").mkdir(exist_ok=True)
    (folder / "pictures/fox.JPG").write_bytes(b"x")
    (folder / "ids.txt").write_text("p1\np2\n", encoding="utf-8")
    (folder / "fr.toml").write_text("", encoding="utf-8")
    (folder / "study.toml").write_text('title = "T"\nconsent = "C"\n' + text, encoding="utf-8")
    return folder / "study.toml"


def test_all_that_participants_see_is_read_from_the_file(tmp_path):
    study = read_study(write_more(tmp_path))
    assert study.spare_answers == 15
    assert study.allowed == {"p1", "p2"}
    assert (study.languages, study.catalogues) == (("en", "de"), (tmp_path / "fr.toml",))
    assert study.translations == {
        "de": Translation(
            prompt="Was ist wie {target}?",
            contact="Ada",
            names={"fox": "Fuchs"},
            alts={"fox": "Ein roter Fuchs"},
            extra={"tongue": ExtraTranslation("Welche Sprache?", ("Deutsch", "andere"))},
        )
    }
    assert study.example == Example("violin", ("cello", "drum"), ("cello",))
    assert study.pictures == {"fox": Picture(tmp_path / "pictures/fox.JPG", "A red fox")}
    assert [question.is_whole for question in study.extra] == [True, False]
    assert (study.extra[1].choices, study.extra[1].required) == (("German", "other"), True)
    german = replace(study.translations["de"], alts={})
    plain = replace(study, allowed=None, catalogues=(), pictures={}, translations={"de": german})
    write_more(tmp_path).write_text(format_study(plain), encoding="utf-8")
    assert read_study(tmp_path / "study.toml") == plain


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("ids.txt", "nobody.txt", "[access] allowed is 'nobody.txt': there is no such file"),
        ('alt = "A red fox"', "", "[[pictures]] number 1 (name 'fox'): alt is missing"),
        ('alt = "A red fox"', 'alt = ""', "[[pictures]] number 1 (name 'fox'): alt is empty"),
        (
            '"fox"\nfile',
            '"fux"\nfile',
            "no item and no target (did you mean 'fox'?)",
        ),
        ("fox.JPG", "fox.svg", "there is no such file"),
        ('{ fox = "F', '{ fax = "F', "[translations.de] names has 'fax'"),
        ("wie {target}", "wie das", "[translations.de]: prompt"),
        (
            '{ fox = "Ein',
            '{ wolf = "Ein',
            "[translations.de] alts has 'wolf', which is the name of no",
        ),
        ("de.extra.tongue", "de.extra.tounge", "no extra question (did you mean 'tongue'?)"),
        ('["Deutsch", "andere"]', '["Deutsch"]', "has 1 choices, but the study has 2"),
        ('text = "Welche Sprache?"', "", "[translations.de.extra.tongue]: text is missing"),
        (
            'text = "Welche',
            'least = 3\ntext = "Welche',
            "[translations.de.extra.tongue]: unknown key",
        ),
        ("de.extra.tongue", "de.extra", "[translations.de]: extra is"),
        ('contact = "Ada"', "contact = 3", "[translations.de]: contact"),
        ('"number"', '"date"', "[[extra]] number 1 (name 'age'): type"),
        ("least = 18", "least = 18\nmost = 9", "least is 18, more than most, which is 9"),
        ('["German", "other"]', '["German"]', "choices has 1: give from 2 to 50"),
        ('"tongue"', '"age"', "[[extra]] name has 'age' more than once"),
        ("required = true", 'required = "yes"', "required must be true or false, not 'yes'"),
        ('order = ["cello"]', 'order = ["oboe"]', "[example]: order has 'oboe'"),
        ('order = ["cello"]', "", "[example]: order is missing"),
        ('["en", "de"]', '["English"]', "[language] offered has 'English'"),
        ("starts_per_hour = 5", "starts_per_hour = 0", "[access] starts_per_hour"),
        ("starts_per_hour = 5", "invitations = true", "participants come from prolific"),
        ("https://app.prolific.com/submissions/complete?cc=FULL", "http://x", "full_url is"),
    ],
)
def test_what_is_wrong_in_these_tables_is_named(tmp_path, old, new, message):
    assert old in MORE
    path = write_more(tmp_path, MORE.replace(old, new))
    with pytest.raises(RankshotError, match=re.escape(message)):
        read_study(path)


# ---------------------------------------------------------------- preselection


def mean_places(orders, items):
    """The mean place of every item over all strict orders that each top-K list with ties allows."""
    totals = dict.fromkeys(items, 0.0)
    for order in orders:
        groups = [group if isinstance(group, list) else [group] for group in order]
        listed = [name for group in groups for name in group]
        groups.append([name for name in items if name not in listed])
        before = 0
        for group in groups:
            strict = list(permutations(group))
            for name in group:
                totals[name] += before + sum(s.index(name) for s in strict) / len(strict)
            before += len(group)
    return totals


def random_order(rng, items):
    """The first few of the items, sometimes tied."""
    order = []
    for name in rng.permutation(items)[: rng.integers(1, len(items) + 1)].tolist():
        if order and rng.random() < 0.3:
            order[-1] = [*(order[-1] if isinstance(order[-1], list) else [order[-1]]), name]
        else:
            order.append(name)
    return order


def test_nearest_are_those_of_the_smallest_mean_place_then_by_name(rng):
    items, targets = list("fbdaec"), ["two", "one"]
    for _ in range(60):
        orders = {target: [random_order(rng, items) for _ in range(3)] for target in targets}
        rankings = rs.Rankings.from_orders(
            [*orders["two"], *orders["one"]],
            items=items,
            targets=np.repeat(targets, 3).tolist(),
        )
        expected = []
        for target in targets:
            places = mean_places(orders[target], items)
            expected.append(tuple(sorted(items, key=lambda i: (round(places[i], 9), i))[:4]))
        assert select_nearest_items(rankings, targets, items, 4) == expected
        shuffled = rng.permutation(items).tolist()
        assert select_nearest_items(rankings, targets, shuffled, 4) == expected


def test_weights_count_and_a_ranking_of_weight_nothing_does_not():
    rankings = rs.Rankings.from_orders(
        [list("abc"), list("cba"), list("bca")],
        items=list("abc"),
        targets=["x", "x", "y"],
        weights=[1, 3, 0],
    )
    assert select_nearest_items(rankings, ["x"], list("abc"), 1) == [("c",)]
    with pytest.raises(RankshotError, match="no ranking for the target 'y'"):
        select_nearest_items(rankings, ["y"], list("abc"), 1)


def test_an_item_that_nobody_compares_is_the_last_to_be_shown():
    rankings = rs.Rankings.from_orders(
        [list("bdc"), list("bcd")], items=list("abcd"), targets="x", kind="subset"
    )
    assert select_nearest_items(rankings, ["x"], list("abcd"), 4) == [("b", "c", "d", "a")]


def test_a_target_is_not_among_its_own_items():
    rankings = rs.Rankings.from_orders([list("abcd")], items=list("abcd"), targets="a")
    assert select_nearest_items(rankings, ["a"], list("abcd"), 2) == [("b", "c")]
    with pytest.raises(RankshotError, match=r"target 'a' needs 4 items, and only 3 are"):
        select_nearest_items(rankings, ["a"], list("abcd"), 4)


def test_a_target_without_rankings_and_other_items_are_named():
    rankings = rs.Rankings.from_orders([list("abc")], items=list("abc"), targets="dolphin")
    with pytest.raises(RankshotError, match=r"target 'dolfin' .did you mean 'dolphin'"):
        select_nearest_items(rankings, ["dolfin"], list("abc"), 2)
    with pytest.raises(RankshotError, match="not over 'd'"):
        select_nearest_items(rankings, ["dolphin"], list("abcd"), 2)
    with pytest.raises(RankshotError, match="n must be a whole number from 1 on, not 0"):
        select_nearest_items(rankings, ["dolphin"], list("abc"), 0)
    with pytest.raises(RankshotError, match="expected Rankings"):
        select_nearest_items([list("abc")], ["dolphin"], list("abc"), 2)


def are_connected(sets):
    """Whether one can get from any set to any other over shared items."""
    reached, rest = set(sets[0]), list(sets[1:])
    while near := [s for s in rest if reached & set(s)]:
        reached |= set().union(*near)
        rest = [s for s in rest if s not in near]
    return not rest


@given(size=st.integers(2, 60), show=st.integers(2, 20), seed=st.integers(0, 99))
def test_sets_cover_the_pool_twice_and_hang_together(size, show, seed):
    show = min(show, size)
    pool = [f"item {i}" for i in range(size)]
    sets = split_pool(pool, show, Random(seed))
    assert all(len(set(s)) == show and set(s) <= set(pool) for s in sets)
    if size == show:
        assert sets == [tuple(pool)]
        return
    times = [sum(name in s for s in sets) for name in pool]
    # No more sets than twice the pool needs; no item is asked for much more often than another.
    assert min(times) >= 2
    assert sum(times) - 2 * size < show
    assert max(times) <= 3
    assert len({frozenset(s) for s in sets}) == len(sets)
    assert are_connected(sets)
    # And still, if any one of the sets gets no answers.
    assert all(are_connected(sets[:i] + sets[i + 1 :]) for i in range(len(sets)))


def test_sets_depend_on_the_seed_and_not_on_the_order_of_the_pool():
    pool = [f"item {i}" for i in range(30)]
    sets = split_pool(pool, 10, Random(1))
    assert sets == split_pool(pool, 10, Random(1))
    assert sets != split_pool(pool, 10, Random(2))
    backwards = split_pool(pool[::-1], 10, Random(1))
    assert [s[::-1] for s in backwards] == sets
    assert all(list(s) == sorted(s, key=pool.index) for s in sets)


@pytest.mark.parametrize(
    ("show", "message"),
    [(4, "a pool of 3 items cannot fill sets of 4"), (1, "show must .*, not 1")],
)
def test_sets_that_cannot_be_made_are_refused(show, message):
    with pytest.raises(RankshotError, match=message):
        split_pool(["a", "b", "c"], show, Random(1))


# ---------------------------------------------------------------- new studies

ANIMALS = ["leopard", "seal", "mole", "otter", "wolf", "whale", "fox", "lion", "horse", "cow"]


def test_a_new_study_shows_the_nearest_by_wordnet(tmp_path):
    study = new_study(["tiger", "dolphin"], ANIMALS, show=4)
    table = rs.WordNet().similarity(["tiger", "dolphin"], ANIMALS)
    for question in study.questions:
        nearest = sorted(ANIMALS, key=lambda name: (-table[question.target, name], name))
        assert question.items == tuple(nearest[:4])
    assert [question.target for question in study.questions] == ["tiger", "dolphin"]
    assert study.items == tuple(ANIMALS)
    assert (study.unshown, study.gold, study.platform) == ("after", (), "none")
    assert (study.answers_per_question, study.questions_per_participant) == (50, 2)
    path = tmp_path / "study.toml"
    path.write_text(format_study(study), encoding="utf-8")
    assert read_study(path) == study


def test_wordnet_may_be_told_its_measure_and_senses():
    pinned = rs.WordNet("wup", senses={"seal": "seal.n.01"})
    table = pinned.similarity(["tiger"], ANIMALS)
    nearest = sorted(ANIMALS, key=lambda name: (-table["tiger", name], name))
    assert nearest[-1] == "seal"
    study = new_study(["tiger"], ANIMALS, show=9, rankings=pinned)
    assert study.questions[0].items == tuple(nearest[:9])


def test_a_new_study_shows_the_nearest_by_rankings():
    rankings = rs.Rankings.from_orders(
        [["b", "a"], ["b", "c"], ["d", "c"]], items=list("abcd"), targets=["x", "x", "y"]
    )
    study = new_study(["y", "x"], list("abcd"), show=2, rankings=rankings)
    # For x, a and c have the same average place.
    expected = (Question("y", ("d", "c")), Question("x", ("b", "a")))
    assert study.questions == expected


def test_a_larger_pool_is_split_and_says_nothing_of_the_unshown():
    study = new_study(["tiger", "dolphin"], ANIMALS, show=4, pool=7)
    assert study.unshown == "unknown"
    nearest = {
        q.target: set(q.items) for q in new_study(["tiger", "dolphin"], ANIMALS, show=7).questions
    }
    for target in ("tiger", "dolphin"):
        sets = [question.items for question in study.questions if question.target == target]
        assert len(sets) == 4
        assert set().union(*sets) == nearest[target]
        assert are_connected(sets)
    other = new_study(["dolphin", "tiger"], ANIMALS[::-1], show=4, pool=7)
    assert {q.key for q in other.questions} == {q.key for q in study.questions}
    reseeded = new_study(["tiger", "dolphin"], ANIMALS, show=4, pool=7, seed=1)
    assert {q.key for q in reseeded.questions} != {q.key for q in study.questions}


def test_names_that_wordnet_does_not_know_are_fine_where_nothing_is_to_be_selected():
    study = new_study(["qzx"], ["abcx", "bcdx", "cdex"])
    assert study.questions == (Question("qzx", ("abcx", "bcdx", "cdex")),)
    assert len(new_study(["qzx"], ["abcx", "bcdx", "cdex"], show=2, pool=3).questions) == 3
    with pytest.raises(
        RankshotError, match=r"no noun 'qzx'.*no noun 'abcx'.*Pin.*, or give rankings"
    ):
        new_study(["qzx"], ["abcx", "bcdx", "cdex"], show=2)


def test_an_item_that_wordnet_does_not_know_is_not_silently_left_out():
    items = ["tiger", "dolphn", "wolf", "bus"]
    with pytest.raises(RankshotError, match=r"no noun 'dolphn' \(did you mean 'dolphin'\?\)\. Pin"):
        new_study(["cat"], items, show=2)
    by_pin = rs.WordNet(senses={"dolphn": "dolphin.n.02"})
    assert new_study(["cat"], items, show=3, rankings=by_pin).questions[0].items[2] == "dolphn"


def test_a_seen_class_may_be_a_target_and_is_not_shown_with_itself():
    study = new_study(["fox", "tiger"], ANIMALS)
    by_target = {question.target: question.items for question in study.questions}
    assert sorted(by_target["fox"]) == sorted(set(ANIMALS) - {"fox"})
    assert len(by_target["tiger"]) == 9


def test_sizes_by_default_are_those_of_the_paper_or_what_there_is():
    items = [f"item {i}" for i in range(12)]
    rankings = rs.Rankings.from_orders([items] * 11, items=items, targets=list("abcdefghijk"))
    study = new_study(list("abcdefghijk"), items, rankings=rankings)
    assert {len(question.items) for question in study.questions} == {10}
    assert (study.questions_per_participant, study.repeats) == (10, 1)
    study = new_study(["a"], items, pool=6, rankings=rankings, questions_per_participant=1)
    assert [len(question.items) for question in study.questions] == [6]
    assert (study.questions_per_participant, study.repeats) == (1, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"show": 11}, "show must be a whole number from 2 to 10, not 11"),
        ({"show": 1}, "show must .*, not 1"),
        ({"show": 2.5}, "show must .*, not 2.5"),
        ({"pool": 11}, "pool must be a whole number from 2 to 10, not 11"),
        ({"show": 5, "pool": 4}, "a pool of 4 is smaller than the 5 items shown"),
        ({"items": ["fox"]}, "a target needs at least 2 items, and there is 1"),
        ({"items": ["fox", "fox"]}, "items names 'fox' more than once"),
        ({"targets": []}, "targets is empty"),
        ({"answers_per_question": 0}, "answers_per_question must .*, not 0"),
        ({"rankings": "wordnet"}, "expected Rankings, not 'wordnet'"),
    ],
)
def test_a_study_that_cannot_be_made_is_refused(change, message):
    arguments = {"targets": ["tiger"], "items": ANIMALS, **change}
    with pytest.raises(RankshotError, match=message):
        new_study(arguments.pop("targets"), arguments.pop("items"), **arguments)


def test_the_consent_of_a_new_study_has_to_be_filled_in():
    consent = new_study(["tiger"], ANIMALS).consent
    assert CONSENT_PLACEHOLDER in consent
    assert CONSENT_PLACEHOLDER[0] + CONSENT_PLACEHOLDER[-1] == "[]"
    assert all(word in consent for word in ("voluntary", "stop", "store", "hash", "how long"))
    assert "do not store the id" not in consent, "those of a platform are stored"
    assert all(word in consent for word in ("withdraw", "store the ids", "until everybody is paid"))


def test_planning_a_study_needs_no_extra():
    code = (
        "import sys, rankshot.survey.design as n, rankshot.survey.study_text as t; "
        "t.format_study(n.new_study(['x'], ['a', 'b'])); "
        "print({'fastapi', 'sqlalchemy', 'jinja2', 'uvicorn'} & set(sys.modules))"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    assert output.decode().strip() == "set()"
