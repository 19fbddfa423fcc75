"""Online ranking survey, from design to consensus
===============================================

You want rankings from people: "Which of these are most like a cat?" This example runs a whole study
in one process. It designs the questions, serves the real web pages, lets 18 simulated people answer
them (two of them carelessly), looks at the quality flags, exports the rankings and merges them
into a consensus.
"""

# %%
# Design the study
# ----------------
# Six new classes, and for each of them the eight seen classes that are nearest in WordNet. People
# can put eight classes in order, but not 100.

# sphinx_gallery_thumbnail_number = 1
import re
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from fastapi.testclient import TestClient

import rankshot as rs
from rankshot.datasets import CIFAR_SENSES, class_names, load_panel
from rankshot.survey import (
    Database,
    create_app,
    new_study,
    ranking_records,
    read_overview,
    write_records,
)

targets = ["cat", "deer", "dog", "horse", "ship", "truck"]
seen = class_names("cifar").seen
wordnet = rs.WordNet(senses=CIFAR_SENSES)
study = new_study(targets, seen, show=8, rankings=wordnet, answers_per_question=18)
for question in study.questions[:2]:
    print(f"{question.target}: {', '.join(question.items)}")

# %%
# On the command line, ``rankshot survey new study.toml --seen seen.txt --new new.txt`` writes such
# a study to a file that you can edit, and ``rankshot survey serve study.toml`` serves it. A
# question looks like this, on a phone and on a desktop:
#
# .. image:: /images/survey.png
#    :alt: A question of the survey, half answered, on a phone and on a desktop
#
# People who answer
# -----------------
# There are no participants when this page is built, so we simulate them. Their opinions scatter
# around the order of a language-model panel (a Mallows model), and they rank five of the eight
# items. Two of the 18 answer at random. They use the same web pages as people: they agree to take
# part, read each question, and choose a place for each item.

panel = load_panel(question="similar")
truth = {target: rs.kemeny(panel.select(target=target)).order for target in targets}
careless = {5, 13}


def find_fields(page):
    """Return the hidden fields of the form on a page."""
    form = page.partition("</form>")[0]
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', form))


def choose_order(target, shown, rng, *, is_careless):
    """Return the items that a simulated person puts in order."""
    if is_careless:
        return rng.permutation(sorted(shown))[:5].tolist()
    opinion = sorted(shown, key=truth[target].index)
    drawn = rs.Mallows.from_center(opinion, spread=0.9).sample(1, k=5, random_state=rng)
    return drawn.orders()[0]


def take_part(browser, person):
    """Go through the pages of the survey as one person."""
    start = browser.get("/")
    page = browser.post("/start", data=find_fields(start.text))
    page = browser.get(str(page.url).removesuffix("/instructions"))
    asked = Counter()
    while form := re.search(r'<form id="answer" method="post" action="([^"]+)"', page.text):
        target = re.search(r"most like “(\w+)”", page.text)[1]
        names = re.findall(r'name="place" data-name="([^"]+)"', page.text)
        shown = [name.replace(" ", "_") for name in names]
        # One question is asked twice; people do not give exactly the same answer again.
        rng = np.random.default_rng([person, targets.index(target), asked[target]])
        asked[target] += 1
        order = choose_order(target, shown, rng, is_careless=person in careless)
        places = [str(order.index(item) + 1) if item in order else "" for item in shown]
        page = browser.post(form[1], data={**find_fields(page.text), "place": places})
    return page


# Simulated people are quick, and all of them have the same address.
study = replace(study, starts_per_hour=100, quality=replace(study.quality, seconds=0))
with tempfile.TemporaryDirectory() as folder:
    database = Database(Path(folder) / "study.sqlite", create=True)
    with TestClient(create_app(study, database)) as browser:
        for person in range(18):
            last_page = take_part(browser, person)
    overview = read_overview(study, database, now=time.time())
    database.close()
    # All answers, and those of participants without a flag.
    for name, exclude in {"all.jsonl": False, "kept.jsonl": True}.items():
        records = ranking_records(study, overview.answers, overview.flags, exclude_flagged=exclude)
        write_records(Path(folder) / name, records)
    everybody, kept = (
        rs.read_rankings(Path(folder) / name, items=seen) for name in ("all.jsonl", "kept.jsonl")
    )
