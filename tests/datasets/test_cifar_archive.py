"""CIFAR's archives, on tiny ones made here; and the way from them to a file of features."""

import hashlib
import io
import tarfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.decomposition import PCA

from rankshot import RankshotError
from rankshot.datasets import cifar
from rankshot.datasets.cifar import (
    CIFAR10,
    CIFAR100,
    build_cifar_features,
    load_cifar,
    read_cifar_archive,
)
from rankshot.datasets.embedded import class_names

MAPPING = np.random.default_rng(11).normal(size=(64, 1280)) / 8
SEEN_NAMES = "\n".join(class_names("cifar").seen).encode() + b"\n"
UNSEEN_NAMES = "\n".join(class_names("cifar").new).encode() + b"\n\n"


def record(image, *labels):
    """One record, byte by byte: labels, then a plane a colour, each row by row."""
    pixels = [image[y, x, colour] for colour in range(3) for y in range(32) for x in range(32)]
    return bytes([*labels, *pixels])


def write_tar(path, members):
    with tarfile.open(path, "w:gz") as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def some_images(rng, n, n_classes):
    images = rng.integers(256, size=(n, 32, 32, 3), dtype=np.uint8)
    # Of every class, if there are enough.
    return images, rng.permutation(np.resize(rng.permutation(n_classes), n))


def tiny_cifar100(path, train, test, **changes):
    members = {
        "cifar-100-binary/": b"",
        "cifar-100-binary/coarse_label_names.txt": b"fish\n",
        "cifar-100-binary/fine_label_names.txt": SEEN_NAMES,
        "cifar-100-binary/test.bin": b"".join(
            record(image, 19, label) for image, label in zip(*test, strict=True)
        ),
        "cifar-100-binary/train.bin": b"".join(
            record(image, 7, label) for image, label in zip(*train, strict=True)
        ),
    }
    members |= {f"cifar-100-binary/{name}": content for name, content in changes.items()}
    write_tar(path, {name: content for name, content in members.items() if content is not None})
    return replace(CIFAR100, images={"train.bin": len(train[1]), "test.bin": len(test[1])})


def tiny_cifar10(path, test):
    records = b"".join(record(image, label) for image, label in zip(*test, strict=True))
    folder = "cifar-10-batches-bin"
    members = {
        "batches.meta.txt": UNSEEN_NAMES,
        "data_batch_1.bin": b"x",
        "test_batch.bin": records,
    }
    write_tar(path, {f"{folder}/{name}": content for name, content in members.items()})
    return replace(CIFAR10, images={"test_batch.bin": len(test[1])})


# ---- Reading


def test_images_and_fine_labels_come_back(tmp_path, rng):
    train, test = some_images(rng, 5, 100), some_images(rng, 3, 100)
    archive = tiny_cifar100(tmp_path / "a.tar.gz", train, test)
    parts = read_cifar_archive(tmp_path / "a.tar.gz", archive)
    assert set(parts) == {"train.bin", "test.bin"}
    for found, (images, labels) in ((parts["train.bin"], train), (parts["test.bin"], test)):
        np.testing.assert_array_equal(found.images, images)
        np.testing.assert_array_equal(found.labels, labels)
        assert (found.images.dtype, found.labels.dtype) == (np.uint8, np.int16)


def test_cifar10_has_one_label(tmp_path, rng):
    test = some_images(rng, 4, 10)
    archive = tiny_cifar10(tmp_path / "a.tar.gz", test)
    found = read_cifar_archive(tmp_path / "a.tar.gz", archive)["test_batch.bin"]
    np.testing.assert_array_equal(found.images, test[0])
    np.testing.assert_array_equal(found.labels, test[1])


