"""The default numbers: the page about them equals the code, and leaves none out."""

import ast
import importlib
import inspect
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from reproduction.defaults import (
    CONFIDENCE_ERROR,
    CONFIDENCE_ERRORS,
    FIXED,
    KINDS,
    PAGE,
    THRESHOLDS,
    UNMEASURED,
    WITHOUT_PREDICTIONS,
    Cost,
    Number,
    Prediction,
    choose,
    count_numbers,
    format_number,
    list_numbers,
    measure_number,
    number_set,
    read_number,
    read_page,
    summarize_costs,
    summarize_errors,
    summarize_predictions,
)
from sklearn.base import BaseEstimator

import rankshot as rs
from rankshot.core.columns import NumberCheck
from rankshot.zeroshot import default_head, evidence, weighted_mean
from rankshot.zeroshot.metrics import Interval

PACKAGE = Path(rs.__file__).parent
MEASURED = {number.name: number for number in list_numbers()}
ADVICE = "see reproduction/defaults.py and run make defaults"


def has_number(value):
    """Return whether a value is a number, or has numbers inside. What checks input chooses none."""
    if isinstance(value, NumberCheck):
        return False
    if isinstance(value, Mapping):
        return any(map(has_number, value.values()))
    if isinstance(value, tuple | list):
        return any(map(has_number, value))
    if isinstance(value, np.ndarray):
        return np.issubdtype(value.dtype, np.number)
    return isinstance(value, int | float) and not isinstance(value, bool)


def find_numbers():
    """Return the names of all constants and parameters of heads in zeroshot that are numbers."""
    found = set()
    for path in sorted((PACKAGE / "zeroshot").rglob("*.py")):
        place = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        if path.stem == "__init__" or place.split(".")[1] in WITHOUT_PREDICTIONS:
            continue
        module = importlib.import_module(f"rankshot.{place}")
        for node in ast.parse(path.read_text("utf-8")).body:
            targets = getattr(node, "targets", [getattr(node, "target", None)])
            names = {
                one.id
                for target in targets
                if target
                for one in ast.walk(target)
                if isinstance(one, ast.Name) and one.id.isupper()
            }
            found |= {f"{place}.{name}" for name in names if has_number(getattr(module, name))}
        if not place.startswith("zeroshot."):
            continue
        for name, kind in inspect.getmembers(module, inspect.isclass):
            if kind.__module__ == module.__name__ and issubclass(kind, BaseEstimator):
                given = getattr(kind.__init__, "__kwdefaults__", None) or {}
                found |= {f"{place}.{name}.{one}" for one in given if has_number(given[one])}
    return found


def test_every_number_of_zeroshot_is_measured_or_said_to_be_none():
    swept = (*THRESHOLDS, "zeroshot.forecast.CONFIDENCE_ERROR")
    known = {name.partition("[")[0] for name in (*MEASURED, *swept, *UNMEASURED, *FIXED)}
    in_zeroshot = {name for name in known if name.startswith("zeroshot.")}
    found = find_numbers()
    assert found - in_zeroshot == set(), f"numbers that are on no list: {ADVICE}"
    assert in_zeroshot - found == set(), f"numbers that the code no longer has: {ADVICE}"


def test_the_page_has_the_numbers_of_the_code():
    on_page = read_page()
    assert set(on_page) == set(MEASURED), ADVICE
    in_code = {name: format_number(read_number(name)) for name in MEASURED}
    assert on_page == in_code, ADVICE
    count = count_numbers()["n_numbers"]
    assert count <= 20
    assert f"There are {count}:" in PAGE.read_text("utf-8")


def test_the_value_of_the_code_is_among_those_tried():
    for number in MEASURED.values():
        assert format_number(read_number(number.name)) in map(format_number, number.values)


@pytest.mark.parametrize(
    ("name", "value", "read"),
    [
        ("zeroshot.default_head.UNCERTAINTY", 0.3, lambda: default_head.UNCERTAINTY),
        ("zeroshot.weighted_mean.WeightedMean.decay", 0.7, lambda: rs.WeightedMean().decay),
        (
            "zeroshot.default_head.PLACE_BONUS[1]",
            0.2,
            lambda: default_head.PLACE_BONUS[1],
        ),
    ],
)
def test_a_number_is_set_for_a_while(name, value, read):
    before = read()
    with number_set(name, value):
        assert read() == value == read_number(name)
    assert read() == before == read_number(name)


