"""Every kind of model gives the scores that a direct computation gives, or says what is wrong."""

import contextlib
import json
import re
import shutil

import numpy as np
import pytest
from PIL import Image
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier

import rankshot as rs
from rankshot.core.errors import InputError
from rankshot.datasets import load_photographs, write_photographs
from rankshot.recognition import Preprocessing
from rankshot.recognition.inputs import Model
from rankshot.recognition.scoring import prepare_model
from refusals import refuses
from tiny_models import (
    CLASSES,
    CONFIG,
    PLAIN,
    mean_colors,
    write_image_transformer,
    write_images,
    write_onnx,
    write_text_onnx,
    write_text_transformer,
)

TEXTS = ["play music", "set alarm", "play some music please", "set the alarm"]


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """A folder of five images, and what the tiny networks say of them."""
    folder = tmp_path_factory.mktemp("photos")
    pixels = write_images(folder)
    prepare = Preprocessing(**PLAIN)
    batch = [prepare(Image.fromarray(array)) for array in pixels.values()]
    return folder, list(pixels), mean_colors(batch)


# ---- ONNX


def test_given_names_in_another_order_than_the_model_s_are_refused(tmp_path):
    path = write_onnx(tmp_path / "net.onnx", metadata={"classes": ["n02084071", "bus", "daisy"]})
    for classes in (["bus", "dog, domestic dog", "daisy"], ["daisy", "n02084071", "omnibus"]):
        with refuses("seen"):
            prepare_model(path, classes, Preprocessing(**PLAIN))
    five = Model("net", "values", len, classes=["bus", "dog", "daisy", "lemon", "tulip"])
    with refuses("seen", "dog"):
        # As many moved as stayed, and one is unknown.
        prepare_model(five, ["dog", "bus", "daisy", "lemon", "qqqq"])
    same = prepare_model(path, ["dog", "Bus", "daisy"], Preprocessing(**PLAIN))
    assert same.classes.names == ("dog", "Bus", "daisy")


def test_names_of_the_same_class_of_imagenet_are_the_same():
    labels = rs.sources.read_class_labels("imagenet-1k")
    network = Model("net", "values", len, classes="imagenet-1k")
    for given in (labels.names, labels.synsets):
        assert prepare_model(network, given).classes.names == labels.names
        with refuses("seen"):
            prepare_model(network, [*given[1:], given[0]])
    # Two cranes are told apart by their places.
    for given in ([words[0] for words in labels.synonyms], map(", ".join, labels.synonyms)):
        assert prepare_model(network, list(given)).classes.names == labels.names


def test_images_for_a_module_of_torch_need_preprocessing(photos):
    import torch

    folder, names, _ = photos
    module = torch.nn.Flatten()
    image = Image.fromarray(np.zeros((9, 9, 3), np.uint8))
    for inputs in ([image], [folder / name for name in names], folder, folder / names[0]):
        with pytest.raises(InputError):
            rs.recognition.score(module, inputs, CLASSES)


def test_a_fixed_batch_of_one(tmp_path, photos):
    folder, _, wanted = photos
    path = write_onnx(tmp_path / "net.onnx", shape=(1, 3, 8, 8))
    found = rs.recognition.score(path, folder, CLASSES, preprocessing=Preprocessing(**PLAIN))
    np.testing.assert_allclose(found.scores.values, wanted, atol=1e-5)
    with refuses("model"):
        rs.recognition.open_model(write_onnx(tmp_path / "net.onnx", shape=(4, 3, 8, 8)))


@pytest.mark.parametrize("beside", [False, True])
def test_classes_and_preprocessing_in_the_file_or_beside_it(tmp_path, photos, beside):
    folder, names, wanted = photos
    metadata = {"names": dict(enumerate(CLASSES))}
    if beside:
        (tmp_path / "preprocessor_config.json").write_text(json.dumps(CONFIG))
    else:
        metadata["preprocessor_config"] = CONFIG
    path = write_onnx(tmp_path / "net.onnx", metadata=metadata)
    found = rs.recognition.score(path, folder, batch_size=2)
    assert (found.ids.tolist(), found.scores.items) == (names, tuple(CLASSES))
    assert found.scores.values.dtype == np.float32
    np.testing.assert_allclose(found.scores.values, wanted, atol=1e-5)


class Raw(str):
    """A text for the metadata as it is."""

    __slots__ = ()


DEEP = Raw("[" * 100_000)


