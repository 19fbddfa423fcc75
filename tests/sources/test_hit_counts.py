"""Hit counts as a source of similarities: from arrays and from CSV."""

from math import log

import numpy as np
import pytest

from rankshot.core.errors import RankshotError
from rankshot.sources.similarity import Similarity
from rankshot.sources.similarity_files import read_hit_counts

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
    ("rows", "line", "message"),
    [
        ("cat,fox,10,20,11\n", 2, "10 hits of 'cat', but 11 together with the other name"),
        ("cat,fox,10,2,3\n", 2, "2 hits of 'fox', but 3 together with the other name"),
        ("cat,fox,10,2000,3\n", 2, "2000 hits of 'fox', more than the total of 1000"),
        ("cat,fox,10,20,1\ncat,bus,11,20,1\n", 3, "11 hits of 'cat', but 10 in "),
        ("cat,fox,10,20,1\ncat,fox,10,20,1\n", 3, "the pair 'cat' and 'fox' occurs twice"),
        (
            "cat,fox,10,20,many\n",
            2,
            "'n_both' is 'many'; counts must be finite numbers, at least 0",
        ),
        ("cat,fox,-1,20,0\n", 2, "-1 is negative; counts must be finite numbers, at least 0"),
        ("cat,fox,10,inf,0\n", 2, "'n_item' is inf; counts must be finite numbers"),
        ("cat,fox,10,nan,0\n", 2, "'n_item' is nan; counts must be finite numbers"),
        ("cat,,10,20,0\n", 2, "'item' is empty"),
        ("\n\ncat,fox,10,20,x\n", 4, "n_both"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(write, rows, line, message):
    path = write(HEADER + rows)
    with pytest.raises(RankshotError) as caught:
        read_hit_counts(path, 1000)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"measure": "dcie"}, "measure must be one of .*, not 'dcie' .did you mean 'dice'"),
        ({"measure": "pmi", "N": None}, "pmi needs N"),
        ({"N": 0}, "N, the number of all pages, must be positive and finite, not 0"),
        ({"N": 15}, "n_b must be counts, and at most 15, not 20"),
        ({"n_ab": [[11, 0]]}, "'cat' and 'fox' have 11 hits together but 10 and 20 alone"),
        ({"n_ab": [[1]]}, r"n_ab must have shape \(1, 2\), not \(1, 1\)"),
        ({"n_a": [-1]}, "n_a must be counts, and at most 100, not -1"),
        ({"n_b": [np.nan, 1]}, "n_b must be counts, and at most 100, not nan"),
    ],
)
def test_bad_arrays(change, message):
    good = {"n_a": [10], "n_b": [20, 5], "n_ab": [[4, 0]], "N": 100}
    with pytest.raises(RankshotError, match=message):
        Similarity.from_hit_counts(**(good | change), targets=["cat"], items=["fox", "bus"])


def test_a_small_file_cannot_ask_for_a_huge_table(tmp_path):
    path = tmp_path / "hits.csv"
    lines = [f"t{i},i{i},5,5,1" for i in range(20_000)]
    path.write_text("\n".join(["target,item,n_target,n_item,n_both", *lines]))
    with pytest.raises(RankshotError, match="20000 rows of 20000 items, too many to hold"):
        read_hit_counts(path)


def test_measures_by_hand():
    def table(measure):
        return Similarity.from_hit_counts(
            [10], [20, 5], [[4, 0]], 100, targets=["cat"], items=["fox", "bus"], measure=measure
        )

    assert table("dice")["cat", "fox"] == pytest.approx(8 / 30)
    assert table("pmi")["cat", "fox"] == pytest.approx(log(2))
    distance = (log(20) - log(4)) / (log(100) - log(10))
    assert table("nwd")["cat", "fox"] == pytest.approx(np.exp(-2 * distance))
    for measure in ("dice", "pmi", "nwd"):
        assert table(measure).to_rankings().orders() == [["fox", "bus"]]
