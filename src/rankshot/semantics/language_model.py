"""Rankings from a language model behind any OpenAI-compatible endpoint."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from math import ceil, isfinite
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from rankshot.core.errors import RankshotError, short_repr
from rankshot.core.names import as_names
from rankshot.core.progress import ProgressLine
from rankshot.ranking.rankings import Rankings
from rankshot.semantics.answer_log import AnswerLog, parse_answer
from rankshot.semantics.chat_endpoint import ChatEndpoint, Reply

PROMPT = """\
Which of the items below are most similar to {target}? Judge by what the words name and by how \
it looks in a photograph. Answer with the {k} most similar items, the most similar first, as one \
JSON list of strings, spelled as below, and with nothing else.

Items: {items}"""
RETRY_PROMPT = (
    "That cannot be used: {fault}. Answer with one JSON list of {k} different items, no more."
)
BYTES_PER_TOKEN = 2.7
"""Measured on this prompt and on answers to it with the 100 class names of CIFAR-100: 2.7 to 3.0
with each of three tokenizers (cl100k_base, o200k_base, Anthropic's published one)."""
MAX_QUOTE = 2000
"""Characters of a wrong answer that are sent back with the complaint: all are paid for."""


@dataclass(frozen=True)
class CostEstimate:
    """What a run will take, before it starts.

    Tokens are UTF-8 bytes divided by 2.7, which suits lists of English names. Answers that
    have to be asked again, and the hidden reasoning of models that have some, come on top.

    Attributes
    ----------
    calls, answered : int
        Questions to ask, and questions that the log answers already.
    prompt_tokens, answer_tokens : int
        Of all calls together.
    cost : float or None
        In the currency of the prices; None where none were given.
    """

    calls: int
    answered: int
    prompt_tokens: int
    answer_tokens: int
    cost: float | None

    def __str__(self) -> str:
        logged = f" ({self.answered:,} more are in the log)" if self.answered else ""
        money = "" if self.cost is None else f", at a cost of about {self.cost:,.4f}"
        return (
            f"{self.calls:,} calls{logged}, about {self.prompt_tokens:,} prompt tokens and "
            f"{self.answer_tokens:,} answer tokens{money}; at {BYTES_PER_TOKEN} bytes a token, "
            "without repeated questions and hidden reasoning"
        )


@dataclass(frozen=True)
class LanguageModel:
    """A language model that puts items in order of similarity to a target.

    Each of the ``raters`` is a call of its own, with the items in another order: a model
    favours what it reads first, and only a fresh shuffle turns that into noise that averaging
    removes. The shuffles depend on the seed, the target and the rater alone, so that a run
    that was interrupted goes on with the same questions. The model's own randomness is the
    endpoint's affair: no seed is sent, since some endpoints refuse one.

    Parameters
    ----------
    model : str
        The name by which the endpoint knows the model; also the source of the rankings.
    base_url : str
        The endpoint's address before ``/chat/completions``.
    raters : int
        Calls for each target.
    k : int
        How many items are put in order, of all that are shown.
    temperature : float
        Of the model's sampling; at 0 the raters differ by their shuffles only.
    seed : int
        Of the shuffles.
    timeout : float
        Seconds for one answer.
    max_retries : int
        How often a call that failed is repeated, and how often a wrong answer is asked again.
    log : path or None
        A .jsonl file that keeps every answer as soon as it is there, with all that led to it.
        The next run with the same file asks only what is missing, and `read_rankings` reads it.
    key_variable : str or None
        The environment variable with the key, read at each call; None sends no key. It may be
        unset for servers on this machine.
    prompt_price, answer_price : float or None
        Per million tokens, both or neither, for `estimate`.

    Examples
    --------
    >>> model = LanguageModel("some-model", "http://localhost:8080/v1", k=2,
    ...     prompt_price=0.15, answer_price=0.60)
    >>> print(model.estimate(["cat", "truck"], ["tiger", "bus", "whale"]))
    10 calls, about 1,055 prompt tokens and 70 answer tokens, at a cost of about 0.0002;
    at 2.7 bytes a token, without repeated questions and hidden reasoning

    With a server at that address, ``model.rankings(["cat", "truck"], ["tiger", "bus", "whale"])``
    returns ten top-2 rankings.
    """

    model: str
    base_url: str
    raters: int = 5
    k: int = 10
    temperature: float = 1.0
    seed: int = 0
    timeout: float = 120.0
    max_retries: int = 5
    log: str | Path | None = None
    key_variable: str | None = "OPENAI_API_KEY"
    prompt_price: float | None = None
    answer_price: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.model, str) or not self.model:
            raise RankshotError(f"model must be a name, not {short_repr(self.model)}")
        for name, least in (("raters", 1), ("k", 1), ("seed", 0), ("max_retries", 0)):
            self._check_number(name, Integral, least)
        self._check_number("temperature", Real, 0)
        self._check_number("timeout", Real, 0.001)
        for name in ("prompt_price", "answer_price"):
            if getattr(self, name) is not None:
                self._check_number(name, Real, 0)
        self._endpoint()

    def _check_number(self, name: str, kind: type, least: float) -> None:
        value = getattr(self, name)
        is_number = isinstance(value, kind) and not isinstance(value, bool)
        if not is_number or not isfinite(value) or value < least:
            what = "a whole number" if kind is Integral else "a number"
            raise RankshotError(f"{name} must be {what}, at least {least}, not {short_repr(value)}")
        # As plain numbers of one type: in a log, 1 is not 1.0, and NumPy's have no place.
        object.__setattr__(self, name, int(value) if kind is Integral else float(value))

    def rankings(
        self, targets: Iterable[Any], items: Iterable[Any], *, verbose: bool = False
    ) -> Rankings:
        """Ask every rater about every target, and return top-k rankings of the items.

        A question that stays without a usable answer raises `RankshotError`, which names the
        target and the rater; what was answered before is in the log.

        Parameters
        ----------
        targets, items : iterables of names
            What is to be described, and what it is compared with.
        verbose : bool
            Show the progress on standard error.
        """
        names = as_names(items)
        questions = self._questions(as_names(targets, "targets"), names)
        log = self._answer_log()
        log.prepare()
        orders: list[list[str]] = []
        with ProgressLine(self.model, enabled=verbose) as line:
            for question in questions:
                orders.append(log.find(question) or self._ask(question, log))
                line.update(f"{len(orders):,} of {len(questions):,} answers")
        return Rankings.from_orders(
            orders,
            items=names,
            targets=[question["target"] for question in questions],
            sources=self.model,
            raters=[question["rater"] for question in questions],
        )

    def estimate(self, targets: Iterable[Any], items: Iterable[Any]) -> CostEstimate:
        """Return what `rankings` would take now, leaving out what the log answers already."""
        names = as_names(items)
        questions = self._questions(as_names(targets, "targets"), names)
        log = self._answer_log()
        open_ones = [question for question in questions if log.find(question) is None]
        prompts = sum(_estimate_tokens(_format_prompt(question)) for question in open_ones)
        # Which items will be chosen is unknown: an answer is k items of average length.
        answers = len(open_ones) * ceil(_estimate_tokens(_as_json(names)) * self.k / len(names))
        cost = None
        if self.prompt_price is not None and self.answer_price is not None:
            cost = (prompts * self.prompt_price + answers * self.answer_price) / 1e6
        answered = len(questions) - len(open_ones)
        return CostEstimate(len(open_ones), answered, prompts, answers, cost)

    def _endpoint(self) -> ChatEndpoint:
        return ChatEndpoint(self.base_url, self.timeout, self.max_retries, self.key_variable)

    def _answer_log(self) -> AnswerLog:
        return AnswerLog(None if self.log is None else Path(self.log))

    def _questions(self, targets: tuple[str, ...], items: tuple[str, ...]) -> list[dict[str, Any]]:
        if self.k > len(items):
            raise RankshotError(f"k={self.k} is more than the {len(items)} items")
        return [
            {
                "target": target,
                "rater": f"{self.model}#{number}",
                "model": self.model,
                "prompt": PROMPT,
                "k": self.k,
                "temperature": self.temperature,
                "seed": self.seed,
                "items": _shuffle_items(items, self.seed, target, number),
            }
            for target in targets
            for number in range(1, self.raters + 1)
        ]

    def _ask(self, question: dict[str, Any], log: AnswerLog) -> list[str]:
        """Ask until the answer is a ranking, write it down, and return it."""
        endpoint = self._endpoint()
        messages = [{"role": "user", "content": _format_prompt(question)}]
        replies: list[Reply] = []
        for _ in range(self.max_retries + 1):
            try:
                replies.append(endpoint.complete(self.model, messages, self.temperature))
            except RankshotError as error:
                raise self._lost(question, log, str(error)) from None
            text = replies[-1].text
            try:
                ranking = parse_answer(text, question["items"], self.k)
            except RankshotError as error:
                fault = str(error)
            else:
                log.add(question, {"ranking": ranking, **self._beside(replies)})
                return ranking
            # Some endpoints refuse a turn that says nothing.
            wrong = {"role": "assistant", "content": text[:MAX_QUOTE] or "(no answer)"}
            again = {"role": "user", "content": RETRY_PROMPT.format(fault=fault, k=self.k)}
            messages += [wrong, again]
        problem = f"{len(replies)} wrong answers; the last is {short_repr(text)}: {fault}"
        raise self._lost(question, log, problem)

    def _beside(self, replies: list[Reply]) -> dict[str, Any]:
        """Return what the log keeps beside a ranking: tokens of all the asking it took."""
        return {
            "source": self.model,
            "asked": len(replies),
            "prompt_tokens": _sum_known(reply.prompt_tokens for reply in replies),
            "answer_tokens": _sum_known(reply.answer_tokens for reply in replies),
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
        }

    def _lost(self, question: dict[str, Any], log: AnswerLog, problem: str) -> RankshotError:
        kept = f"; what was answered is in {log.path}, run again to go on" if log.path else ""
        return RankshotError(
            f"target {question['target']!r}, rater {question['rater']!r}: {problem}{kept}"
        )


def _shuffle_items(items: tuple[str, ...], seed: int, target: str, number: int) -> list[str]:
    """Put items in an order that looks random, and is the same wherever this is run.

    Sorting by a hash is a shuffle that no version of Python or NumPy will change, and that does
    not depend on the order in which the caller lists the items: answers in a log stay valid.
    """
    call = json.dumps([seed, target, number]).encode()
    return sorted(
        items, key=lambda item: sha256(call + item.encode(errors="surrogatepass")).digest()
    )


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _format_prompt(question: dict[str, Any]) -> str:
    target, items = _as_json(question["target"]), _as_json(question["items"])
    return str(question["prompt"]).format(target=target, k=question["k"], items=items)


def _estimate_tokens(text: str) -> int:
    return ceil(len(text.encode(errors="replace")) / BYTES_PER_TOKEN)


def _sum_known(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
