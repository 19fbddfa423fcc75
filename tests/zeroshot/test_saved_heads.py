"""Saved heads: the same answers after loading, and no file that is damaged, foreign or newer."""

import io
import json
import os
import re
import subprocess
import sys
import warnings
import zipfile
from functools import cache
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from head_cases import HEADS, ITEMS, RANKINGS, SIMILARITY, VOTES, fitted, kinds_of, random_scores
from hypothesis import HealthCheck, given, settings, strategies as st
from sklearn.base import BaseEstimator, clone

import rankshot as rs
from rankshot.zeroshot.files.head_files import MANIFEST
from rankshot.zeroshot.files.saved_heads import CLASSES
from rankshot.zeroshot.heads.base import describe_indistinguishable, describe_missing

DATA = Path(__file__).parent / "data"
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
    "votes": (lambda: PR().fit(VOTES), ONLY_CLASSES),
    "partial": (lambda: PR(decay=0).fit(PARTIAL), ONLY_CLASSES),
    "weighted-subsets": (lambda: rs.WeightedMean().fit(SUBSETS), ALL_KINDS),
    "deterministic-subsets": (lambda: rs.DeterministicRanking().fit(SUBSETS), ALL_KINDS),
    "weighted-reference": (lambda: rs.WeightedMean(k=3).fit(VOTES, usual()), ONLY_CLASSES),
    "weighted-single": (
        lambda: rs.WeightedMean().fit(VOTES, usual(dtype=np.float32)),
        ONLY_CLASSES,
    ),
    "weighted-pairs": (
        lambda: rs.WeightedMean().fit(VOTES, usual("one-vs-one")),
        ("one-vs-one",),
    ),
    "mean-reference": (lambda: PR().fit(VOTES, usual()), ONLY_CLASSES),
    "mean-pairs": (lambda: PR(k=3).fit(VOTES, usual("one-vs-one")), ("one-vs-one",)),
    "consensus-reference": (
        lambda: PR(posterior="consensus").fit(VOTES, usual(dtype=np.float32)),
        ONLY_CLASSES,
    ),
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
        lambda: rs.SeenAndNew(fitted("default"), gate=GATE, none=True, none_label="?").fit(
            usual(), np.resize(ITEMS, 40)
        ),
        ONLY_CLASSES,
    ),
    "seen-similarity": (lambda: rs.SeenAndNew(fitted("direct")).fit(usual()), ONLY_CLASSES),
    "refined": (lambda: refined(fitted("weighted"), class_prior="estimated"), ONLY_CLASSES),
    "refined-equal": (lambda: refined(fitted("default"), temperature=2), ONLY_CLASSES),
    "refined-few": (lambda: refined(fitted("weighted"), n=2), ONLY_CLASSES),
    "refined-seen": (lambda: refined(MORE["seen"][0](), shrinkage=1), ONLY_CLASSES),
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
def test_a_loaded_head_gives_the_same_answers_to_the_last_bit(folder, name):
    head, loaded = head_of(name), rs.load_head(folder / f"{name}.rankshot")
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


def test_a_loaded_head_gives_the_same_answers_in_another_process(folder):
    code = (
        "import sys, numpy as np, rankshot as rs\n"
        "with np.load(sys.argv[1]) as given:\n"
        "    answers = {}\n"
        "    for key in given:\n"
        "        name, kind, _ = key.split('|')\n"
        "        head = rs.load_head(f'{sys.argv[2]}/{name}.rankshot')\n"
        "        answers[key] = head.predict_log_proba(rs.Scores(given[key], head.items_, kind))\n"
        "np.savez(sys.argv[3], **answers)\n"
    )
    asked = {
        f"{name}|{scores.kind}|{scores.values.dtype}": (name, scores)
        for name in NAMES
        for scores in tables(name)
    }
    np.savez(folder / "asked.npz", **{key: scores.values for key, (_, scores) in asked.items()})
    given = [folder / "asked.npz", folder, folder / "answers.npz"]
    subprocess.run([sys.executable, "-c", code, *given], check=True)
    with np.load(folder / "answers.npz") as answers:
        for key, (name, scores) in asked.items():
            assert same(answers[key], head_of(name).predict_log_proba(scores)), key


