"""Answers as chat windows write them: each case is a form that models really use."""

import json
import re

import pytest

from rankshot.sources import choose_rehearsed, make_prompts, read_answer_files, read_answers
from rankshot.sources.prompts import make_question
from refusals import refuses

ITEMS = [
    "leopard", "tiger", "fox", "sea_lion", "wolf", "rabbit", "mouse", "pickup_truck", "bus",
    "streetcar", "tractor", "tank", "lawn_mower", "mushroom",
]  # fmt: skip
TARGETS = ["cat", "truck", "persian+cat"]
CAT = ["leopard", "tiger", "fox", "sea_lion", "rabbit"]
TRUCK = ["pickup_truck", "bus", "streetcar", "tractor", "tank"]
PERSIAN = ["rabbit", "fox", "leopard", "mouse", "tiger"]
ORDERS = {"cat": CAT, "truck": TRUCK, "persian+cat": PERSIAN}
REMARKS = ["– spotted coat, same pose", "– striped", "(pointed ears)", ": sleek", ", a soft pet"]

GOOD = {
    "json lines": "\n".join(json.dumps({name: order}) for name, order in ORDERS.items()),
    "json with a trailing comma": json.dumps(ORDERS).replace("]}", ",],}"),
    "markdown": "Sure! I thought about **outline** and *texture*. Here are the lists:\n\n"
    + "\n\n".join(
        f"### {i}. {name.replace('+', ' ').title()}\n\n"
        + "\n".join(
            f"{j}. **{item.replace('_', ' ').capitalize()}** {remark}"
            for j, (item, remark) in enumerate(zip(order, REMARKS, strict=True), 1)
        )
        for i, (name, order) in enumerate(ORDERS.items(), 1)
    )
    + "\n\nLet me know if you want me to explain these choices!",
    "plain lines": "For cat:\n" + "\n".join(CAT) + "\n\nNew class: truck\n" + "\n".join(TRUCK)
    + "\n\nClass 3: persian cat\n" + "\n".join(PERSIAN),
    "numbered classes with bullets below": "\n".join(
        f"{i}. {name}\n" + "\n".join(f"   - {item}" for item in order)
        for i, (name, order) in enumerate(ORDERS.items(), 1)
    ),
    "one line per class, in the plural": """\
cat: leopards, tigers, foxes, sea lions, rabbits
truck: pickup trucks, buses, streetcars, tractors, tanks
persian cat: rabbits, foxes, leopards, mice, tigers""",
    "reasons below each name": "\n".join(
        f"## {name}\n"
        + "\n".join(f"{i}. **{x}**:\n   - its outline\n   - colour" for i, x in enumerate(order, 1))
        for name, order in ORDERS.items()
    ),
    "json and reasons after it": json.dumps(ORDERS)
    + "\n\n**Why?**\n- cat: tiger, leopard and so on share its outline.\n"
    "- truck: the bus is as large.\n- A persian cat is fluffy.",
    "a heading and a json list for each class": "\n\n".join(
        f"**{name}**\n```json\n{json.dumps(order)}\n```" for name, order in ORDERS.items()
    ),
    "windows line ends and typographic quotes": "\r\n".join(
        f"“{name}”: [{', '.join(f'“{item}”' for item in order)}]" for name, order in ORDERS.items()
    ),
    "the prompt before the answer": make_question("images").ask_many(TARGETS, ITEMS, 5)
    + "\n\nAssistant:\n" + json.dumps(ORDERS),
    "thinking aloud in brackets": "[thinking] a cat is like [some] leopard {hm}\n"
    + json.dumps(ORDERS) + "\n[end]",
}  # fmt: skip


@pytest.mark.parametrize("form", GOOD)
def test_every_form_is_read(form):
    found = read_answers(GOOD[form], TARGETS, ITEMS, k=5)
    assert found.orders == ORDERS
    assert found.notes == ()


