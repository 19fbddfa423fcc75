"""Better than the paper: one idea after the other, each chosen on seen classes only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rankshot.experiments.batch_priors import with_estimated_frequencies
from rankshot.experiments.contenders import papers_head
from rankshot.experiments.recipes import Kitchen, Recipe, rater_weights
from rankshot.experiments.study import LISTED, Task
from rankshot.experiments.tables import ResultTable, Value, share
from rankshot.experiments.training import LEAST_SQUARES
from rankshot.ranking.mallows import Mallows
from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.batch_refinement import BatchRefinement, balancing
from rankshot.zeroshot.bootstrap import Bootstrap, class_weights
from rankshot.zeroshot.metrics import mean_class_accuracy
from rankshot.zeroshot.probabilistic_ranking import ProbabilisticRanking

Floats = NDArray[np.float64]
Labels = NDArray[np.str_]
Right = NDArray[np.bool_]
Prior = Literal["equal", "estimated"]

PLACES = (2, 4, 7, 10)
DECAYS = (0.0, 0.25, 0.5, 0.75, 1.0)
TEMPERATURES = (0.5, 2.0, 4.0)
SOURCE_WEIGHTS = (0.1, 0.2, 0.3, 0.5)
TRUSTS = (0.3, 1.0, 2.0)
SHRINKAGES = (0.05, 0.2)


@dataclass(frozen=True, eq=False)
class Step:
    """One idea: what it is, what the rehearsal chose, and how it does.

    ``rehearsed`` is the mean class accuracy on seen classes that play unseen ones; ``right`` says
    which inputs of unseen classes it gets right.
    """

    idea: str
    chosen: str
    rehearsed: float | None
    right: Right


@dataclass(frozen=True, eq=False)
class Improvements:
    """All steps, those that use the test batch apart.

    ``bases`` are the best classifiers by name, with the default head and a reference; ``chosen``
    is the recipe that seen classes support in the end.
    """

    steps: tuple[Step, ...]
    batch_steps: tuple[Step, ...]
    bases: dict[str, Recipe]
    chosen: Recipe

    def table(self, bootstrap: Bootstrap, truth: NDArray[np.str_]) -> ResultTable:
        """Return the steps with their figures."""
        weights = class_weights(truth)
        rows: list[tuple[Value, ...]] = []
        for steps, batch in ((self.steps, "no"), (self.batch_steps, "yes")):
            rows += [
                (
                    step.idea,
                    step.chosen,
                    batch,
                    step.rehearsed,
                    bootstrap.interval(step.right),
                    bootstrap.interval(step.right, weights),
                )
                for step in steps
            ]
        return ResultTable(
            "improvements",
            "Better than the paper: one idea after the other",
            (
                "idea",
                "chosen on seen classes",
                "uses the test batch",
                "seen classes playing unseen",
                "unseen classes",
                "unseen, mean over classes",
            ),
            tuple(rows),
            (
                "Chosen by the mean class accuracy on seen classes that play unseen ones.",
                "Unseen classes only report. Rows that did not help are shown as well.",
                "A larger change is kept only if it gains more than one standard error there.",
            ),
            n_labels=3,
        )


@dataclass(frozen=True, eq=False)
class _Ladder:
    """The steps so far."""

    kitchen: Kitchen
    announce: Callable[[str], None]
    steps: list[Step]

    def add(self, idea: str, chosen: str, recipe: Recipe) -> Recipe:
        """Measure one more."""
        self.announce(idea)
        rehearsed, right = self.kitchen.rehearsed(recipe), self.kitchen.right(recipe)
        self.steps.append(Step(idea, chosen, rehearsed, right))
        return recipe


def improvements(
    kitchen: Kitchen, C: float, grid: Mapping[str, Sequence[float]], announce: Callable[[str], None]
) -> Improvements:
    """Try all ideas in turn.

    Parameters
    ----------
    kitchen : Kitchen
    C : float
        The regularisation of the multiclass classifier that seen validation *images* favour.
    grid : mapping of str to sequence of float
        The regularisations to choose from by seen *classes*, of multiclass and least squares.
    announce : callable
        Is told what is tried next.
    """
    ladder = _Ladder(kitchen, announce, [])
    informed = _heads(ladder, Recipe("multiclass", C, papers_head()))
    logistic = [replace(informed, C=c) for c in grid["multiclass"]]
    squares = [replace(informed, setting=LEAST_SQUARES, C=c) for c in grid[LEAST_SQUARES]]
    bases = _classifiers(ladder, logistic, squares)
    chosen = bases[-1] if kitchen.surely_better(bases[-1], bases[0]) else bases[0]
    chosen = _sources(ladder, chosen)
    ladder.add("all that seen classes support", _described(chosen), chosen)
    announce("a ceiling: the true orders")
    ladder.steps.append(_ceiling(kitchen, chosen))
    batch_steps = tuple(_batch_steps(kitchen, chosen, [bases[0], *squares], announce))
    return Improvements(
        tuple(ladder.steps), batch_steps, {one.setting: one for one in bases}, chosen
    )


def _heads(ladder: _Ladder, paper: Recipe) -> Recipe:
    """Try heads on the paper's classifier; return the default one with a reference."""
    kitchen = ladder.kitchen
    ladder.add("the paper's: consensus, K = 4", "", paper)
    best = kitchen.best(paper.with_head(k=k) for k in PLACES)
    ladder.add("K chosen", f"K = {best.head.k}", best)
    mallows = best.with_head(prior=Mallows())
    ladder.add("a consensus by Mallows", f"K = {best.head.k}", mallows)
    best = kitchen.best(paper.with_head(k=k, posterior="mean") for k in PLACES)
    ladder.add("the mean over raters, no consensus", f"K = {best.head.k}", best)
    best = kitchen.best(
        paper.with_head(k=k, decay=decay, posterior="mean") for k, decay in product(PLACES, DECAYS)
    )
    ladder.add("places lose weight", f"K = {best.head.k}, decay {best.head.decay:g}", best)
    default = replace(paper, head=ProbabilisticRanking())
    ladder.add("the default head", f"K = {default.head.k}, decay {default.head.decay:g}", default)
    best = kitchen.best(replace(default, temperature=t) for t in TEMPERATURES)
    ladder.add("scores divided by a temperature", f"temperature {best.temperature:g}", best)
    ladder.add("the paper's head with a reference", "", replace(paper, reference=True))
    return ladder.add("the default head with a reference", "", replace(default, reference=True))


