"""The language-model source, against a real HTTP server that misbehaves."""

import json
import math
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from hashlib import sha256
from threading import Barrier, Event
from time import monotonic, sleep

import numpy as np
import pytest
from misbehaving_server import (
    MisbehavingServer,
    behave,
    chat_answer,
    close_at_once,
    close_in_the_middle,
    drip,
    drip_headers,
    endless,
    half_json,
    hang,
    not_http,
    repeat_the_key,
    say,
    say_of_truth,
    send,
    understand,
)
from scipy.stats import chisquare

from rankshot import Rankings, RankshotError, read_rankings
from rankshot.core.validation import shuffle_names
from rankshot.sources import pace
from rankshot.sources.answers import parse_answer
from rankshot.sources.language_model import LanguageModel
from rankshot.sources.pace import Pace
from rankshot.sources.questions import make_question

ITEMS = ["tiger", "sea_lion", "fox", "bus", "pickup truck", "whale", "Löwe", "{odd} [name]"]
TARGETS = ["cat", "truck", 'the "seal"']
Pace_sleep = Pace.sleep
SECRET = "sk-Very/Secret-0123456789"


def hidden_preference():
    rng = np.random.default_rng(7)
    return {target: [ITEMS[i] for i in rng.permutation(len(ITEMS))] for target in TARGETS}


PREFERENCE = hidden_preference()


@pytest.fixture
def server(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    server = MisbehavingServer(PREFERENCE)
    yield server
    server.stop()


@pytest.fixture
def slept(monkeypatch):
    """Nobody sleeps: the seconds asked for are listed instead, and a clock goes on by them."""
    seconds = []

    def sleep(_, wait):
        if wait:
            seconds.append(wait)

    monkeypatch.setattr(Pace, "sleep", sleep)
    monkeypatch.setattr(pace, "monotonic", lambda: sum(seconds))
    return seconds


@pytest.fixture
def ask(server, slept):
    """Make a model of the server, with small numbers."""

    def make(**options):
        return LanguageModel(
            **{"model": "m", "base_url": server.base_url, "raters": 2, "k": 3, "timeout": 5.0}
            # One after the other, so that each gets the behaviour that the script has for it.
            | {"parallel": 1}
            | options
        )

    return make


@pytest.fixture
def log(tmp_path):
    return tmp_path / "answers.jsonl"


def expected(targets=TARGETS, raters=2, k=3):
    pairs = [(target, f"m#{n}") for target in targets for n in range(1, raters + 1)]
    return Rankings.from_orders(
        [PREFERENCE[target][:k] for target, _ in pairs],
        items=ITEMS,
        targets=[target for target, _ in pairs],
        sources="m",
        raters=[rater for _, rater in pairs],
    )


def failure(model, targets=("cat",)):
    with pytest.raises(RankshotError) as caught:
        model.rankings(targets, ITEMS)
    return str(caught.value)


# ---- Asking


def test_rankings_are_the_hidden_preference(ask, server, slept):
    assert ask().rankings(TARGETS, ITEMS) == expected()
    assert len(server.calls) == 6
    assert slept == []


def test_what_is_sent(ask, server):
    ask(temperature=0, raters=1).rankings(iter(["cat"]), iter(ITEMS))
    (call,) = server.calls
    assert call["path"] == "/v1/chat/completions"
    assert call["body"].keys() == {"model", "messages", "temperature"}
    assert (call["body"]["model"], call["body"]["temperature"]) == ("m", 0)
    assert "Authorization" not in call["headers"]
    ((target, k, items),) = server.questions
    assert (target, k, sorted(items)) == ("cat", 3, sorted(ITEMS))


def test_progress_is_shown_when_asked_for(ask, capsys):
    ask().rankings(["cat"], ITEMS)
    assert capsys.readouterr().err == ""
    ask().rankings(["cat"], ITEMS, verbose=True)
    assert capsys.readouterr().err == "m: 2 of 2 answers\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": ""}, "model must be a name"),
        ({"raters": 0}, "raters must be a whole number from 1 on, not 0"),
        ({"k": 2.5}, "k must be a whole number"),
        ({"k": True}, "k must be a whole number"),
        ({"seed": -1}, "seed must be"),
        ({"max_retries": "2"}, "max_retries must be"),
        ({"temperature": math.nan}, "temperature must be 0 or more and finite, not nan"),
        ({"timeout": 0}, "timeout must be 0.001 or more and finite, not 0"),
        ({"answer_price": -1}, "answer_price must be"),
        ({"k": 9}, "k=9 is more than the 8 items"),
        ({"parallel": 0}, "parallel must be a whole number from 1 on, not 0"),
        ({"question": "image"}, "no question 'image' (did you mean 'images'?); give one of 'ima"),
        ({"question": 3}, "question must be text, not 3"),
        ({"question": "{target}?"}, "question: the template lacks {items} and {k}; a literal"),
        ({"question": "{target} {items} {k:3}"}, "the template lacks {k}, and has the unknown"),
        ({"question": "{target} {items} {k} {x}"}, "the template has the unknown field {x}"),
        ({"question": "{target} {items} {k} {"}, "the template is not valid"),
        ({"question": "{inputs} {target} {items} {k}"}, "the field {inputs}; give inputs as well"),
        ({"question": "similar", "inputs": "maps"}, "inputs='maps': this question has no field"),
        ({"inputs": " "}, "inputs must be words such as 'photographs', not ' '"),
        ({"log": "answers.txt"}, "unknown ending '.txt'; known are .jsonl"),
        ({"base_url": "ftp://host/v1"}, "base_url must be an address"),
        ({"base_url": "localhost:80"}, "base_url must be an address"),
        ({"base_url": "http://a..b/v1"}, "base_url must be an address"),
        ({"base_url": "http://host:99999/v1"}, "base_url must be an address"),
        ({"base_url": "http://ho st/v1"}, "base_url must be an address"),
        ({"base_url": None}, "base_url must be an address"),
    ],
)
def test_bad_parameters_are_named(ask, server, options, message):
    with pytest.raises(RankshotError, match=re.escape(message)):
        ask(**options).rankings(TARGETS, ITEMS)
    assert server.calls == []