@each_head
def test_a_loaded_head_explains_itself_in_the_same_way(folder, name):
    head, loaded = head_of(name), rs.load_head(folder / f"{name}.rankshot")
    if not hasattr(head, "item_contributions") and not isinstance(head, rs.SeenAndNew):
        with pytest.raises(rs.RankshotError, match="cannot be explained"):
            rs.explain(loaded, next(tables(name)))
        return
    for scores in tables(name):
        assert rs.explain(loaded, scores) == rs.explain(head, scores)
        # NaN, as for a source without a ranking of a class, is not equal to itself.
        assert str(rs.explain(loaded, scores[:3])) == str(rs.explain(head, scores[:3]))


@each_head
def test_a_loaded_head_has_the_same_parameters_and_attributes(folder, name):
    head, loaded = head_of(name), rs.load_head(folder / f"{name}.rankshot")
    assert repr(loaded) == repr(head)
    assert repr(clone(loaded)) == repr(clone(head))
    assert loaded.temperature_ == head.temperature_
    assert describe_missing(loaded) == describe_missing(head)
    assert describe_indistinguishable(loaded) == describe_indistinguishable(head)
    public = [attribute for attribute in vars(head) if re.fullmatch(r"[a-z]\w*_", attribute)]
    for attribute in public:
        theirs, ours = getattr(head, attribute), getattr(loaded, attribute)
        if isinstance(theirs, np.ndarray):
            assert same(ours, theirs), attribute
        elif attribute == "reference_" and theirs is not None:
            assert ours.kind == theirs.kind
            for part in ("score_mean", "score_std", "target_mean", "target_std"):
                assert same(getattr(ours, part), getattr(theirs, part))
        elif attribute != "priors_":
            assert ours == theirs, attribute


@each_head
def test_the_same_head_gives_the_same_bytes(folder, name, tmp_path):
    written = (folder / f"{name}.rankshot").read_bytes()
    head_of(name).save(tmp_path / "again.rankshot")
    rs.load_head(folder / f"{name}.rankshot").save(tmp_path / "loaded.rankshot")
    assert (tmp_path / "again.rankshot").read_bytes() == written
    assert (tmp_path / "loaded.rankshot").read_bytes() == written


@pytest.mark.parametrize("seed", [None, 7])
def test_the_random_numbers_of_a_sum_are_kept(tmp_path, seed):
    head = many_items(random_state=seed)
    head.save(tmp_path / "sum.rankshot")
    loaded = rs.load_head(tmp_path / "sum.rankshot")
    rng = np.random.default_rng(0)
    for kind, columns in (("multiclass", 30), ("one-vs-one", 435)):
        scores = rs.Scores(rng.normal(size=(5, columns)), head.items_, kind)
        assert same(loaded.predict_proba(scores), head.predict_proba(scores))
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


def test_seen_and_new_takes_a_loaded_head(folder):
    loaded = rs.load_head(folder / "weighted-reference.rankshot")
    scores = next(tables("weighted-reference"))
    expected = rs.SeenAndNew(head_of("weighted-reference")).fit(usual()).predict_proba(scores)
    assert same(rs.SeenAndNew(loaded).fit(usual()).predict_proba(scores), expected)


