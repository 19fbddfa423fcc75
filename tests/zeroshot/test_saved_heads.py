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
from rankshot.zeroshot.files.head_files import MANIFEST
from rankshot.zeroshot.heads.base import describe_missing

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
    "weighted-pairs": (
        lambda: rs.WeightedMean().fit(VOTES, usual("one-vs-one")),
        ("one-vs-one",),
    ),
    "mean-reference": (lambda: PR().fit(VOTES, usual()), ONLY_CLASSES),
    "babington-smith": (
        lambda: PR(k=2, posterior="consensus", prior=rs.BabingtonSmith(regularization=0.1)).fit(
            RANKINGS[np.array([0, 1, 4, 5])]
        ),
        ALL_KINDS,
    ),
    "sum-babington-smith": (
        lambda: PR(k=2, posterior="sum", prior=rs.BabingtonSmith()).fit(
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
    "refined-equal": (lambda: refined(fitted("default"), temperature=2), ONLY_CLASSES),
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
    if hasattr(head, "item_contributions") or isinstance(head, rs.SeenAndNew):
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


@pytest.mark.parametrize("name", ["sum", "sum-mallows", "sum-babington-smith", "consensus"])
def test_the_priors_are_kept(folder, name):
    head, loaded = head_of(name), rs.load_head(folder / f"{name}.rankshot")
    assert loaded.priors_.keys() == head.priors_.keys()
    strict = rs.Rankings.from_orders([["a", "c"], ["e", "b"]], items=ITEMS)
    for target, prior in head.priors_.items():
        other = loaded.priors_[target]
        assert repr(other) == repr(prior)
        assert (other.mode_, other.log_likelihood_) == (prior.mode_, prior.log_likelihood_)
        assert same(other.log_prob(strict), prior.log_prob(strict))
        assert other.sample(5, 2, 0) == prior.sample(5, 2, 0)


def test_an_infinite_spread_is_kept(tmp_path):
    rankings = rs.Rankings.from_orders([list("abcde")] * 2, items=ITEMS, targets="u")
    head = PR(posterior="sum", k=2, prior=rs.Mallows()).fit(rankings)
    head.save(tmp_path / "sure.rankshot")
    assert rs.load_head(tmp_path / "sure.rankshot").priors_["u"].spread_ == np.inf


def test_the_inputs_of_the_reference_are_not_stored(tmp_path):
    sizes = set()
    for n in (20, 400):
        PR().fit(VOTES, usual(n=n)).save(tmp_path / "head.rankshot")
        sizes.add((tmp_path / "head.rankshot").stat().st_size // 100)
    assert len(sizes) == 1


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
    assert (manifest["format"], manifest["version"]) == ("rankshot head", 2)
    assert manifest["head"]["settings"] == {"head": "seen-and-new", "none": True}
    assert manifest["head"]["head"]["settings"] == {"head": "weighted-mean", "k": 3}
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


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "it is empty"), (b"\x80\x04pickle", "it begins with"), (b"PK\x03\x04", "is damaged")],
)
def test_a_foreign_file_is_refused(tmp_path, content, message):
    check_refused(tmp_path / "head.rankshot", content, message)


def test_a_file_that_ends_too_early_is_refused(tmp_path, good):
    for size in range(5, len(good), 97):
        check_refused(tmp_path / "head.rankshot", good[:size])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
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


OF_FILE = {
    "format": ({"format": "rankshot settings 2"}, "is not a saved head"),
    "newer": ({"version": 3, "provenance": {"rankshot": "9.1"}}, r"another rankshot \('9\.1', fo"),
    "older": ({"version": 1}, "reads format 2: upgrade rankshot, or fit the head again"),
    "head": ({"head": []}, "'head' must be a dict"),
    "classes": ({"seen_classes": ["a", "b"]}, "unknown item"),
    "sums": ({"members": {}}, "its members are not those that head.json lists"),
}


@pytest.mark.parametrize(("changes", "message"), OF_FILE.values(), ids=OF_FILE)
def test_a_wrong_manifest_is_refused(tmp_path, good, changes, message):
    manifest, members = unpack(good)
    manifest.pop("members")
    check_refused(tmp_path / "head.rankshot", pack(manifest | changes, members), message)


OF_HEAD = {
    "class": ({"settings": {"head": "os.system"}}, "there is no head 'os.system'"),
    "another": ({"settings": {"head": "conse"}}, "is damaged"),
    "parameter": ({"settings": {"head": "weighted-mean", "others": {"evil": 1}}}, "'evil'"),
    "temperature": ({"settings": {"head": "weighted-mean", "temperature": -1}}, "must be positive"),
    "classes": ({"classes": ["u", "v", "w", "y"]}, "the classes 'u', 'v', 'w', 'y' do not fit"),
    "reference": ({"values": {"reference_kind": "pairs"}}, "is damaged"),
}


@pytest.mark.parametrize(("changes", "message"), OF_HEAD.values(), ids=OF_HEAD)
def test_a_wrong_description_of_the_head_is_refused(tmp_path, good, changes, message):
    manifest, members = unpack(good)
    manifest.pop("members")
    manifest["head"] |= changes
    check_refused(tmp_path / "head.rankshot", pack(manifest, members), message)


def test_heads_inside_heads_without_end_are_refused(tmp_path, good):
    manifest, members = unpack(good)
    for _ in range(6):
        settings = {"head": "seen-and-new"}
        manifest["head"] = {**manifest["head"], "settings": settings, "head": manifest["head"]}
    check_refused(tmp_path / "head.rankshot", pack(manifest, members))


HUGE = npy(np.zeros((4, 5))).replace(b"(4, 5), }        ", b"(4, 999999999), }")
ARRAYS = {
    "shape": npy(np.zeros((4, 6))),
    "NaN": npy(np.full((4, 5), np.nan)),
    "text": npy(np.zeros((4, 5), "S8")),
    "pickle": npy(np.array([{"a": 1}], object), allow_pickle=True),
    "short": npy(np.zeros((4, 5)))[:-1],
    "huge": HUGE,
    "no array": b"import os",
}


@pytest.mark.parametrize("content", ARRAYS.values(), ids=ARRAYS)
def test_a_wrong_array_is_refused(tmp_path, good, content):
    manifest, members = unpack(good)
    manifest.pop("members")
    changed = pack(manifest, members | {"arrays/slopes.npy": content})
    check_refused(tmp_path / "head.rankshot", changed)


@pytest.mark.parametrize("name", ["../evil.npy", "arrays/x.pkl", "head/head/head/head/a.jsonl"])
def test_members_with_other_names_are_refused(tmp_path, good, name):
    manifest, members = unpack(good)
    manifest.pop("members")
    changed = pack(manifest, members | {name: b""})
    check_refused(tmp_path / "head.rankshot", changed, "its members are not those")


@pytest.mark.parametrize("member", ["rankings.jsonl", "arrays/weights.npy", "arrays/factor.npy"])
def test_a_missing_member_is_refused(tmp_path, good, member):
    manifest, members = unpack(good)
    manifest.pop("members")
    del members[member]
    check_refused(tmp_path / "head.rankshot", pack(manifest, members))


def test_a_compressed_archive_is_refused(tmp_path, good):
    """So that no small file can grow without bound."""
    changed = pack(*unpack(good), method=zipfile.ZIP_DEFLATED)
    check_refused(tmp_path / "head.rankshot", changed, "are not compressed")
