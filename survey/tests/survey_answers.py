"""Answers to a survey, written by hand or by simulated participants."""

import numpy as np

from rankshot.ranking.models.mallows import Mallows
from rankshot_survey.answers import Answer
from rankshot_survey.study import Question
from small_studies import small_study


def answer(rater, question, order, *, number=1, repeat=False, seconds=9.0):
    """An answer; ``order`` may be a string of one-letter items."""
    return Answer(rater, question, number, repeat, question.items, tuple(order), seconds, 0.0)


def study_of(questions, *, unshown="unknown", items=None, **settings):
    """Return a study of these questions."""
    items = items or sorted({item for question in questions for item in question.items})
    plan = {"title": "A study", "answers_per_question": 20, "questions_per_participant": 10}
    study = {"items": items, "unshown": unshown, "questions": questions, "repeats": 1}
    return small_study(**plan | study | settings)


def sample_around(orders, spread, rng):
    """Orders drawn from Mallows models around the rows of ``orders``."""
    n, n_items = orders.shape
    around = Mallows.from_center([f"{i:03d}" for i in range(n_items)], spread)
    numbers = around.sample(n, random_state=rng).codes.reshape(n, n_items)
    return np.take_along_axis(orders, numbers, axis=1)


def halves(n_raters, n_targets, rng):
    """Half of the targets for each rater, so that each target has half of the raters."""
    rows = [rng.permutation(n_targets) for _ in range(n_raters // 2)]
    return np.array(rows).reshape(n_raters, n_targets // 2)


class Simulation:
    """A study of 20 targets with 10 items, each answered by 20 of 40 participants.

    A careful participant's opinion scatters around the truth with spread ``between``, and the
    answers scatter around the opinion with spread ``within``. The first ``n_random`` are not
    careful but answer at random, and two are one person, who says the same where both get the
    same question: about half of them. Everybody answers 10 questions, one of them twice, and a
    gold one; skips one in 20; and takes 12 seconds or, at random, 2.5, give or take.
    """

    def __init__(self, seed, *, between=0.7, within=1.0, n_random=4, shortest=2, longest=10):
        self.rng = np.random.default_rng(seed)
        n_raters, n_targets, n_items = 40, 20, 10
        self.raters = [f"{rater:016x}" for rater in range(n_raters)]
        self.random = set(self.raters[:n_random])
        # Raters 2 i and 2 i + 1 get different questions.
        self.twins = {self.raters[-3], self.raters[-1]}
        self.careful = set(self.raters) - self.random - self.twins
        items = [f"item {i}" for i in range(n_items)]
        self.questions = [Question(f"target {t}", items) for t in range(n_targets)]
        self.gold = Question("wolf", ["dog", "bus", "rose", "cup"], ["dog"])
        self.centers = self.rng.permuted(np.tile(np.arange(n_items), (n_targets, 1)), axis=1)
        spread = (between, within, shortest, longest)
        self.answers = list(self._all(halves(n_raters, n_targets, self.rng), *spread))

    def _all(self, assigned, between, within, shortest, longest):
        n_raters = len(assigned)
        opinions = sample_around(np.tile(self.centers, (n_raters, 1)), between, self.rng)
        opinions = opinions.reshape(n_raters, *self.centers.shape)
        opinions[-1] = opinions[-3]
        first, again = (
            sample_around(opinions.reshape(-1, opinions.shape[2]), within, self.rng).reshape(
                opinions.shape
            )
            for _ in range(2)
        )
        lengths = self.rng.integers(shortest, longest + 1, (2, *first.shape[:2]))
        first[-1], lengths[0, -1] = first[-3], lengths[0, -3]
        for r, rater in enumerate(self.raters):
            is_random = rater in self.random
            if is_random:
                first[r], again[r] = (self.rng.permuted(x[r], axis=1) for x in (first, again))
            seconds = np.exp(self.rng.normal(np.log(2.5 if is_random else 12), 0.5, 12))
            skipped = self.rng.random(12) < 0.05
            for number, t in enumerate([*assigned[r], assigned[r][0]]):
                repeat = number == 10
                order = (again if repeat else first)[r, t][: lengths[int(repeat), r, t]]
                names = [] if skipped[number] else [f"item {i}" for i in order]
                yield answer(
                    rater,
                    self.questions[t],
                    names,
                    number=number + 1,
                    repeat=repeat,
                    seconds=seconds[number],
                )
            right = sample_around(np.arange(4)[None], 0.0 if is_random else 4.0, self.rng)[0]
            names = [self.gold.items[i] for i in right]
            yield answer(rater, self.gold, names, number=12, seconds=seconds[11])