# ---- Questions


def test_the_default_asks_what_a_classifier_would_say(ask, server):
    ask(raters=1).rankings(["cat"], ITEMS)
    prompt = server.calls[0]["body"]["messages"][0]["content"]
    assert 'shown many ordinary photographs of "cat". Which items will it say most' in prompt
    assert "Answer with the 3 items that it will say most often" in prompt


def test_texts_and_inputs_of_ones_own(ask):
    prompt = ask(question="text", inputs="{odd} requests")._question().ask_one("a", ["b"], 1)
    assert 'never been given {odd} requests of "a". Now' in prompt
    own = make_question("{{literal}} {target} of {inputs} in {items}, {k} [best] first", "a {b}")
    assert own.ask_one("x", ["y"], 2) == '{literal} "x" of a {b} in ["y"], 2 [best] first'


def test_the_question_for_similar_items_is_the_old_one():
    """Logs of earlier versions stay valid for it."""
    assert (
        sha256(make_question("similar").template.encode())
        .hexdigest()
        .startswith("36dffff0f876b861")
    )


def test_lists_have_15_items_or_all(ask, server):
    model = ask(k=None, raters=1)
    assert len(model.rankings(["cat"], ITEMS).orders()[0]) == len(ITEMS)
    server.preference = {"cat": [f"i{n}" for n in range(30)]}
    assert model.rankings(["cat"], server.preference["cat"]).lengths.tolist() == [15]


# ---- Several calls at the same time


def test_the_order_of_arrival_does_not_matter(ask, server):
    gate = Barrier(4, timeout=20)

    def slow(handler):
        """Answer when four calls are there, the last of them first."""
        sleep(0.03 * (3 - gate.wait()))
        behave(handler)

    server.script = [slow] * 12
    assert ask(raters=4, parallel=4).rankings(TARGETS, ITEMS) == expected(raters=4)
    assert len(server.calls) == 12


def test_of_several_failures_the_first_question_is_named_and_answers_are_kept(ask, server, log):
    gate = Barrier(3, timeout=20)

    def refuse(handler):
        gate.wait()
        if '"cat"' in handler.body["messages"][0]["content"]:
            sleep(0.05)
        handler.send(401, b"")

    def answer(handler):
        gate.wait()
        sleep(0.1)
        behave(handler)

    by_target = {"cat": refuse, "truck": refuse, TARGETS[2]: answer}

    def by_class(handler):
        target, _, _ = understand(handler.body["messages"][0]["content"])
        by_target[target](handler)

    server.script = [by_class] * 3
    message = failure(ask(log=log, raters=1, parallel=3), TARGETS)
    assert "target 'cat', rater 'm#1'" in message
    assert read_rankings(log, ITEMS).targets.tolist() == [TARGETS[2]]
    assert len(server.calls) == 3


