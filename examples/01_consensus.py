"""What does a cat look most like? One answer from many rankings.

Eight raters (a language-model panel) each listed the 10 of CIFAR-100's classes that look most
like each of CIFAR-10's. This merges their lists, says how far they agree and who does not, fits
ranking models, and lets the models guess from a single rater's list which class it was about.
"""

import sys

import numpy as np
from sklearn.base import clone

import rankshot as rs
from rankshot.core.progress import ProgressLine
from rankshot.datasets.embedded import load_panel

SHOWN = 5


def show_consensus(panel: rs.Rankings) -> None:
    """Print each target's consensus order and the agreement behind it."""
    print(f"{'target':<11}{f'consensus, first {SHOWN}':<53}{'W':>5}{'distance':>10}  odd one out")
    for target, rankings in panel.by_target().items():
        found = rs.kemeny(rankings, method="exact")
        agreement = rs.agreement(rankings)
        odd = rankings.raters[int(np.argmax(agreement.distance_to_others))]
        order = " > ".join(map(str, found.order[:SHOWN]))
        proof = "" if found.optimal else "  (best found, not proven)"
        numbers = f"{agreement.concordance:>5.2f}{agreement.mean_distance:>10.0f}"
        print(f"{target:<11}{order:<53}{numbers}  {odd}{proof}")
    print("Each order is proven to be Kemeny's consensus, unless it says otherwise.")
    print("W is Kendall's concordance: 1 if all agree. The distance is Kendall's, of two raters'")
    print("top-10 lists, on average. The odd one out is farthest from the others.\n")


def show_models(target: str, panel: rs.Rankings) -> None:
    """Print what two ranking models learn about one target."""
    rankings = panel.select(target=target)
    model = rs.PlackettLuce(regularization=0.1).fit(rankings)
    errors = model.standard_errors(rankings)
    mallows = rs.Mallows(consensus="exact").fit(rankings)
    print(f"{target}: Plackett-Luce worths (with the error of their logarithms)")
    for i in np.argsort(-model.worths_)[: 2 * SHOWN]:
        bar = "█" * round(40 * model.worths_[i])
        print(f"  {model.items_[i]:<12}{model.worths_[i]:>6.3f} ± {errors[i]:.2f}  {bar}")
    print(f"{target}: the centre of the Mallows model, of spread {mallows.spread_:.2f}")
    print(f"  {' > '.join(mallows.center_[: 2 * SHOWN])} > …\n")


def guess_targets(panel: rs.Rankings) -> None:
    """Hide one list at a time, fit a model per target to the rest, and guess whose it was."""
    print("Which class was a rater thinking of? Guessed from one list by models of all the others:")
    for model in (rs.PlackettLuce(regularization=0.1), rs.Mallows()):
        fitted = {t: clone(model).fit(rankings) for t, rankings in panel.by_target().items()}
        hits = 0
        name = f"  {type(model).__name__}"
        with ProgressLine(name, enabled=sys.stderr.isatty()) as line:
            for row, hidden in enumerate(panel):
                own = panel.targets[row]
                others = panel[(panel.targets == own) & (np.arange(len(panel)) != row)]
                guesses = {**fitted, own: clone(model).fit(others)}
                hits += max(guesses, key=lambda t: guesses[t].log_prob(hidden)[0]) == own
                line.update(f"{row + 1} of {len(panel)}")
        print(f"{name}: {hits} of {len(panel)} right")


if __name__ == "__main__":
    panel = load_panel()
    print(f"{panel.select(target='cat')}\n")
    show_consensus(panel)
    show_models("cat", panel)
    guess_targets(panel)