def _classifiers(
    ladder: _Ladder, logistic: Sequence[Recipe], squares: Sequence[Recipe]
) -> list[Recipe]:
    """Choose the regularisation of two classifiers by seen classes."""
    best = [ladder.kitchen.best(recipes) for recipes in (logistic, squares)]
    ladder.add("regularisation by seen classes", f"multiclass, C = {best[0].C:g}", best[0])
    ladder.add("least squares in its place", f"C = {best[1].C:g}", best[1])
    return best


def _sources(ladder: _Ladder, chosen: Recipe) -> Recipe:
    """Try weights of raters, and other sources beside the panel."""
    kitchen = ladder.kitchen
    weights = rater_weights(kitchen, chosen)
    spread = f"weights {share(min(weights.values()))} to {share(max(weights.values()))}"
    ladder.add("raters weigh what they are worth alone", spread, replace(chosen, raters=weights))
    best = kitchen.best(
        replace(chosen, sources={source: weight})
        for source, weight in product(kitchen.study.sources, SOURCE_WEIGHTS)
    )
    said = ", ".join(f"{name} at {weight:g}" for name, weight in best.sources.items())
    ladder.add("a linguistic source beside the panel", said, best)
    return best if kitchen.surely_better(best, chosen) else chosen


def _described(recipe: Recipe) -> str:
    merged = "".join(f", {name} at {weight:g}" for name, weight in recipe.sources.items())
    return f"{recipe.setting}, C = {recipe.C:g}, the default head, a reference{merged}"