@pytest.mark.parametrize(
    ("headers", "least", "most"),
    [
        ({"x_ratelimit_remaining_requests": "0", "x_ratelimit_reset_requests": "6.5s"}, 6.5, 6.5),
        ({"x_ratelimit_remaining_requests": "0", "x_ratelimit_reset_requests": "6m0s"}, 60, 60),
        ({"x_ratelimit_remaining_tokens": "106", "x_ratelimit_reset_tokens": "120ms"}, 0.12, 0.12),
        ({"x_ratelimit_remaining_tokens": "107", "x_ratelimit_reset_tokens": "120ms"}, 0, 0),
        ({"x_ratelimit_remaining_requests": "1", "x_ratelimit_reset_requests": "6s"}, 0, 0),
        ({"ratelimit_remaining": "0", "ratelimit_reset": "9"}, 9, 9),
        ({"x_ratelimit_remaining": "0", "x_ratelimit_reset": "in 30 s as a number"}, 25, 31),
        ({"x_ratelimit_remaining": "0", "x_ratelimit_reset": "in 30 s as milliseconds"}, 25, 30),
        (
            {
                "anthropic_ratelimit_requests_remaining": "0",
                "anthropic_ratelimit_requests_reset": "in 30 s as a date",
            },
            25,
            30,
        ),
        ({"x_ratelimit_remaining_requests": "0"}, 0, 0),
        ({"x_ratelimit_remaining_requests": "0", "x_ratelimit_reset_requests": "soon"}, 0, 0),
        ({"x_ratelimit_remaining_requests": "many", "x_ratelimit_reset_requests": "6s"}, 0, 0),
    ],
)
def test_the_rate_limits_in_the_headers_are_kept(ask, server, slept, headers, least, most):
    """The next call waits until the limit is reset; the answer itself is used."""
    soon = datetime.now(UTC) + timedelta(seconds=30)
    forms = {
        "in 30 s as a number": f"{soon.timestamp():.0f}",
        "in 30 s as milliseconds": f"{soon.timestamp() * 1000:.0f}",
        "in 30 s as a date": soon.isoformat(timespec="seconds").replace("+00:00", "Z"),
    }
    headers = {name: forms.get(value, value) for name, value in headers.items()}
    order = json.dumps(PREFERENCE["cat"][:3])
    server.script = [send(200, chat_answer(order), **headers)]
    assert ask().rankings(["cat"], ITEMS) == expected(["cat"])
    assert least <= sum(slept) <= most
    assert len(slept) == (most > 0)


def test_one_thread_that_is_told_to_wait_makes_all_wait(ask, server):
    """The first call is refused for 0.6 seconds; nobody calls in that time."""
    moments = []

    def note(handler):
        moments.append(monotonic())
        if len(moments) < 3:
            # Meanwhile the refusal arrives.
            sleep(0.2)
        behave(handler)

    def refuse(handler):
        moments.append(monotonic())
        handler.send(429, b"", Retry_After="0.6")

    server.script = [refuse] + [note] * 12
    model = ask(raters=4, parallel=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Pace, "sleep", Pace_sleep)
        patch.setattr(pace, "monotonic", monotonic)
        assert model.rankings(TARGETS, ITEMS) == expected(raters=4)
    late = [moment - moments[0] for moment in moments[1:]]
    # The call that was under way at that moment is no offence.
    assert sum(wait < 0.55 for wait in late) <= 1
    assert len(moments) == 13


WORKER = """\
import sys, json
from rankshot.sources.language_model import LanguageModel
url, log, targets, items, raters, parallel = json.loads(sys.argv[1])
model = LanguageModel("m", url, raters=raters, k=3, log=log, parallel=parallel)
found = model.rankings(targets, items)
print(json.dumps(found.orders()))
"""


def start_worker(server, log, raters, parallel):
    arguments = json.dumps([server.base_url, str(log), TARGETS, ITEMS, raters, parallel])
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def take_a_while(handler):
    sleep(0.05)
    behave(handler)


def test_two_processes_share_one_log_and_the_work(server, log):
    server.script = [take_a_while] * 1000
    workers = [start_worker(server, log, 20, 3) for _ in range(2)]
    outputs = [worker.communicate(timeout=60) for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0], outputs
    wanted = expected(raters=20)
    assert [json.loads(out) for out, _ in outputs] == [wanted.orders()] * 2
    # Each question was asked once, and its line is whole.
    assert len(server.calls) == len(log.read_text().splitlines()) == 60
    assert len(read_rankings(log, ITEMS)) == 60


def test_a_question_of_a_process_that_dies_is_asked_by_the_other(server, log):
    begun = Event()

    def keep(handler):
        begun.set()
        hang(handler)

    server.script = [keep]
    first = start_worker(server, log, 1, 1)
    assert begun.wait(30)
    second = start_worker(server, log, 1, 1)
    while len(server.calls) < 3:
        sleep(0.01)
    # The second has asked all but the question that the first still asks.
    with pytest.raises(subprocess.TimeoutExpired):
        second.wait(0.5)
    assert len(server.calls) == 3
    first.kill()
    first.communicate()
    out, _ = second.communicate(timeout=30)
    assert json.loads(out) == expected(raters=1).orders()
    assert len(server.calls) == 4


def test_ctrl_c_stops_at_once_and_loses_no_answer(server, log):
    server.script = [behave] * 4 + [hang] * 100
    worker = start_worker(server, log, 4, 2)
    while len(server.calls) < 6:
        sleep(0.01)
    begin = monotonic()
    worker.send_signal(signal.SIGINT)
    _, err = worker.communicate(timeout=30)
    assert monotonic() - begin < 10
    assert b"KeyboardInterrupt" in err
    assert worker.returncode != 0
    assert len(read_rankings(log, ITEMS)) == 4
    assert len(server.calls) == 6


# ---- Shuffles


def test_every_call_shuffles_differently(ask, server):
    ask(raters=4).rankings(TARGETS, ITEMS)
    assert len({tuple(items) for _, _, items in server.questions}) == 12


