"""Zero-shot classification with a scikit-learn classifier.

A classifier is trained on the classes of CIFAR-100. With rankings from a panel of language models,
it recognises the classes of CIFAR-10, on which it was not trained. How many places of each ranking
are used (k) is chosen on held-out seen classes, without images of new classes. At the end, one
prediction is explained.
"""

from sklearn.linear_model import LogisticRegression

import rankshot as rs
from rankshot.datasets import load_cifar, load_held_out_panel, load_panel
from rankshot.zeroshot.metrics import per_class_accuracy


def main() -> None:
    data, held_out = load_cifar(), load_held_out_panel(question="similar")
    classifier = LogisticRegression(C=0.01, max_iter=500)
    # As in the paper: the rankings of all raters are merged into one, and all places have the same
    # weight.
    head = rs.ProbabilisticRanking(posterior="consensus", decay=0)
    panel = load_panel(question="similar")
    zero_shot = rs.ZeroShotClassifier(classifier, head=head, rankings=panel)
    search = rs.SeenClassSearch(
        zero_shot, {"head__k": [2, 4, 7]}, rankings=held_out, held_out=[held_out.target_names]
    ).fit(data.seen_train, data.seen_train_label)
    for trial in search.trials_:
        print(f"k = {trial.params['head__k']}: {trial.score:.1%} on held-out seen classes")

    best = search.best_estimator_
    print(f"\n{best.score(data.new, data.new_label):.1%} of the images of new classes are right:")
    for name, share in per_class_accuracy(data.new_label, best.predict(data.new)).items():
        print(f"  {name:<11}{share:>6.1%}")

    print(f"\nan image of a {data.new_label[0]}: {best.explain(data.new[:1])[0]}")


if __name__ == "__main__":
    main()