def test_odd_metadata_is_named_and_replaced_by_what_is_given(tmp_path, photos):
    (tmp_path / "a file").write_text("a file that nobody named")
    plain = Preprocessing(**PLAIN)
    for value in (Raw("{0: 'red'}"), "a file", [1, 2, 3], DEEP):
        path = write_onnx(tmp_path / "net.onnx", metadata={"names": value})
        assert prepare_model(path, CLASSES, plain).classes.names == tuple(CLASSES)
        with refuses("seen", where="net.onnx"):
            prepare_model(path, None, plain)
    path = write_onnx(tmp_path / "net.onnx", metadata={"names": value, "id2label": CLASSES})
    assert rs.recognition.open_model(path).classes == CLASSES
    for value in ([1], DEEP, {"size": 9}):
        path = write_onnx(tmp_path / "net.onnx", metadata={"preprocessor_config": value})
        prepare_model(path, CLASSES, plain)
        with refuses("preprocessing", where="net.onnx"):
            prepare_model(path, CLASSES)
    (tmp_path / "preprocessor_config.json").write_text(DEEP)
    with refuses("preprocessing"):
        prepare_model(write_onnx(tmp_path / "net.onnx"), CLASSES)


@pytest.mark.parametrize("place", ["metadata", "json", "names", "beside"])
def test_the_classes_of_imagenet_are_recognised_wherever_they_stand(tmp_path, place):
    own = rs.sources.read_class_labels("imagenet-1k")
    words = dict(enumerate(map(", ".join, own.synonyms)))
    value = {"metadata": Raw("imagenet-1k"), "json": "imagenet-1k", "names": words}.get(place)
    metadata = {} if value is None else {"names": value}
    path = write_onnx(tmp_path / "net.onnx", extra=997, metadata=metadata)
    for labels in (words, {0: "LABEL_0"}) if value is None else ():
        (tmp_path / "config.json").write_text(json.dumps({"id2label": labels}))
        if labels != words:
            with refuses("seen"):
                prepare_model(path, None, Preprocessing(**PLAIN))
        else:
            assert prepare_model(path, None, Preprocessing(**PLAIN)).classes.names == own.names
    if value is not None:
        found = prepare_model(path, None, Preprocessing(**PLAIN)).classes
        assert (found.names, found.synsets) == (own.names, own.synsets)


def write_external(path, location):
    import onnx
    from onnx.external_data_helper import set_external_data

    network = onnx.load(write_onnx(path, metadata={"classes": CLASSES}))
    (tensor,) = network.graph.initializer
    target = path.parent / location
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(tensor.raw_data)
    set_external_data(tensor, location)
    tensor.ClearField("raw_data")
    path.write_bytes(network.SerializeToString())
    return target


def test_weights_in_another_file_belong_to_the_fingerprint(tmp_path):
    location = "deep/net.w"
    data = write_external(tmp_path / "net.onnx", location)
    before = rs.recognition.open_model(tmp_path / "net.onnx").fingerprint
    data.write_bytes((2 * np.eye(3, dtype=np.float32)).tobytes())
    assert rs.recognition.open_model(tmp_path / "net.onnx").fingerprint != before
    data.unlink()
    with refuses("model", location):
        rs.recognition.open_model(tmp_path / "net.onnx")


def test_weights_outside_of_the_folder_are_refused(tmp_path):
    (tmp_path / "a").mkdir()
    for location in ("../secret", str(tmp_path / "secret")):
        write_external(tmp_path / "a/net.onnx", location)
        with refuses("model", location):
            rs.recognition.open_model(tmp_path / "a/net.onnx")


def test_texts_in_onnx(tmp_path):
    found = rs.recognition.score(write_text_onnx(tmp_path / "net.onnx"), ["a", "b", "c"])
    assert (found.scores.items, found.scores.values.tolist()) == (("one", "two"), [[1, 2]] * 3)


@pytest.mark.parametrize(
    ("network", "options", "parameter"),
    [
        ({}, {"preprocessing": None}, "preprocessing"),
        ({}, {"seen": None}, "seen"),
        ({"shape": ("n", 3, 16, 12)}, {}, "preprocessing"),
        ({"extra": 1}, {}, "seen"),
        ({"outputs": 2}, {}, "model"),
    ],
)
def test_what_is_missing_or_does_not_fit(tmp_path, photos, network, options, parameter):
    path = write_onnx(tmp_path / "net.onnx", **network)
    given = {"seen": CLASSES, "preprocessing": Preprocessing(**PLAIN)} | options
    with refuses(parameter):
        rs.recognition.score(path, photos[0], **given)


# ---- torch