@pytest.mark.parametrize("name", ["mean-reference", "weighted-reference", "seen-reference"])
def test_the_inputs_of_the_reference_are_not_stored(tmp_path, name):
    """The size of a file does not depend on their number."""
    sizes = set()
    for n in (20, 400):
        head = clone(head_of(name))
        inner = getattr(head, "head", head).fit(VOTES, usual(n=n))
        (head if head is inner else head.set_params(head=inner).fit(usual(n=n))).save(
            tmp_path / "head.rankshot"
        )
        sizes.add((tmp_path / "head.rankshot").stat().st_size // 100)
    assert len(sizes) == 1


def test_scores_of_another_kind_than_the_reference_are_refused(folder):
    loaded = rs.load_head(folder / "weighted-reference.rankshot")
    pairs = random_scores(np.random.default_rng(0), "one-vs-one")
    with pytest.raises(rs.RankshotError, match="the reference has multiclass scores"):
        loaded.predict(pairs)


# ---- Provenance


def test_provenance_says_how_a_head_came_about(tmp_path):
    head = rs.WeightedMean().fit(VOTES)
    assert head.provenance_ == {}
    head.save(tmp_path / "a.rankshot", note="zoo, autumn", provenance={"files": ["r.jsonl"]})
    found = rs.load_head(tmp_path / "a.rankshot").provenance_
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", found.pop("created"))
    assert found == {
        "rankshot": rs.__version__,
        "rankings": 7,
        "sources": ["me", "you"],
        "files": ["r.jsonl"],
        "note": "zoo, autumn",
    }


def test_provenance_of_a_head_inside_a_head_counts_its_rankings(folder):
    assert rs.load_head(folder / "refined-seen.rankshot").provenance_["rankings"] == 7
    assert "rankings" not in rs.load_head(folder / "direct.rankshot").provenance_


@pytest.mark.parametrize("name", ["weighted", "direct", "refined", "seen"])
def test_a_head_that_is_fitted_again_forgets_its_provenance(folder, name):
    loaded = rs.load_head(folder / f"{name}.rankshot")
    assert loaded.provenance_["rankshot"]
    given = {"direct": [SIMILARITY], "refined": [usual(n=60)], "seen": []}.get(name, [RANKINGS])
    assert loaded.fit(*given).provenance_ == {}


def test_a_file_can_be_read_without_rankshot(folder):
    with zipfile.ZipFile(folder / "seen-reference.rankshot") as archive:
        manifest = json.loads(archive.read("head.json"))
        lines = archive.read("head/rankings.jsonl").decode().splitlines()
        weights = np.load(io.BytesIO(archive.read("head/arrays/weights.npy")), allow_pickle=False)
    assert (manifest["format"], manifest["version"]) == ("rankshot head", 1)
    assert manifest["head"]["class"] == "SeenAndNew"
    assert manifest["head"]["head"]["parameters"] == {"decay": 0.5, "k": 3, "temperature": None}
    assert manifest["seen_classes"] == list(ITEMS)
    assert manifest["score_kind"] == "multiclass"
    assert json.loads(lines[0])["target"] == "u"
    assert same(weights, head_of("seen-reference").head.weights_)


# ---- What cannot be saved


class OwnHead(rs.zeroshot.BaseHead, BaseEstimator):
    temperature = None

    def fit(self, semantics):
        self.items_, self.classes_ = semantics.items, np.array(semantics.target_names)
        return self

    def _log_posterior(self, values, kind):
        return np.zeros((len(self.classes_), len(values)))


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (lambda: OwnHead().fit(RANKINGS), "OwnHead cannot be saved"),
        (lambda: many_items(random_state=np.random.default_rng(0)), "random_state=Generator"),
        (
            lambda: rs.WeightedMean().fit(
                rs.Rankings.from_orders([["a"]], items=["a", "b"], targets="\udcff")
            ),
            r"UTF-8 cannot encode the character '\\udcff'",
        ),
    ],
)
def test_what_cannot_be_stored_is_refused(tmp_path, head, message):
    with pytest.raises(rs.RankshotError, match=message):
        head().save(tmp_path / "head.rankshot")
    assert list(tmp_path.iterdir()) == []


def test_save_refuses_other_endings_and_folders_that_are_not_there(tmp_path):
    with pytest.raises(rs.RankshotError, match=r"unknown ending '\.pkl'; known are \.rankshot"):
        fitted("weighted").save(tmp_path / "head.pkl")
    with pytest.raises(rs.RankshotError, match="cannot write there"):
        fitted("weighted").save(tmp_path / "nowhere" / "head.rankshot")


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


def load_bytes(path, content):
    path.write_bytes(content)
    return rs.load_head(path)


def check_refused(path, content, message=None):
    with pytest.raises(rs.RankshotError, match=message) as caught:
        load_bytes(path, content)
    assert str(path) in str(caught.value)


