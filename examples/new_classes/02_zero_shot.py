"""Zero-shot classification with a scikit-learn classifier
=======================================================

A classifier is trained on the classes of CIFAR-100. With rankings from a panel of language models,
it recognises the classes of CIFAR-10, on which it was not trained. A rehearsal with seen classes
chooses the settings, calibrates the probabilities and predicts the accuracy, without any image of
the new classes. At the end, one prediction is explained.
"""

import numpy as np
from sklearn.linear_model import LogisticRegression

import rankshot as rs
from rankshot.datasets import load_cifar, load_held_out_panel, load_panel
from rankshot.zeroshot.metrics import per_class_accuracy


def main() -> None:
    data, panel = load_cifar(), load_panel()
    rehearsal = rs.Rehearsal(estimator=LogisticRegression(C=0.01, max_iter=500))
    rehearsal.fit(data.seen_train, data.seen_train_label, load_held_out_panel())
    for trial in rehearsal.trials_:
        print(f"{trial.what:<17}{trial.accuracy} of held-out seen classes")

    # The reference: seen images that the classifier was not trained on.
    reference = rs.scores_of(rehearsal.estimator_, data.seen_validation)
    print(f"\npredicted for the new classes: {rehearsal.predict_accuracy(panel, reference)}")
    head = rehearsal.fit_head(panel, reference)
    scores = rs.scores_of(rehearsal.estimator_, data.new)
    found = head.predict(scores)
    print(f"came out: {np.mean(found == data.new_label):.3f}")
    for name, share in per_class_accuracy(data.new_label, found).items():
        print(f"  {name:<11}{share:>6.1%}")

    print(f"\nan image of a {data.new_label[1]}: {rs.explain(head, scores[1:2])[0]}")


if __name__ == "__main__":
    main()