def test_a_torch_module_runs_in_evaluation_mode_and_is_left_as_it_was(photos):
    import torch

    folder, names, _ = photos
    module = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.Dropout(0.5), torch.nn.Flatten(), torch.nn.LazyLinear(3)
    )
    prepare = Preprocessing(**PLAIN)
    batch = np.stack([prepare(Image.open(folder / name)) for name in names])
    module(torch.from_numpy(batch))
    module.train()
    module[0].eval()
    found = rs.recognition.score(module, folder, CLASSES, preprocessing=prepare, batch_size=2)
    assert [part.training for part in module] == [False, True, True, True]
    with torch.inference_mode():
        wanted = module.eval()(torch.from_numpy(batch)).numpy()
    np.testing.assert_allclose(found.scores.values, wanted, atol=1e-5)


def test_a_torch_module_takes_arrays_as_they_are(rng):
    import torch

    module = torch.nn.Linear(4, 3)
    values = rng.normal(size=(7, 4)).astype(np.float32)
    found = rs.recognition.score(module, values, CLASSES, batch_size=3)
    wanted = module(torch.from_numpy(values)).detach().numpy()
    np.testing.assert_allclose(found.scores.values, wanted, atol=1e-6)
    assert found.ids.tolist() == list("0123456")
    before = rs.recognition.open_model(module).fingerprint
    with torch.no_grad():
        module.bias[0] += 1
    assert rs.recognition.open_model(module).fingerprint != before


# ---- transformers, which takes seconds to import


@pytest.mark.slow
def test_an_image_model_of_transformers_needs_no_option(tmp_path, photos):
    import torch
    from transformers import ViTForImageClassification
    from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

    folder, names, _ = photos
    place = write_image_transformer(tmp_path / "vit")
    found = rs.recognition.score(str(place), folder, batch_size=2)
    assert prepare_model(str(place)).preprocessing.size == (16, 16)
    processor = ViTImageProcessorPil.from_pretrained(place)
    images = [Image.open(folder / name).convert("RGB") for name in names]
    pixels = torch.from_numpy(processor(images=images, return_tensors="np")["pixel_values"])
    with torch.inference_mode():
        wanted = ViTForImageClassification.from_pretrained(place)(pixels).logits.numpy()
    assert found.scores.items == tuple(CLASSES)
    np.testing.assert_allclose(found.scores.values, wanted, atol=1e-5)


@pytest.mark.slow
def test_a_text_model_of_transformers_needs_no_option(tmp_path):
    import torch
    from transformers import AutoTokenizer, BertForSequenceClassification

    place = write_text_transformer(tmp_path / "bert")
    long = "play music " * 50
    found = rs.recognition.score(place, [*TEXTS, long], batch_size=2)
    tokenizer = AutoTokenizer.from_pretrained(place)
    network = BertForSequenceClassification.from_pretrained(place).eval()
    assert found.scores.items == ("play_music", "set_alarm")
    assert re.search(r"; texts are cut after \d+ tokens$", str(rs.recognition.open_model(place)))
    with torch.inference_mode():
        for row, text in zip(found.scores.values[:4], TEXTS, strict=True):
            wanted = network(**tokenizer(text, return_tensors="pt")).logits.numpy()[0]
            np.testing.assert_allclose(row, wanted, atol=1e-5)
        last_layer = network.classifier(torch.from_numpy(found.scores.features)).numpy()
        np.testing.assert_allclose(last_layer, found.scores.values, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("write", "file", "old", "new"),
    [
        (write_text_transformer, "tokenizer.json", "music", "tunes"),
        (write_image_transformer, "preprocessor_config.json", '"resample": 3', '"resample": 2'),
    ],
)
def test_the_fingerprint_has_all_that_scores_depend_on(tmp_path, write, file, old, new):
    """Also where the model comes from the hub, and the folder is a cache somewhere."""
    place = write(tmp_path / "net")
    first = rs.recognition.open_model(place).fingerprint
    shutil.copytree(place, tmp_path / "copy")
    (tmp_path / "copy/notes.txt").touch()
    assert rs.recognition.open_model(tmp_path / "copy").fingerprint == first
    text = (place / file).read_text()
    assert old in text
    (place / file).write_text(text.replace(old, new))
    assert rs.recognition.open_model(place).fingerprint != first


