"""`LanguageModel`: rankings by a language model behind any OpenAI-compatible endpoint."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil, inf
from pathlib import Path
from typing import Any

from rankshot.core.errors import RankshotError, format_count, short_repr
from rankshot.core.progress import ProgressLine
from rankshot.core.validation import as_names, require_number, require_whole_number, shuffle_names
from rankshot.ranking.rankings import Rankings
from rankshot.sources.answer_log import AnswerLog
from rankshot.sources.answers import parse_answer
from rankshot.sources.chat_endpoint import ChatEndpoint, Reply
from rankshot.sources.pace import Pace, call_in_threads
from rankshot.sources.questions import (
    BYTES_PER_TOKEN,
    Question,
    as_json,
    choose_length,
    estimate_tokens,
    format_prompt,
    make_question,
)

RETRY_PROMPT = (
    "That cannot be used: {fault}. Answer with one JSON list of {k} different items, no more."
)
MAX_QUOTE = 2000
"""The most characters of an invalid answer that are sent back: every token costs money."""


@dataclass(frozen=True)
class CostEstimate:
    """An estimate of the calls, tokens and cost of a run, before it starts.

    Tokens are UTF-8 bytes divided by 2.7, which suits lists of English names. Repeated calls
    after invalid answers, and hidden reasoning of a model, are not included.

    Attributes
    ----------
    calls, answered : int
        The number of questions to ask, and of questions that the log already answers.
    prompt_tokens, answer_tokens : int
        The number of tokens of all calls together.
    cost : float or None
        In the currency of the prices; None if no prices were given.

    Examples
    --------
    >>> import rankshot as rs
    >>> model = rs.LanguageModel("some-model", "http://localhost:8080/v1", k=2, raters=1)
    >>> found = model.estimate(["cat", "truck"], ["tiger", "bus", "whale"])
    >>> found.calls, found.answered, found.cost
    (2, 0, None)
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
            f"{format_count(self.calls, 'call')}{logged}, about "
            f"{format_count(self.prompt_tokens, 'prompt token')} and "
            f"{format_count(self.answer_tokens, 'answer token')}{money}; at {BYTES_PER_TOKEN} "
            "bytes per token, without repeated questions and hidden reasoning"
        )