def test_a_number_is_set_in_every_module_that_imported_it(monkeypatch):
    monkeypatch.setattr(evidence, "A_NUMBER", 0.123, raising=False)
    monkeypatch.setattr(weighted_mean, "A_NUMBER", evidence.A_NUMBER, raising=False)
    with number_set("zeroshot.evidence.A_NUMBER", 0.5):
        assert weighted_mean.A_NUMBER == evidence.A_NUMBER == 0.5
    assert weighted_mean.A_NUMBER == evidence.A_NUMBER == 0.123


NOISE = np.array([0.0, 0.3, 0.1, 0.2])
WOBBLE = np.array([0.01, -0.01, 0.01, -0.01])


def make_tables(*means):
    """Four classes of two data sets, whose measurements differ much by class, little by value."""
    return [{"a": mean + NOISE + n * WOBBLE, "b": mean + NOISE} for n, mean in enumerate(means)]


def test_a_value_is_changed_only_if_another_is_clearly_better():
    number = Number("x", (1, 2, 3), None, "accuracy")
    kept = choose(number, 2, make_tables(0.5, 0.503, 0.504))
    assert (kept.value, kept.best) == ("2", "3")
    assert kept.lost == pytest.approx(0.001)
    # The difference of the last two values is ±.01 in the four classes of one of two data sets.
    assert kept.standard_error == pytest.approx(WOBBLE.std(ddof=1) / 2 / 2)
    changed = choose(number, 1, make_tables(0.5, 0.6, 0.51))
    assert (changed.value, changed.equal) == ("2", ("2",))


def test_what_helps_on_one_data_set_alone_is_not_clearly_better():
    number = Number("x", (1, 2), None, "accuracy")
    tables = [{"a": NOISE, "b": NOISE}, {"a": NOISE + 0.1, "b": NOISE - 0.02}]
    kept = choose(number, 1, tables)
    assert (kept.value, kept.best) == ("1", "2")
    # The mean gain is .04; those of the two data sets are .06 above and below.
    assert kept.standard_error == pytest.approx(0.06)


def test_a_number_is_measured_with_its_values_in_place():
    def measure(task):
        return np.array([-abs(read_number(name) - 0.3), -abs(read_number(name) - 0.3)])

    class Task:
        name = "data held-out"

    name = "zeroshot.default_head.UNCERTAINTY"
    found = measure_number(Number(name, (0.1, 0.3, 0.9), measure, ""), [Task()])
    assert (found.best, found.value, found.tried) == ("0.3", "0.3", ("0.1", "0.3", "0.9"))
    assert read_number(name) == default_head.UNCERTAINTY


def test_intervals_are_counted_by_data_set():
    def predict(dataset, low, high, found):
        return [
            Prediction(dataset, kind, design, Interval(0.5, low, high), found)
            for kind in KINDS
            for design in ("random", "kind", "unlike")
        ]

    inside, outside = predict("a", 0.2, 0.6, 0.4), predict("b", 0.4, 0.6, 0.7)
    first, *_, last = summarize_predictions([*inside, *inside, *inside, *outside])
    # Each data set counts the same; the widths are .4 and .2, the differences +.1 and -.2.
    shares = "0.500", "0.000", "0.300", "-0.050", "0.150"
    assert first == ("raters", "a random quarter", "4", *shares)
    assert last[:2] == ("tables", "the half most different from one class")
    # The interval of a batch depends on the error of confidence.
    every = [one._replace(error=error) for error in CONFIDENCE_ERRORS for one in inside]
    assert [row[:2] for row in summarize_errors([*every, *outside])] == [
        (f"**{error:g}**", "6") if error == CONFIDENCE_ERROR else (f"{error:g}", "3")
        for error in CONFIDENCE_ERRORS
    ]


def test_costs_are_means_over_data_sets():
    name = "zeroshot.together.THRESHOLD"
    costs = [
        Cost(*row)
        for at, values in THRESHOLDS.items()
        for value in values
        for row in [("a", at, value, 0.1, 0.5), ("a", at, value, 0.3, 0.7), ("b", at, value, 0, 0)]
    ]
    rows = [*summarize_costs(costs)]
    assert len(rows) == sum(map(len, THRESHOLDS.values()))
    assert (f"`{name}`", f"**{read_number(name):g}**", "0.100", "0.200", "0.300") in rows