print("The last page:", re.search(r"<h1[^>]*>(.*?)</h1>", last_page.text)[1])

# %%
# Every answer is on disk before the next page is shown. On the command line,
# ``rankshot survey export study.toml -o rankings.jsonl`` writes the rankings.
#
# The answers
# -----------
# The questions were assigned evenly:

print(sorted(Counter(everybody.targets.tolist()).items()))
print(everybody.select(target="cat")[:3])

# %%
# Careless people
# ---------------
# :func:`~rankshot.survey.read_overview` returns what the researcher's page shows (on the command
# line: ``rankshot survey status``), with the flags of each participant. A flag is a reason to look
# at a participant's answers. No answer is dropped because of a flag unless you ask for it.

for number, rater in enumerate(overview.people):
    for flag in overview.flags[rater]:
        print(f"person {number}, {flag.name}: {flag.text}")

# %%
# Both careless people are flagged. How far is each person from the consensus, on average over the
# six questions? 0 is the same order, 1 is the opposite:

distance = dict.fromkeys(overview.people, 0.0)
for summary in rs.summarize(everybody):
    for rater, share in summary.disagreement:
        distance[rater] += share / len(targets)
flagged = np.array([bool(overview.flags[rater]) for rater in distance])
values = np.array(list(distance.values()))
fig, ax = plt.subplots(figsize=(6.4, 2.6), layout="constrained")
for mask, colour, label in [(~flagged, "C0", "no flag"), (flagged, "C1", "flagged")]:
    ax.bar(np.flatnonzero(mask), values[mask], color=colour, label=label)
ax.set(xlabel="person", ylabel="distance to the consensus", xticks=range(len(values)))
ax.legend(ncols=2, loc="lower right", bbox_to_anchor=(1, 1))
plt.show()

# %%
# The consensus
# -------------
# Kemeny's order of the answers, with and without the flagged people, next to the order around which
# the simulated opinions scatter. W is Kendall's measure of agreement, which is 1 if all agree.

cats = everybody.select(target="cat")
columns = {
    "opinions": sorted(study.questions[0].items, key=truth["cat"].index),
    "all answers": rs.kemeny(cats, method="exact").order[:8],
    "without flags": rs.kemeny(kept.select(target="cat"), method="exact").order[:8],
}
shown = rs.Rankings.from_orders(columns.values(), sources=list(columns))
rs.pages.RankingsDisplay.from_rankings(shown)

# %%
print("target   W, all   W, without flags   consensus")
agreement = np.array(
    [[rs.ranking.concordance(r.select(target=t)) for r in (everybody, kept)] for t in targets]
)
for target, (before, after) in zip(targets, agreement, strict=True):
    order = rs.kemeny(kept.select(target=target), method="exact").order[:4]
    print(f"{target:<6}{before:9.2f}{after:19.2f}   {' > '.join(order)}")

fig, ax = plt.subplots(figsize=(6.4, 2.8), layout="constrained")
x = np.arange(len(targets))
ax.bar(x - 0.2, agreement[:, 0], 0.38, label="all answers", color="C5")
ax.bar(x + 0.2, agreement[:, 1], 0.38, label="without flags", color="C0")
ax.set_xticks(x, targets)
ax.set(ylabel="Kendall's W", ylim=(0, 1))
ax.legend(ncols=2, loc="lower right", bbox_to_anchor=(1, 1))
plt.show()

# %%
# ``kept`` can now be used in every other part of rankshot: in a head, in a model or in
# :func:`rankshot.summarize`.
#
# **Where to go next.** :doc:`Online surveys </guide/survey>` describes the study file, quality
# checks, backups and languages. :doc:`Paid studies </guide/paid_studies>` covers Prolific, and
# :doc:`A survey on the internet </guide/deployment>` covers the server.
