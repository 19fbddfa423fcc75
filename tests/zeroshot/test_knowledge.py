"""`Knowledge` and `Settings`: what is known becomes a head; what is wrong is named at the door."""

import numpy as np
import pandas as pd
import pytest
from head_cases import ITEMS, RANKINGS, TARGETS, random_scores

import rankshot as rs
from rankshot.zeroshot import Settings
from refusals import refuses


@pytest.fixture
def tables(rng):
    """A reference with labels, examples with labels, and a batch."""
    reference = random_scores(rng, n=50)
    few, labels = random_scores(rng, n=8), np.array([*TARGETS, *TARGETS])
    seen = np.array(ITEMS)[reference.values.argmax(axis=1)]
    return (reference, seen), (few, labels), random_scores(rng, n=40)


def same(one, other, scores):
    np.testing.assert_array_equal(one.predict_proba(scores), other.predict_proba(scores))


def test_it_fits_what_the_estimators_fit(tables):
    reference, examples, batch = tables
    everything = rs.Knowledge(RANKINGS, reference, examples, batch)
    by_hand = rs.WeightedMean(k=2).fit(RANKINGS, reference=reference, examples=examples)
    same(everything.fit(Settings(k=2, batch=False)), by_hand, batch)
    refined = rs.zeroshot.BatchRefinement(by_hand).fit(batch, examples)
    same(everything.fit(Settings(k=2)), refined, batch)
    plain = rs.WeightedMean().fit(RANKINGS)
    same(rs.Knowledge(RANKINGS, reference).fit(Settings(use_reference=False)), plain, batch)
    alone = rs.WeightedMean().fit(RANKINGS, reference=reference)
    for classes in ("all", "new"):
        both = rs.zeroshot.SeenAndNew(alone, seen_loss=0.1, none=True, seen=classes == "all")
        both.fit(*reference)
        settings = Settings(classes=classes, seen_loss=0.1, none=True)
        same(rs.Knowledge(RANKINGS, reference).fit(settings), both, batch)


def test_a_dict_of_lists_is_one_rater_unless_raters_are_named(tables):
    _, _, batch = tables
    lists = {"cat": ["a", ["b", "c"]], "dog": ["e"]}
    known = rs.Knowledge(lists, batch=batch)
    assert known.seen == ITEMS
    assert known.rankings.orders() == [["a", ["b", "c"]], ["e"]]
    several = {"cat": [["a", "b"], ["b"]], "dog": [["e"], ["d"]]}
    raters = rs.Knowledge(several, batch=batch, raters=["me", "you"])
    assert raters.rankings.rater_names == ("me", "you")
    assert len(raters.rankings) == 4
    by_hand = rs.WeightedMean().fit(lists, reference=batch)
    same(rs.Knowledge(lists, batch).fit(), by_hand, batch)
    with refuses("rankings"):
        rs.WeightedMean().fit(lists)


def test_another_models_scores_are_weighed_on_the_batch(rng, tables):
    *_, batch = tables
    opinion = rs.Scores(rng.normal(size=(40, 4)), TARGETS)
    with_it = batch.with_blocks(evidence=opinion)
    head = rs.Knowledge(RANKINGS, batch=with_it).fit(Settings(batch=False))
    same(head, rs.WeightedMean().fit(RANKINGS, evidence=with_it), with_it)
    assert head.about["evidence_weight"] >= 0


def test_rankings_of_seen_classes_are_only_for_rehearsals(tables):
    reference, *_ = tables
    seen = rs.Rankings.from_orders([["b", "c"]], items=ITEMS, targets="a")
    both = rs.Rankings.concatenate([RANKINGS, seen])
    assert rs.Knowledge(both, reference).fit().classes_.tolist() == list(TARGETS)
    with refuses("rankings"):
        rs.Knowledge(seen, reference).fit()


def test_what_does_not_fit_is_refused(tables):
    reference, examples, batch = tables
    with refuses("examples"):
        rs.Knowledge(RANKINGS, examples=batch)
    with refuses("labels", (49,)):
        rs.Knowledge(RANKINGS, (reference[0], reference[1][1:]))
    with refuses("rankings"):
        rs.Knowledge([["a"]], batch=batch)
    with refuses("reference", 3):
        rs.Knowledge(RANKINGS, batch[:3]).fit()
    with refuses("examples", "a"):
        rs.Knowledge(RANKINGS, examples=(examples[0], ["a"] * 8))


def test_settings_are_data(tmp_path):
    settings = Settings(k=None, decay=0.2, source_weights={"": 1.0}, seen_loss=None)
    assert Settings.from_json(settings.to_json()) == settings
    settings.write(tmp_path / "s.json")
    assert Settings.read(tmp_path / "s.json") == settings
    (tmp_path / "old.json").write_text('{"format": "rankshot settings 3"}')
    with refuses("settings"):
        Settings.read(tmp_path / "old.json")
    with refuses("settings", "decya"):
        Settings.from_json({"decya": 1})
    wrong = {"decay": -1, "k": 0, "temperature": 0, "batch": "no", "classes": "seen"}
    for name, value in wrong.items():
        with refuses(name, value):
            Settings(**{name: value})


def test_files_and_data_frames_are_scores_everywhere(tmp_path, rng):
    """The columns are matched by name; labels are a column, and rows without one are left out."""
    items, new = ["a", "b", "c", "d"], ["p", "q"]
    rankings = {"p": ["a", "b"], "q": ["c", "d"]}
    lists = rs.Rankings.from_orders(rankings, items=items)
    reference, batch, few = (rng.normal(size=(n, 4)) for n in (40, 30, 6))
    labels, seen = np.array(new * 3), np.array(items * 10)

    def write(name, values, **more):
        frame = pd.DataFrame(values[:, ::-1], columns=items[::-1]).assign(**more)
        frame.to_csv(tmp_path / name, index=False)
        return tmp_path / name, frame

    by_file, by_frame = zip(
        write("reference.csv", reference, label=seen),
        write("few.csv", np.vstack([few, few]), label=[*labels, *[""] * 6]),
        write("batch.csv", batch, id=[f"x{i}" for i in range(30)]),
        strict=True,
    )
    tables = [rs.Scores(x, items) for x in (reference, few, batch)]
    expected = rs.Knowledge(lists, (tables[0], seen), (tables[1], labels), tables[2])
    known = rs.Knowledge(rankings, *map(str, by_file))
    assert known.reference[1].tolist() == seen.tolist()
    found = known.fit().predict_proba(str(by_file[2]))
    np.testing.assert_allclose(found, expected.fit().predict_proba(batch), rtol=1e-9)
    head = rs.WeightedMean().fit(lists, reference=tables[0], examples=(tables[1], labels))
    usual = by_frame[0].drop(columns="label"), seen
    for reference, examples, inputs in (by_file, (usual, (few, labels), by_frame[2])):
        found = rs.WeightedMean().fit(lists, reference=reference, examples=examples)
        proba = found.predict_proba(inputs)
        np.testing.assert_allclose(proba, head.predict_proba(batch), rtol=1e-9)
    with refuses("examples"):
        rs.WeightedMean().fit(lists, examples=by_file[2])
    with refuses("path"):
        head.predict(tmp_path / "missing.npz")
