"""The predictions that are frozen: data sets, classifiers and ways to fit, through public names.

Scores come from the measurement data beside the project: those of networks as they are, and those
of features by least squares, which has one solution on every machine.
"""

import json

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

import rankshot as rs

N_KEPT = 12
"""The inputs of which probabilities are kept."""
DATASETS = ("animals", "cifar", "imagenet", "intents", "languages", "letters", "sounds")


def read_lines(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def read_panel(path, dataset, items):
    """One file of lists; those of the new classes, as rankings of the items."""
    lines = [line for line in read_lines(path) if line.get("dataset", dataset) == dataset]
    kept = [(line, [name for name in line["ranking"] if name in items]) for line in lines]
    kept = [(line, names) for line, names in kept if names]
    return rs.Rankings.from_orders(
        [names for _, names in kept],
        items=items,
        targets=[line["target"] for line, _ in kept],
        raters=[line["rater"] for line, _ in kept],
        sources=["panel"] * len(kept),
    )


def least_squares(X, labels, classes, ridge):
    """The weights of a least-squares classifier with targets of +1 and -1, and a constant."""
    X = np.column_stack([np.asarray(X, np.float64), np.ones(len(X))])
    Y = 2.0 * (np.asarray(labels)[:, None] == np.asarray(classes)) - 1
    return np.linalg.solve(X.T @ X + ridge * np.eye(X.shape[1]), X.T @ Y)


def apply(weights, X):
    return np.column_stack([np.asarray(X, np.float64), np.ones(len(X))]) @ weights


def animals(data):
    z = np.load(data / "animals" / "features.npz")
    names, is_new = z["classes"].astype(str), z["unseen"]
    labels, X = names[z["label"]], z["features"]
    seen = [str(name) for name in names[~is_new]]
    new = is_new[z["label"]]
    rows = np.flatnonzero(~new)
    train, rest = rows[rows % 4 < 2], rows[rows % 4 == 3]
    weights = least_squares(X[train], labels[train], seen, 10)
    rankings = read_panel(data / "raters" / "photographs.jsonl", "animals", seen)
    x, s = np.flatnonzero(new)[::7], rest[::4]
    return rankings, apply(weights, X[x]), labels[x], apply(weights, X[s]), labels[s], None, None


def cifar(data):
    z = np.load(data / "cifar" / "features.npz")
    seen, new = z["seen_classes"].astype(str).tolist(), z["unseen_classes"].astype(str)
    labels = np.array(seen)[z["seen_train_label"][:20000]]
    weights = least_squares(z["seen_train"][:20000], labels, seen, 100)
    rankings = read_panel(data / "raters" / "photographs.jsonl", "cifar", seen)
    X, S = z["unseen_test"][::10], z["seen_test"][::10]
    y, r = new[z["unseen_test_label"][::10]], np.array(seen)[z["seen_test_label"][::10]]
    return rankings, apply(weights, X), y, apply(weights, S), r, None, None


def intents(data):
    lines = read_lines(data / "intents" / "requests.jsonl")
    classes = json.loads((data / "intents" / "classes.json").read_text("utf-8"))
    seen = sorted(classes["seen"])
    tables = {}
    for name, intents, split in [
        ("train", set(seen), "train"),
        ("seen", set(seen), "val"),
        ("new", set(classes["unseen"]), "test"),
    ]:
        tables[name] = [
            (line["text"], line["intent"])
            for line in lines
            if line["intent"] in intents and line["split"] == split
        ]
    vectorizer = TfidfVectorizer(max_features=800)
    texts, labels = zip(*tables["train"], strict=True)
    weights = least_squares(vectorizer.fit_transform(texts).toarray(), labels, seen, 1)
    parts = []
    for name, step in (("new", 1), ("seen", 3)):
        texts, labels = zip(*tables[name][::step], strict=True)
        parts += [apply(weights, vectorizer.transform(texts).toarray()), np.array(labels)]
    rankings = read_panel(data / "intents" / "panel.jsonl", "intents", seen)
    return rankings, *parts, None, None


def network(path, panel):
    """Logits of a network; inputs without a ranked class are the reference."""
    z = np.load(path)
    seen, labels = z["classes"].astype(str).tolist(), z["label"].astype(str)
    rankings = read_panel(panel, "", seen)
    new = np.isin(labels, rankings.target_names)
    X, F = z["logits"].astype(np.float64), z["features"].astype(np.float64)
    marked = None if (labels[~new] == "reference").any() else labels[~new]
    return rankings, X[new], labels[new], X[~new], marked, F[new], F[~new]


def imagenet(data):
    folder = data / "imagenet"
    return network(folder / "held_out_seen.npz", folder / "panel_held_out_seen.jsonl")


def sounds(data):
    folder = data / "sounds"
    return network(folder / "esc10_split.npz", folder / "panel_esc10_split.jsonl")


def outside(data, name):
    z = np.load(data / "outside" / f"{name}.npz")
    seen = z["classes"].astype(str).tolist()
    rankings = read_panel(data / "outside" / f"{name}.jsonl", "", seen)
    X, y = z["scores"].astype(np.float64), z["label"].astype(str)
    S, r = z["reference"].astype(np.float64), z["reference_label"].astype(str)
    return rankings, X[::2], y[::2], S[::2], r[::2], None, None


def languages(data):
    return outside(data, "languages")


def letters(data):
    return outside(data, "letters")


def make_pairs(X):
    """One-vs-one scores that are no differences of scores of classes."""
    first, second = np.triu_indices(X.shape[1], 1)
    difference = X[:, first] - X[:, second]
    return difference + 0.3 * np.sin(3 * difference)


def predict(data, name):
    """The probabilities of some inputs, by the name of the way to fit."""
    rankings, X, y, S, r, F, G = globals()[name](data)
    items = rankings.items
    labels = y.astype(str)
    few = np.concatenate([np.flatnonzero(labels == z)[:3] for z in np.unique(labels)])
    scores, reference = rs.Scores(X, items), rs.Scores(S, items)
    kept = np.linspace(0, len(X) - 1, N_KEPT).astype(int)

    def fit(**options):
        return rs.WeightedMean().fit(rankings, **options)

    plain, with_reference = fit(), fit(reference=reference)
    heads = {"plain": plain, "reference": with_reference}
    heads["examples"] = fit(examples=(scores[few], labels[few]))
    heads["reference and examples"] = fit(reference=reference, examples=(scores[few], labels[few]))
    heads["batch"] = rs.zeroshot.BatchRefinement(with_reference).fit(scores)
    heads["all"] = rs.zeroshot.SeenAndNew(with_reference).fit(reference, r)
    heads["all, without a reference"] = rs.zeroshot.SeenAndNew(plain).fit()
    probabilities = {way: head.predict_proba(scores[kept]) for way, head in heads.items()}
    single = rs.Scores(X.astype(np.float32), items), rs.Scores(S.astype(np.float32), items)
    probabilities["float32"] = fit(reference=single[1]).predict_proba(single[0][kept])
    if F is not None:
        inputs = rs.Scores(X, items, features=F)
        head = fit(reference=rs.Scores(S, items, features=G), examples=(inputs[few], labels[few]))
        probabilities["features"] = head.predict_proba(inputs[kept])
    if X.shape[1] <= 40:
        pairs = rs.Scores(make_pairs(X), items, "one-vs-one")
        background = rs.Scores(make_pairs(S[:200]), items, "one-vs-one")
        probabilities["one-vs-one"] = fit(reference=background).predict_proba(pairs[kept])
    return {way: np.asarray(proba) for way, proba in probabilities.items()}