def test_the_real_archives_are_described():
    assert CIFAR10.url == "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
    assert CIFAR100.url == "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz"
    assert (len(CIFAR10.classes), len(CIFAR100.classes)) == (10, 100)
    assert CIFAR100.images == {"train.bin": 50_000, "test.bin": 10_000}
    assert CIFAR10.images == {"test_batch.bin": 10_000}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"fine_label_names.txt": b"apple\npear\n"},
            "does not list CIFAR's classes: ('apple', 'pear')",
        ),
        ({"fine_label_names.txt": b"\xff" * 70_000}, "does not list CIFAR's classes"),
        ({"fine_label_names.txt": None}, "there is no fine_label_names.txt in cifar-100-binary"),
        ({"test.bin": None}, "there is no test.bin in cifar-100-binary"),
        ({"train.bin": b"x" * 3073}, "train.bin is 3,073 bytes long, not 6,148"),
        ({"train.bin": bytes(3075) + b"\x64" + bytes(3072)}, "train.bin: image 1 has label 100"),
    ],
    ids=["classes", "no text", "no names", "no images", "length", "label"],
)
def test_what_is_not_cifar_is_refused(tmp_path, rng, changes, message):
    path = tmp_path / "a.tar.gz"
    archive = tiny_cifar100(path, some_images(rng, 2, 100), some_images(rng, 1, 100), **changes)
    with pytest.raises(RankshotError) as caught:
        read_cifar_archive(path, archive)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE])
def test_links_are_not_followed(tmp_path, kind):
    path = tmp_path / "a.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        member = tarfile.TarInfo("cifar-10-batches-bin/test_batch.bin")
        member.type, member.linkname = kind, "/etc/hosts"
        tar.addfile(member)
    with pytest.raises(RankshotError, match=r"there is no batches\.meta\.txt"):
        read_cifar_archive(path, CIFAR10)


@pytest.mark.parametrize("name", ["../test_batch.bin", "/cifar-10-batches-bin/test_batch.bin"])
def test_members_elsewhere_are_no_members(tmp_path, rng, name):
    contents = {"cifar-10-batches-bin/batches.meta.txt": UNSEEN_NAMES, name: bytes(3073)}
    path = write_tar(tmp_path / "a.tar.gz", contents)
    with pytest.raises(RankshotError, match=r"there is no test_batch\.bin in cifar-10-batches-bin"):
        read_cifar_archive(path, replace(CIFAR10, images={"test_batch.bin": 1}))
    assert [file.name for file in tmp_path.iterdir()] == ["a.tar.gz"]


@pytest.mark.parametrize(
    "damage", [lambda b: b[:-900], lambda b: b"no", lambda b: b[:40] + b"x" * 2000]
)
def test_a_damaged_archive_is_named(tmp_path, rng, damage):
    path = tmp_path / "a.tar.gz"
    archive = tiny_cifar10(path, some_images(rng, 4, 10))
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(RankshotError, match=r"a\.tar\.gz: not a complete \.tar\.gz file"):
        read_cifar_archive(path, archive)


def test_a_missing_archive_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_cifar_archive(tmp_path / "a.tar.gz", CIFAR10)


# ---- Features


def fake_features(images):
    """1,280 features of which 64 pixels tell the most: so that a PCA has something to find."""
    pixels = images.reshape(len(images), -1)[:, :1280].astype(np.float64) / 255
    scales = np.linspace(3, 0.1, 64)
    return ((pixels[:, :64] * scales) @ MAPPING + 0.05 * pixels).astype(np.float32)


@pytest.fixture(scope="module")
def remote(tmp_path_factory):
    """A tiny CIFAR, as its home has it."""
    rng = np.random.default_rng(5)
    sizes = {"seen_train": (420, 100), "seen_test": (130, 100), "unseen_test": (150, 10)}
    parts = {name: some_images(rng, *size) for name, size in sizes.items()}
    folder = tmp_path_factory.mktemp("remote")
    seen = tiny_cifar100(folder / CIFAR100.file, parts["seen_train"], parts["seen_test"])
    new = tiny_cifar10(folder / CIFAR10.file, parts["unseen_test"])
    return SimpleNamespace(folder=folder, parts=parts, seen=seen, new=new)


@pytest.fixture
def home(tmp_path, remote, monkeypatch):
    return make_home(tmp_path, remote, monkeypatch)