def test_shuffles_depend_on_seed_target_and_rater_alone(ask, server):
    ask().rankings(TARGETS, ITEMS)
    ask(model="other", k=5, temperature=0).rankings(TARGETS, ITEMS[::-1])
    ask(seed=1).rankings(TARGETS, ITEMS)
    shuffles = [items for _, _, items in server.questions]
    assert shuffles[:6] == shuffles[6:12]
    assert all(a != b for a, b in zip(shuffles[:6], shuffles[12:], strict=True))


def test_a_shuffle_never_changes():
    # A log of last year must still match: this order is part of the format of the log.
    assert shuffle_names(("a", "b", "c", "d"), [0, "cat", 1]) == ["d", "b", "c", "a"]


def test_shuffles_are_uniform():
    orders = Counter(
        tuple(shuffle_names(("a", "b", "c"), [seed, "cat", rater]))
        for seed in range(600)
        for rater in range(1, 6)
    )
    assert len(orders) == 6
    assert chisquare(list(orders.values())).pvalue > 1e-3


# ---- Invalid answers


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('["tiger", "lynx", "fox"]', "not among the items: 'lynx'"),
        ('["tiger", "fox", "tiger"]', "more than once: 'tiger'"),
        ('["Sea Lion", "sea_lion", "fox"]', "more than once: 'sea_lion'"),
        ('["tiger", "fox"]', "expected 3 names, found 2"),
        (json.dumps(ITEMS[:4]), "expected 3 names, found 4"),
        ('["tiger", "fox", "bu', "expected one complete JSON list, found 0"),
        ("A tiger, surely.", "one complete JSON list, found 0"),
        ("", "one complete JSON list, found 0"),
        (None, "one complete JSON list, found 0"),
        ('["tiger", "fox", "bus"] or ["fox", "bus", "tiger"]', "one complete JSON list, found 2"),
        ('[["tiger", "fox", "bus"]]', "not among the items: ['tiger', 'fox', 'bus']"),
        ('[{"name": "tiger"}, 3, null]', "not among the items: {'name': 'tiger'}, 3, None"),
        ("[" * 200_000, "one complete JSON list, found 0"),
        ('["' * 200_000, "one complete JSON list, found 0"),
        ("[" * 900 + "]" * 900, "not among the items"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_wrong_answer_is_asked_again_in_the_same_conversation(
    ask, server, slept, log, text, complaint
):
    server.script = [say(text)]
    assert ask(raters=1, log=log).rankings(["cat"], ITEMS) == expected(["cat"], raters=1)
    first, second = (call["body"]["messages"] for call in server.calls)
    assert [turn["role"] for turn in second] == ["user", "assistant", "user"]
    assert second[0] == first[0]
    assert second[1]["content"] == ((text or "")[:2000] or "(no answer)")
    assert complaint in second[2]["content"]
    assert slept == []
    record = json.loads(log.read_text())
    assert (record["asked"], record["prompt_tokens"], record["answer_tokens"]) == (2, 200, 14)


@pytest.mark.parametrize(
    "change",
    [
        lambda order: f"Let me think.\n```json\n{json.dumps(order)}\n```\nI hope that helps [sic].",
        lambda order: json.dumps({"ranking": order, "why": "so"}),
        lambda order: json.dumps([name.upper() for name in order]),
        lambda order: json.dumps([name.replace("_", " ") for name in order]),
        lambda order: json.dumps([f" {name.replace(' ', '_')} " for name in order]),
    ],
)
def test_talk_around_the_list_and_other_spellings_are_understood(ask, server, change):
    server.script = [say_of_truth(change)] * 6
    assert ask().rankings(TARGETS, ITEMS) == expected()
    assert len(server.calls) == 6


def test_a_spelling_that_fits_two_items_is_refused():
    items = ["Turkey", "turkey", "sea lion", "sea_lion", "fox"]
    exact = ["turkey", "sea_lion", "Turkey", "sea lion"]
    assert parse_answer(json.dumps(exact), items, 4) == exact
    for name in ("TURKEY", "Sea Lion"):
        with pytest.raises(RankshotError, match=f"not among the items: '{name}'"):
            parse_answer(json.dumps([name]), items, 1)


def test_many_wrong_names_are_counted():
    with pytest.raises(RankshotError) as caught:
        parse_answer(json.dumps([f"no{i}" * 100 for i in range(500)]), ["a"], 1)
    assert "and 492 more" in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_wrong_answers_without_end_are_an_error_that_keeps_the_rest(ask, server, log):
    server.script = [behave, *[say(f'["lynx {i}"]' + "x" * 5000) for i in range(3)]]
    model = ask(log=log, max_retries=2)
    message = failure(model)
    assert len(server.calls) == 4
    for part in ("target 'cat', rater 'm#2'", "3 invalid answers", "'lynx 2'", str(log)):
        assert part in message
    assert len(message) < 600
    assert read_rankings(log, ITEMS) == expected(["cat"])[0]
    assert model.rankings(TARGETS, ITEMS) == expected()
    assert len(server.calls) == 4 + 5


# ---- Failures that pass


@pytest.mark.parametrize(
    "behaviour",
    [
        send(429, b""),
        send(408, b""),
        send(500, b"<html>oops</html>"),
        send(503, {"error": {"message": "overloaded"}}),
        close_at_once,
        close_in_the_middle,
        half_json,
        send(200, b""),
        send(200, b"[" * 100_000),
        send(200, b"1" * 10_000),
        send(200, b"\xff\xfe"),
        send(200, {"choices": []}),
        send(200, ["choices"]),
        send(200, {"error": "try later"}),
        not_http,
    ],
)
def test_a_failure_that_passes_is_tried_again(ask, server, slept, behaviour):
    server.script = [behaviour, behaviour]
    assert ask(raters=1).rankings(["cat"], ITEMS) == expected(["cat"], raters=1)
    assert len(server.calls) == 3
    assert len({json.dumps(call["body"]) for call in server.calls}) == 1
    assert 0.5 <= slept[0] <= 1 <= slept[1] <= 2


@pytest.mark.parametrize("behaviour", [hang, drip, drip_headers])
def test_a_server_that_takes_too_long_is_asked_again(ask, server, slept, behaviour):
    server.script = [behaviour]
    model = ask(raters=1, timeout=0.25)
    assert model.rankings(["cat"], ITEMS) == expected(["cat"], raters=1)
    assert len(slept) == 1
    server.script = [behaviour] * 2
    message = failure(ask(raters=1, timeout=0.1, max_retries=1))
    assert "after 2 tries; the last: it took longer than 0.1 seconds" in message


def test_waits_grow_up_to_a_bound_and_are_never_the_same(ask, server, slept):
    server.script = [send(500, b"")] * 9
    message = failure(ask(max_retries=8))
    assert "target 'cat', rater 'm#1'" in message
    assert "after 9 tries; the last: " + server.base_url in message
    assert "answered 500" in message
    for wait, longest in zip(slept, [1, 2, 4, 8, 16, 32, 60, 60], strict=True):
        assert longest / 2 <= wait <= longest
    assert len(set(slept)) == 8


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [
        ("7", 7, 7),
        ("7.5", 7.5, 7.5),
        ("100000", 60, 60),
        ("in 30 seconds", 25, 30),
        ("an hour ago", 0.5, 1),
        ("Sun, 06 Nov 1994 08:49:37 -0000", 0.5, 1),
        ("0", 0.5, 1),
        ("-5", 0.5, 1),
        ("nan", 0.5, 1),
        ("inf", 0.5, 1),
        ("soon", 0.5, 1),
        ("Sun, 99 Nov 99999 08:49:37 GMT", 0.5, 1),
    ],
)
def test_retry_after_is_honoured_within_bounds(ask, server, slept, header, least, most):
    now = datetime.now(UTC)
    moments = {
        "in 30 seconds": now + timedelta(seconds=30),
        "an hour ago": now - timedelta(hours=1),
    }
    if header in moments:
        header = format_datetime(moments[header], usegmt=True)
    server.script = [send(429, {"error": {"message": "slow down"}}, Retry_After=header)]
    ask(raters=1).rankings(["cat"], ITEMS)
    assert least <= slept[0] <= most
    assert len(slept) == 1


