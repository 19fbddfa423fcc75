"""Saved heads: the same answers after loading, and no file that is damaged, foreign or newer."""

import io
import json
import os
import re
import warnings
import zipfile
from functools import cache
from hashlib import sha256

import numpy as np
import pytest
from head_cases import HEADS, ITEMS, RANKINGS, VOTES, fitted, kinds_of, random_scores
from hypothesis import HealthCheck, given, settings, strategies as st

import rankshot as rs
from rankshot.zeroshot import Plan
from rankshot.zeroshot.files.head_files import MANIFEST, decode_parameters, encode_parameters
from rankshot.zeroshot.remarks import describe_missing

PR = rs.ProbabilisticRanking


def usual(kind="multiclass", n=40, dtype=np.float64):
    scores = random_scores(np.random.default_rng(3), kind, n, dtype=dtype)
    values = scores.values + np.arange(scores.values.shape[1], dtype=dtype)
    return rs.Scores(values, ITEMS, kind)


def refined(head, n=60, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rs.BatchRefinement(head, **options).fit(usual(n=n))


def many_items(**options):
    """The sum over rankings, of too many items to add up all rankings."""
    names = [f"i{i:02}" for i in range(30)]
    lists = [names[i : i + 6] for i in (0, 2, 10, 12)]
    rankings = rs.Rankings.from_orders(lists, items=names, targets=["u", "u", "v", "v"])
    return PR(k=4, posterior="sum", n_samples=50, **options).fit(rankings)


SUBSETS = rs.Rankings.from_orders(
    [["a", "b", "c"], ["c", ["a", "d"]], ["e", "a"]],
    items=ITEMS,
    targets=list("uvw"),
    kind="subset",
)
PARTIAL = VOTES[np.array([0, 1, 3, 4, 5, 6])]
GATE = rs.zeroshot.Gate(new=(1.0, -2.0, 0.5), none=(0.1, -1.0, -1.0))
ONLY_CLASSES, ALL_KINDS = ("multiclass",), ("multiclass", "one-vs-rest", "one-vs-one")
MORE = {
    "partial": (lambda: PR(decay=0).fit(PARTIAL), ONLY_CLASSES),
    "weighted-subsets": (lambda: rs.WeightedMean().fit(SUBSETS), ALL_KINDS),
    "deterministic-subsets": (lambda: rs.DeterministicRanking().fit(SUBSETS), ALL_KINDS),
    "weighted-reference": (lambda: rs.WeightedMean(k=3).fit(VOTES, usual()), ONLY_CLASSES),
    "mean-reference": (lambda: PR().fit(VOTES, usual()), ONLY_CLASSES),
    "babington-smith": (
        lambda: PR(k=2, posterior="consensus", prior=rs.BabingtonSmith(regularization=0.1)).fit(
            RANKINGS[np.array([0, 1, 4, 5])]
        ),
        ALL_KINDS,
    ),
    "seen": (lambda: rs.SeenAndNew(fitted("weighted")).fit(), ALL_KINDS),
    "seen-reference": (
        lambda: rs.SeenAndNew(MORE["weighted-reference"][0](), none=True).fit(usual()),
        ONLY_CLASSES,
    ),
    "seen-labels": (
        lambda: rs.SeenAndNew(fitted("default"), gate=GATE, none=True).fit(
            usual(), np.resize(ITEMS, 40)
        ),
        ONLY_CLASSES,
    ),
    "seen-similarity": (lambda: rs.SeenAndNew(fitted("direct")).fit(usual()), ONLY_CLASSES),
    "refined": (lambda: refined(fitted("weighted"), class_prior="estimated"), ONLY_CLASSES),
    "refined-seen": (lambda: refined(MORE["seen"][0]()), ONLY_CLASSES),
}
NAMES = [*HEADS, *MORE]


@cache
def head_of(name):
    return MORE[name][0]() if name in MORE else fitted(name)


def score_kinds(name):
    return MORE[name][1] if name in MORE else kinds_of(name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with all heads, saved."""
    place = tmp_path_factory.mktemp("heads")
    for name in NAMES:
        head_of(name).save(place / f"{name}.rankshot")
    return place


def tables(name):
    rng = np.random.default_rng(5)
    for kind in score_kinds(name):
        for dtype in (np.float32, np.float64):
            yield random_scores(rng, kind, 30, dtype=dtype)


def same(a, b):
    """Whether arrays have the same bits."""
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


each_head = pytest.mark.parametrize("name", NAMES)


# ---- The same head


@each_head
def test_a_loaded_head_is_the_same_to_the_last_bit(folder, name, tmp_path):
    """The same answers and explanations, and the same file if it is saved again."""
    path = folder / f"{name}.rankshot"
    head, loaded = head_of(name), rs.load_head(path)
    assert type(loaded) is type(head)
    assert (loaded.items_, loaded.classes_.tolist()) == (head.items_, head.classes_.tolist())
    assert loaded.classes_.dtype == head.classes_.dtype
    for scores in tables(name):
        assert same(loaded.predict_log_proba(scores), head.predict_log_proba(scores))
        assert same(loaded.decision_function(scores), head.decision_function(scores))
        assert same(loaded.predict(scores), head.predict(scores))
        assert all(map(same, loaded.top(scores, 2), head.top(scores, 2)))
    allowed = np.arange(30)[:, None] % 2 == np.arange(len(head.classes_)) % 2
    assert same(loaded.predict_proba(scores, allowed), head.predict_proba(scores, allowed))
    loaded.save(tmp_path / "again.rankshot")
    assert (tmp_path / "again.rankshot").read_bytes() == path.read_bytes()
    assert repr(loaded) == repr(head)
    assert loaded.temperature_ == head.temperature_
    assert describe_missing(loaded) == describe_missing(head)
    explained = head.head if isinstance(head, rs.SeenAndNew) else head
    if type(explained).item_contributions is not rs.zeroshot.BaseHead.item_contributions:
        scores = next(tables(name))[:3]
        # NaN, as for a source without a ranking of a class, is not equal to itself.
        assert str(rs.explain(loaded, scores)) == str(rs.explain(head, scores))


def test_the_random_numbers_of_a_sum_are_kept(tmp_path):
    head = many_items(random_state=None)
    head.save(tmp_path / "sum.rankshot")
    loaded = rs.load_head(tmp_path / "sum.rankshot")
    rng = np.random.default_rng(0)
    for kind, columns in (("multiclass", 30), ("one-vs-one", 435)):
        scores = rs.Scores(rng.normal(size=(5, columns)), head.items_, kind)
        assert all(map(same, loaded.sum_over_rankings(scores), head.sum_over_rankings(scores)))


def test_an_infinite_spread_is_kept(tmp_path):
    rankings = rs.Rankings.from_orders([list("abcde")] * 2, items=ITEMS, targets="u")
    head = PR(posterior="sum", k=2, prior=rs.Mallows()).fit(rankings)
    head.save(tmp_path / "sure.rankshot")
    assert rs.load_head(tmp_path / "sure.rankshot").priors_["u"].spread_ == np.inf


def test_provenance_says_how_a_head_came_about(tmp_path):
    head = rs.WeightedMean().fit(VOTES)
    assert head.provenance_ == {}
    head.save(tmp_path / "a.rankshot", note="zoo, autumn", provenance={"files": ["r.jsonl"]})
    loaded = rs.load_head(tmp_path / "a.rankshot")
    found = loaded.provenance_
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", found.pop("created"))
    assert found == {
        "rankshot": rs.__version__,
        "rankings": 7,
        "sources": ["me", "you"],
        "files": ["r.jsonl"],
        "note": "zoo, autumn",
    }
    assert loaded.fit(RANKINGS).provenance_ == {}


def test_a_file_can_be_read_without_rankshot(folder):
    with zipfile.ZipFile(folder / "seen-reference.rankshot") as archive:
        manifest = json.loads(archive.read("head.json"))
        lines = archive.read("head/rankings.jsonl").decode().splitlines()
        weights = np.load(io.BytesIO(archive.read("head/arrays/weights.npy")), allow_pickle=False)
    assert (manifest["format"], manifest["version"]) == ("rankshot head", 3)
    assert manifest["head"]["settings"] == {
        "head": "seen-and-new",
        "parameters": {"none": True},
    }
    inner = manifest["head"]["head"]["settings"]
    assert inner == {"head": "weighted-mean", "parameters": {"k": 3}}
    assert manifest["seen_classes"] == list(ITEMS)
    assert json.loads(lines[0])["target"] == "u"
    assert same(weights, head_of("seen-reference").head.weights_)


def test_a_generator_cannot_be_stored(tmp_path):
    with pytest.raises(rs.RankshotError, match=r"random_state.*Generator"):
        many_items(random_state=np.random.default_rng(0)).save(tmp_path / "head.rankshot")
    assert list(tmp_path.iterdir()) == []


def test_a_crash_during_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "head.rankshot"
    fitted("weighted").save(path)
    before = path.read_bytes()

    def crash(_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", crash)
    with pytest.raises(OSError, match="disk full"):
        fitted("default").save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


# ---- What cannot be loaded


@pytest.fixture(scope="module")
def good(folder):
    return (folder / "weighted-reference.rankshot").read_bytes()


def check_refused(path, content, message="is damaged"):
    path.write_bytes(content)
    with pytest.raises(rs.RankshotError, match=message) as error:
        rs.load_head(path)
    assert str(error.value).startswith(str(path))


def test_a_foreign_file_and_one_that_ends_too_early_are_refused(tmp_path, good):
    path = tmp_path / "head.rankshot"
    check_refused(path, b"", "it is empty")
    check_refused(path, b"\x80\x04pickle", "it begins with")
    for size in range(4, len(good), 97):
        check_refused(path, good[:size])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(data=st.data())
def test_changed_bytes_are_refused_or_change_nothing(tmp_path, good, data):
    where = data.draw(st.integers(0, len(good) - 1))
    changed = bytearray(good)
    changed[where] = data.draw(st.integers(0, 255))
    path = tmp_path / "head.rankshot"
    path.write_bytes(bytes(changed))
    scores = next(tables("weighted-reference"))
    try:
        found = rs.load_head(path).predict_proba(scores)
    except rs.RankshotError:
        return
    assert same(found, head_of("weighted-reference").predict_proba(scores))


def unpack(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    return json.loads(members.pop(MANIFEST)), members


def pack(manifest, members, method=zipfile.ZIP_STORED):
    """Return an archive as an attacker would make it: the checksums fit."""
    sums = {name: sha256(content).hexdigest() for name, content in members.items()}
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        archive.writestr(MANIFEST, json.dumps({"members": sums} | manifest))
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def npy(array, **options):
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


HUGE = npy(np.zeros((4, 5))).replace(b"(4, 5), }        ", b"(4, 999999999), }")
WRONG_FILES = {
    "format": ({"format": "rankshot settings 2"}, "is not a saved head"),
    "newer": (
        {"version": 4, "provenance": {"rankshot": "9.1"}},
        r"version of rankshot \('9\.1', fo",
    ),
    "head": ({"head": []}, "'head' must be a dict"),
    "classes": ({"seen_classes": ["a", "b"]}, "unknown item"),
    "sums": ({"members": {}}, "its members are not those that head.json lists"),
}
WRONG_HEADS = {
    "class": ({"settings": {"head": "os.system"}}, "there is no head 'os.system'"),
    "another": ({"settings": {"head": "conse"}}, "is damaged"),
    "parameter": ({"settings": {"head": "weighted-mean", "parameters": {"evil": 1}}}, "'evil'"),
    "targets": ({"classes": ["u", "v", "w", "y"]}, "the classes 'u', 'v', 'w', 'y' do not fit"),
    "reference": ({"values": {"reference_kind": "pairs"}}, "is damaged"),
}
WRONG_MEMBERS = {
    "shape": ("arrays/slopes.npy", npy(np.zeros((4, 6)))),
    "NaN": ("arrays/slopes.npy", npy(np.full((4, 5), np.nan))),
    "pickle": ("arrays/slopes.npy", npy(np.array([{"a": 1}], object), allow_pickle=True)),
    "short": ("arrays/slopes.npy", npy(np.zeros((4, 5)))[:-1]),
    "huge": ("arrays/slopes.npy", HUGE),
    "missing rankings": ("rankings.jsonl", None),
    "missing array": ("arrays/weights.npy", None),
    "outside": ("../evil.npy", b""),
    "another ending": ("arrays/x.pkl", b""),
}


@pytest.mark.parametrize("name", [*WRONG_FILES, *WRONG_HEADS, *WRONG_MEMBERS])
def test_a_forged_file_is_refused(tmp_path, good, name):
    manifest, members = unpack(good)
    manifest.pop("members")
    message = "is damaged"
    if name in WRONG_FILES:
        changes, message = WRONG_FILES[name]
        manifest |= changes
    elif name in WRONG_HEADS:
        changes, message = WRONG_HEADS[name]
        manifest["head"] |= changes
    else:
        member, content = WRONG_MEMBERS[name]
        members.pop(member, None)
        members |= {} if content is None else {member: content}
    check_refused(tmp_path / "head.rankshot", pack(manifest, members), message)


def test_archives_that_grow_without_end_are_refused(tmp_path, good):
    """Heads inside heads, and compressed members, which would make a small file large."""
    manifest, members = unpack(good)
    changed = pack(manifest, members, method=zipfile.ZIP_DEFLATED)
    check_refused(tmp_path / "head.rankshot", changed, "are not compressed")
    for _ in range(6):
        outer = {"settings": {"head": "seen-and-new"}, "head": manifest["head"]}
        manifest["head"] = manifest["head"] | outer
    check_refused(tmp_path / "head.rankshot", pack(manifest, members))


# ---- Settings alone

UNFITTED = [
    rs.WeightedMean(k=3, temperature=0.25),
    rs.WeightedMean(k=None),
    rs.ProbabilisticRanking(posterior="consensus", decay=0, prior=rs.Mallows()),
    rs.DeterministicRanking(temperature=2.0, prior=rs.PlackettLuce(regularization=0.5)),
    rs.DirectSimilarity(n_similar=2),
    rs.ConSE(temperature=0.3),
    rs.WeightedMean(example_prior=(0.5, 0.2), source_weights={"a": 0.0, "": 1.0}),
    rs.DirectSimilarity(class_prior={"cat": 0.5}),
]
AROUND = [
    rs.SeenAndNew(rs.ConSE(), gate=GATE, none=True, seen_temperature=0.5),
    rs.BatchRefinement(rs.ConSE(), class_prior="equal"),
]


@pytest.mark.parametrize("head", UNFITTED, ids=str)
def test_a_plan_survives_a_file(tmp_path, head):
    stored = Plan(
        head=head,
        reference=True,
        source_weights={"WordNet": 0.3, "": 1.0},
        classes="all",
        none=True,
        gate=GATE,
        seen_temperature=0.5,
        default_temperature=0.75,
    )
    stored.write(tmp_path / "settings.json", {"rehearsed classes": ["bear"]})
    found = Plan.read(tmp_path / "settings.json")
    assert found.to_json() == stored.to_json()
    assert found.gate == stored.gate
    assert type(found.head) is type(head)
    assert str(found.head) == str(head).replace("(0.5, 0.2)", "[0.5, 0.2]")


def test_a_plan_is_that_of_the_head_and_weighs_sources_once():
    for name, expected in (("refined-seen", "all"), ("seen", "all"), ("refined", "new")):
        plan = Plan.from_head(head_of(name))
        assert (plan.classes, str(plan.head)) == (expected, str(fitted("weighted")))
    weights, scores = {"me": 0.7, "you": 0.3}, random_scores(np.random.default_rng(0), "multiclass")
    expected = rs.WeightedMean(source_weights=weights).fit(VOTES).predict_proba(scores)
    found = Plan(head=rs.WeightedMean(), source_weights=weights).fit(VOTES)
    np.testing.assert_array_equal(found.predict_proba(scores), expected)


@pytest.mark.parametrize("head", AROUND, ids=str)
def test_the_parameters_of_a_head_around_another_survive_as_plain_values(head):
    plain = json.loads(json.dumps(encode_parameters(head)))
    again = type(head)(head.head, **decode_parameters(type(head), plain))
    assert str(again) == str(head)


SETTINGS = {"format": "rankshot settings 3", "head": "weighted-mean", "parameters": {"k": 4}}
WRONG_SETTINGS = {
    "not JSON": ("{", "is not a settings file"),
    "another format": (SETTINGS | {"format": "x"}, "is not a settings file"),
    "no such head": (SETTINGS | {"head": "weighted"}, "did you mean 'weighted-mean'"),
    "no such setting": (SETTINGS | {"K": 4}, "there is no setting 'K'"),
    "of another head": (
        SETTINGS | {"parameters": {"posterior": "sum"}},
        "WeightedMean has no parameter 'posterior'",
    ),
    "not a number": (SETTINGS | {"parameters": {"decay": "x"}}, "decay must be a number"),
    "no such model": (
        SETTINGS
        | {"head": "deterministic", "parameters": {"prior": {"model": "os", "parameters": {}}}},
        "prior must be",
    ),
    "parameters": (SETTINGS | {"parameters": 3}, "'parameters' must be a dict, not 3"),
    "gate": (SETTINGS | {"gate": 3}, "'gate' must be a dict, not 3"),
}


@pytest.mark.parametrize(("content", "message"), WRONG_SETTINGS.values(), ids=WRONG_SETTINGS)
def test_a_bad_settings_file_is_named(tmp_path, content, message):
    path = tmp_path / "settings.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    with pytest.raises(rs.RankshotError, match=message) as error:
        Plan.read(path)
    assert str(error.value).startswith(str(path))
