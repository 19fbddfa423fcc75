"""Measure what the README says about its first program: who bears the loss, and rivals.

    python scripts/measure_first_program.py

It runs the program, splits its old languages into those that a list names and the others, repeats
it with random splits of the old languages' sentences into a reference and a test, and gives the
one-line rule the same loss.
"""

import re
from pathlib import Path

import numpy as np

import rankshot as rs

ROOT = Path(__file__).parents[1]
BUDGETS = (0.05, 0.02)
N_SPLITS = 40
PER_LANGUAGE = 5
"""Sentences of a language in the reference; three are left."""


def main() -> None:
    """Run the program and print each figure."""
    program = run_first_program()
    data, similar, before, added = (program[one] for one in ("data", "similar", "before", "added"))
    inputs, reference = (program["score"](texts) for texts in (data.texts, data.reference))
    labels, is_new = np.array(data.labels), np.array(data.is_new)
    first = np.array(before) == labels
    now = added.labels == labels
    listed = np.isin(labels, sorted({one for each in similar.values() for one in each})) & ~is_new
    for name, rows in ("listed", listed), ("others", ~listed & ~is_new):
        print(
            f"{name}: {len(set(labels[rows]))} old languages, "
            f"{first[rows].mean():.1%} -> {now[rows].mean():.1%}"
        )
    rule = apply_rule(inputs, similar, labels, is_new, now[~is_new].mean())
    print(f"one-line rule at the same loss: {rule:.1%} of the new inputs are correct")

    old = np.concatenate([inputs.values[~is_new], reference.values])
    old_labels = np.concatenate([labels[~is_new], data.reference_labels])
    new, names = inputs.values[is_new], inputs.items
    first = np.array(names)[old.argmax(1)] == old_labels
    for budget in BUDGETS:
        lost, found, by_rule = [], [], []
        for seed in range(N_SPLITS):
            held, tests = split(old_labels, np.random.default_rng(seed))
            both = rs.Scores(np.concatenate([new, old[tests]]), names)
            truth = np.concatenate([labels[is_new], old_labels[tests]])
            answers = rs.recognise(
                both,
                similar,
                classes="all",
                seen_loss=budget,
                reference=(rs.Scores(old[held], names), old_labels[held]),
                batch=False,
            ).labels
            right, of_new = answers == truth, np.arange(len(truth)) < len(new)
            kept = right[~of_new].mean()
            lost.append(first[tests].mean() - kept)
            found.append(right[of_new].mean())
            by_rule.append(apply_rule(both, similar, truth, of_new, kept))
        print(
            f"budget {budget:.0%}, {N_SPLITS} splits: old languages lose {np.mean(lost):.1%}, "
            f"new ones {np.mean(found):.0%} correct ({min(found):.0%} to {max(found):.0%}), "
            f"{np.mean(by_rule):.0%} with the rule"
        )


def run_first_program():
    """Run the first program of the README, and return its variables."""
    text = (ROOT / "README.md").read_text("utf-8")
    program: dict = {}
    exec(re.search(r"```python\n(.*?)```", text, re.DOTALL)[1], program)
    return program


def split(labels, rng):
    """Return rows of a reference, five of each language, and the other rows, for a test."""
    order = rng.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    _, starts = np.unique(labels[order], return_index=True)
    place = np.arange(len(labels)) - np.repeat(starts, np.diff([*starts, len(labels)]))
    return order[place < PER_LANGUAGE], order[place >= PER_LANGUAGE]


def apply_rule(inputs, similar, labels, is_new, kept):
    """Return the share of new inputs that a rule finds: new, if the highest score is low.

    The new class is the one that lists the first guess in the highest place; the threshold leaves
    as many old inputs correct as rankshot does.
    """
    scores, names = inputs.values, np.array(inputs.items)
    centred = (scores - scores.mean(1, keepdims=True)) / scores.std(1, keepdims=True)
    top, highest = names[scores.argmax(1)], centred.max(1)
    places = np.array(
        [[one.index(each) if each in one else 99 for one in similar.values()] for each in top]
    )
    guesses = np.array(list(similar))[places.argmin(1)]
    answers = (highest[:, None] < np.sort(highest)) & (places.min(1) < 99)[:, None]
    right = np.where(answers, guesses[:, None], top[:, None]) == labels[:, None]
    enough = right[~is_new].mean(0) >= kept
    return right[is_new].mean(0)[enough].max()


if __name__ == "__main__":
    main()
