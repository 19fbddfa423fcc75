"""Exact Kemeny consensus with a proof of optimality
=================================================

Kemeny's consensus is the order that contradicts the raters least. It is hard to find: 100 items
have more than 10\\ :sup:`157` orders. A search returns a good order, but is there a better one?
This example shows how rankshot proves that there is none, first for 8 items, where all orders can
be tried, and then for 100. The raters are five sources (WordNet, word vectors and a corpus) that
rank classes by their similarity to a dog.
"""

# %%
# Eight items, five raters
# ------------------------
# The eight animals are those that a language-model panel finds most similar to a dog. Each
# source ranks them by its own similarities.

# sphinx_gallery_thumbnail_number = 2
from itertools import combinations, permutations
from math import log10

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import gammaln

import rankshot as rs
from rankshot.datasets import load_panel, load_similarities

animals = rs.kemeny(load_panel(question="similar").select(target="dog")).order[:8]
tables = load_similarities().values()
few = rs.Rankings.concatenate(t.select(["dog"], animals).to_rankings() for t in tables)
rs.pages.RankingsDisplay.from_rankings(few)

# %%
# The score of an order counts, over all raters, the pairs of items that the order reverses. Below,
# ``before[i, j]`` is the number of raters who put i before j. With eight items there are only
# 40,320 orders. We try them all:


def count_before(rankings):
    """Return how many rankings put each item before each other one."""
    places = rankings.positions().astype(float)
    places[places == 0] = np.nan  # not ranked by this source: no comparison is true
    return (places[:, :, None] < places[:, None, :]).sum(axis=0)


before = count_before(few)
orders = np.array(list(permutations(range(8))))
scores = sum(before[orders[:, b], orders[:, a]] for a, b in combinations(range(8), 2))
found = rs.kemeny(few, method="exact")
print(f"best of {len(orders):,} orders: {scores.min()}")
print(f"kemeny: score {found.score:g}, bound {found.bound:g}, optimal: {found.optimal}")
print(" > ".join(found.order))

fig, ax = plt.subplots(figsize=(6.4, 3), layout="constrained")
ax.hist(scores, np.arange(scores.min(), scores.max() + 2) - 0.5, color="0.8")
ax.axvline(found.score, color="C0", label=f"Kemeny, {found.score:g}")
borda = rs.borda(few)
ax.axvline(borda.score, color="C1", linestyle="--", label=f"Borda, {borda.score:g}")
ax.set(xlabel="score of an order (reversed pairs, all raters)", ylabel="orders")
ax.legend()
plt.show()

# %%
# Why a majority is not enough
# ----------------------------
# A pair of items costs at least the number of raters in its minority, whichever comes first. The
# sum over all pairs is a bound that no order can beat. An order that follows every majority would
# reach it.

pairs = sum(min(before[i, j], before[j, i]) for i, j in combinations(range(8), 2))
print(f"bound from pairs: {pairs}, best score: {found.score:g}")

# %%
# The score of the best order is one above the bound, because the majorities contradict each other.
# They form a cycle:

for i, j, k in permutations(range(8), 3):
    if i == min(i, j, k) and all(before[a, b] > before[b, a] for a, b in [(i, j), (j, k), (k, i)]):
        names = [few.items[a] for a in (i, j, k, i)]
        counts = [f"{before[a, b]} to {before[b, a]}" for a, b in [(i, j), (j, k), (k, i)]]
        print(f"{' before '.join(names)}: {', '.join(counts)}")

# %%
# Every order must go against one majority of a cycle. This is the idea of the proof. A linear
# program has one variable for each "i before j" and a constraint for each triple of items: i before
# j, j before k and k before i cannot all be true. Its optimum is a bound for all orders. rankshot
# adds only constraints that are violated, and raises the bound until it meets the score of an
# order. Then this order is proved to be optimal.
#
# Each number is the count of raters who put the animal of the row before that of the column.

print(few.items, before.astype(int), sep="\n")

# %%
# A hundred items
# ---------------
# Now the sources rank all 100 classes of CIFAR-100. Nobody can try all orders.

many = rs.Rankings.concatenate(table.to_rankings() for table in tables).select(target="dog")
digits = gammaln(many.n_items + 1) / np.log(10)
print(f"{many.n_items} items have about 10^{digits:.0f} orders (8 items: 10^{log10(40320):.1f})")
results = {
    "Borda": rs.borda(many),
    "adjacent swaps": rs.kemeny(many, method="adjacent"),
    "insertion": rs.kemeny(many, method="insertion"),
    "exact": rs.kemeny(many, method="exact"),
}
for name, result in results.items():
    print(f"{name:<15} score {result.score:6,.0f}  bound {result.bound:6,.0f}  {result.optimal}")

# %%
# The difference between score and bound is how much an order might still be improved. A search
# (:func:`~rankshot.kemeny` with ``method="insertion"``) comes within one reversed pair of the
# optimum, but only the exact method can prove it.

fig, ax = plt.subplots(figsize=(6.4, 2.2), layout="constrained")
for y, result in enumerate(results.values()):
    ax.plot([result.bound, result.score], [y, y], color="C0", linewidth=1.5)
    ax.plot(result.score, y, "o", color="C0")
    ax.plot(result.bound, y, "|", color="C1", markersize=12)
ax.set_yticks(range(len(results)), list(results))
ax.invert_yaxis()
ax.set_xlabel("bound (|) and score (●)")
ax.grid(axis="x", color="0.9")
plt.show()

print(" > ".join(results["exact"].order[:6]), "> …")

# %%
# **Summary.** Use ``method="exact"`` and read ``optimal``. For hundreds of items with many cycles
# the proof may take a long time: set ``time_limit``. Then ``score`` and ``bound`` still show how
# far from the optimum the order can be. An optimal order need not be the only one.
#
# **Where to go next.** :doc:`Rankings and their models </guide/ranking>` has the definitions for
# top-K lists, ties and weights. :ref:`sphx_glr_gallery_rankings_01_election.py` compares rules.
