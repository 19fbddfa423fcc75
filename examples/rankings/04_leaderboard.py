"""Which model is best, and how certain is that? A leaderboard from votes
======================================================================

People saw two answers at a time and said which was better, or that both were equally good. You
want a leaderboard with intervals: which models differ, and which ranks are possible? The first
votes are simulated, so that the leaderboard can be compared with the truth. The last are real.
"""

# %%
# Votes with ties
# ---------------
# Ten models, 4,000 votes. The first three models are nearly equal. Two equally good models tie in a
# third of the votes (the model of Davidson 1970).

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np

import rankshot as rs

rng = np.random.default_rng(7)
models = [f"model {letter}" for letter in "ABCDEFGHIJ"]
truth = np.array([1.0, 0.95, 0.9, 0.5, 0.4, 0.1, -0.4, -0.6, -1.2, -1.65])


def draw_pairs(n, n_models):
    """Draw two different models for each vote."""
    a = rng.integers(0, n_models, n)
    return a, (a + rng.integers(1, n_models, n)) % n_models


a, b = draw_pairs(4000, len(models))
weights = np.exp([truth[a], truth[b], (truth[a] + truth[b]) / 2])
outcome = (rng.random(4000) * weights.sum(0) > weights.cumsum(0)).sum(0)
wins, ties = np.zeros((2, 10, 10))
np.add.at(wins, (a[outcome == 0], b[outcome == 0]), 1)
np.add.at(wins, (b[outcome == 1], a[outcome == 1]), 1)
np.add.at(ties, (a[outcome == 2], b[outcome == 2]), 1)
votes = rs.Rankings.from_pair_counts(wins, items=models, ties=ties + ties.T)
print(f"{ties.sum():,.0f} of {votes.weights.sum():,.0f} votes are ties")

# %%
# For your own votes, ``rs.leaderboard("votes.csv")`` reads a table with the columns ``model_a``,
# ``model_b`` and ``winner``. By default a tie is an outcome of its own, as in
# :class:`~rankshot.DavidsonLuce`: equal models tie more often, so a tie is evidence. With
# ``ties="half"`` it is half a win of each.

board = rs.leaderboard(votes)
print(board)
board.plot()

# %%
# How certain is it?
# ------------------
# The intervals of the picture are made for comparisons: models whose intervals do not overlap
# differ. For one pair, :meth:`~rankshot.ranking.Leaderboard.compare` says it in numbers.

for first, second in [board.items[0:2], board.items[2:4]]:
    found = board.compare(first, second)
    low, high = found.interval
    print(f"{first} against {second}: difference {found.difference:.2f} ({low:.2f} to {high:.2f}),")
    print(f"    better with certainty {found.certainty:.3f}")

# %%
# Ranks have intervals as well. The crosses are the true ranks,
# which only a simulation knows:

true_rank = np.array([models.index(name) + 1 for name in board.items])
low, high = board.rank_intervals.T
fig, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
rows = np.arange(len(models))
ax.hlines(rows, low, high, color="#0072B2", linewidth=5, alpha=0.4)
ax.plot(board.ranks, rows, "o", color="#0072B2", label="rank by votes")
ax.plot(true_rank, rows, "x", color="#D55E00", label="true rank")
ax.set_yticks(rows, board.items)
ax.invert_yaxis()
ax.set(xlabel="rank, with 95 % intervals", xticks=rows + 1)
ax.legend(frameon=False, loc="lower left")
plt.show()

# %%
# The votes do not separate the first three models: each of them may be the best. A report should
# say so, and not name one winner.
#
# Many votes from few people
# --------------------------
# Votes of one person are alike: people have their own taste. Here 20 people give 100 votes each on
# six models that are *equally good*. Each person likes some of them more.

n_people, each = 20, 100
taste = rng.normal(scale=0.8, size=(n_people, 6))
taste -= taste.mean(axis=0)  # over all people, the models are equal
person = np.repeat(np.arange(n_people), each)
a, b = draw_pairs(n_people * each, 6)
a_wins = rng.random(a.size) < 1 / (1 + np.exp(taste[person, b] - taste[person, a]))
winners, losers = np.where(a_wins, (a, b), (b, a))
by_person = rs.Rankings.from_pairs(
    [models[i] for i in winners], [models[i] for i in losers], raters=[f"p{i}" for i in person]
)

fig, axes = plt.subplots(1, 2, figsize=(9, 2.6), sharex=True, layout="constrained")
nameless = replace(by_person, raters=np.full(len(by_person), None))
for ax, given, unit in zip(axes, [nameless, by_person], ["votes", "people"], strict=True):
    equal = rs.leaderboard(given)
    equal.plot(ax=ax)
    ax.set_title(f"{unit} as independent")
    width = np.diff(equal.comparison_intervals).mean()
    print(f"{unit:<7} mean width of an interval {width:.2f}")
plt.show()

# %%
# If people are named, errors are clustered by person. These intervals are wider, and they are the
# right ones: another 20 people would have other tastes.
#
# Real votes
# ----------
# People tasted two of six brands of chocolate pudding. They preferred one, or could not decide
# (Davidson 1970). Each line of the table: two brands, wins of the first, wins of the second, ties.

PUDDING = """
1 2 19 22 16, 1 3 16 19 12, 2 3 19 19 10, 1 4 18 23 13, 2 4 23 19 9, 3 4 19 20 15, 1 5 13 19 18,
2 5 16 20 12, 3 5 16 15 17, 4 5 17 14 16, 1 6 18 21 12, 2 6 22 20 12, 3 6 13 18 10, 4 6 14 19 18,
5 6 11 21 12"""
wins, ties = np.zeros((2, 6, 6))
for line in PUDDING.split(","):
    i, j, won, lost, tied = map(int, line.split())
    wins[i - 1, j - 1], wins[j - 1, i - 1] = won, lost
    ties[i - 1, j - 1] = ties[j - 1, i - 1] = tied
pudding = rs.Rankings.from_pair_counts(wins, items=[f"brand {i}" for i in range(1, 7)], ties=ties)
model = rs.DavidsonLuce(regularization=0).fit(pudding)
board = rs.leaderboard(pudding, model)
print(board)
tie = model.tie_parameters_[2]
print(f"two equal brands tie with probability {tie / (2 + tie):.2f}")
board.plot()

# %%
# Every brand may have every rank. Davidson came to the same conclusion: the brands do not differ
# significantly.
#
# A large leaderboard
# -------------------
# The same calls take 100,000 votes between 100 models in a few seconds. The intervals of ranks hold
# the true ranks:

truth = rng.normal(size=100)
a, b = draw_pairs(100_000, 100)
a_wins = rng.random(a.size) < 1 / (1 + np.exp(truth[b] - truth[a]))
large = rs.Rankings.from_pairs(np.where(a_wins, a, b), np.where(a_wins, b, a), items=range(100))
board = rs.leaderboard(large)
true_rank = (np.argsort(np.argsort(-truth)) + 1)[[int(item) for item in board.items]]
low, high = board.rank_intervals.T
held = np.mean((low <= true_rank) & (true_rank <= high))
print(f"rank intervals that hold the true rank: {held:.0%}; mean width {np.mean(high - low):.0f}")

# %%
# **On the command line**, ``rankshot leaderboard votes.csv --plot worths.png`` does the same.
#
# **What to read next.** :doc:`Leaderboards </guide/leaderboards>` explains the intervals,
# features of items, and groups of voters.