BAD = {
    "an invented class and a repeated one": (
        json.dumps(ORDERS | {"cat": ["leopard", "lynx", "Leopard", "fox", "rabbit"]}),
        ["leopard", "fox", "rabbit"],
        ["'lynx'"],
    ),
    "a class of the other new classes in the list": (
        "cat:\n- leopard\n- truck\n- tiger\n- fox\n- wolf\n- rabbit\ntruck: "
        + ", ".join(TRUCK) + "\npersian cat: " + ", ".join(PERSIAN),
        ["leopard", "tiger", "fox", "wolf", "rabbit"],
        ["'truck'"],
    ),
    "a list that is too long": (
        json.dumps(ORDERS | {"cat": [*CAT, "wolf", "mouse"]}), CAT, ["7"]
    ),
    "a list that is too short": (
        json.dumps(ORDERS | {"cat": ["leopard", "tiger"]}), None, ["2", "3"]
    ),
    "a class without an answer": (
        json.dumps({name: ORDERS[name] for name in TARGETS[1:]}), None, ["'cat'"]
    ),
    "an answer that was cut off": (
        json.dumps({name: ORDERS[name] for name in (*TARGETS[1:], "cat")}).partition('x", "sea')[0],
        None,
        ["'fo'", "'fox'"],
    ),
    "a misspelt item": (
        json.dumps(ORDERS | {"cat": ["leopardd", "tiger", "fox", "sea lion", "rabbit"]}),
        CAT,
        ["'leopardd'", "'leopard'"],
    ),
    "a second thought": (
        json.dumps(ORDERS | {"cat": CAT[::-1]}) + "\nOn reflection:\ncat: " + ", ".join(CAT),
        CAT,
        ["2"],
    ),
    "lists without a class": (
        json.dumps({name: ORDERS[name] for name in TARGETS[1:]}) + "\n\n" + json.dumps(CAT),
        None,
        ["'cat'"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", BAD)
def test_what_is_wrong_is_named(form):
    text, order, named = BAD[form]
    found = read_answers(text, TARGETS, ITEMS, k=5)
    wanted = {"cat": order, "truck": TRUCK, "persian+cat": PERSIAN}
    assert found.orders == {name: order for name, order in wanted.items() if order}
    assert all(note.startswith(("'cat'", "lists")) for note in found.notes)
    assert all(any(text in note for note in found.notes) for text in named)


@pytest.mark.parametrize(
    "text",
    ["truck: {0}\ncatt: {1}\npersian cat: {2}", "truck\n{3}\n\ncatt\n{4}\n\npersian cat\n{5}"],
)
def test_a_misspelt_class_does_not_join_the_list_before_it(text):
    orders = (TRUCK, CAT, PERSIAN)
    lists = [sign.join(order) for sign in (", ", "\n") for order in orders]
    found = read_answers(text.format(*lists), TARGETS, ITEMS, k=5)
    assert found.orders == {"truck": TRUCK, "persian+cat": PERSIAN}
    assert any("'catt'" in note for note in found.notes)


def test_a_class_is_not_asked_to_be_in_its_own_list():
    ask = make_question("images").ask_many
    assert "Give the 3 items" in ask(["cat"], ["fox", "tiger", "bus"], 3)
    assert "Give the 2 items" in ask(["cat", "fox"], ["fox", "tiger", "bus"], 3)


def test_words_and_templates_of_a_user_are_in_the_question():
    asked = make_question("any", "{braced} sounds").template
    assert "trained on {braced} sounds to" in asked.format(target='"cat"', items="[]", k=3)
    asked = make_question("{classes}, {target}, {items}, {k}", classes=["cat", "dog"])
    assert asked.template.format(target=1, items=2, k=3) == '["cat", "dog"], 1, 2, 3'
    assert "the new class, " in asked.ask_many(["cat"], ITEMS, 3)
    with refuses("question", "contrast"):
        make_question("contrast", classes=["cat"])
    with refuses("question", "similar"):
        make_question("similar", "texts")


@pytest.mark.parametrize(
    ("text", "items", "order", "named"),
    [
        # A list may begin without bullets.
        ("cat\ntiger\n- fox\n   - wolf", ITEMS, ["tiger", "fox"], []),
        # A remark after a comma is not a name.
        ("cat:\n1. tiger, like a lion\n2. fox, not a bus", ["tiger", "fox", "lion", "bus"],
         ["tiger", "fox"], []),
        # A name that fits two items is not guessed, and one without its kind in parentheses is.
        ('{"cat": ["TURKEY", "turkey", "SEA LION", "bat"]}',
         ["Turkey", "turkey", "sea lion", "sea_lion", "bat (animal)"], ["turkey", "bat (animal)"],
         ["TURKEY", "SEA LION"]),
        ("cat: heron, crane", ["crane (bird)", "crane (machine)", "heron"], ["heron"],
         ["'crane (machine)'"]),
    ],
)  # fmt: skip
def test_the_items_that_the_names_in_a_list_mean(text, items, order, named):
    found = read_answers(text, ["cat", "dog"], items, k=2)
    assert found.orders == {"cat": order}
    assert all(any(name in note for note in found.notes) for name in named)


def test_an_answer_about_one_class_need_not_name_it():
    found = read_answers("- fox\n- tiger", ["cat"], ITEMS, k=2)
    assert found.orders == {"cat": ["fox", "tiger"]}
    assert read_answers("- fox", ["cat"], ITEMS, k=2).orders == {}
    both = read_answers("cat: fox, tiger\n\nMore:\n- bus\n- tank", ["cat"], ITEMS, k=2)
    assert both.orders == {"cat": ["fox", "tiger"]}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({name: [{"item": one} for one in order] for name, order in ORDERS.items()}),
        "- **Cat** → leopard > tiger > fox", "", "I cannot help with that.", "{" * 5000,
        "[" * 900 + '"fox"' + "]" * 900, '{"cat":' * 400 + "{}" + "}" * 400,
    ],
    ids=lambda text: text[:9],
)  # fmt: skip
def test_what_is_no_answer_has_no_list(text):
    found = read_answers(text, TARGETS, ITEMS, k=5)
    assert found.orders == {}
    assert sum("no answer" in note or "are needed" in note for note in found.notes) == 3


HOSTILE = ["lion:{}cat", "- a{}", "[1,{}", "cat: {}", "| a {}", "cat ({})", "1.{}2.", "_{}1"]


@pytest.mark.parametrize("filling", [" ", " \t", "1. ", "_", "(", "["])
def test_the_time_is_linear_in_the_length_of_an_answer(filling):
    """If the time grew with their square, this would take an hour."""
    for form in HOSTILE:
        found = read_answers(form.format(filling * 100_000), ["lion"], ["cat", "dog"], k=1)
        assert set(found.orders) <= {"lion"}


# ---- Prompts to paste, and the files of their answers


def read_prompt(prompt, items=ITEMS):
    """Return the targets and the items that a prompt lists."""
    lists = list(map(json.loads, re.findall(r"\[.*\]", prompt)))
    (listed,) = (some for some in lists if set(some) == set(items))
    (targets,) = (some for some in lists if set(some) <= set(TARGETS))
    return targets, listed


def test_each_rater_is_asked_for_all_targets_in_an_order_of_its_own():
    prompts = make_prompts(TARGETS, ITEMS)
    assert prompts == make_prompts(TARGETS, ITEMS, raters=4, k=len(ITEMS), seed=0)
    assert list(prompts) == [f"rater-{n}.txt" for n in range(1, 5)]
    found = [read_prompt(prompt) for prompt in prompts.values()]
    assert all(sorted(targets) == sorted(TARGETS) for targets, _ in found)
    assert len({tuple(items) for _, items in found}) == 4
    assert make_prompts(TARGETS, ITEMS, seed=1)["rater-1.txt"] != prompts["rater-1.txt"]
    assert all("14 items" in prompt for prompt in prompts.values())
    assert "the 5 items" in make_prompts(TARGETS, ITEMS, k=5)["rater-1.txt"]


def test_the_classes_of_a_long_prompt_are_divided(tmp_path):
    targets = [f"new class {i}" for i in range(60)]
    prompts = make_prompts(targets, ITEMS, raters=2)
    assert list(prompts) == [f"rater-{n}.part-{i}.txt" for n in (1, 2) for i in (1, 2, 3)]
    for rater in (1, 2):
        parts = [prompts[f"rater-{rater}.part-{i}.txt"] for i in (1, 2, 3)]
        lists = [json.loads(re.findall(r"\[.*\]", part)[1]) for part in parts]
        assert sorted(name for some in lists for name in some) == sorted(targets)
        assert len({re.findall(r"\[.*\]", part)[0] for part in parts}) == 1


def test_the_files_of_a_folder_are_raters(tmp_path):
    answers = {
        "rater-1.part-1.txt": f"cat: {', '.join(CAT)}\ntruck: {', '.join(TRUCK[::-1])}",
        "rater-1.part-10.md": f"truck: {', '.join(TRUCK)}",
        "rater-1.part-2.md": f"truck: {', '.join(TRUCK[::-1])}",
        "rater-2.txt": json.dumps({"cat": CAT[::-1]}),
        ".hidden.txt": f"cat: {', '.join(TRUCK)}",
        "notes.csv": f"cat: {', '.join(TRUCK)}",
    }
    for name, text in answers.items():
        (tmp_path / name).write_text(text)
    found = read_answer_files(tmp_path, TARGETS, ITEMS, 5)
    rankings = found.rankings
    lists = zip(rankings.raters, rankings.targets, rankings.orders(), strict=True)
    assert found.unknown == ("persian+cat",)
    # The later answer counts.
    assert sorted(lists) == [
        ("rater-1", "cat", CAT),
        ("rater-1", "truck", TRUCK),
        ("rater-2", "cat", CAT[::-1]),
    ]
    missing = sorted(note.split(": no answer")[0] for note in found.notes if "no answer" in note)
    assert missing == [
        f"rater-{n}: {name!r}" for n, name in ((1, "persian+cat"), (2, "persian+cat"), (2, "truck"))
    ]


def test_a_file_without_an_answer_is_named(tmp_path):
    path = tmp_path / "rater-1.txt"
    with refuses("path", str(tmp_path)):
        read_answer_files(tmp_path, TARGETS, ITEMS)
    path.write_bytes(b"I cannot help with that.")
    with refuses("answer", where=str(path)):
        read_answer_files(tmp_path, TARGETS, ITEMS)
    path.write_bytes(b"cat: \xff\xfe")
    with refuses("line", where=f"{path}:1"):
        read_answer_files(tmp_path, TARGETS, ITEMS)


# ---- Names


def test_the_rehearsed_classes_depend_on_names_and_seed_alone():
    chosen, others = choose_rehearsed(ITEMS, 6, seed=3)
    assert sorted(chosen + others) == sorted(ITEMS)
    again, _ = choose_rehearsed(ITEMS[::-1], 6, seed=3)
    assert set(again) == set(chosen)
    assert again == tuple(name for name in ITEMS[::-1] if name in chosen)
    fewer, _ = choose_rehearsed(ITEMS, 3, seed=3)
    assert set(fewer) < set(chosen)
    assert choose_rehearsed(ITEMS, 6, seed=4)[0] != chosen
    # On every machine and in every version: rankings that were paid for depend on it.
    assert choose_rehearsed(list("abcdef"), 3) == (("b", "d", "f"), ("a", "c", "e"))


@pytest.mark.parametrize(("classes", "number"), [(ITEMS, 13), (ITEMS, 0), (["a", "b"], 1)])
def test_a_bad_number_of_rehearsed_classes(classes, number):
    with refuses("number", number):
        choose_rehearsed(classes, number)