def test_a_server_that_is_not_there(server, slept):
    url = server.base_url
    server.stop()
    message = failure(LanguageModel("m", url, k=3, max_retries=1, parallel=1))
    assert "ConnectionRefusedError" in message
    assert len(slept) == 1


# ---- Failures that stay


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (400, "check the model's name, and whether it takes this temperature"),
        (401, "check the key in OPENAI_API_KEY"),
        (403, "the key may not use this model"),
        (404, "check base_url"),
        (422, "answered 422"),
    ],
)
def test_what_trying_again_does_not_help_fails_at_once(ask, server, slept, status, advice):
    server.script = [send(status, {"error": {"message": "no such\x1b[31m thing"}})]
    message = failure(ask())
    assert len(server.calls) == 1
    assert slept == []
    assert f"answered {status} ('no such\\x1b[31m thing')" in message
    assert advice in message


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(ask, server, slept, monkeypatch, status):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    other = MisbehavingServer(PREFERENCE)
    server.script = [send(status, b"", Location=f"{other.base_url}/chat/completions")]
    message = failure(ask())
    other.stop()
    assert other.calls == []
    assert len(server.calls) == 1
    assert slept == []
    assert f"it redirects to '{other.base_url}/chat/completions', which is not" in message


@pytest.mark.parametrize(("status", "most"), [(200, 4 << 20), (400, 4096)])
def test_an_endless_body_is_cut_off(ask, server, status, most):
    server.script = [endless(status)]
    message = failure(ask())
    assert ("more than 4 MiB" if status == 200 else "answered 400 ('xxx") in message
    assert len(message) < 600
    # Beyond what was read, only the buffers of the two sockets were filled.
    assert server.bytes_sent < most + (12 << 20)


# ---- The key


