"""The language-model source: any function that answers, and the openai client."""

import json
import math
import os
import re
import signal
import subprocess
import sys
from functools import partial
from threading import Lock
from types import SimpleNamespace

import httpx
import numpy as np
import openai
import pytest

from rankshot import LanguageModel, Rankings, RankshotError, read_rankings
from rankshot.core.validation import shuffle_names
from refusals import refuses

ITEMS = ["tiger", "sea_lion", "fox", "bus", "pickup truck", "whale", "Löwe", "{odd} [name]"]
TARGETS = ["cat", "truck", 'the "seal"']
RNG = np.random.default_rng(7)
PREFERENCE = {target: [ITEMS[i] for i in RNG.permutation(len(ITEMS))] for target in TARGETS}
SECRET = "sk-Very/Secret-0123456789"


def understand(prompt):
    """Read a prompt as a person would: the quoted target, the number, the list of items."""
    target = json.loads(re.search(r'(?:shown|similar to) ("(?:[^"\\]|\\.)*")', prompt)[1])
    items = json.JSONDecoder().raw_decode(prompt.partition("Items: ")[2])[0]
    return target, int(re.search(r"Answer with the (\d+) ", prompt)[1]), items


def answer_truly(prompt):
    target, k, items = understand(prompt)
    return json.dumps([name for name in PREFERENCE[target] if name in items][:k])


class Oracle:
    """Knows a hidden preference. `script` holds what it says to the next calls, in turn."""

    def __init__(self):
        self.prompts, self.script, self.lock = [], [], Lock()

    def __call__(self, prompt):
        with self.lock:
            self.prompts.append(prompt)
            said = self.script.pop(0) if self.script else answer_truly
        if isinstance(said, Exception):
            raise said
        return said if isinstance(said, str) else said(prompt)


@pytest.fixture
def oracle():
    return Oracle()


@pytest.fixture
def make(oracle):
    """Make a model with small numbers, whose answers come one after the other."""
    small = {"model": "m", "ask": oracle, "raters": 2, "k": 3, "timeout": 5.0, "parallel": 1}
    return lambda **options: LanguageModel(**small | options)


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
    assert len(str(caught.value)) < 700
    return str(caught.value)


# ---- Questions


def test_rankings_are_the_hidden_preference(make, oracle):
    assert make().rankings(iter(TARGETS), iter(ITEMS)) == expected()
    assert len(oracle.prompts) == 6
    assert (
        'shown many ordinary photographs of "cat". Which items will it predict' in oracle.prompts[0]
    )


def test_a_seen_class_is_not_asked_about_itself(make, oracle):
    make(k=len(ITEMS) + 1).rankings(["cat"], [*ITEMS, "cat"])
    assert all(sorted(understand(prompt)[2]) == sorted(ITEMS) for prompt in oracle.prompts)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("raters", 0),
        ("temperature", -1.0),
        ("k", 9),
        ("question", "image"),
        ("question", "{inputs} {target} {items} {k}"),
        ("question", "{target} {items}"),
        ("question", "{target} {items} {k} {"),
        ("question", "{target} {items} {k} {other}"),
    ],
)
def test_bad_parameters_are_named(make, oracle, parameter, value):
    with refuses(parameter, value):
        make(**{parameter: value}).rankings(TARGETS, ITEMS)
    assert oracle.prompts == []


def test_a_password_in_an_address_is_refused_and_not_shown(make):
    with refuses("base_url") as caught:
        make(base_url=f"https://{SECRET}@host/v1")
    assert SECRET not in str(caught.value)


def test_shuffles_depend_on_seed_target_and_rater_alone(make, oracle):
    make().rankings(TARGETS, ITEMS)
    make(model="other", k=5, temperature=0).rankings(TARGETS, ITEMS[::-1])
    make(seed=1).rankings(TARGETS, ITEMS)
    shuffles = [understand(prompt)[2] for prompt in oracle.prompts]
    assert shuffles[:6] == shuffles[6:12]
    assert len({tuple(items) for items in shuffles}) == 12
    # A log of last year must still match: this order is part of the format of the log.
    assert shuffle_names(("a", "b", "c", "d"), [0, "cat", 1]) == ["d", "b", "c", "a"]


def test_the_estimate_is_of_what_will_be_sent(make, oracle, log):
    model = make(log=log)
    estimate = model.estimate(TARGETS, ITEMS)
    assert oracle.prompts == []
    assert not log.exists()
    model.rankings(TARGETS, ITEMS)
    tokens = sum(math.ceil(len(prompt.encode()) / 2.7) for prompt in oracle.prompts)
    assert (estimate.calls, estimate.answered, estimate.prompt_tokens) == (6, 0, tokens)
    # All 8 items as JSON are 85 bytes, 32 tokens; an answer of 3 of them takes 12.
    assert len(json.dumps(ITEMS, ensure_ascii=False).encode()) == 85
    assert estimate.answer_tokens == 6 * 12
    after = str(model.estimate([*TARGETS, "new"], ITEMS))
    assert after.startswith("2 calls (6 more are in the log), about ")