@dataclass(frozen=True)
class LanguageModel:
    """Rankings of items for a target, by a language model.

    The model is asked what a classifier that knows only the items would say to inputs of the
    target. Each of the ``raters`` is a separate call with the items in another order: a model
    favours what it reads first, and only a new shuffle turns this bias into noise that averaging
    removes. The shuffles depend only on the seed, the target and the rater, so that an interrupted
    run continues with the same questions. No seed is sent to the endpoint, since some endpoints
    refuse one, so the model's own sampling is not reproducible.

    Parameters
    ----------
    model : str
        The name of the model at the endpoint; also the source of the rankings.
    base_url : str
        The endpoint's address before ``/chat/completions``.
    raters : int
        The number of calls for each target.
    k : int, optional
        The number of items in a ranking, out of all items in the prompt. The default is 15, or
        all items if there are fewer.
    temperature : float
        The temperature of the model's sampling; at 0 the raters differ only by their shuffles.
    seed : int
        The seed of the shuffles.
    timeout : float
        Seconds for one answer.
    max_retries : int
        How often a call is repeated after a failure, and a question after an invalid answer.
    log : path or None
        A .jsonl file that stores every answer, with its question, as soon as it arrives. The next
        run with the same file asks only the missing questions. `read_rankings` reads it, too.
    key_variable : str or None
        The environment variable with the API key, read at each call; None sends no key. It may
        be unset for servers on this machine.
    prompt_price, answer_price : float or None
        Prices per million tokens, for `estimate`; both or neither.
    question : str
        ``"images"``: which items would an image classifier say most often? ``"text"``: the same
        for a classifier of texts. ``"similar"``: which items are most similar? Or a template that
        asks for a JSON list, with the fields {target}, {items} and {k}.
    inputs : str, optional
        What the classifier gets, in the plural; the default is "ordinary photographs" or "texts".
    parallel : int
        The number of calls at the same time. The rankings do not depend on it.

    Examples
    --------
    >>> from rankshot import LanguageModel
    >>> model = LanguageModel("some-model", "http://localhost:8080/v1", k=2,
    ...     prompt_price=0.15, answer_price=0.60)
    >>> print(model.estimate(["cat", "truck"], ["tiger", "bus", "whale"]))
    10 calls, about 2,100 prompt tokens and 70 answer tokens, at a cost of about 0.0004;
    at 2.7 bytes per token, without repeated questions and hidden reasoning

    With a server at that address, ``model.rankings(["cat", "truck"], ["tiger", "bus", "whale"])``
    returns ten top-2 rankings.
    """

    model: str
    base_url: str
    raters: int = 5
    k: int | None = None
    temperature: float = 1.0
    seed: int = 0
    timeout: float = 120.0
    max_retries: int = 5
    log: str | Path | None = None
    key_variable: str | None = "OPENAI_API_KEY"
    prompt_price: float | None = None
    answer_price: float | None = None
    question: str = "images"
    inputs: str | None = None
    parallel: int = 4

    def __post_init__(self) -> None:
        if not isinstance(self.model, str) or not self.model:
            raise RankshotError(f"model must be a name, not {short_repr(self.model)}")
        # As Python's own int and float: 1 and 1.0 differ in a log, and JSON has no NumPy numbers.
        least_of = {"raters": 1, "seed": 0, "max_retries": 0, "parallel": 1}
        for name, lowest in (least_of | ({} if self.k is None else {"k": 1})).items():
            whole = require_whole_number(name, getattr(self, name), least=lowest)
            object.__setattr__(self, name, whole)
        prices = [p for p in ("prompt_price", "answer_price") if getattr(self, p) is not None]
        for name, least in {"temperature": 0, "timeout": 0.001, **dict.fromkeys(prices, 0)}.items():
            number = require_number(name, getattr(self, name), least=least, below=inf)
            object.__setattr__(self, name, number)
        self._question()
        self._endpoint(Pace())

    def rankings(
        self, targets: Iterable[Any], items: Iterable[Any], *, verbose: bool = False
    ) -> Rankings:
        """Ask every rater about every target, and return top-k rankings of the items.

        A question without a valid answer raises a `RankshotError` that names the target and the
        rater; the other answers are in the log. So they are after Ctrl-C. If another process uses
        the same log, the two share the work, and no question is asked twice.

        Parameters
        ----------
        targets, items : iterables of names
            The names to rank for, and the names to be ranked.
        verbose : bool
            Show the progress on standard error.
        """
        names = as_names(items)
        questions = self._questions(as_names(targets, "targets"), names)
        with (
            self._answer_log() as log,
            ProgressLine(self.model, enabled=verbose) as line,
        ):
            orders = self._find_orders(questions, log, line)
        return Rankings.from_orders(
            orders,
            items=names,
            targets=[question["target"] for question in questions],
            sources=self.model,
            raters=[question["rater"] for question in questions],
        )

    def estimate(self, targets: Iterable[Any], items: Iterable[Any]) -> CostEstimate:
        """Estimate what `rankings` would cost now, without the questions that the log answers."""
        names = as_names(items)
        questions = self._questions(as_names(targets, "targets"), names)
        log = self._answer_log()
        open_ones = [question for question in questions if log.find(question) is None]
        prompts = sum(estimate_tokens(_format_prompt(question)) for question in open_ones)
        # Which items will be chosen is unknown: assume k items of average length.
        k = choose_length(self.k, names)
        answers = len(open_ones) * ceil(estimate_tokens(as_json(names)) * k / len(names))
        cost = None
        if self.prompt_price is not None and self.answer_price is not None:
            cost = (prompts * self.prompt_price + answers * self.answer_price) / 1e6
        answered = len(questions) - len(open_ones)
        return CostEstimate(len(open_ones), answered, prompts, answers, cost)

    def _endpoint(self, pace: Pace) -> ChatEndpoint:
        return ChatEndpoint(self.base_url, self.timeout, self.max_retries, self.key_variable, pace)

    def _question(self) -> Question:
        return make_question(self.question, self.inputs)

    def _answer_log(self) -> AnswerLog:
        return AnswerLog(None if self.log is None else Path(self.log))

    def _questions(self, targets: tuple[str, ...], items: tuple[str, ...]) -> list[dict[str, Any]]:
        k, template = choose_length(self.k, items), self._question().template
        return [
            {
                "target": target,
                "rater": f"{self.model}#{number}",
                "model": self.model,
                "prompt": template,
                "k": k,
                "temperature": self.temperature,
                "seed": self.seed,
                "items": shuffle_names(items, [self.seed, target, number]),
            }
            for target in targets
            for number in range(1, self.raters + 1)
        ]

    def _find_orders(
        self, questions: list[dict[str, Any]], log: AnswerLog, line: ProgressLine
    ) -> list[list[str]]:
        """Return the answers in the order of the questions; those that the log lacks are asked."""
        pace = Pace()
        endpoint = self._endpoint(pace)

        def answer(number: int) -> list[str] | None:
            question = questions[number]
            if log.claim(question):
                return self._ask(question, log, endpoint)
            # Another process has answered it, or is asking: then this is None, for now.
            return log.find(question)

        found = {i: order for i, question in enumerate(questions) if (order := log.find(question))}
        open_ones = [i for i in range(len(questions)) if i not in found]
        found |= call_in_threads(
            answer,
            open_ones,
            self.parallel,
            pace,
            lambda done: line.update(
                f"{done + len(questions) - len(open_ones):,} of {len(questions):,} answers"
            ),
        )
        return [found[i] for i in range(len(questions))]

    def _ask(self, question: dict[str, Any], log: AnswerLog, endpoint: ChatEndpoint) -> list[str]:
        """Ask until the answer is a valid ranking, store it in the log, and return it."""
        messages = [{"role": "user", "content": _format_prompt(question)}]
        replies: list[Reply] = []
        for _ in range(self.max_retries + 1):
            try:
                replies.append(endpoint.complete(self.model, messages, self.temperature))
            except RankshotError as error:
                raise self._no_answer_error(question, log, str(error)) from None
            text = replies[-1].text
            try:
                ranking = parse_answer(text, question["items"], question["k"])
            except RankshotError as error:
                fault = str(error)
            else:
                log.add(question, {"ranking": ranking, **self._log_details(replies)})
                return ranking
            # Some endpoints refuse an empty message.
            wrong = {"role": "assistant", "content": text[:MAX_QUOTE] or "(no answer)"}
            again = {"role": "user", "content": RETRY_PROMPT.format(fault=fault, k=question["k"])}
            messages += [wrong, again]
        problem = f"{len(replies)} invalid answers; the last is {short_repr(text)}: {fault}"
        raise self._no_answer_error(question, log, problem)

    def _log_details(self, replies: list[Reply]) -> dict[str, Any]:
        """Return the fields that the log stores with a ranking; tokens are those of all calls."""
        return {
            "source": self.model,
            "asked": len(replies),
            "prompt_tokens": _sum_known(reply.prompt_tokens for reply in replies),
            "answer_tokens": _sum_known(reply.answer_tokens for reply in replies),
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
        }

    def _no_answer_error(
        self, question: dict[str, Any], log: AnswerLog, problem: str
    ) -> RankshotError:
        hint = f"; earlier answers are in {log.path}: run again to continue" if log.path else ""
        return RankshotError(
            f"target {question['target']!r}, rater {question['rater']!r}: {problem}{hint}"
        )


def _format_prompt(question: dict[str, Any]) -> str:
    return format_prompt(question["prompt"], question["target"], question["items"], question["k"])


def _sum_known(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
