"""Association measures, by hand and as published, and hit counts in files."""

from math import log

import numpy as np
import pytest

from rankshot.sources.corpus import dice, pmi, ppmi, read_hit_counts
from refusals import refuses


def test_by_hand():
    # 8 pages have both of two words that 20 and 10 pages of 1000 have.
    assert dice(20, 10, 8) == pytest.approx(16 / 30)
    assert pmi(20, 10, 8, 1000) == pytest.approx(log(8 * 1000 / 200))
    assert ppmi(20, 10, 8, 1000) == pytest.approx(log(40))


@pytest.mark.parametrize("measure", [pmi, ppmi])
def test_zeros_of_what_needs_all_counts(measure):
    n_a, n_b, n_ab = [0, 5, 0, 5, 5], [5, 0, 0, 5, 1000], [0, 0, 0, 0, 0]
    values = measure(n_a, n_b, n_ab, 1000)
    assert np.isnan(values[:3]).all()
    assert np.isfinite(values[3:]).all()
    assert values[3] == values[4], "pairs that never meet tie"


def test_a_pair_that_never_meets_is_below_every_pair_that_does(rng):
    N = 50
    a, b = rng.integers(1, N + 1, (2, 500))
    ab = rng.integers(1, np.minimum(a, b) + 1)
    assert pmi(a, b, 0, N).max() < pmi(a, b, ab, N).min()
    # The worst case that can be counted: both everywhere, together once.
    assert pmi(N, N, 0, N) < pmi(N, N, 1, N)


# ---- Hit counts

HEADER = "target,item,n_target,n_item,n_both\n"


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "flickr.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_a_file_with_missing_pairs_and_silent_names(write):
    path = write(
        "\ufeffn_both,item,target,n_item,n_target,when\n"
        '4,"fox, red",cat,20,10,x\n'
        "\n"
        "0,bus,cat,5,10,x\n"
        "1,bus,dog,5,8,x\n"
        "0,owl,dog,0,8,x\n"
    )
    table = read_hit_counts(path)
    assert (table.targets, table.items) == (("cat", "dog"), ("fox, red", "bus", "owl"))
    expected = [[8 / 30, 0, np.nan], [np.nan, 2 / 13, np.nan]]
    np.testing.assert_allclose(table.values, expected)
    assert table.unknown_items == ("owl",)
    assert table.source == "flickr"


@pytest.mark.parametrize(
    ("rows", "line", "parameter", "value"),
    [
        ("cat,fox,10,20,11\n", 2, "n_target", 10),
        ("cat,fox,10,20,1\ncat,bus,11,20,1\n", 3, "n_target", 11),
        ("cat,fox,10,20,1\ncat,fox,10,20,1\n", 3, "pair", ("cat", "fox")),
        ("cat,fox,10,20,-1\n", 2, "counts", -1),
    ],
)
def test_impossible_counts_are_refused_with_their_line(write, rows, line, parameter, value):
    with refuses(parameter, value) as caught:
        read_hit_counts(write(HEADER + rows))
    assert caught.value.where.endswith(f":{line}")