@pytest.fixture(scope="module")
def good(folder):
    """The bytes of a small file with all kinds of members."""
    return (folder / "weighted-reference.rankshot").read_bytes()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is no saved head: it is empty"),
        (b"PK", "is no saved head: it begins with b'PK'"),
        (b'{"format": "rankshot settings 1"}', "begins with b'{\"fo'; `rankshot fit` writes one"),
        (b"\x80\x04\x95pickle", r"begins with b'\\x80\\x04\\x95p'"),
        (b"PK\x03\x04 and no more", "is damaged: File is not a zip file"),
    ],
)
def test_a_foreign_file_is_refused(tmp_path, content, message):
    check_refused(tmp_path / "head.rankshot", content, message)


def test_a_foreign_archive_is_refused(tmp_path):
    stream = io.BytesIO()
    np.savez(stream, scores=np.zeros((2, 3)), classes=np.array(list("abc")))
    message = "is no saved head: there is no 'head.json' in it, but 'scores.npy', 'classes.npy'"
    check_refused(tmp_path / "head.rankshot", stream.getvalue(), message)


def test_a_missing_file_is_not_found(tmp_path):
    with pytest.raises(FileNotFoundError):
        rs.load_head(tmp_path / "head.rankshot")
    with pytest.raises(rs.RankshotError, match=r"unknown ending '\.onnx'"):
        rs.load_head(tmp_path / "head.onnx")


def test_a_file_that_ends_too_early_is_refused(tmp_path, good):
    for n in range(len(good)):
        check_refused(tmp_path / "head.rankshot", good[:n])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=400)
@given(data=st.data())
def test_changed_bytes_are_refused_or_change_nothing(tmp_path, good, data):
    """Dates and permissions in an archive have no checksum, but no meaning either."""
    content = bytearray(good)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(good) - 1))
        content[at] ^= data.draw(st.integers(1, 255))
    try:
        loaded = load_bytes(tmp_path / "head.rankshot", bytes(content))
    except rs.RankshotError:
        return
    scores = next(tables("weighted-reference"))
    assert same(
        loaded.predict_log_proba(scores), head_of("weighted-reference").predict_log_proba(scores)
    )


@pytest.mark.parametrize("name", ["weighted-reference", "refined-seen"])
def test_each_changed_byte_of_the_members_is_noticed(folder, tmp_path, name):
    """Their checksums are in the manifest, that of the manifest is in the archive."""
    good = (folder / f"{name}.rankshot").read_bytes()
    with zipfile.ZipFile(io.BytesIO(good)) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    for content in members.values():
        begin = good.index(content)
        for at in range(begin, begin + len(content), max(1, len(content) // 12)):
            changed = good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :]
            check_refused(tmp_path / "head.rankshot", changed, "is damaged")


def unpack(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    return json.loads(members.pop(MANIFEST)), members


def pack(manifest, members, *, sums=True, method=zipfile.ZIP_STORED, twice=()):
    """Return an archive as an attacker would make it: the checksums fit."""
    if sums and isinstance(manifest, dict):
        manifest = manifest | {
            "members": {name: sha256(content).hexdigest() for name, content in members.items()}
        }
    stream = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w", method) as archive:
        warnings.simplefilter("ignore")
        archive.writestr(MANIFEST, json.dumps(manifest))
        for name in [*members, *twice]:
            archive.writestr(name, members[name])
    return stream.getvalue()


def npy(array, **options):
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


def test_forged_files_are_read_if_nothing_is_wrong(tmp_path, good):
    assert load_bytes(tmp_path / "head.rankshot", pack(*unpack(good))).k == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "rankshot settings 1"}, "its format is 'rankshot settings 1', not 'rankshot"),
        ({"format": None}, "is no saved head: its format is None"),
        (
            {"version": 2, "provenance": {"rankshot": "9.1"}},
            r"written by a newer rankshot \('9\.1', format 2\); this one \(.*\) reads format 1",
        ),
        ({"version": 0}, "the version of its format is 0"),
        ({"version": "1"}, "the version of its format is '1'"),
        ({"head": []}, "'head' must be a dict"),
        ({"provenance": 3}, "'provenance' must be a dict, not 3"),
        ({"seen_classes": ["a", "a", "b", "c", "d"]}, "seen_classes names 'a' more than once"),
        ({"seen_classes": ["a", "b"]}, "unknown item"),
        ({"seen_classes": [*ITEMS, "f"]}, "array 'weights' is float64 of shape"),
    ],
)
def test_a_wrong_manifest_is_refused(tmp_path, good, changes, message):
    manifest, members = unpack(good)
    check_refused(tmp_path / "head.rankshot", pack(manifest | changes, members), message)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"class": "os.system"}, "this version has no head 'os.system'; it has 'WeightedMean'"),
        ({"class": "ConSE"}, "is damaged"),
        ({"parameters": {"evil": 1}}, "unexpected keyword argument 'evil'"),
        ({"parameters": {"temperature": -1}}, "temperature must be positive"),
        ({"parameters": {"decay": "x"}}, "decay must be a number"),
        ({"classes": ["v", "u", "w", "x"]}, "the classes are not sorted"),
        ({"classes": ["u", "v", "w", "y"]}, "are those of 'u', 'v', 'w', 'x', not of 'u', 'v'"),
        ({"values": {"reference_kind": "pairs"}}, "the kind of the reference is 'pairs'"),
        ({"values": {"reference_kind": 3}}, "'reference_kind' must be of type str, not 3"),
    ],
)
def test_a_wrong_description_of_the_head_is_refused(tmp_path, good, changes, message):
    manifest, members = unpack(good)
    manifest["head"] |= changes
    check_refused(tmp_path / "head.rankshot", pack(manifest, members), message)


