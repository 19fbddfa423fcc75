"""All experiments in one run, on a part of the embedded data."""

import pytest
from small_run import run_all

import rankshot as rs

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return run_all(tmp_path_factory.mktemp("run"))


def test_the_default_is_better_than_chance_and_than_the_papers_sources(run):
    """Figure 4 compares methods on pairs of classes, where chance is one half."""
    pairs = run.result.figures.two_classes
    mean = {name: one.estimate for name, one in zip(pairs.methods, pairs.mean, strict=True)}
    assert mean["rankshot's default"] > max(0.7, mean["Direct Similarity"])


def test_a_table_that_is_not_there_is_named(run):
    with pytest.raises(rs.RankshotError, match="table 2"):
        run.result.table("table 9")