@pytest.fixture(scope="module")
def finished(tmp_path_factory, remote):
    """A home with the file built once, for tests that only look at it."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        home = make_home(tmp_path_factory.mktemp("finished"), remote, monkeypatch)
        home.path = home.build()
    return home


def make_home(tmp_path, remote, monkeypatch):
    """What is needed to build: archives to fetch, a network that counts, shards of 100 images."""
    home = SimpleNamespace(parts=remote.parts, fetched=[], calls=[], fail_at=None, announced=[])

    def fetch(url, path, *, announce, md5):
        home.fetched.append(url)
        content = (remote.folder / url.rpartition("/")[2]).read_bytes()
        assert hashlib.md5(content).hexdigest() == md5
        Path(path).write_bytes(content)

    def extract(images):
        if len(home.calls) == home.fail_at:
            raise KeyboardInterrupt
        home.calls.append(len(images))
        return fake_features(images)

    for name, archive in (("CIFAR100", remote.seen), ("CIFAR10", remote.new)):
        digest = hashlib.md5((remote.folder / archive.file).read_bytes()).hexdigest()
        monkeypatch.setattr(cifar, name, replace(archive, md5=digest))
    monkeypatch.setattr(cifar, "download", fetch)
    monkeypatch.setattr(cifar, "EfficientNetFeatures", lambda: extract)
    monkeypatch.setattr(cifar, "SHARD", 100)
    home.directory = tmp_path / "data"
    home.build = partial(
        build_cifar_features, home.directory, lambda *all_: home.announced.append(all_)
    )
    home.shards = home.directory / "cifar" / "features.shards"
    return home


def contents(path):
    with np.load(path, allow_pickle=False) as arrays:
        return dict(arrays)


def test_the_file_has_the_arrays_of_the_layout(finished):
    assert finished.path == finished.directory / "cifar" / "features.npz"
    arrays = contents(finished.path)
    assert {name: (array.shape, array.dtype) for name, array in arrays.items()} == {
        "seen_train": ((420, 256), np.float16),
        "seen_train_label": ((420,), np.int16),
        "seen_test": ((130, 256), np.float16),
        "seen_test_label": ((130,), np.int16),
        "unseen_test": ((150, 256), np.float16),
        "unseen_test_label": ((150,), np.int16),
        "seen_classes": ((100,), np.dtype("<U13")),
        "unseen_classes": ((10,), np.dtype("<U10")),
        "pca_mean": ((1280,), np.float32),
        "pca_components": ((256, 1280), np.float32),
        "pca_scale": ((), np.float32),
    }
    for name, (_, labels) in finished.parts.items():
        np.testing.assert_array_equal(arrays[f"{name}_label"], labels)


@pytest.mark.shared_data
def test_the_layout_is_that_of_the_measured_data(finished, shared_data):
    """Names, types and all but the number of images."""
    mine, theirs = contents(finished.path), contents(shared_data / "cifar" / "features.npz")
    assert list(mine) == list(theirs)
    for name, array in theirs.items():
        assert (mine[name].dtype, mine[name].ndim) == (array.dtype, array.ndim)
        assert mine[name].shape[1:] == array.shape[1:]
    for kind in ("seen", "unseen"):
        np.testing.assert_array_equal(mine[f"{kind}_classes"], theirs[f"{kind}_classes"])


@pytest.mark.shared_data
def test_the_measured_data_has_the_same_kind_of_reduction(shared_data):
    """Uncorrelated, by variance, of unit size (to .1%: it was taken from part of the rows)."""
    arrays = contents(shared_data / "cifar" / "features.npz")
    train, components = arrays["seen_train"].astype(np.float64), arrays["pca_components"]
    np.testing.assert_allclose(components @ components.T, np.eye(256), atol=1e-5)
    assert (np.take_along_axis(components, np.abs(components).argmax(axis=1)[:, None], 1) > 0).all()
    covariance = np.cov(train.T)
    variances = np.diag(covariance)
    assert (np.diff(variances) <= 0).all()
    correlations = covariance / np.sqrt(np.outer(variances, variances))
    np.testing.assert_allclose(correlations, np.eye(256), atol=1e-4)
    assert np.sqrt(np.mean(train**2)) == pytest.approx(1, abs=1e-3)


def test_the_reduction_is_a_pca_of_the_training_images(finished):
    arrays = contents(finished.path)
    features = {name: fake_features(images) for name, (images, _) in finished.parts.items()}
    pca = PCA(256, svd_solver="full").fit(features["seen_train"].astype(np.float64))
    np.testing.assert_allclose(arrays["pca_mean"], pca.mean_, rtol=1e-5)
    projected = pca.transform(features["seen_train"])
    scale = np.sqrt(np.mean(projected**2))
    np.testing.assert_allclose(arrays["pca_scale"], scale, rtol=1e-5)
    np.testing.assert_allclose(
        np.abs(np.sum(arrays["pca_components"] * pca.components_, 1)), 1, rtol=1e-4
    )
    np.testing.assert_allclose(arrays["pca_components"], pca.components_, atol=1e-3)
    for name, raw in features.items():
        np.testing.assert_allclose(arrays[name], pca.transform(raw) / scale, atol=5e-3)


def test_the_loader_reads_it(finished):
    data = load_cifar(finished.path)
    parts = finished.parts
    assert data.seen_train.shape == (420, 256)
    assert data.new.shape == (150, 256)
    seen, new = map(np.array, class_names("cifar"))
    np.testing.assert_array_equal(data.seen_train_label, seen[parts["seen_train"][1]])
    np.testing.assert_array_equal(data.seen_validation_label, seen[parts["seen_test"][1]])
    np.testing.assert_array_equal(data.new_label, new[parts["unseen_test"][1]])


def test_shards_are_removed_and_archives_stay(finished):
    left = sorted(path.name for path in (finished.directory / "cifar").iterdir())
    assert left == [CIFAR10.file, CIFAR100.file, "features.npz"]
    assert finished.fetched == [CIFAR100.url, CIFAR10.url]
    assert finished.calls == [100] * 4 + [20] + [100, 30] + [100, 50]
    steps = [0, 100, 200, 300, 400, 420, 520, 550, 650, 700]
    assert finished.announced == [(done, 700, "images") for done in steps]


def test_an_interrupted_run_goes_on_where_it_stopped(home, finished):
    home.fail_at = 6
    with pytest.raises(KeyboardInterrupt):
        home.build()
    assert len(list(home.shards.iterdir())) == 6
    assert not (home.directory / "cifar" / "features.npz").exists()
    home.fail_at, home.calls[:] = None, []
    resumed = contents(home.build())
    assert home.calls == [30, 100, 50]
    # The same file as without an interruption.
    assert len(finished.calls) == 9
    for name, array in contents(finished.path).items():
        np.testing.assert_array_equal(resumed[name], array)


def test_damaged_shards_are_made_anew(home):
    home.fail_at = 6
    with pytest.raises(KeyboardInterrupt):
        home.build()
    (home.shards / "seen_train-00100.npy").write_bytes(b"")
    (home.shards / "seen_train-00200.npy").write_bytes(b"no shard")
    np.save(home.shards / "seen_test-00000.npy", np.zeros((99, 1280), np.float32))
    home.fail_at, home.calls[:] = None, []
    arrays = contents(home.build())
    assert home.calls == [100, 100, 100, 30, 100, 50]
    for name in ("seen_train", "seen_test"):
        raw = fake_features(home.parts[name][0])
        wanted = (raw - arrays["pca_mean"]) @ arrays["pca_components"].T / arrays["pca_scale"]
        np.testing.assert_allclose(arrays[name], wanted, atol=5e-3)


def test_a_file_that_is_there_is_left_alone(home):
    path = home.directory / "cifar" / "features.npz"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"made before")
    assert home.build() == path
    assert path.read_bytes() == b"made before"
    assert (home.calls, home.fetched) == ([], [])


@pytest.mark.parametrize(
    ("spoilt", "message"),
    [
        (lambda f: np.where(np.arange(1280) == 3, np.nan, f), r"\(100, 1280\), 100 not finite"),
        (lambda f: f[:, :7], r"they have \(100, 7\), 0 not finite"),
    ],
)
def test_a_network_gone_wrong_is_noticed_at_once(home, monkeypatch, spoilt, message):
    monkeypatch.setattr(
        cifar, "EfficientNetFeatures", lambda: lambda images: spoilt(fake_features(images))
    )
    with pytest.raises(RankshotError, match=f"seen_train-00000: .*{message}"):
        home.build()
    assert list(home.shards.iterdir()) == []


def test_a_missing_package_costs_no_download(home, monkeypatch):
    def missing():
        raise RankshotError("pip install 'rankshot[images]'")

    monkeypatch.setattr(cifar, "EfficientNetFeatures", missing)
    with pytest.raises(RankshotError, match="images"):
        home.build()
    assert home.fetched == []
    assert not home.directory.exists()