def test_a_newer_format_may_have_other_members(tmp_path, good):
    manifest, members = unpack(good)
    content = pack(manifest | {"version": 2}, {"weights.safetensors": b"", **members})
    check_refused(tmp_path / "head.rankshot", content, "written by a newer rankshot")


def test_heads_inside_heads_without_end_are_refused(tmp_path, good):
    manifest, members = unpack(good)
    for _ in range(6):
        manifest["head"] = {**manifest["head"], "class": "SeenAndNew", "head": manifest["head"]}
    check_refused(tmp_path / "head.rankshot", pack(manifest, members), "more than 4 heads")


def test_json_without_end_is_refused(tmp_path, good):
    _, members = unpack(good)
    content = pack("@", members).replace(b'"@"', b"[[[")
    check_refused(tmp_path / "head.rankshot", content, "is damaged")


WEIGHTS = "arrays/weights.npy"
PICKLED = npy(np.array([{"a": 1}], object), allow_pickle=True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (npy(np.zeros((4, 6))), r"'weights' is float64 of shape \(4, 6\); expected floats of shap"),
        (npy(np.zeros(20)), r"is float64 of shape \(20,\); expected floats of shape \(4, 5\)"),
        (npy(np.zeros((4, 5), int)), "is int64 of shape"),
        (npy(np.full((4, 5), np.nan)), "'weights' has the value nan"),
        (npy(np.full((4, 5), np.inf)), "'weights' has the value inf"),
        (npy(np.zeros((4, 5), complex)), "holds complex128, which saved heads do not"),
        (npy(np.zeros((4, 5), ">f8")), "holds >f8, which saved heads do not"),
        (npy(np.zeros((4, 5), "S8")), "which saved heads do not"),
        (PICKLED, "holds object, which saved heads do not"),
        (npy(np.zeros((4, 5)))[:-1], r"claims the shape \(4, 5\), which does not take 287 bytes"),
        (
            npy(np.zeros((4, 5))).replace(b"(4, 5), }        ", b"(4, 999999999), }"),
            r"claims the shape \(4, 999999999\), which does not take 288 bytes",
        ),
        (npy(np.zeros((4, 5))).replace(b"(4, 5), } ", b"(-4, -5), "), "is not a plain array"),
        (b"\x93NUMPY\x09\x00", "is not a plain array"),
        (b"", "is not a plain array"),
        (b"import os", "is not a plain array"),
    ],
)
def test_a_wrong_array_is_refused(tmp_path, good, content, message):
    manifest, members = unpack(good)
    members[WEIGHTS] = content
    check_refused(tmp_path / "head.rankshot", pack(manifest, members), message)


