"""The methods of the second table: which there are, in which order, and what they get right."""

import numpy as np
import pytest
from reproduction.benchmark import fill_missing, rank_items
from reproduction.methods import DR, DS, PR, Method, paper_head, paper_methods

import rankshot as rs
from rankshot.datasets.embedded import class_names, load_panel, load_similarities
from rankshot.zeroshot.scores import KINDS, n_columns

ITEMS = ("a", "b", "c", "d", "e")
TARGETS = ("p", "q", "r")
MERGED = ["arithmetic mean", "geometric mean"]
MODELS = ["Plackett-Luce", "Mallows", "mean of rankings"]
TRUTH = np.array(["p", "q", "r", "q", "p", "r", "r", "p"])


@pytest.fixture
def sources(rng):
    values = rng.random((3, 3, 5))
    return {
        name: rs.Similarity(table, TARGETS, ITEMS, name)
        for name, table in zip(["web", "tree", "book"], values, strict=True)
    }


@pytest.fixture
def panel(rng):
    orders = [rng.permutation(ITEMS)[:4].tolist() for _ in range(9)]
    return rs.Rankings.from_orders(
        orders, items=ITEMS, targets=np.repeat(TARGETS, 3), sources="panel"
    )


def scores(rng, kind="multiclass", n=8):
    values = rng.normal(size=(n, n_columns(5, kind)))
    return rs.Scores(values, ITEMS, kind)


def rows(field):
    return [(one.method, one.source) for one in field]


def chosen(field, method, source):
    (one,) = [one for one in field if (one.method, one.source) == (method, source)]
    return one


# ---- Which there are


def expected_rows(alone):
    return [
        *((DS, name) for name in [*alone, *MERGED]),
        *((DR, name) for name in [*alone, *MERGED]),
        *((PR, name) for name in alone),
        *((PR, f"linguistic, {name}") for name in MODELS),
        *((PR, f"panel, {name}") for name in MODELS),
    ]


def test_rows_are_in_the_order_of_the_paper(sources, panel):
    assert rows(paper_methods(sources, panel)) == expected_rows(["web", "tree", "book"])
    turned = dict(reversed(sources.items()))
    assert rows(paper_methods(turned, panel)) == expected_rows(["book", "tree", "web"])


@pytest.mark.parametrize("missing", [np.nan, 0.4])
def test_a_source_that_cannot_tell_a_target_is_not_used_alone(sources, panel, missing):
    holey = sources["tree"].values.copy()
    holey[1] = missing
    sources["tree"] = rs.Similarity(holey, TARGETS, ITEMS, "tree")
    field = paper_methods(sources, panel)
    assert rows(field) == expected_rows(["web", "book"])
    # With the others it is: for the two targets that it can tell.
    linguistic = chosen(field, PR, "linguistic, Plackett-Luce").semantics
    said = list(zip(linguistic.sources, linguistic.targets, strict=True))
    assert [target for source, target in said if source == "tree"] == ["p", "r"]
    assert len(said) == 8
    merged = chosen(field, DS, "arithmetic mean").semantics
    assert np.isfinite(merged.values).all()


def test_a_source_with_single_holes_is_used_alone(sources, panel):
    """An unknown cell is the least similar, for all methods."""
    holey = sources["tree"].values.copy()
    holey[1, 2] = np.nan
    sources["tree"] = rs.Similarity(holey, TARGETS, ITEMS, "tree")
    field = paper_methods(sources, panel)
    assert rows(field) == expected_rows(["web", "tree", "book"])
    direct = chosen(field, DS, "tree").semantics
    assert direct["q", "c"] == direct.values.min() == 0
    assert direct.values.max() == 1


def test_every_method_has_its_semantics_and_its_settings(sources, panel):
    field = paper_methods(sources, panel)
    linguistic = [order for table in sources.values() for order in rank_items(table).orders()]
    merged = {
        "arithmetic mean": rs.arithmetic_mean(list(sources.values())),
        "geometric mean": rs.geometric_mean(list(sources.values())),
    }
    for one in field:
        assert not one.wants_reference
        if one.method == DS:
            assert isinstance(one.head, rs.DirectSimilarity)
            table = (sources | merged)[one.source]
            np.testing.assert_allclose(one.semantics.values, table.rescale().values)
        elif one.method == DR:
            assert isinstance(one.head, rs.DeterministicRanking)
            assert one.head.k == 4
            assert one.semantics.orders() == rank_items((sources | merged)[one.source]).orders()
        else:
            assert (one.head.k, one.head.decay) == (4, 0)
            what, _, model = one.source.partition(", ")
            lists = {
                "linguistic": linguistic,
                "panel": panel.orders(),
                **{name: rank_items(table).orders() for name, table in sources.items()},
            }
            assert one.semantics.orders() == lists[what]
            priors = {"Plackett-Luce": rs.PlackettLuce, "Mallows": rs.Mallows}
            assert one.head.posterior == ("mean" if model == MODELS[2] else "consensus")
            assert type(one.head.prior) is priors.get(model, type(None))
    heads = [id(one.head) for one in field]
    assert len(set(heads)) == len(heads)