def _ceiling(kitchen: Kitchen, recipe: Recipe) -> Step:
    """Return how well the same head does with the orders that unseen *labels* would give."""
    task = kitchen.study.real
    scores = kitchen.scores(recipe, task, "test")
    usual = kitchen.scores(recipe, task, "validation")
    values = (scores.values - usual.values.mean(axis=0)) / usual.values.std(axis=0)
    means = [values[task.test_label == name].mean(axis=0) for name in task.targets]
    orders = Rankings.from_scores(means, items=task.items, targets=task.targets).top(LISTED)
    head = ProbabilisticRanking().fit(orders, usual)
    right = np.asarray(head.predict(scores) == task.test_label)
    return Step(
        "no method but a ceiling: true orders, from unseen labels",
        "",
        None,
        right,
    )


def _batch_steps(
    kitchen: Kitchen, chosen: Recipe, bases: Sequence[Recipe], announce: Callable[[str], None]
) -> Iterator[Step]:
    """Yield what becomes possible when all test inputs may be looked at before any is decided.

    How often targets occur is learned on top of the recipe ``chosen``; where their inputs are,
    on top of whichever of ``bases`` rehearses best so.
    """
    rehearsal, real = kitchen.study.rehearsal, kitchen.study.real

    def step(idea: str, chosen: str, decide: Callable[[Task], Labels]) -> Step:
        announce(idea)
        rehearsed = mean_class_accuracy(rehearsal.test_label, decide(rehearsal))
        return Step(idea, chosen, rehearsed, np.asarray(decide(real) == real.test_label))

    def reweighted(task: Task, change: Callable[[Floats], Floats]) -> Labels:
        head = kitchen.fitted(chosen, task)
        log_proba = head.predict_log_proba(kitchen.scores(chosen, task, "test"))
        return np.asarray(head.classes_[change(log_proba.astype(np.float64)).argmax(axis=1)])

    def refined(task: Task, base: Recipe, trust: float, shrinkage: float, prior: Prior) -> Labels:
        scores = kitchen.scores(base, task, "test")
        head = BatchRefinement(
            kitchen.fitted(base, task), trust=trust, shrinkage=shrinkage, class_prior=prior
        )
        return head.fit(scores).predict(scores)

    def equal(log_proba: Floats) -> Floats:
        return log_proba + balancing(log_proba)

    idea = "how often targets occur, by EM"
    yield step(idea, "", partial(reweighted, change=with_estimated_frequencies))
    idea = "targets taken to occur equally often"
    yield step(idea, "", partial(reweighted, change=equal))
    priors: tuple[Prior, ...] = ("estimated", "equal")
    for prior in priors:
        base, trust, shrinkage = max(
            product(bases, TRUSTS, SHRINKAGES),
            key=lambda setting: mean_class_accuracy(
                rehearsal.test_label,
                refined(rehearsal, setting[0], setting[1], setting[2], prior),
            ),
        )
        yield step(
            f"where the inputs of targets are, frequencies {prior}",
            f"{base.setting}, C = {base.C:g}, trust {trust:g}, shrinkage {shrinkage:g}",
            partial(refined, base=base, trust=trust, shrinkage=shrinkage, prior=prior),
        )


def settings_table(kitchen: Kitchen, recipes: dict[str, Recipe]) -> ResultTable:
    """Return how K and the decay do on seen classes that play unseen ones, for some recipes.

    The default settings of `ProbabilisticRanking` are read off here.
    """
    rows: list[tuple[Value, ...]] = [
        (
            name,
            f"{k}",
            *(kitchen.rehearsed(recipe.with_head(k=k, decay=decay)) for decay in DECAYS),
        )
        for name, recipe in recipes.items()
        for k in PLACES
    ]
    return ResultTable(
        "settings",
        "Which settings seen classes favour: mean class accuracy where they play unseen ones",
        ("classifier", "K", *(f"decay {decay:g}" for decay in DECAYS)),
        tuple(rows),
        ("The mean over the panel's raters, with a reference of seen validation inputs.",),
        n_labels=2,
    )