@pytest.mark.parametrize(
    "line",
    [b"", b"{", b'{"target": "u", "ranking": ["z"]}', b'{"ranking": ["a"]}', b"\xff", b"[" * 9999],
)
def test_wrong_rankings_are_refused(tmp_path, good, line):
    manifest, members = unpack(good)
    members["rankings.jsonl"] = line
    check_refused(tmp_path / "head.rankshot", pack(manifest, members), "is damaged")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("../evil.npy", "'../evil.npy' does not belong in it"),
        ("/etc/passwd", "does not belong in it"),
        ("arrays/../../evil.npy", "does not belong in it"),
        ("evil.exe", "does not belong in it"),
        ("arrays/", "does not belong in it"),
        ("head/head/head/head/arrays/weights.npy", "does not belong in it"),
    ],
)
def test_members_with_other_names_are_refused(tmp_path, good, name, message):
    manifest, members = unpack(good)
    check_refused(tmp_path / "head.rankshot", pack(manifest, members | {name: b""}), message)


@pytest.mark.parametrize("member", ["rankings.jsonl", "arrays/factor.npy", WEIGHTS])
def test_a_missing_member_is_refused(tmp_path, good, member):
    manifest, members = unpack(good)
    del members[member]
    path = tmp_path / "head.rankshot"
    check_refused(path, pack(manifest, members, sums=False), f"{member!r} is missing")
    check_refused(path, pack(manifest, members), "missing")


def test_other_archives_of_the_same_members_are_refused(tmp_path, good):
    manifest, members = unpack(good)
    path = tmp_path / "head.rankshot"
    twice = pack(manifest, members, twice=[WEIGHTS])
    check_refused(path, twice, "two members of it have the same name")
    packed = pack(manifest, members, method=zipfile.ZIP_DEFLATED)
    check_refused(path, packed, "'head.json' is compressed, and members of saved heads are not")
    manifest["members"]["arrays/weights.npy"] = "0" * 64
    changed = pack(manifest, members, sums=False)
    check_refused(path, changed, "'arrays/weights.npy' has another checksum than head.json says")
    del manifest["members"]["arrays/weights.npy"]
    check_refused(path, pack(manifest, members, sums=False), "another checksum")


def test_a_member_that_claims_to_be_huge_is_refused(tmp_path, good):
    """The directory at the end of the archive says how large the members are."""
    size = len(unpack(good)[1][WEIGHTS]).to_bytes(4, "little")
    huge = (2**31).to_bytes(4, "little")
    entry = good.rindex(WEIGHTS.encode()) - 46
    assert good[entry + 20 : entry + 28] == size * 2
    lying = good[: entry + 20] + huge * 2 + good[entry + 28 :]
    check_refused(tmp_path / "head.rankshot", lying, "claim to be larger than the file")
    lying = good[: entry + 24] + huge + good[entry + 28 :]
    check_refused(tmp_path / "head.rankshot", lying, "'arrays/weights.npy' is compressed")
    lying = good[: entry + 20] + huge + good[entry + 24 :]
    check_refused(tmp_path / "head.rankshot", lying, "'arrays/weights.npy' is compressed")


def places_in(value, path=()):
    """All places in nested dicts and lists."""
    yield path
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places_in(each, (*path, key))


JUNK = st.sampled_from(
    [None, True, 0, -1, 10**400, 0.5, 1e308, "", "x", [], ["x"], [[]], {}, {"x": {}}, "\x00"]
)


@pytest.mark.parametrize(
    "name", ["weighted-reference", "sum-mallows", "seen-labels", "refined", "deterministic"]
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(data=st.data())
def test_any_other_value_in_the_manifest_is_refused_or_harmless(folder, tmp_path, name, data):
    manifest, members = unpack((folder / f"{name}.rankshot").read_bytes())
    *path, last = data.draw(st.sampled_from(list(places_in(manifest))[1:]))
    inside = manifest
    for key in path:
        inside = inside[key]
    inside[last] = data.draw(JUNK)
    try:
        loaded = load_bytes(tmp_path / "head.rankshot", pack(manifest, members, sums=False))
    except rs.RankshotError:
        return
    assert isinstance(loaded, tuple(CLASSES.values()))
