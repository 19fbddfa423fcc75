"""`LanguageModel`: rankings by a language model, through the openai client or any function."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import ceil, inf
from multiprocessing.pool import ThreadPool
from pathlib import Path
from threading import Lock
from typing import Any, Self
from urllib.parse import urlsplit

from tqdm.auto import tqdm

from rankshot.core.errors import NO_VALUE, InputError, RankshotError, format_count
from rankshot.core.files import append_line, require_ending
from rankshot.core.validation import (
    as_names,
    require_module,
    require_number,
    require_whole_number,
    shuffle_names,
)
from rankshot.ranking.rankings import Rankings
from rankshot.sources.answers import read_answers
from rankshot.sources.prompts import (
    BYTES_PER_TOKEN,
    as_json,
    choose_length,
    estimate_tokens,
    make_question,
)

Ask = Callable[[str], str]
"""From a prompt to the answer of a language model."""
RETRY_PROMPT = """{prompt}

Your last answer was:
{answer}

That cannot be used: {fault}. Answer with one JSON list of {k} different items, no more."""
MAX_QUOTE = 2000
"""The most characters of an invalid answer that are sent back: every token costs money."""
KEY_VARIABLE, URL_VARIABLE = "OPENAI_API_KEY", "OPENAI_BASE_URL"
NO_KEY = "no-key"
"""What is sent where no key is needed, or must not be sent: the client insists on one."""
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
ADVICE = (
    f"check the model's name, base_url (it usually ends in /v1) and the key in {KEY_VARIABLE}, and "
    "whether the model accepts this temperature"
)
QUESTION_FIELDS = ("target", "rater", "model", "prompt", "k", "temperature", "seed", "items")
"""The fields that identify a question: a stored answer is used only if all of them are equal."""
LINE_START = b'{"target": '
"""The start of every line of a log; it identifies an incomplete last line as part of a log."""


@dataclass(frozen=True)
class CostEstimate:
    """An estimate of the calls and tokens of a run, before it starts.

    Tokens are UTF-8 bytes divided by 2.7, which suits lists of English names. Repeated calls
    after invalid answers, and hidden reasoning of a model, are not included.

    Attributes
    ----------
    calls, answered : int
        The number of questions to ask, and of questions already answered in the log.
    prompt_tokens, answer_tokens : int
        The total number of tokens over all calls.

    Examples
    --------
    >>> import rankshot as rs
    >>> model = rs.LanguageModel("some-model", "http://localhost:8080/v1", k=2, raters=1)
    >>> found = model.estimate(["cat", "truck"], ["tiger", "bus", "whale"])
    >>> found.calls, found.answered
    (2, 0)
    """

    calls: int
    answered: int
    prompt_tokens: int
    answer_tokens: int

    def __str__(self) -> str:
        logged = f" ({self.answered:,} more are in the log)" if self.answered else ""
        return (
            f"{format_count(self.calls, 'call')}{logged}, about "
            f"{format_count(self.prompt_tokens, 'prompt token')} and "
            f"{format_count(self.answer_tokens, 'answer token')}; at {BYTES_PER_TOKEN} "
            "bytes per token, without repeated questions or hidden reasoning"
        )


@dataclass(frozen=True)
class LanguageModel:
    """A source that asks a language model to rank the items for each target.

    The model is asked what a classifier that knows only the items would predict for inputs of the
    target. Each of the ``raters`` is a separate call with the items in a different order: a model
    favours what it reads first, and only a new shuffle turns this bias into noise that averaging
    removes. The shuffles depend only on the seed, the target and the rater, so that an interrupted
    run continues with the same questions. The model's own sampling is not reproducible: no seed is
    sent, since some endpoints reject it.

    The ``openai`` client (extra ``llm``) calls the endpoint, waits if a rate limit requires it, and
    repeats calls that fail. The key, if the server needs one, is the environment variable
    ``OPENAI_API_KEY``. It is only sent over https or to this machine, and is never written to files
    or messages.

    Parameters
    ----------
    model : str
        The name of the model at the endpoint; it becomes the source of the rankings.
    base_url : str, optional
        The address of any server with OpenAI's chat protocol, without ``/chat/completions``. The
        default is the environment variable ``OPENAI_BASE_URL``, or OpenAI's own address.
    raters : int
        The number of calls for each target.
    k : int, optional
        The number of items in a ranking. The default is 15, or all items if there are fewer.
    temperature : float
        The temperature of the model's sampling; at 0 the raters differ only in their shuffles.
    seed : int
        The seed of the shuffles.
    timeout : float
        The time limit for one answer, in seconds.
    max_retries : int
        How often a failed call is repeated, and how often a question is repeated after an invalid
        answer.
    log : path or None
        A .jsonl file that stores every answer as soon as it arrives, for one process at a time. The
        next run asks only the missing questions. `read_rankings` reads it as well.
    question : str
        ``"images"``: which items would an image classifier predict most often? ``"text"``: the same
        for a text classifier. ``"contrast"``: which items would it predict more often than for the
        other targets? ``"any"``: the first question for other ``inputs``, such as ``"sound
        recordings"``. ``"similar"``: which items are most similar? Or a template that asks for a
        JSON list, with the fields {target}, {items} and {k}, and perhaps {classes}: all targets.
    inputs : str, optional
        The kind of inputs of the classifier, in the plural; the default is "ordinary photographs"
        or "texts".
    parallel : int
        The number of concurrent calls. The rankings do not depend on it.
    ask : callable, optional
        A function from a prompt to an answer, in place of the client; several threads call it.

    Examples
    --------
    >>> from rankshot import LanguageModel
    >>> model = LanguageModel("some-model", "http://localhost:8080/v1", k=2)
    >>> print(model.estimate(["cat", "truck"], ["tiger", "bus", "whale"]))
    10 calls, about 2,135 prompt tokens and 70 answer tokens; at 2.7 bytes per token, without
    repeated questions or hidden reasoning

    With a server at that address, ``model.rankings(["cat", "truck"], ["tiger", "bus", "whale"])``
    returns ten top-2 rankings. Any function can take its place:

    >>> model = LanguageModel("me", ask=lambda prompt: '["tiger", "whale"]', k=2, raters=1)
    >>> model.rankings(["cat"], ["tiger", "bus", "whale"])
    Rankings: 1 ranking of 3 items, 1 target, 1 source, 1 rater
      cat: tiger > whale
    """

    model: str
    base_url: str | None = None
    raters: int = 5
    k: int | None = None
    temperature: float = 1.0
    seed: int = 0
    timeout: float = 120.0
    max_retries: int = 5
    log: str | Path | None = None
    question: str = "images"
    inputs: str | None = None
    parallel: int = 4
    ask: Ask | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name, least in {"raters": 1, "seed": 0, "max_retries": 0, "parallel": 1}.items():
            require_whole_number(name, getattr(self, name), least=least)
        require_number("timeout", self.timeout, least=0.001, below=inf)
        require_number("temperature", self.temperature, least=0, below=inf)
        # The message shows nothing of an address, which may hold a password.
        if self.base_url is not None and not re.fullmatch(r"https?://[^@?#\s]+", self.base_url):
            rule = (
                "must be an address such as 'http://localhost:8080/v1', without user and password"
            )
            hint = f"a key belongs in the environment variable {KEY_VARIABLE}"
            raise InputError("base_url", NO_VALUE, rule, hint=hint)
        make_question(self.question, self.inputs)

    def rankings(self, targets: Iterable[object], items: Iterable[object]) -> Rankings:
        """Ask every rater about every target, and return top-k rankings of the items.

        A question without a valid answer raises a `RankshotError` that names the target and the
        rater; the other answers are in the log. The same holds after Ctrl-C.

        Parameters
        ----------
        targets, items : iterables of names
            The names to rank for, and the names to be ranked.
        """
        names = as_names(items)
        questions = self._list_questions(as_names(targets, "targets"), names)
        # On a terminal only.
        bar = tqdm(desc=self.model, total=len(questions), unit="answer", disable=None)
        with AnswerLog(self.log) as log, bar:
            open_ones = log.list_open(questions)
            bar.update(len(questions) - len(open_ones))
            if open_ones:
                self._ask_all(open_ones, log, bar)
        return Rankings.from_orders(
            [log.find(question) or [] for question in questions],
            items=names,
            targets=[question["target"] for question in questions],
            sources=self.model,
            raters=[question["rater"] for question in questions],
        )

    def estimate(self, targets: Iterable[object], items: Iterable[object]) -> CostEstimate:
        """Estimate what `rankings` would cost now, without the questions that the log answers."""
        names = as_names(items)
        questions = self._list_questions(as_names(targets, "targets"), names)
        open_ones = AnswerLog(self.log).list_open(questions)
        prompts = sum(estimate_tokens(write_prompt(question)) for question in open_ones)
        # Which items will be chosen is unknown: assume k items of average length.
        k = choose_length(self.k, names)
        answers = len(open_ones) * ceil(estimate_tokens(as_json(names)) * k / len(names))
        return CostEstimate(len(open_ones), len(questions) - len(open_ones), prompts, answers)

    def _list_questions(
        self, targets: tuple[str, ...], items: tuple[str, ...]
    ) -> list[dict[str, Any]]:
        k = choose_length(self.k, items)
        template = make_question(self.question, self.inputs, targets).template
        return [
            {
                "target": target,
                "rater": f"{self.model}#{number}",
                "model": self.model,
                "prompt": template,
                "k": min(k, len(others)),
                # As Python's own numbers: 1 and 1.0 differ in a log, and JSON has none of NumPy.
                "temperature": float(self.temperature),
                "seed": int(self.seed),
                "items": shuffle_names(others, [int(self.seed), target, number]),
            }
            for target in targets
            for others in [[name for name in items if name != target]]
            for number in range(1, self.raters + 1)
        ]

    def _ask_all(self, questions: list[dict[str, Any]], log: AnswerLog, bar: Any) -> None:
        """Ask some questions, and store the answers in the log."""
        ask, failures = self.ask or self._connect(), list[Exception]()

        def answer(question: dict[str, Any]) -> None:
            # After a failure, no question is begun, but those under way are paid: they are
            # completed.
            if not failures:
                try:
                    self._ask_until_valid(question, log, ask)
                    bar.update()
                except Exception as error:  # noqa: BLE001 - raised below, in the caller's thread
                    failures.append(error)

        # Its threads are daemons: after Ctrl-C nobody waits for a slow answer.
        with ThreadPool(min(self.parallel, len(questions))) as pool:
            pool.map(answer, questions, chunksize=1)
        if failures:
            raise failures[0]

    def _ask_until_valid(self, question: dict[str, Any], log: AnswerLog, ask: Ask) -> None:
        """Ask until the answer is a valid ranking, and store it in the log."""
        first = prompt = write_prompt(question)
        who = f"target {question['target']!r}, rater {question['rater']!r}"
        for asked in range(1, self.max_retries + 2):
            try:
                text = ask(prompt)
            except RankshotError as error:
                raise RankshotError(f"{who}: {error}{_describe_log(log)}") from None
            found = read_answers(text, [question["target"]], question["items"], question["k"])
            fault = "; ".join(found.notes)
            if not fault:
                time = datetime.now(UTC).isoformat(timespec="seconds")
                ranking = found.orders[question["target"]]
                details = {"source": self.model, "asked": asked, "time": time}
                log.add(question, {"ranking": ranking, **details})
                return
            prompt = RETRY_PROMPT.format(
                prompt=first, answer=text[:MAX_QUOTE], fault=fault, k=question["k"]
            )
        problem = f"{fault} (the last of {asked} invalid answers){_describe_log(log)}"
        raise InputError("answer", text, problem, where=who)

    def _connect(self) -> Ask:
        """Return a function that asks the endpoint, by the openai client."""
        openai = require_module("openai", "language models", "llm")
        url = self.base_url or os.environ.get(URL_VARIABLE) or None
        key = os.environ.get(KEY_VARIABLE, "").strip()
        if not re.fullmatch(r"[!-~]*", key) or not (key or url):
            raise RankshotError(f"set {KEY_VARIABLE}, in the environment, to the endpoint's key")
        address = urlsplit(url or "https://")
        is_private = address.scheme == "https" or address.hostname in LOCAL_HOSTS
        client = openai.OpenAI(
            base_url=url,
            api_key=key if key and is_private else NO_KEY,
            timeout=self.timeout,
            max_retries=self.max_retries,
        )

        def hide_key(text: str) -> str:
            # Local servers take a dummy, which an item may contain.
            return text.replace(key, "[key]") if len(key) >= 8 else text

        def ask(prompt: str) -> str:
            messages = [{"role": "user", "content": prompt}]
            try:
                answer = client.chat.completions.create(
                    model=self.model, messages=messages, temperature=self.temperature
                )
                text = answer.choices[0].message.content
            except openai.OpenAIError as error:
                problem = hide_key(f"{client.base_url}: {error}")[:400]
                raise RankshotError(f"{problem}; {ADVICE}") from None
            except (ValueError, LookupError, TypeError, AttributeError):
                # Not the answer of a chat endpoint: the question is asked again.
                return ""
            # Models that decline to answer send no content.
            return hide_key(text) if isinstance(text, str) else ""

        return ask


class AnswerLog:
    """A log of answers: a file of JSON lines, which is also a file of rankings.

    For every answer, one line is appended and flushed to the disk. After a crash, only the last
    line can be incomplete: it is dropped, and its question is asked again. Answers to other
    questions (another model, other items, another prompt) stay in the file and are not used.
    """

    def __init__(self, path: str | Path | None) -> None:
        self.path = None if path is None else Path(path)
        self._rankings: dict[str, list[str]] = {}
        self._lock = Lock()
        self._size = 0
        """The length of the complete lines."""
        if self.path is not None:
            require_ending(self.path, (".jsonl",))
            if self.path.exists():
                self._read(self.path)

    def __enter__(self) -> Self:
        """Open the file, and drop an incomplete last line."""
        if self.path is not None:
            self._file = self.path.open("ab", buffering=0)
            self._file.truncate(self._size)
        return self

    def __exit__(self, *_: object) -> None:
        if self.path is not None:
            # With the lock, so that no thread is in the middle of a line.
            with self._lock:
                self._file.close()

    def find(self, question: Mapping[str, object]) -> list[str] | None:
        """Return the stored ranking that answers this question, or None."""
        return self._rankings.get(_identify(question))

    def list_open(self, questions: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the questions without an answer."""
        return [question for question in questions if self.find(question) is None]

    def add(self, question: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        """Append a question and its answer; they are on the disk when this returns."""
        self._rankings[_identify(question)] = answer["ranking"]
        if self.path is None:
            return
        # JSON in ASCII: a name that UTF-8 cannot encode must not lose an answer that was paid.
        line = (json.dumps({"target": question["target"], **answer, **question}) + "\n").encode()
        with self._lock:
            append_line(self._file, line, self.path)

    def _read(self, path: Path) -> None:
        *lines, tail = path.read_bytes().split(b"\n")
        self._size = sum(len(line) + 1 for line in lines)
        # What is incomplete must be the beginning of our own line, or the file is something else.
        is_ours = tail[: len(LINE_START)] == LINE_START[: len(tail)]
        for number, line in enumerate(lines if is_ours else [*lines, tail], 1):
            try:
                record = json.loads(line) if line.strip() else {"ranking": []}
                ranking = record["ranking"]
            except (ValueError, LookupError, TypeError, RecursionError):
                ranking = None
            if type(ranking) is not list:
                written, where = line.decode(errors="replace"), f"{path}, line {number}"
                raise InputError("log", written, "must be an answer log", where=where)
            # Rankings from other sources, without items, may be in the same file.
            if "items" in record:
                self._rankings.setdefault(_identify(record), ranking)


def write_prompt(question: Mapping[str, Any]) -> str:
    """Return the prompt of a question, in which names are quoted as in JSON."""
    fields = {"target": as_json(question["target"]), "items": as_json(question["items"])}
    return str(question["prompt"].format(k=question["k"], **fields))


def _identify(question: Mapping[str, object]) -> str:
    return json.dumps([question.get(name) for name in QUESTION_FIELDS])


def _describe_log(log: AnswerLog) -> str:
    """Return where earlier answers are, if there are any."""
    if log.path is None or not (log.path.is_file() and log.path.stat().st_size):
        return ""
    return f"; earlier answers are in {log.path}: run again to continue"