def test_the_key_goes_into_the_header_and_nowhere_else(ask, server, log, monkeypatch):
    model = ask(log=log)
    monkeypatch.setenv("OPENAI_API_KEY", f" {SECRET}\n")
    model.rankings(["cat"], ITEMS)
    assert [call["headers"]["Authorization"] for call in server.calls] == [f"Bearer {SECRET}"] * 2
    assert SECRET not in json.dumps([call["body"] for call in server.calls])
    assert SECRET not in log.read_text()
    assert SECRET not in repr(model) + str(model.estimate(["cat"], ITEMS)) + str(vars(model))


def test_the_key_is_read_at_each_call(ask, server, monkeypatch):
    model = ask(raters=1, key_variable="MY_KEY")
    for key in ("first-key", "second-key"):
        monkeypatch.setenv("MY_KEY", key)
        model.rankings(["cat"], ITEMS)
    sent = [call["headers"]["Authorization"] for call in server.calls]
    assert sent == ["Bearer first-key", "Bearer second-key"]
    ask(raters=1, key_variable=None).rankings(["cat"], ITEMS)
    assert "Authorization" not in server.calls[-1]["headers"]


@pytest.mark.parametrize(
    "behaviour",
    [
        *(repeat_the_key(status) for status in (200, 400, 401, 403, 404, 418, 429, 500)),
        repeat_the_key(307, Location=True),
        not_http,
        lambda handler: handler.send(200, (handler.headers["Authorization"] * 9).encode()),
        lambda handler: say(handler.headers["Authorization"] * 9)(handler),
        lambda handler: say(json.dumps([handler.headers["Authorization"]]))(handler),
    ],
)
def test_a_server_that_repeats_the_key_does_not_get_it_on_the_screen(
    ask, server, log, monkeypatch, behaviour
):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    server.script = [behaviour] * 3
    message = failure(ask(log=log, max_retries=1))
    assert server.calls[0]["headers"]["Authorization"] == f"Bearer {SECRET}"
    assert "Secret" not in message
    assert "0123456789" not in message
    assert "Secret" not in log.read_text()


