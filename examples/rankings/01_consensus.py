"""Merge the rankings of several raters: Kemeny consensus, agreement and ranking models
====================================================================================

Eight raters (a panel of language models) listed, for each class of CIFAR-10, the 10 classes of
CIFAR-100 that look most like it. This example computes a consensus for each class, shows how much
the raters agree and which rater disagrees most, and fits Plackett-Luce and Mallows models. At the
end the models predict, from one rater's list alone, which class the list describes.
"""

import sys

import numpy as np
from sklearn.base import clone

import rankshot as rs
from rankshot.core.progress import ProgressLine
from rankshot.datasets import load_panel

N_SHOWN = 5


def show_consensus(panel: rs.Rankings) -> None:
    """Print the consensus order of each target, and how much the raters agree."""
    print(f"{'target':<11}{f'consensus, first {N_SHOWN}':<53}{'W':>5}{'distance':>10}  odd one out")
    for target, rankings in panel.by_target().items():
        found = rs.kemeny(rankings, method="exact")
        agreement = rs.agreement(rankings)
        odd = rankings.raters[int(np.argmax(agreement.distance_to_others))]
        order = " > ".join(map(str, found.order[:N_SHOWN]))
        proof = "" if found.optimal else "  (best found, not proven)"
        numbers = f"{agreement.concordance:>5.2f}{agreement.mean_kendall_distance:>10.0f}"
        print(f"{target:<11}{order:<53}{numbers}  {odd}{proof}")
    print("Each order is proven to be Kemeny's consensus, unless it says otherwise.")
    print("W is Kendall's concordance: 1 if all raters agree. The distance is the mean Kendall")
    print("distance between the top-10 lists of two raters. The odd one out is the rater with the")
    print("largest distance to the others.\n")


def show_models(target: str, panel: rs.Rankings) -> None:
    """Print the parameters of two ranking models fitted to the rankings of one target."""
    rankings = panel.select(target=target)
    model = rs.PlackettLuce(regularization=0.1).fit(rankings)
    errors = model.standard_errors(rankings)
    mallows = rs.Mallows(method="exact").fit(rankings)
    print(f"{target}: Plackett-Luce worths (with the standard errors of their logarithms)")
    for i in np.argsort(-model.worths_)[: 2 * N_SHOWN]:
        bar = "█" * round(40 * model.worths_[i])
        print(f"  {model.items_[i]:<12}{model.worths_[i]:>6.3f} ± {errors[i]:.2f}  {bar}")
    print(f"{target}: the centre of the Mallows model, whose spread is {mallows.spread_:.2f}")
    print(f"  {' > '.join(mallows.center_[: 2 * N_SHOWN])} > …\n")


def guess_targets(panel: rs.Rankings) -> None:
    """Leave out one list at a time, fit models to the rest, and predict its target."""
    print("Which class does a list describe? Guessed by models that are fitted to all other lists:")
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
    panel = load_panel(question="similar")
    print(f"{panel.select(target='cat')}\n")
    show_consensus(panel)
    show_models("cat", panel)
    guess_targets(panel)
