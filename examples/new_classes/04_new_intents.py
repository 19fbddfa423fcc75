"""Can a text classifier recognise intents that it was not trained on?
===================================================================

Install: pip install 'rankshot[skops]'

A virtual assistant knows 120 intents, such as "spelling" or "oil_change_when": requests to it are
classified with TF-IDF and a linear model (CLINC150, a part of which comes with rankshot). Now there
are 30 new intents, and not one request for any of them. For each new intent, a panel of language
models listed the known intents that a classifier would say instead. With these rankings, the same
pipeline recognises the new intents.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import skops.io
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline

import rankshot as rs
from rankshot.datasets import load_intents

N_SHOWN = 5


def main(folder: Path) -> None:
    data = load_intents()
    print(data)

    # The classifier as it may be in use already. skops saves it without a pickle.
    pipeline = make_pipeline(TfidfVectorizer(sublinear_tf=True), RidgeClassifier())
    pipeline.fit(data.seen_train, data.seen_train_label)
    skops.io.dump(pipeline, folder / "intents.skops")
    seen = pipeline.score(data.seen_test, data.seen_test_label)
    print(f"requests of the {len(data.seen_classes)} seen intents that are right: {seen:.2f}\n")

    # The file has the names of its classes, and a pipeline that begins with TF-IDF takes texts.
    found = rs.score(folder / "intents.skops", data.new)
    print(f"{len(found.ids)} requests of new intents have {found.scores.kind} scores")

    head = rs.WeightedMean().fit(data.panel)
    labels = head.predict(found.scores)
    right = labels == data.new_label
    print(f"of these, right: {right.mean():.2f} (chance: {1 / len(data.new_classes):.2f})\n")

    for row in range(N_SHOWN):
        said = found.scores.items[np.argmax(found.scores.values[row])]
        print(f"“{data.new[row]}”")
        print(f"  the pipeline alone: {said}; a new intent: {labels[row]}; ", end="")
        print("right" if right[row] else f"it is {data.new_label[row]}")

    # Which new intent is the most difficult, and why? The head explains one of its errors.
    share = {name: right[data.new_label == name].mean() for name in data.new_classes}
    worst = min(share, key=share.__getitem__)
    print(f"\nthe most difficult new intent is {worst}: {share[worst]:.2f} are right")
    row = int(np.flatnonzero((data.new_label == worst) & ~right)[0])
    reasons = str(rs.explain(head, found.scores[row : row + 1])[0]).splitlines()[:6]
    print(f"“{data.new[row]}”", *reasons, "  …", sep="\n")


if __name__ == "__main__":
    with TemporaryDirectory() as directory:
        main(Path(directory))
