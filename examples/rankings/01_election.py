"""Rank aggregation of ballots: Kemeny, Borda and Schulze
======================================================

You have ballots, reviews or preference lists, and need one order of all items. Several rules
compute one. Do they agree, and if not, why? The data are a real election: in 1980, members of the
American Psychological Association ranked five candidates for president, and many of them named only
their first choices.
"""

# %%
# The ballots come with rankshot. Identical ballots are stored as one ranking with a
# weight. For your own, use :func:`rankshot.read_rankings` or :meth:`rankshot.Rankings.from_orders`.

# sphinx_gallery_thumbnail_number = 3
import matplotlib.pyplot as plt
import numpy as np

import rankshot as rs
from rankshot.datasets import load_election

ballots = load_election()
print(ballots)

# %%
# A third of the voters named one candidate only. Such a ballot is a top-K list: the candidate
# comes before all others, whose order is unknown.

for k in range(1, 5):
    voters = ballots.weights[ballots.lengths == k].sum()
    print(f"{voters:6,.0f} ballots put {k} of 5 candidates in order")

# %%
# Five rules
# ----------
# :func:`~rankshot.kemeny` finds the order that contradicts the ballots least.
# :func:`~rankshot.ranking.schulze` and :func:`~rankshot.ranking.copeland` look at majorities
# between two candidates, :func:`~rankshot.borda` at average places. The worths of a
# :class:`~rankshot.PlackettLuce` model estimate how often each candidate is chosen first.

rules = {
    "Kemeny": lambda ballots: rs.kemeny(ballots, method="exact").order,
    "Schulze": lambda ballots: rs.ranking.schulze(ballots).order,
    "Copeland": lambda ballots: rs.ranking.copeland(ballots).order,
    "Borda": lambda ballots: rs.borda(ballots).order,
    "Plackett-Luce": lambda ballots: rs.PlackettLuce().fit(ballots).mode_,
}


def apply_rules(ballots):
    """Print and return the order of each rule."""
    orders = {name: rule(ballots) for name, rule in rules.items()}
    for name, order in orders.items():
        print(f"{name:<14}{' > '.join(candidate[-1] for candidate in order)}")
    return rs.Rankings.from_orders(orders.values(), items=ballots.items, sources=list(orders))


rs.pages.plot_rankings(apply_rules(ballots))

# %%
# All rules agree on the last three places. They disagree on the winner. The rules based on
# majorities choose candidate 3, who beats every other candidate head-to-head (a Condorcet winner).
# The majority over candidate 1 is small.

print("Condorcet winner:", rs.ranking.condorcet_winner(ballots))

# %%
# Short ballots decide
# --------------------
# Among the ballots that put all candidates in order, all five rules choose candidate 1:

complete = ballots[ballots.lengths >= 4]
orders = apply_rules(complete)

# %%
# Voters who ranked three or more candidates put 1 before 3 more often. Voters who named only one or
# two did the opposite:

print("places  3 before 1  1 before 3")
for k in range(1, 5):
    some = ballots[ballots.lengths == k]
    first, third = some.positions()[:, [0, 2]].T
    first, third = (np.where(place == 0, 9, place) for place in (first, third))
    counts = [some.weights[third < first].sum(), some.weights[first < third].sum()]
    print(f"{k:6}{counts[0]:12,.0f}{counts[1]:12,.0f}")

# %%
# So the winner depends on the meaning of a short ballot. Here it means that the named candidates
# come first. Borda gives the others the mean of the remaining places, and so also takes into
# account how far behind they are. Majorities depend only on who is ahead.
#
# Which places does each candidate get? For the complete ballots:

positions = complete.positions()
positions[positions == 0] = 5  # the candidate that a ballot leaves out is the last
shares = np.array([np.bincount(column, complete.weights)[1:] for column in positions.T])
shares /= complete.weights.sum()
for name, row in zip(complete.items, shares, strict=True):
    print(f"{name}: " + "  ".join(f"{share:4.0%}" for share in row))

fig, axes = plt.subplots(1, 5, figsize=(9, 2.2), sharey=True, layout="constrained")
for ax, name, row in zip(axes, complete.items, shares, strict=True):
    ax.bar(range(1, 6), row, color="C0")
    ax.set(title=name, xlabel="place", xticks=range(1, 6))
axes[0].set_ylabel("share of the ballots")
plt.show()

# %%
# No single order shows this: candidate 3 is most often first, and nearly as often last.
# Diaconis (1989), who made these data known, concluded that there were two groups of voters, one
# for candidates 1 and 3, the other for 4 and 5.
# :ref:`sphx_glr_gallery_rankings_02_groups_of_raters.py` finds them. Kendall's W measures how much
# the voters agree. It is 1 if all agree, and near 0 if many people vote at random:

print(f"Kendall's W: {rs.ranking.concordance(ballots):.3f}")

# %%
# **Summary.** Apply several rules. If they agree, report any of them. If they do not, the
# difference is informative about the raters; report which rule you use and why, and what a short
# list means (see :doc:`rankings </guide/rankings>`).
#
# **Where to go next.** The guide has all rules and their definitions, and shows how Kemeny's order
# is proved optimal: :doc:`rankings </guide/rankings>`.
