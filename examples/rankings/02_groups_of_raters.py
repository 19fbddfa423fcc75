"""Cluster raters with a Plackett-Luce mixture
===========================================

One order for all raters can hide that there are two opinions. You have rankings from many raters,
and ask whether they fall into groups, how large the groups are, and what each of them wants. The
data are the complete ballots of an election, in which voters put five candidates in order.
"""

# %%
# With one model for all voters, the five candidates are nearly equal. Does everyone like each of
# them a little, or do some like one a lot?

import matplotlib.pyplot as plt
import numpy as np

import rankshot as rs
from rankshot.datasets import load_election
from rankshot.ranking.consensus.precedence import precedence

ballots = load_election()
complete = ballots[ballots.lengths >= 4]
worths = rs.PlackettLuce().fit(complete).worths_
for name, worth in zip(complete.items, worths, strict=True):
    print(f"{name}: {worth:.2f}")

# %%
# How many groups?
# ----------------
# A :class:`~rankshot.RankingMixture` has one model for each group, here
# :class:`~rankshot.PlackettLuce`, and finds the groups and their models together, by the EM
# algorithm. Numbers of groups are compared by BIC: the smaller, the better.

for n in (1, 2, 3):
    mixture = rs.RankingMixture(n_groups=n, n_starts=5, random_state=0).fit(complete)
    print(f"{n} groups: BIC {mixture.bic_:,.0f}")

# %%
# The second group lowers BIC by more than 1,000, which is overwhelming evidence. A third group
# lowers it by about 90 more: with thousands of voters, small differences are significant. Two
# groups are easier to explain, and we look at these.
#
# What does each group want?
# --------------------------

groups = rs.RankingMixture(n_groups=2, n_starts=5, random_state=0).fit(complete)
for share, model in zip(groups.weights_, groups.models_, strict=True):
    print(f"{share:.0%} of the voters: {' > '.join(name[-1] for name in model.mode_)}")

fig, ax = plt.subplots(figsize=(6.4, 2.8), layout="constrained")
for g, model in enumerate(groups.models_):
    ax.plot(model.log_worths_, model.items_, "os"[g], label=f"group {g + 1}")
ax.set_xlabel("log-worth in the group")
ax.legend()
plt.show()

# %%
# The smaller group has a clear opinion: it wants candidate 3, then 1. These two were research
# psychologists. The larger group has weaker preferences. It puts the two clinical
# psychologists, 4 and 5, first, and candidate 3 last. Candidate 3 is the first choice of one group
# and the last of the other; this is why the voting rules in
# :ref:`sphx_glr_gallery_rankings_01_election.py` did not agree on the winner. Diaconis (1989)
# described these two groups, with another method.
#
# Who belongs to which group?
# ---------------------------
# :meth:`~rankshot.RankingMixture.predict_proba` gives the probabilities of the groups for each
# ballot. Many ballots are typical of one group. Others could come from either.

membership = groups.predict_proba(complete)[:, 1]
fig, ax = plt.subplots(figsize=(6.4, 2.8), layout="constrained")
ax.hist(membership, np.linspace(0, 1, 21), weights=complete.weights, color="C0")
ax.set(xlabel="probability of the second group (candidates 3 and 1)", ylabel="ballots")
plt.show()

clear = np.maximum(membership, 1 - membership) > 0.9
print(f"{np.average(clear, weights=complete.weights):.0%} of the ballots are clear")

# %%
# Head-to-head comparisons of two candidates show the difference best. Every ballot is weighted by
# its probability of belonging to the group. Numbers are percentages of the group's ballots that put
# the row's candidate before the column's:

for g in range(2):
    weights = complete.weights * groups.predict_proba(complete)[:, g]
    part = rs.Rankings.from_orders(complete.orders(), items=complete.items, weights=weights)
    before = precedence(part)
    both = before + before.T
    shares = np.divide(100 * before, both, out=np.zeros_like(before), where=both > 0)
    print(f"group {g + 1}:", shares.round(), sep="\n")

# %%
# **Summary.** A consensus means little where raters disagree. Look for groups before you report
# one.
#
# **Where to go next.** :doc:`Leaderboards and groups </guide/leaderboards>` explains the models,
# and raters with several rankings each.
