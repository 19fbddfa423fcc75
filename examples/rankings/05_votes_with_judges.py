"""LLM as a judge: a leaderboard from votes by several judges
==========================================================

Language models and people judge pairs of answers. Judges differ: some are careless, some prefer the
longer answer, and some the answer that they read first. This example makes a leaderboard that
corrects for such biases, measures how well the judges agree, and finds the judge who differs. The
votes are simulated, so that the truth is known.
"""

# %%
# A table of votes
# ----------------
# Six models, eight judges, 2,400 votes. Five judges are language models, which prefer long answers;
# three are people. The longest answers come from a mediocre model, ``verbose``. (The lengths are
# standardised: 0 is the mean.)

import csv
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import rankshot as rs

rng = np.random.default_rng(3)
truth = {"ada": 0.9, "bert": 0.6, "cleo": 0.5, "verbose": 0.0, "dora": -0.5, "eliza": -1.2}
length = {"ada": 0.0, "bert": 0.2, "cleo": -0.3, "verbose": 1.5, "dora": -0.2, "eliza": -0.6}
models = list(truth)
judges = [f"llm {i}" for i in range(1, 6)] + [f"person {i}" for i in range(1, 4)]

rows = []
for number in range(2400):
    judge = judges[number % len(judges)]
    a, b = rng.choice(models, 2, replace=False)
    long_a, long_b = (length[model] + rng.normal(0, 0.4) for model in (a, b))
    bias = 0.8 * (long_a - long_b) + 0.3 if judge.startswith("llm") else 0.0
    odds = 0.0 if judge == "llm 5" else truth[a] - truth[b] + bias
    winner = "model_a" if rng.random() < 1 / (1 + np.exp(-odds)) else "model_b"
    rows.append([a, b, winner, judge, f"{long_a:.3f}", f"{long_b:.3f}"])

folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "votes.csv"
with path.open("w", newline="", encoding="utf-8") as file:
    header = ["model_a", "model_b", "winner", "judge", "length_a", "length_b"]
    csv.writer(file).writerows([header, *rows])
print(path.read_text(encoding="utf-8")[:280])

# %%
# The naive leaderboard
# ---------------------
# :func:`~rankshot.leaderboard` reads the table. Votes of one judge are correlated, so the intervals
# are clustered by judge. The model with the longest answers is near the top.

naive = rs.leaderboard(path)
print(naive)

# %%
# Correct for length and position
# -------------------------------
# Two covariates explain a part of the votes: the difference in length, and which answer was shown
# first. The remaining worths are those of answers of equal length.

corrected = rs.leaderboard(path, covariates=["length", "position"])
print(corrected)

# %%
# The true worths are known here. The correction moves ``verbose`` to its place:

_, axes = plt.subplots(1, 2, figsize=(7, 3), sharey=True, layout="constrained")
for ax, board, title in zip(axes, [naive, corrected], ["all votes", "corrected"], strict=True):
    x = [truth[item] for item in board.items]
    low, high = np.abs(board.intervals.T - board.log_worths)
    ax.axline((0, 0), slope=1, color="0.7", linewidth=1)
    ax.errorbar(x, board.log_worths, [low, high], fmt="o", capsize=3)
    for value, item, worth in zip(x, board.items, board.log_worths, strict=True):
        if item == "verbose":
            style = {"textcoords": "offset points", "color": "C1", "ha": "right"}
            ax.annotate(item, (value, worth), (-8, 0), **style)
    ax.set(title=title, xlabel="true log-worth")
axes[0].set_ylabel("estimated log-worth")
plt.show()

# %%
# Which judge differs?
# --------------------
# :func:`~rankshot.leaderboards.rater_agreement` compares the votes of each judge with all votes.
# *Agreement* is the share of votes for the item with the higher rating, and *expected* is this
# share if the votes of each pair were shared out among its judges at random. A small p-value means
# that chance does not explain the difference:

votes = rs.leaderboards.read_votes(path)
print(votes)
judges = rs.leaderboards.rater_agreement(votes)
print("judge     agreement  expected  p-value")
for one in judges:
    print(f"{one.rater:<9}{one.agreement:10.2f}{one.expected:10.2f}{one.p_value:9.2g}")

_, ax = plt.subplots(figsize=(5.6, 2.8), layout="constrained")
colours = ["C1" if one.p_value < 0.05 else "C0" for one in judges]
names = [one.rater for one in judges]
ax.bar(names, [one.agreement - one.expected for one in judges], color=colours)
ax.axhline(0, color="0.5", linewidth=1)
ax.set(ylabel="agreement minus expected")
ax.tick_params(axis="x", rotation=30)
plt.show()

# %%
# The judge ``llm 5`` votes at random. Without that judge, and corrected for length and position:

kept = [dict(zip(header, row, strict=True)) for row in rows if row[3] != "llm 5"]
print(rs.leaderboard(kept, covariates=["length", "position"]))
folder.cleanup()

# %%
# **In one command.** ``rankshot leaderboard votes.csv --covariates length,position``.
#
# **Where to go next.** :ref:`sphx_glr_gallery_rankings_04_leaderboard.py` explains intervals and
# ties. :ref:`sphx_glr_gallery_rankings_02_groups_of_raters.py` finds groups of judges.
