"""Kinds of rankings: top-K lists, subsets and ties
================================================

The list "tea, juice" can mean two things: tea and juice were the best of all drinks, or only tea
and juice were compared. The first is a top-K list, the second a ranking of a subset. The same lists
give different results for the two, and the wrong kind can reverse the result. This example shows
when, and how to specify the kind. It ends with three meanings of a tie.
"""

# %%
# The smallest example
# --------------------
# Three drinks, one list with one name. As a top-K list, it means that tea comes before the other
# two. As a subset ranking, it compares nothing, and has probability 1, whatever the worths are.

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt
import numpy as np

import rankshot as rs
from rankshot.datasets import load_election, load_similarities

model = rs.PlackettLuce.from_worths({"tea": 2, "juice": 1, "water": 1})
both = rs.Rankings.from_orders([["tea"], ["tea"]], items=model.items_, kind=["top", "subset"])
for kind, probability in zip(["top", "subset"], np.exp(model.log_prob(both)), strict=True):
    print(f"{kind:<7} probability of the list: {probability:.2f}")

# %%
# Shown more often is not better
# ------------------------------
# 500 people taste four of eight drinks each and put these in order. The last drinks in the true
# order are tasted most often, because the shop has more of them.

rng = np.random.default_rng(0)
drinks = ["tea", "coffee", "juice", "milk", "cocoa", "cola", "water", "broth"]
truth = np.linspace(1.4, -1.4, 8)
supply = np.arange(1, 9) ** 1.5
lists = []
for _ in range(500):
    tasted = rng.choice(8, size=4, replace=False, p=supply / supply.sum())
    # With Gumbel noise, the order is a draw from the Plackett-Luce model with these log-worths.
    order = tasted[np.argsort(-(truth[tasted] + rng.gumbel(size=4)))]
    lists.append([drinks[i] for i in order])
print(lists[0])

# %%
# We interpret the same lists as both kinds. As top-K lists, they mean that a person prefers
# the four tasted drinks to all others.

orders, worths = {"truth": drinks}, {"truth": truth}
for kind in ["subset", "top"]:
    rankings = rs.Rankings.from_orders(lists, items=drinks, kind=kind)
    model = rs.PlackettLuce().fit(rankings)
    orders[f"read as {kind}"], worths[f"read as {kind}"] = model.mode_, model.log_worths_
for name, order in orders.items():
    print(f"{name:<15} {' > '.join(order)}")
rs.pages.RankingsDisplay.from_rankings(
    rs.Rankings.from_orders(orders.values(), sources=list(orders))
)

# %%
# The wrong kind measures how often a drink was tasted:

fig, axes = plt.subplots(1, 2, figsize=(8, 3), sharey=True, layout="constrained")
for ax, kind in zip(axes, ["subset", "top"], strict=True):
    estimate = worths[f"read as {kind}"]
    ax.axline((0, 0), slope=1, color="0.7", linewidth=1)
    ax.plot(truth, estimate, "o", color="C0")
    correlation = np.corrcoef(truth, estimate)[0, 1]
    ax.set(title=f"kind={kind!r}: correlation {correlation:.2f}", xlabel="true log-worth")
    print(f"kind={kind!r}: correlation with the truth {correlation:.2f}")
axes[0].set_ylabel("estimated log-worth")
plt.show()

# %%
# The other mistake
# -----------------
# In an election, all candidates are on the ballot. A voter who writes down one name prefers this
# candidate to all others: a top-K list. Interpreted as subset rankings, these ballots contain no
# information. (PrefLib files do not state their kind, so :func:`~rankshot.read_rankings` has the
# parameter ``kind=``.)

ballots = load_election()
read = {
    kind: rs.Rankings.from_orders(
        ballots.orders(), items=ballots.items, weights=ballots.weights, kind=kind
    )
    for kind in ["top", "subset"]
}
for kind, rankings in read.items():
    order = rs.kemeny(rankings, method="exact").order
    print(f"{kind:<7} Kemeny: {' > '.join(name[-1] for name in order)}")
lost = ballots.weights[ballots.lengths == 1].sum()
print(f"as subset rankings, {lost:,.0f} of {ballots.weights.sum():,.0f} ballots compare nothing")

# %%
# With the same ballots, candidate 1 falls from second place to fourth. So ask how the lists were
# made:
#
# =====================================================  ============
# How were the lists made?                               ``kind=``
# =====================================================  ============
# "Name the best three of all."                          ``"top"``
# A ballot; a search engine's first page                 ``"top"``
# "Put these four in order" (others exist)               ``"subset"``
# A vote between two, a race, a match                    ``"subset"``
# =====================================================  ============
#
# Three meanings of a tie
# -----------------------
# WordNet gives many classes the same similarity. Which of eight animals is most similar to a
# frog? The sources of rankshot keep ties:

table = load_similarities()["WordNet"].select(
    ["frog"], ["bear", "fox", "lizard", "snake", "turtle", "trout", "whale", "crab"]
)
frog = table.to_rankings()
print(frog)

# %%
# Sorting the numbers breaks ties by the order of the columns. List the same classes in another
# order, and the result changes:

for items in [table.items, table.items[::-1]]:
    values = table.select(["frog"], items).values[0]
    print("sorted:", " > ".join(items[i] for i in np.argsort(-values, kind="stable")))

# %%
# In rankshot a tie means that the order is *unknown*: its probability is the mean over the orders
# that it allows, whatever the order of the columns. If your raters said that two items are *equal*,
# this is a different statement, and :class:`~rankshot.leaderboards.DavidsonLuce` is the model for
# it. Two teas that were tasted 90 times:

for name, votes in {
    "30 wins each, 30 ties": [30, 30, 30],
    "40 wins to 20, 30 ties": [40, 20, 30],
}.items():
    won, lost, tied = votes
    pairs = rs.Rankings.from_orders(
        [["green", "black"], ["black", "green"], [["green", "black"]]], weights=[won, lost, tied]
    )
    unknown = rs.PlackettLuce(regularization=0).fit(pairs)
    equal = rs.leaderboards.DavidsonLuce(regularization=0).fit(pairs)
    green = unknown.worths_[unknown.items_.index("green")]
    outcomes = rs.Rankings.from_orders([["green", "black"], [["green", "black"]]])
    wins, ties = np.exp(equal.log_prob(outcomes))
    print(f"{name}")
    print(f"    as unknown order: green wins {green:.2f}")
    print(f"    as equal:         green wins {wins:.2f}, tie {ties:.2f}")

# %%
# **Where to go next.** :doc:`Rankings and their models </guide/ranking>` defines every kind and
# what each function does with it. :ref:`sphx_glr_gallery_rankings_04_leaderboard.py` has votes with
# ties.
