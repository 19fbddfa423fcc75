"""Plot rankings, leaderboards, calibration and comparisons
========================================================

rankshot has four plots. This example draws each of them once, with data that come with the package.
With ``ax=``, they are drawn on existing axes.
"""

# %%
# Rankings side by side
# ---------------------
# :func:`~rankshot.pages.plot_rankings`: one column per ranking, the best item first. Items that
# occur in most columns are coloured.

import matplotlib.pyplot as plt

import rankshot as rs
from rankshot.datasets import load_election, load_imagenet, load_panel
from rankshot.zeroshot.metrics import wilson_interval

rs.pages.plot_rankings(load_panel(), "cat", k=5)
plt.show()

# %%
# A leaderboard
# -------------
# :func:`~rankshot.pages.plot_leaderboard`: grey bars join items that do not differ clearly.

ballots = load_election()
rs.pages.plot_leaderboard(rs.leaderboard(ballots))
plt.show()

# %%
# Calibration
# -----------
# :func:`~rankshot.pages.plot_reliability`: the accuracy of inputs against their confidence. A
# disc below the diagonal means that the classifier is too confident.

data = load_imagenet()
head = rs.WeightedMean().fit(data.rankings)
proba = head.predict_proba(data.scores)
rs.pages.plot_reliability(data.labels, proba, head.classes_, n_bins=5)
plt.show()

# %%
# A comparison of methods
# -----------------------
# :func:`~rankshot.pages.plot_comparison`: an estimate with its interval for each.

heads = {
    "weighted mean": head,
    "weighted mean, reference": rs.WeightedMean().fit(data.rankings, reference=data.reference),
    "ranking model": rs.ProbabilisticRanking().fit(data.rankings),
}
results = {
    name: wilson_interval((one.predict(data.scores) == data.labels).sum(), len(data.labels))
    for name, one in heads.items()
}
rs.pages.plot_comparison(results, chance=1 / len(head.classes_))
plt.show()