def test_a_dummy_key_that_is_part_of_a_name_changes_no_answer(ask, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    assert ask(k=8).rankings(TARGETS, ITEMS) == expected(k=8)


@pytest.mark.parametrize("host", ["example.invalid", "127.0.0.1.example.invalid", "10.0.0.1"])
def test_servers_elsewhere_need_a_key_and_https(slept, monkeypatch, host):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for scheme in ("http", "https"):
        message = failure(LanguageModel("m", f"{scheme}://{host}/v1", k=3))
        assert "set the environment variable OPENAI_API_KEY" in message
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    message = failure(LanguageModel("m", f"http://{host}/v1", k=3))
    assert "unencrypted" in message
    assert SECRET not in message
    assert slept == []


@pytest.mark.parametrize("key", [f"{SECRET}\nX-Other: 1", f"{SECRET} {SECRET}", f"{SECRET}é"])
def test_a_malformed_key_is_refused_and_not_shown(ask, server, monkeypatch, key):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    message = failure(ask())
    assert "the key in OPENAI_API_KEY holds characters that a key cannot have" in message
    assert "Secret" not in message
    assert server.calls == []


@pytest.mark.parametrize(
    "options",
    [
        {"key_variable": SECRET},
        {"key_variable": "gsk_Secret0123456789"},
        {"base_url": f"https://me:{SECRET}@host/v1"},
        {"base_url": "https://me:Secret@host/v1"},
        {"base_url": f"https://host/v1?key={SECRET}"},
        {"base_url": f"https://host/v1?key={SECRET} "},
        {"base_url": f"ftp://me:{SECRET}@host/v1"},
    ],
)
def test_a_key_in_the_wrong_place_is_refused_and_not_shown(ask, options):
    with pytest.raises(RankshotError, match=r"(key_variable|base_url) must") as caught:
        ask(**options)
    assert "Secret" not in str(caught.value)


def test_a_proxy_is_not_asked_for_servers_of_this_machine(ask, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9/")
    monkeypatch.delenv("no_proxy", raising=False)
    assert ask().rankings(["cat"], ITEMS) == expected(["cat"])


# ---- The log


def test_the_log_tells_all_and_is_a_file_of_rankings(ask, server, log):
    before = datetime.now(UTC).replace(microsecond=0)
    ask(log=log, temperature=0.5, seed=3).rankings(TARGETS, ITEMS)
    assert read_rankings(log, ITEMS) == expected()
    records = [json.loads(line) for line in log.read_text().splitlines()]
    for record, (target, k, items) in zip(records, server.questions, strict=True):
        assert (record["target"], record["k"], record["items"]) == (target, k, items)
        assert (record["model"], record["source"]) == ("m", "m")
        assert (record["temperature"], record["seed"], record["asked"]) == (0.5, 3, 1)
        assert (record["prompt_tokens"], record["answer_tokens"]) == (100, 7)
        assert before <= datetime.fromisoformat(record["time"]) <= datetime.now(UTC)
    first = records[0]
    rebuilt = first["prompt"].format(
        target=json.dumps(first["target"]),
        k=first["k"],
        items=json.dumps(first["items"], ensure_ascii=False),
    )
    assert rebuilt == server.calls[0]["body"]["messages"][0]["content"]


def test_tokens_that_the_server_does_not_tell_are_unknown(ask, server, log):
    answer = {"choices": [{"message": {"content": json.dumps(PREFERENCE["cat"][:3])}}]}
    server.script = [send(200, answer), send(200, answer | {"usage": {"prompt_tokens": "many"}})]
    ask(log=log).rankings(["cat"], ITEMS)
    for line in log.read_text().splitlines():
        record = json.loads(line)
        assert record["prompt_tokens"] is record["answer_tokens"] is None


def test_what_is_answered_is_not_asked_again(ask, server, log):
    ask(log=log).rankings(TARGETS[:2], ITEMS)
    ask(log=str(log), temperature=1).rankings(TARGETS[:2], ITEMS[::-1])
    assert len(server.calls) == 4
    assert ask(log=log, raters=3).rankings(TARGETS, ITEMS) == expected(raters=3)
    assert len(server.calls) == 9
    assert len(log.read_text().splitlines()) == 9


@pytest.mark.parametrize(
    "other", [{"model": "n"}, {"k": 2}, {"seed": 1}, {"temperature": 0.5}, {"items": ITEMS[1:]}]
)
def test_answers_to_other_questions_are_kept_and_not_used(ask, server, log, other):
    other = dict(other)
    items = other.pop("items", ITEMS)
    ask(log=log).rankings(["cat"], ITEMS)
    before = log.read_bytes()
    ask(log=log, **other).rankings(["cat"], items)
    assert len(server.calls) == 4
    assert log.read_bytes().startswith(before)
    ask(log=log).rankings(["cat"], ITEMS)
    ask(log=log, **other).rankings(["cat"], items)
    assert len(server.calls) == 4


@pytest.mark.parametrize(
    "other", [{"question": "similar"}, {"inputs": "drawings"}, {"inputs": "ordinary photographs"}]
)
def test_another_prompt_is_another_question(ask, server, log, other):
    ask(log=log).rankings(["cat"], ITEMS)
    ask(log=log, **other).rankings(["cat"], ITEMS)
    # The last of them are the usual inputs: the prompt is the same.
    assert len(server.calls) == (2 if other == {"inputs": "ordinary photographs"} else 4)


def test_a_run_that_failed_goes_on_where_it_stopped(ask, server, log):
    server.script = [behave, behave, behave, send(401, b"")]
    assert "target 'truck', rater 'm#2'" in failure(ask(log=log), TARGETS)
    asked = server.questions[3]
    assert ask(log=log).rankings(TARGETS, ITEMS) == expected()
    assert len(server.calls) == 4 + 3
    assert server.questions[4] == asked
    assert read_rankings(log, ITEMS) == expected()


def test_a_process_that_is_killed_loses_nothing_it_was_answered(ask, server, log):
    server.script = [behave, behave, lambda handler: os.kill(worker.pid, signal.SIGKILL)]
    code = (
        "import sys, json; from rankshot.sources.language_model import LanguageModel\n"
        "url, log, targets, items = json.loads(sys.argv[1])\n"
        "LanguageModel('m', url, raters=2, k=3, log=log, parallel=1).rankings(targets, items)"
    )
    arguments = json.dumps([server.base_url, str(log), TARGETS, ITEMS])
    worker = subprocess.Popen([sys.executable, "-c", code, arguments])
    assert worker.wait(30) == -signal.SIGKILL
    assert read_rankings(log, ITEMS) == expected()[:2]
    assert ask(log=log).rankings(TARGETS, ITEMS) == expected()
    assert len(server.calls) == 3 + 4


def test_a_half_written_last_line_is_asked_again_wherever_it_breaks(ask, server, log):
    ask(log=log).rankings(["cat"], ITEMS)
    whole = log.read_bytes()
    first = whole.index(b"\n") + 1
    cuts = [*range(first, first + 20), *range(first + 20, len(whole) - 1, 97), len(whole) - 2]
    for cut in cuts:
        log.write_bytes(whole[:cut])
        server.calls.clear()
        assert ask(log=log).rankings(["cat"], ITEMS) == expected(["cat"])
        assert len(server.calls) == 1
        assert read_rankings(log, ITEMS) == expected(["cat"])
        assert log.read_bytes().startswith(whole[:first])
    # With nothing but the line's end missing, the answer is there.
    log.write_bytes(whole[:-1])
    assert ask(log=log, raters=3).rankings(["cat"], ITEMS) == expected(["cat"], raters=3)
    assert len(server.calls) == 1 + 1
    assert read_rankings(log, ITEMS) == expected(["cat"], raters=3)


def test_an_answer_is_whole_on_the_disk_before_the_next_question(ask, server, log, monkeypatch):
    synced = []

    def fsync(handle):
        synced.append((log.read_bytes(), len(server.calls)))
        os_fsync(handle)

    os_fsync = os.fsync
    monkeypatch.setattr(os, "fsync", fsync)
    ask(log=log).rankings(["cat"], ITEMS)
    assert [calls for _, calls in synced] == [1, 2]
    assert [content.count(b"\n") for content, _ in synced] == [1, 2]
    assert all(content.endswith(b"\n") for content, _ in synced)


@pytest.mark.parametrize("begun", [b"", b'{"tar', b'{"target": "c'])
def test_a_block_that_the_disk_lost_is_dropped(ask, log, begun):
    ask(log=log, raters=1).rankings(["cat"], ITEMS)
    log.write_bytes(log.read_bytes() + begun + b"\0" * 100)
    assert ask(log=log).rankings(["cat"], ITEMS) == expected(["cat"])
    assert read_rankings(log, ITEMS) == expected(["cat"])


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"Dear diary", 1),
        (b'{"target": "cat"\n{"target": "cat", "ranking": ["fox"]}\n', 1),
        (b'{"target": "cat", "ranking": ["fox"]}\n\nrubbish\n', 3),
        (b'{"target": "cat", "ranking": "fox"}\n', 1),
        (b'["ranking"]\n', 1),
        (b"[" * 100_000 + b"\n", 1),
        (b"\xff\xfe\n", 1),
    ],
)
def test_a_file_that_is_no_log_is_refused_and_left_alone(ask, server, log, content, line):
    log.write_bytes(content)
    message = failure(ask(log=log))
    assert message.startswith(f"{log}:{line}: not a line of a log of answers: ")
    assert len(message) < 400
    assert log.read_bytes() == content
    assert server.calls == []


