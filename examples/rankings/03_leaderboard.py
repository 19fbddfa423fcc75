"""LLM leaderboard with confidence intervals
=========================================

People saw two answers at a time and chose the better one, or judged them equally good. You want a
leaderboard with intervals: which models differ, and which ranks are possible? The first votes are
simulated, so that the leaderboard can be compared with the truth. The last votes are real.
"""

# %%
# Votes with ties
# ---------------
# Ten models, 4,000 votes. The first three models are nearly equal. Two equally good models tie in a
# third of the votes (the model of Davidson 1970).

# sphinx_gallery_thumbnail_number = 1
import matplotlib.pyplot as plt
import numpy as np

import rankshot as rs

rng = np.random.default_rng(7)
models = [f"model {letter}" for letter in "ABCDEFGHIJ"]
truth = np.array([1.0, 0.95, 0.9, 0.5, 0.4, 0.1, -0.4, -0.6, -1.2, -1.65])

a = rng.integers(0, 10, 4000)
b = (a + rng.integers(1, 10, 4000)) % 10
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
# ``model_b`` and ``winner``. By default a tie is an outcome of its own, as in Davidson's
# model: equal models tie more often, so a tie is evidence. With ``ties="half"``, it is half a win
# for each.

board = rs.leaderboard(votes)
print(board)
rs.pages.plot_leaderboard(board)

# %%
# How certain is it?
# ------------------
# The intervals in the plot are made for comparisons of two models. The column *better* counts the
# models that a model is clearly better than, adjusted for all comparisons. For one pair,
# :meth:`~rankshot.leaderboards.Leaderboard.compare` gives the numbers.

for first, second in [board.items[0:2], board.items[2:4]]:
    found = board.compare(first, second)
    low, high = found.interval
    print(f"{first} against {second}: difference {found.difference:.2f} ({low:.2f} to {high:.2f}),")
    print(f"    better with certainty {found.certainty:.3f}")

# %%
# Ranks have intervals as well. The crosses are the true ranks,
# which are known only in a simulation:

true_rank = np.array([models.index(name) + 1 for name in board.items])
low, high = board.rank_intervals.T
fig, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
rows = np.arange(len(models))
ax.hlines(rows, low, high, color="C0", linewidth=5, alpha=0.4)
ax.plot(board.ranks, rows, "o", color="C0", label="rank by votes")
ax.plot(true_rank, rows, "x", color="C1", label="true rank")
ax.set_yticks(rows, board.items)
ax.invert_yaxis()
ax.set(xlabel="rank, with 95% intervals", xticks=rows + 1)
ax.legend(loc="lower left")
plt.show()

# %%
# The votes do not separate the first three models: each of them may be the best. A report should
# not name a single winner.
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
board = rs.leaderboard(pudding, rs.PlackettLuce(regularization=0))
print(board)
tie = board.tie_parameter
print(f"two equal brands tie with probability {tie / (2 + tie):.2f}")
rs.pages.plot_leaderboard(board)

# %%
# Each brand may have any rank. Davidson came to the same conclusion: the brands do not differ
# significantly.
#
# **On the command line**, ``rankshot leaderboard votes.csv --plot worths.png`` does the same.
#
# **Where to go next.** :doc:`Leaderboards </guide/leaderboards>` explains the intervals, and votes
# by several judges with their biases.
