"""
Zero-shot classification of sensor and tabular data
===================================================

There is no CLIP for accelerometers, blood values or machine logs. But if someone knows which known
classes a new class resembles, a trained classifier can recognise it. Here a classifier in a watch
knows ten activities, such as walking and cycling. Five more are new, such as jogging: they are
recognised from lists of similar activities. The signals are simulated.
"""

# %%
# The classifier in the watch
# ---------------------------
#
# Each input is a four-second recording of an accelerometer with three axes. It becomes a row of a
# table: the mean and the standard deviation of each axis, and the power of the vertical axis in
# eight frequency bands. Every recording has its own speed, strength and angle.

import numpy as np
from matplotlib import pyplot as plt
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankshot as rs

rng = np.random.default_rng(0)
# Steps per second, vertical and forward strength in g, angle of the watch in degrees.
SEEN = {
    "lying": (0, 0.01, 0.01, 90),
    "sitting": (0, 0.02, 0.02, 35),
    "standing": (0, 0.03, 0.03, 0),
    "walking": (1.8, 0.35, 0.20, 0),
    "running": (2.8, 1.20, 0.50, 10),
    "climbing_stairs": (1.5, 0.45, 0.15, 15),
    "cycling": (1.3, 0.10, 0.15, 45),
    "rowing": (0.5, 0.15, 0.60, 25),
    "jumping_rope": (2.2, 1.50, 0.10, 0),
    "vacuuming": (0.7, 0.10, 0.35, 20),
}
NEW = {
    "descending_stairs": (1.7, 0.55, 0.20, 12),
    "jogging": (2.4, 0.90, 0.40, 6),
    "kneeling": (0, 0.03, 0.02, 18),
    "reclining": (0, 0.01, 0.01, 65),
    "spinning": (1.6, 0.12, 0.20, 50),
}
time = np.arange(0, 4, 0.02)


def record(cadence, vertical, forward, angle):
    """Return the simulated signal of one recording: one row per axis."""
    cadence, vertical, forward = np.array([cadence, vertical, forward]) * rng.normal(1, 0.12, 3)
    tilt = np.deg2rad(angle + rng.normal(0, 8))
    phase = 2 * np.pi * (cadence * time + rng.random())
    motion = np.array([forward * np.cos(phase), 0.3 * forward * np.sin(phase / 2)])
    up = vertical * (np.sin(phase) + 0.3 * np.sin(2 * phase)) + np.cos(tilt)
    return np.array([motion[0] + np.sin(tilt), motion[1], up]) + rng.normal(0, 0.03, (3, len(time)))


def describe(signal):
    """Return the row of the table."""
    power = np.abs(np.fft.rfft(signal[2] - signal[2].mean()))[1:17] ** 2
    bands = np.log(power.reshape(8, 2).sum(axis=1) + 1)
    return np.concatenate([signal.mean(axis=1), signal.std(axis=1), bands])


def simulate(activities, n):
    """Return recordings of each activity, and their labels."""
    labels = np.repeat(list(activities), n)
    return np.array([describe(record(*activities[name])) for name in labels]), labels


X_train, y_train = simulate(SEEN, 60)
X_test, y_test = simulate(SEEN, 20)
X_new, y_new = simulate(NEW, 60)
classifier = make_pipeline(StandardScaler(), LogisticRegression(C=0.1)).fit(X_train, y_train)
print(f"accuracy on the ten seen activities: {classifier.score(X_test, y_test):.2f}")

# %%
# What the new activities resemble
# --------------------------------
#
# Two raters ranked the seen activities for each new one, most similar first. They know the
# activities, but have not seen any signals.

LISTS = {
    "descending_stairs": ["climbing_stairs walking running", "walking climbing_stairs running"],
    "jogging": ["running walking jumping_rope", "running jumping_rope walking"],
    "kneeling": ["sitting standing lying", "standing sitting vacuuming"],
    "reclining": ["lying sitting standing", "sitting lying standing"],
    "spinning": ["cycling rowing walking", "cycling climbing_stairs rowing"],
}
rankings = rs.Rankings.from_orders(
    [order.split() for lists in LISTS.values() for order in lists],
    items=classifier.classes_,
    targets=np.repeat(list(LISTS), 2),
    raters=["Ada", "Ben"] * len(LISTS),
)
print(rankings)

# %%
# Recognise them
# --------------
#
# :class:`~rankshot.ZeroShotClassifier` joins the frozen classifier and the rankings in one
# scikit-learn estimator. Nothing is trained.

zero_shot = rs.ZeroShotClassifier(FrozenEstimator(classifier), rankings=rankings).fit()
found = zero_shot.predict(X_new)
print(f"accuracy on the five new activities: {np.mean(found == y_new):.2f} (chance: 0.20)")
ConfusionMatrixDisplay.from_predictions(y_new, found, xticks_rotation="vertical", colorbar=False)
plt.show()

# %%
# Why was a recording classified as jogging? The contributions of the seen activities add up to the
# decision:

row = int(np.flatnonzero((y_new == "jogging") & (found == "jogging"))[0])
why = zero_shot.explain(X_new[row : row + 1])[0]
print(why)

# %%
# Seen and new activities together
# --------------------------------
#
# In use, a watch does not know whether an activity is new. With ``classes="all"``, all fifteen
# compete. The seen ones may lose 5 points of accuracy; labelled recordings of them, which the
# classifier was not trained on, set the threshold. Most new recordings are still missed: they
# resemble seen activities more than anything else.

everything = rs.ZeroShotClassifier(
    FrozenEstimator(classifier), rankings=rankings, classes="all", seen_loss=0.05
).fit(X_test, y_test)
X_more, y_more = simulate(SEEN, 30)
print(f"seen activities, alone: {classifier.score(X_more, y_more):.2f}")
seen, new = everything.score(X_more, y_more), everything.score(X_new, y_new)
print(f"seen and new together: seen {seen:.2f}, new {new:.2f}")

# %%
# **Where to go next.** :ref:`sphx_glr_gallery_new_classes_03_seen_and_new.py` explains how old and
# new classes compete. :doc:`Examples and review </guide/examples>` adds labelled examples.