@pytest.mark.parametrize("ranking", [["fox"], ["fox", "fox", "bus"], ["fox", "bus", "lynx"], "fox"])
def test_an_answer_that_somebody_edited_is_refused(ask, log, ranking):
    ask(log=log).rankings(["cat"], ITEMS)
    lines = log.read_text().splitlines()
    lines[1] = json.dumps(json.loads(lines[1]) | {"ranking": ranking})
    log.write_text("\n".join(lines) + "\n")
    assert failure(ask(log=log)).startswith(f"{log}:2: not a line")


def test_rankings_from_elsewhere_may_stand_in_the_log(ask, log):
    log.write_text('{"target": "cat", "ranking": ["fox", ["bus", "tiger"]], "rater": "m#1"}')
    assert ask(log=log).rankings(["cat"], ITEMS) == expected(["cat"])
    assert len(read_rankings(log, ITEMS)) == 3


def test_a_log_that_cannot_be_written_is_reported_before_anything_is_asked(ask, server, tmp_path):
    assert "cannot write there" in failure(ask(log=tmp_path / "nowhere" / "answers.jsonl"))
    (tmp_path / "folder.jsonl").mkdir()
    assert "cannot read it" in failure(ask(log=tmp_path / "folder.jsonl"))
    assert server.calls == []


def test_names_that_utf8_cannot_hold_cost_no_answer(ask, server, log):
    server.preference = {"\ud800": ["a\udfff", "b", "c"]}
    got = ask(log=log).rankings(["\ud800"], ["b", "c", "a\udfff"])
    assert got.orders() == [["a\udfff", "b", "c"]] * 2
    assert read_rankings(log).orders() == got.orders()


# ---- The estimate


def test_the_estimate_is_of_what_will_be_sent(ask, server, log):
    model = ask(log=log, prompt_price=2, answer_price=8)
    estimate = model.estimate(TARGETS, ITEMS)
    assert server.calls == []
    assert not log.exists()
    model.rankings(TARGETS, ITEMS)
    prompts = [call["body"]["messages"][0]["content"] for call in server.calls]
    tokens = sum(math.ceil(len(prompt.encode()) / 2.7) for prompt in prompts)
    assert (estimate.calls, estimate.answered, estimate.prompt_tokens) == (6, 0, tokens)
    # All 8 items as JSON are 85 bytes, 32 tokens; an answer of 3 of them takes 12.
    assert len(json.dumps(ITEMS, ensure_ascii=False).encode()) == 85
    assert estimate.answer_tokens == 6 * 12
    assert estimate.cost == pytest.approx((2 * tokens + 8 * 72) / 1e6)
    after = model.estimate([*TARGETS, "new"], ITEMS)
    assert (after.calls, after.answered) == (2, 6)


def test_the_estimate_reads_well(ask, log):
    model = ask(raters=1000, log=log, prompt_price=2500, answer_price=10000)
    text = str(model.estimate(["cat"], ITEMS))
    assert re.fullmatch(
        r"1,000 calls, about 2\d\d,000 prompt tokens and 12,000 answer tokens, at a cost of about "
        r"\d{3}\.\d{4}; at 2\.7 bytes per token, without repeated questions and hidden reasoning",
        text,
    )
    assert "cost" not in str(ask().estimate(["cat"], ITEMS))
    ask(raters=1, log=log).rankings(["cat"], ITEMS)
    assert "999 calls (1 more are in the log)" in str(model.estimate(["cat"], ITEMS))
