"""A class that the classifier was never shown, in a dozen lines.

Trains on CIFAR-100's classes, recognises CIFAR-10's by the rankings of a language-model panel,
chooses how many places of each ranking count without a look at unseen images, and says why.
"""

from sklearn.linear_model import LogisticRegression

import rankshot as rs
from rankshot.datasets.cifar import load_cifar
from rankshot.datasets.embedded import load_held_out_panel, load_panel
from rankshot.zeroshot.metrics import per_class_accuracy


def main() -> None:
    data, playing = load_cifar(), load_held_out_panel()
    classifier = LogisticRegression(C=0.01, max_iter=500)
    # The paper's classifier: the raters are merged into one, and all places count alike.
    head = rs.ProbabilisticRanking(posterior="consensus", decay=0)
    zero_shot = rs.ZeroShotClassifier(classifier, head=head, rankings=load_panel())
    search = rs.SeenClassSearch(
        zero_shot, {"head__k": [2, 4, 7]}, rankings=playing, held_out=[playing.target_names]
    ).fit(data.seen_train, data.seen_train_label)
    for trial in search.trials_:
        print(f"k = {trial.params['head__k']}: {trial.score:.1%} on seen classes played as unseen")

    best = search.best_estimator_
    print(f"\n{best.score(data.new, data.new_label):.1%} of all unseen images right:")
    for name, share in per_class_accuracy(data.new_label, best.predict(data.new)).items():
        print(f"  {name:<11}{share:>6.1%}")

    print(f"\nan image of a {data.new_label[0]}: {best.explain(data.new[:1])[0]}")


if __name__ == "__main__":
    main()
