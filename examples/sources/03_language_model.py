"""Rankings from a language model in a chat window
===============================================

A language model is the most accurate source of rankings that we have measured, and you need no
API for it: rankshot writes prompts, you paste them into any chat window, and
rankshot reads the answers in any form. This example covers all steps, from prompts to a consensus.
This page is built offline: the answers are those of the language-model panel that comes with
rankshot, in the formats that chat windows use.
"""

# %%
# Prompts
# -------
# :func:`~rankshot.sources.make_prompts` writes one prompt for each rater. A rater is one
# conversation. Each gets the classes in a different order, because a language model favours what it
# reads first.

# sphinx_gallery_thumbnail_number = 2
import json
import tempfile
import textwrap
from pathlib import Path

import numpy as np
from sklearn.linear_model import RidgeClassifier

import rankshot as rs
from rankshot.datasets import class_names, load_cifar, load_panel
from rankshot.sources import make_prompts, read_answer_files
from rankshot.zeroshot.metrics import wilson_interval

seen, new = class_names("cifar")
prompts = make_prompts(new, seen, raters=4)
print(list(prompts))
for paragraph in prompts["rater-1.txt"].split("\n\n"):
    print("\n" + textwrap.fill(textwrap.shorten(paragraph, 450, placeholder=" […]"), 70))

# %%
# On the command line: ``rankshot rank --seen seen.txt --new new.txt --prompts prompts``.
#
# Answers
# -------
# Four chat windows answer in four formats: as JSON, as numbered lists with remarks, as a table, and
# as plain lines. The last one stops in the middle, and invents a class.

panel = load_panel(question="photographs")
said = {
    rater: {
        target: panel.select(rater=rater, target=target).orders()[0]
        for target in panel.target_names
    }
    for rater in ("ph1", "ph2", "ph3", "ph4")
}


def write_json(lists):
    """Write an answer as a block of JSON in a friendly text."""
    return f"Sure! Here are my rankings:\n\n```json\n{json.dumps(lists, indent=1)}\n```\nHave fun!"


def write_numbered(lists):
    """Write an answer as numbered lists below headings, in other spellings."""
    lines = ["I imagined many photographs of each class."]
    for target, order in lists.items():
        lines += ["", f"### {target.title()}"]
        lines += [
            f"{i}. **{name.replace('_', ' ').title()}**" for i, name in enumerate(order, start=1)
        ]
    return "\n".join(lines)


def write_table(lists):
    """Write an answer as a Markdown table."""
    rows = [f"| {target} | {', '.join(order)} |" for target, order in lists.items()]
    return "\n".join(["| class | ranking |", "|---|---|", *rows])


def write_lines(lists):
    """Write an answer as lines, with an invented class, and stop before the end."""
    lines = [f"{target}: {', '.join(order)}" for target, order in list(lists.items())[:7]]
    return "\n".join(lines).replace("mouse", "lynx", 1)


texts = dict(zip(prompts, [write_json, write_numbered, write_table, write_lines], strict=True))
texts = {name: write(said[f"ph{i}"]) for i, (name, write) in enumerate(texts.items(), start=1)}
print("\n".join(texts["rater-2.txt"].splitlines()[:8]))

# %%
# :func:`~rankshot.sources.read_answer_files` reads them all. Nothing is guessed silently: its
# notes name what was left out, and what is missing.

with tempfile.TemporaryDirectory() as folder:
    for name, text in texts.items():
        (Path(folder) / name).write_text(text, encoding="utf-8")
    found = read_answer_files([folder], new, seen)
    for rater, answers in found.answers.items():
        print(f"{rater}: {len(answers.orders)} lists", *answers.notes, sep="\n    ")

    # Ask again for what is missing, and read all files once more.
    again = make_prompts(found.follow_ups, seen)
    for name in again:
        missing = found.follow_ups[name.removesuffix(".txt")]
        text = write_json({target: said["ph4"][target] for target in missing})
        (Path(folder) / name).write_text(text, encoding="utf-8")
    rankings = read_answer_files([folder], new, seen).rankings
print("asked again:", list(again))
print(f"{len(rankings)} rankings, of {len(rankings.rater_names)} raters")

# %%
# On the command line, ``rankshot rank --source answers:FOLDER --follow-up MORE`` does both.
#
# Do the raters agree?
# --------------------
# Look at one class first. The colours show that all raters mention the same classes, in different
# orders.

rs.pages.RankingsDisplay.from_rankings(rankings, "cat", k=8)

# %%
# Kendall's W is 1 if all raters agree. For random lists it would be 1/4 on average, since there are
# four raters.

for target, some in rankings.by_target().items():
    order = rs.kemeny(some, method="exact").order[:4]
    print(f"{target:<11}W = {rs.ranking.concordance(some):.2f}   {' > '.join(order)}")

# %%
# Is one rater enough?
# --------------------
# The accuracy on images of the ten new classes, none of which the classifier has seen:

data = load_cifar()
classifier = RidgeClassifier().fit(data.seen_train, data.seen_train_label)
scores = rs.scores_of(classifier, data.new)


def measure(rankings):
    """Return the accuracy on new classes, with an interval."""
    right = rs.WeightedMean().fit(rankings).predict(scores) == data.new_label
    return wilson_interval(int(np.sum(right)), len(right))


results = {
    f"{rater} alone": measure(rankings.select(rater=rater)) for rater in rankings.rater_names
}
results["all four raters"] = measure(rankings)
for name, accuracy in results.items():
    print(f"{name:<16}{accuracy}")
rs.pages.ComparisonDisplay.from_results(results, chance=1 / 10)

# %%
# The four raters together are about as accurate as the best of them. Without labelled images, you
# would not know which one that is.
#
# **Be careful.** A language model may have read about public data sets such as this one. On your
# own classes, expect less, and rehearse: :ref:`sphx_glr_gallery_sources_01_which_source.py`.
#
# **Where to go next.** :doc:`Sources of rankings </guide/sources>` describes all questions, how to
# ask your own, and how to use an API.