@pytest.mark.slow
def test_models_and_pipelines_of_transformers_are_taken_as_they_are(tmp_path, photos):
    import transformers

    texts = ["play a song", "wake me"]
    place = str(write_text_transformer(tmp_path / "bert"))
    wanted = rs.recognition.score(place, texts).scores
    pipeline = transformers.pipeline("text-classification", model=place)
    network = transformers.AutoModelForSequenceClassification.from_pretrained(place)
    found = rs.recognition.score(pipeline, texts).scores
    assert found.items == ("play_music", "set_alarm")
    np.testing.assert_allclose(found.values, wanted.values, atol=1e-5)
    place = str(write_image_transformer(tmp_path / "vit"))
    pipeline = transformers.pipeline("image-classification", model=place)
    wanted = rs.recognition.score(place, photos[0]).scores
    np.testing.assert_allclose(
        rs.recognition.score(pipeline, photos[0]).scores.values, wanted.values, atol=1e-5
    )
    with refuses("model", type(network).__name__):
        rs.recognition.score(network, texts)


CONFIG_OF_OWN = {"auto_map": {"AutoConfig": "own.Own"}}
TOKENIZER = {"auto_map": {"AutoTokenizer": ["own.Own", "own.Own"]}, "tokenizer_class": "Own"}
PROCESSOR = {"auto_map": {"AutoImageProcessor": "own.Own"}, "image_processor_type": "Own"}


def test_code_of_a_model_is_never_run_nor_asked_about(tmp_path, monkeypatch):
    """This needs the import of transformers and of its models, which takes a few seconds."""
    texts = write_text_transformer(tmp_path / "texts")
    images = write_image_transformer(tmp_path / "images")
    monkeypatch.setattr("builtins.input", lambda _: "y")
    for number, (place, file, own) in enumerate(
        [
            (texts, "config.json", CONFIG_OF_OWN),
            (texts, "config.json", CONFIG_OF_OWN | {"model_type": "homemade"}),
            (texts, "tokenizer_config.json", TOKENIZER),
            (images, "preprocessor_config.json", PROCESSOR),
        ]
    ):
        copy = shutil.copytree(place, tmp_path / str(number))
        (copy / file).write_text(json.dumps(json.loads((place / file).read_text()) | own))
        (copy / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Own: pass")
        refuses = pytest.raises(rs.RankshotError, match=r"auto_map|trust_remote_code|custom code")
        with refuses if file == "config.json" else contextlib.suppress(rs.RankshotError):
            rs.recognition.open_model(copy)
        assert not (tmp_path / "ran").exists()


# ---- scikit-learn and functions


def test_a_pipeline_from_a_skops_file(tmp_path):
    from skops import io

    words = FeatureUnion([("words", TfidfVectorizer())])
    pipeline = make_pipeline(words, LogisticRegression()).fit(TEXTS, ["play", "set"] * 2)
    io.dump(pipeline, tmp_path / "p.skops")
    found = rs.recognition.score(tmp_path / "p.skops", TEXTS, batch_size=3)
    np.testing.assert_allclose(found.scores.values, rs.scores_of(pipeline, TEXTS).values)
    assert found.scores.items == ("play", "set")
    np.testing.assert_array_equal(
        rs.recognition.score(pipeline, TEXTS).scores.values, found.scores.values
    )


@pytest.mark.parametrize(
    ("first", "named"),
    [
        (FunctionTransformer(np.testing.runstring), "runstring"),
        (DecisionTreeClassifier().fit([[0], [1]], [0, 1]), "sklearn.tree._tree.Tree"),
    ],
)
def test_types_that_could_do_harm_are_named(tmp_path, first, named):
    """``numpy.testing.runstring`` runs any code; damaged trees read foreign memory."""
    from skops import io

    io.dump(first, tmp_path / "p.skops")
    with refuses("model"):
        rs.recognition.open_model(tmp_path / "p.skops")


def test_the_built_in_network_has_the_recorded_scores(tmp_path):
    """Those of torch, rounded to half precision; the weights in the package are rounded as well."""
    photos = load_photographs()
    write_photographs(tmp_path)
    found = rs.recognition.score("efficientnet-lite0", tmp_path)
    recorded = np.asarray(photos.scores.values, float)
    assert found.ids.tolist() == photos.ids.tolist()
    assert np.abs(found.scores.values - recorded).max() < 0.05
    assert (found.scores.values.argmax(1) == recorded.argmax(1)).all()
    assert found.scores.features.shape == (12, 1280)
    head = rs.WeightedMean().fit(photos.rankings)
    assert (head.predict(found.scores) == head.predict(photos.scores)).all()


# ---- what is no model


@pytest.mark.parametrize("model", ["model.pkl", "missing.onnx", "efficientnet-light0", 3])
def test_what_is_no_model(model):
    with refuses("model", model):
        rs.recognition.open_model(model)
