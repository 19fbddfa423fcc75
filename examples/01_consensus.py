"""What does a cat look most like? One answer from many rankings.

Eight raters (a language-model panel) each listed the 10 of CIFAR-100's classes that look most like each of
CIFAR-10's. This merges their lists, says how far they agree and who does not, fits ranking models,
and lets the models guess from a single rater's list which class it was about.
"""

import sys

import numpy as np
from sklearn.base import clone

import rankshot as rs
from rankshot.datasets.panel import load_panel
from rankshot.ranking.progress import ProgressLine

SHOWN = 5


def consensus_table(panel: rs.Rankings) -> None:
    """Print each target's consensus order and the agreement behind it."""
    print(
        f"{'target':<11}{'consensus, first ' + str(SHOWN):<53}{'W':>5}  {'distance':>8}  odd one out"
    )
    for target, rankings in panel.by_target().items():
        found = rs.kemeny(rankings, method="exact")
        agreement = rs.agreement(rankings)
        odd = rankings.raters[int(np.argmax(agreement.distance_to_others))]
        first = " > ".join(map(str, found.order[:SHOWN])) + (
            "" if found.optimal else " (not proven)"
        )
        print(
            f"{target:<11}{first:<53}{agreement.concordance:>5.2f}  {agreement.mean_distance:>8.0f}  {odd}"
        )
    print(
        "W: Kendall's concordance (1 = all agree). Distance: mean top-10 Kendall distance of two raters."
    )
    print("Every consensus above is proven optimal (Kemeny) unless it says otherwise.\n")


def models_of(target: str, panel: rs.Rankings) -> None:
    """Print what the two ranking models learn about one target."""
    rankings = panel.select(target=target)
    worths = rs.PlackettLuce(regularization=0.1).fit(rankings)
    errors = worths.standard_errors(rankings)
    mallows = rs.Mallows(consensus="exact").fit(rankings)
    print(
        f"{target}: Plackett-Luce worths, and the centre of the Mallows model (spread {mallows.spread_:.3f})"
    )
    best = np.argsort(-worths.worths_)[: 2 * SHOWN]
    for i, centre in zip(best, mallows.center_, strict=False):
        bar = "█" * round(40 * worths.worths_[i])
        name = f"{worths.items_[i]} {worths.worths_[i]:.3f} (log ± {errors[i]:.2f})"
        print(f"  {name:<38}{bar:<18}{centre}")
    print()


def guess_targets(panel: rs.Rankings) -> None:
    """Hide one list at a time, fit a model per target to the rest, and guess whose it was."""
    print(
        "Which class was a rater thinking of? Guessed from one list, models fitted to all the others:"
    )
    for name, model in (
        ("Plackett-Luce", rs.PlackettLuce(regularization=0.1)),
        ("Mallows", rs.Mallows()),
    ):
        fitted = {t: clone(model).fit(rankings) for t, rankings in panel.by_target().items()}
        hits = 0
        with ProgressLine(f"  {name}", enabled=sys.stderr.isatty()) as line:
            for row, hidden in enumerate(panel):
                line.update(f"{row + 1} of {len(panel)}")
                own = panel.targets[row]
                others = panel[(panel.targets == own) & (np.arange(len(panel)) != row)]
                guesses = {**fitted, own: clone(model).fit(others)}
                hits += max(guesses, key=lambda t: guesses[t].log_prob(hidden)[0]) == own
        print(f"  {name:<14} {hits} of {len(panel)} right")


if __name__ == "__main__":
    panel = load_panel()
    print(f"{panel.select(target='cat')}\n")
    consensus_table(panel)
    models_of("cat", panel)
    guess_targets(panel)