# ---- Several calls at the same time


WORKER = """
import json, os, signal, sys, time
from rankshot import LanguageModel
log, targets, items = json.loads(sys.argv[1])
# Where the tests run in the background, interrupts are ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
calls = []
def ask(prompt):
    calls.append(prompt)
    if len(calls) > 4:
        if len(calls) == 6:
            print("signal", flush=True)
        time.sleep(3600)
    return json.dumps(items[:3])
LanguageModel("m", ask=ask, raters=4, k=3, log=log, parallel=2).rankings(targets, items)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_process_that_is_stopped_loses_nothing_it_was_answered(make, oracle, log, number):
    arguments = json.dumps([str(log), TARGETS, ITEMS])
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert worker.stdout.readline() == b"signal\n"
    worker.send_signal(number)
    _, err = worker.communicate()
    assert (b"KeyboardInterrupt" in err) == (number == signal.SIGINT)
    assert len(read_rankings(log, ITEMS)) == 4
    make(raters=4, log=log).rankings(TARGETS, ITEMS)
    assert len(oracle.prompts) == 12 - 4


# ---- Invalid answers


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('["tiger", "lynx", "fox"]', "'lynx'"),
        ('["Sea Lion", "sea_lion", "fox"]', "2 of 3"),
        ('["tiger", "fox"]', "2 of 3"),
        ('["tiger", "fox", "bus"] or ["fox", "bus", "tiger"]', "left out"),
        ('["' * 200_000, "no answer"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_wrong_answer_is_asked_again_with_what_is_wrong(make, oracle, log, text, named):
    oracle.script = [text]
    assert make(raters=1, log=log).rankings(["cat"], ITEMS) == expected(["cat"], raters=1)
    first, second = oracle.prompts
    start, quoted, complaint = second.partition(text[:2000])
    assert start.startswith(first)
    assert quoted
    assert named in complaint
    assert json.loads(log.read_text())["asked"] == 2


def test_wrong_answers_without_end_are_an_error_that_keeps_the_rest(make, oracle, log):
    oracle.script = [answer_truly, *[f'["lynx {i}", "fox"]' + "x" * 5000 for i in range(3)]]
    model = make(log=log, max_retries=2)
    with refuses("answer", where="target 'cat', rater 'm#2'") as caught:
        model.rankings(["cat"], ITEMS)
    for part in ("3 invalid answers", "'lynx 2'", str(log)):
        assert part in caught.value.rule
    assert read_rankings(log, ITEMS) == expected(["cat"])[0]
    assert model.rankings(TARGETS, ITEMS) == expected()
    assert len(oracle.prompts) == 4 + 5


# ---- The log


@pytest.mark.parametrize(
    "other",
    [
        *({"model": "n"}, {"k": 2}, {"seed": 1}, {"temperature": 0.5}, {"items": ITEMS[1:]}),
        *({"question": "similar"}, {"inputs": "drawings"}),
    ],
)
def test_only_answers_to_the_same_question_are_used(make, oracle, log, other):
    other = dict(other)
    items = other.pop("items", ITEMS)
    make(log=log).rankings(["cat"], ITEMS)
    before = log.read_bytes()
    make(log=log, **other).rankings(["cat"], items)
    assert log.read_bytes().startswith(before)
    make(log=str(log), temperature=1, inputs="ordinary photographs").rankings(["cat"], ITEMS[::-1])
    make(log=log, **other).rankings(["cat"], items)
    assert len(oracle.prompts) == 4
    assert make(log=log, raters=3).rankings(["cat"], ITEMS) == expected(["cat"], raters=3)
    assert len(oracle.prompts) == 5


def test_a_half_written_last_line_is_asked_again_wherever_it_breaks(make, oracle, log):
    make(log=log).rankings(["cat"], ITEMS)
    whole = log.read_bytes()
    first = whole.index(b"\n") + 1
    cuts = [*range(first, first + 20), *range(first + 20, len(whole) - 1, 97), len(whole) - 1]
    for cut in cuts:
        log.write_bytes(whole[:cut])
        oracle.prompts.clear()
        assert make(log=log).rankings(["cat"], ITEMS) == expected(["cat"])
        assert len(oracle.prompts) == 1
        assert read_rankings(log, ITEMS) == expected(["cat"])
        assert log.read_bytes().startswith(whole[:first])


def test_an_answer_is_whole_on_the_disk_before_the_next_question(make, oracle, log, monkeypatch):
    synced, fsync = [], os.fsync

    def watch(handle):
        synced.append((len(oracle.prompts), log.read_bytes().count(b"\n")))
        fsync(handle)
        if len(synced) == 2:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", watch)
    assert str(log) in failure(make(log=log, raters=3))
    assert synced == [(1, 1), (2, 2)]
    # Nothing of the line that failed is left.
    assert read_rankings(log, ITEMS) == expected(["cat"], raters=1)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"Dear diary", 1),
        (b'{"target": "cat", "ranking": ["fox"]}\n\nrubbish\n', 3),
        (b'{"target": "cat", "ranking": "fox"}\n', 1),
        (b"[" * 100_000 + b"\n", 1),
    ],
)
def test_a_file_that_is_no_log_is_refused_and_left_alone(make, oracle, log, content, line):
    log.write_bytes(content)
    with refuses("log", where=f"{log}, line {line}"):
        make(log=log).rankings(["cat"], ITEMS)
    assert log.read_bytes() == content
    assert oracle.prompts == []


# ---- The openai client


def say(text):
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return {"choices": [choice | {"index": 0}], "object": "chat.completion"}


def behave(prompt, _key):
    return httpx.Response(200, json=say(answer_truly(prompt)))


def send(status, **options):
    return lambda _prompt, _key: httpx.Response(status, **options)


def repeat_key(status):
    return lambda _prompt, key: httpx.Response(status, json={"error": {"message": key}} | say(key))


@pytest.fixture
def server(monkeypatch):
    """An endpoint that answers truly, except to the first calls if it has a script for them."""
    endpoint = SimpleNamespace(calls=[], script=[])

    def handle(request):
        body, key = json.loads(request.content), request.headers["Authorization"]
        endpoint.calls.append((str(request.url), key, body))
        behaviour = endpoint.script.pop(0) if endpoint.script else behave
        return behaviour(body["messages"][0]["content"], key)

    client = httpx.Client(transport=httpx.MockTransport(handle))
    monkeypatch.setattr(openai, "OpenAI", partial(openai.OpenAI, http_client=client))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    # In the environment: the client's own variable is used.
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:8080/v1")
    return endpoint


@pytest.fixture
def call(make, server):
    return lambda **options: make(ask=None, **options)


def test_what_is_sent_to_an_endpoint(call, server):
    assert call(temperature=0, parallel=4).rankings(TARGETS, ITEMS) == expected()
    url, key, body = server.calls[0]
    assert (key, len(server.calls)) == ("Bearer no-key", 6)
    assert url == "http://127.0.0.1:8080/v1/chat/completions"
    assert body.keys() == {"model", "messages", "temperature"}
    assert (body["model"], body["temperature"]) == ("m", 0)
    call(base_url="http://127.0.0.1:9/v1", raters=1).rankings(["cat"], ITEMS)
    assert server.calls[6][0] == "http://127.0.0.1:9/v1/chat/completions"


@pytest.mark.parametrize(
    "behaviour",
    [
        send(503, headers={"retry-after-ms": "5"}),
        send(200, json={"choices": []}),
        send(200, html="<html>"),
        send(200, json=say(None)),
    ],
)
def test_a_failure_that_passes_is_tried_again(call, server, behaviour):
    server.script = [behaviour]
    assert call(raters=1).rankings(["cat"], ITEMS) == expected(["cat"], raters=1)
    assert len(server.calls) == 2


def test_what_trying_again_does_not_help_fails_at_once(call, server, log):
    server.script = [behave, send(404, json={"error": {"message": "No such thing"}})]
    message = failure(call(log=log))
    assert message.startswith("target 'cat', rater 'm#2': http://127.0.0.1:")
    assert "No such thing" in message
    assert "OPENAI_API_KEY" in message
    assert len(server.calls) == 2
    call(log=log).rankings(["cat"], ITEMS)
    assert len(server.calls) == 3


def test_the_key_goes_into_the_header_and_nowhere_else(call, server, log, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", f" {SECRET}\n")
    model = call(log=log, max_retries=1)
    model.rankings(["cat"], ITEMS)
    _, key, body = server.calls[0]
    assert key == f"Bearer {SECRET}"
    assert SECRET not in repr(model) + log.read_text() + json.dumps(body)
    for status in (200, 400):
        server.script = [repeat_key(status)] * 4
        assert SECRET not in failure(model, ["truck"])


@pytest.mark.parametrize(
    ("url", "key", "sent"),
    [
        ("https://example.invalid/v1", SECRET, SECRET),
        ("http://example.invalid/v1", SECRET, "no-key"),
        ("http://localhost:8080/v1", SECRET, SECRET),
        ("https://example.invalid/v1", "", "no-key"),
    ],
)
def test_the_key_is_only_sent_encrypted_or_to_this_machine(call, monkeypatch, url, key, sent):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    clients = []
    monkeypatch.setattr(openai, "OpenAI", lambda **options: clients.append(options))
    call(base_url=url)._connect()
    assert (clients[0]["base_url"], clients[0]["api_key"]) == (url, sent)


@pytest.mark.parametrize("key", ["", f"{SECRET}\nX-Other: 1", f"{SECRET} {SECRET}", f"{SECRET}é"])
def test_a_missing_or_malformed_key_is_refused_and_not_shown(call, server, monkeypatch, key):
    monkeypatch.delenv("OPENAI_BASE_URL")
    monkeypatch.setenv("OPENAI_API_KEY", key)
    message = failure(call())
    assert "OPENAI_API_KEY" in message
    assert SECRET not in message
    assert server.calls == []