def test_the_papers_head():
    head = paper_head()
    assert (head.k, head.decay, head.prior, head.posterior) == (4, 0, None, "consensus")
    prior = rs.Mallows()
    assert paper_head(prior).prior is prior


# ---- What they get right


def test_right_by_hand():
    """One ranking a target, and scores whose first class decides."""
    lists = rs.Rankings.from_orders([["a"], ["b"], ["c"]], items=ITEMS, targets=TARGETS)
    one = Method(PR, "me", paper_head(), lists)
    f = rs.Scores(np.eye(5)[[0, 1, 2, 0, 1, 2, 2, 2]] * 5, ITEMS)
    found = one.mark_correct(f, TRUTH)
    assert found.tolist() == [True, True, True, False, False, True, True, False]
    assert found.dtype == bool


@pytest.mark.parametrize("kind", KINDS)
def test_right_is_where_the_fitted_head_says_the_truth(rng, sources, panel, kind):
    table = scores(rng, kind)
    for one in paper_methods(sources, panel):
        found = one.mark_correct(table, TRUTH)
        if kind == "one-vs-one" and one.method == DS:
            assert found is None
            continue
        head = type(one.head)(**one.head.get_params(deep=False)).fit(one.semantics)
        assert found.tolist() == (head.predict(table) == TRUTH).tolist()


def test_conse_cannot_use_pairs_either(rng, sources):
    one = Method("ConSE", "web", rs.ConSE(), fill_missing(sources["web"]))
    assert one.mark_correct(scores(rng, "one-vs-one"), TRUTH) is None
    assert one.mark_correct(scores(rng), TRUTH).shape == (8,)


def test_names_decide_and_columns_do_not(rng, sources, panel):
    table = scores(rng, n=8)
    turned = table.with_items(ITEMS[::-1])
    moved = {name: t.select(TARGETS[::-1], ITEMS[::-1]) for name, t in sources.items()}
    others = paper_methods(moved, panel.with_items(ITEMS[::-1]))
    for one, other in zip(paper_methods(sources, panel), others, strict=True):
        assert one.mark_correct(table, TRUTH).tolist() == other.mark_correct(turned, TRUTH).tolist()


# ---- The reference


def test_a_reference_goes_to_the_head_that_wants_it(rng, panel):
    table, usual = scores(rng, n=60), scores(rng, n=40)
    skewed = rs.Scores(usual.values * [1, 2, 3, 4, 5] + [4, 0, 0, -4, 1], ITEMS)
    truth = rng.choice(TARGETS, 60)
    plain, with_reference = (
        rs.ProbabilisticRanking().fit(panel, reference).predict(table) == truth
        for reference in (None, skewed)
    )
    assert (plain != with_reference).any()
    wanting = Method(PR, "panel", rs.ProbabilisticRanking(), panel, wants_reference=True)
    other = Method(PR, "panel", rs.ProbabilisticRanking(), panel)
    assert wanting.mark_correct(table, truth, skewed).tolist() == with_reference.tolist()
    assert other.mark_correct(table, truth, skewed).tolist() == plain.tolist()
    assert wanting.mark_correct(table, truth).tolist() == plain.tolist()
    # Other heads take none.
    direct = Method(DR, "panel", rs.DeterministicRanking(k=4), panel, wants_reference=True)
    assert direct.mark_correct(table, truth, skewed) is not None


# ---- The embedded data


def test_animals_leave_out_the_sources_that_lack_targets():
    seen, new = class_names("animals")
    tables = {name: table.select(new, seen) for name, table in load_similarities("animals").items()}
    field = paper_methods(tables, load_panel("animals", "similar"))
    assert rows(field) == expected_rows(["WordNet", "GloVe", "GloVe 100d"])
    linguistic = chosen(field, PR, "linguistic, Mallows").semantics
    assert len(linguistic) == 42
