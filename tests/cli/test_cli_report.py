"""``rankshot consensus``, ``explain`` and ``report``: what a person reads of rankings and a run."""

import json
import re
from html import unescape

import numpy as np
import pytest
from PIL import Image

import rankshot as rs
from command_line import (
    IDS,
    LOGITS,
    TARGETS,
    TRUTH,
    check_refused,
    rankings,
    run_well,
    table_rows,
    write_scores,
)
from rankshot.zeroshot import Settings
from rankshot.zeroshot.files.predictions import read_predictions

# -------------------------------------------------------------------- consensus


@pytest.mark.parametrize("prior", ["plackett-luce", "mallows", "kemeny"])
@pytest.mark.parametrize("k", [None, 2])
def test_consensus_has_the_numbers_of_summarize(folder, prior, k):
    model = {"plackett-luce": rs.PlackettLuce(), "mallows": rs.Mallows(), "kemeny": "kemeny"}[prior]
    words = f"consensus rankings.jsonl --method {prior} --explain"
    out = run_well(words + (f" --k {k}" if k else ""))
    rows = table_rows(out)
    assert list(rows) == TARGETS
    for brief in rs.summarize(rankings(), model, k):
        cells = rows[brief.target]
        assert cells[1] == str(brief.n_rankings)
        order = re.sub(r" [\d.e-]+(?= >|$)", "", cells[2])
        # All items have a worth; the consensus that heads use is as long as the longest list.
        has_all = prior == "plackett-luce" and k is None
        assert order == " > ".join(
            " = ".join(tie) if isinstance(tie, tuple) else tie
            for tie in (brief.model.mode_ if has_all else brief.order)
        )
        assert cells[-3] == f"{brief.concordance:.2f}"
        assert cells[-2] == f"{brief.mean_distance:.2f}"
        furthest = [f"{name} {far:.2f}" for name, far in brief.disagreement[:3] if far > 0.005]
        assert cells[-1] == (" ".join(furthest) or "-")
        if prior == "mallows":
            assert cells[3] == f"{brief.model.spread_:.3g}"
        elif prior == "plackett-luce":
            first = brief.model.items_.index(re.split(" [>=] ", order)[0])
            worth = re.findall(r" ([\d.e-]+)(?= >|$)", cells[2])[0]
            assert worth == f"{brief.model.worths_[first]:.2g}"
    counts = sorted({brief.k for brief in rs.summarize(rankings(), model, k)})
    places = " to ".join(map(str, dict.fromkeys([counts[0], counts[-1]])))
    assert f"over the first {places} places, divided by the largest" in out


@pytest.mark.parametrize("prior", ["plackett-luce", "mallows"])
def test_the_consensus_that_is_shown_is_the_one_that_heads_use(folder, rng, prior):
    """Long lists that agree in their first places alone: only the first k of each are merged."""
    orders = [["a", "b", "c", *rng.permutation(list("defghijklmnopqr"))] for _ in range(3)]
    orders += [[["a", "b"], ["c", "r", "q"], *"dhe"], [*"lkjih"]]
    given = rs.Rankings.from_orders(
        orders, items=list("abcdefghijklmnopqr"), targets=["u", "u", "u", "u", "v"]
    )
    rs.write_rankings(given, folder / "rankings.jsonl")
    (folder / "seen.txt").write_text("\n".join(given.items))
    run_well(f"consensus rankings.jsonl --seen seen.txt --method {prior} --k 4 -o merged.jsonl")
    merged = rs.read_rankings("merged.jsonl", items=given.items)
    model = rs.Mallows() if prior == "mallows" else None
    head = rs.ProbabilisticRanking(k=4, posterior="consensus", prior=model).fit(given)
    assert merged.orders() == head.consensus_.orders()
    assert merged.lengths.tolist() == head.consensus_.lengths.tolist()


# -------------------------------------------------------------------- explain


@pytest.mark.parametrize(
    ("options", "how"),
    [("", {}), ("--new-class dog", {"target": "dog"}), ("--against truck", {"against": "truck"})],
)
def test_explain_says_what_python_says(folder, options, how):
    out = run_well(f"explain scores.csv --rankings rankings.jsonl --id x5 --id x2 {options}")
    head = rs.WeightedMean().fit(rankings())
    notes = (
        "scores.csv: the scores are interpreted as logits (see --score-type)\n"
        "the source 'web' has no ranking of 'dog', 'truck': for these, the other sources are used\n"
    )
    assert out == notes + "".join(
        f"{IDS[row]}: {rs.explain(head, LOGITS[[row]], **how)[0]}\n\n" for row in (1, 4)
    )


def test_explain_by_row_number(folder, monkeypatch):
    monkeypatch.setattr("rankshot.zeroshot.files.score_tables.BATCH_CELLS", 10)
    write_scores(folder / "scores.parquet", LOGITS, ids=[])
    words = "--rankings rankings.jsonl --score-type logits"
    by_row = run_well(f"explain scores.parquet --id 4 {words}")
    by_id = run_well(f"explain scores.csv --id x5 {words}")
    assert by_row == by_id.replace("x5: ", "4: ")


# -------------------------------------------------------------------- report


@pytest.fixture
def predicted(folder):
    run_well("classify scores.csv --rankings rankings.jsonl -o predictions.parquet")
    return read_predictions("predictions.parquet")


REPORT = "report predictions.parquet --truth truth.csv -o out.html"


def page(folder):
    return (folder / "out.html").read_text(encoding="utf-8")


def examples(text):
    """Return the names, classes and verdicts of the inputs explained."""
    plain = re.sub(r"<[^>]*>", " ", text.partition('id="explanations-heading"')[2])
    return re.findall(r"(x\d)\s+Predicted:\s+(\w+)\s*,[^✓✗]*[✓✗] (\w+)", plain)


def headings(text):
    return re.findall(r"<h2[^>]*>(.*?)</h2>", text.partition("<main>")[2])


RESULTS = ["Confusions", "Classes", "Calibration"]
RANKINGS = ["Similar classes", "Consensus"]
END = "About this report"


def test_a_report_of_some_labelled_inputs(folder, predicted):
    labels = dict(zip(IDS, TRUTH, strict=True))
    rows = [f"{name},{label}\n" for name, label in labels.items() if name in {"x2", "x5", "x7"}]
    (folder / "truth.csv").write_text("".join(["id,label\n", *rows, "x1,\n"]))
    out = run_well(f"{REPORT} --rankings rankings.jsonl --scores scores.csv")
    assert "truth.csv: labels of 3 of the 7 inputs; only these are reported\n" in out
    n = sum(predicted.labels[i] == labels[f"x{i + 1}"] for i in (1, 4, 6))
    assert f"{n / 3:.1%} of 3 inputs correct" in out
    assert {name for name, *_ in examples(page(folder))} <= {"x2", "x5", "x7"}


def test_examples_are_not_test_inputs(folder):
    """Whether the examples are given again, or a saved head knows which they were."""
    (folder / "truth.csv").write_text(
        "".join(f"{i},{t}\n" for i, t in [("id", "label"), *zip(IDS, TRUTH, strict=True)])
    )
    chosen = IDS[:2]
    rows = [f"{name},{label}\n" for name, label in zip(chosen, TRUTH, strict=False)]
    (folder / "labels.csv").write_text("".join(["id,label\n", *rows]))
    words = "--rankings rankings.jsonl --examples labels.csv"
    run_well(f"classify scores.csv {words} -o predictions.parquet")
    run_well(f"fit --seen scores.csv {words} -o h.rankshot")
    n = len(IDS) - 2
    for how in (words, "--head h.rankshot"):
        out = run_well(f"{REPORT} {how}")
        assert (
            f"labels of {n} of the {len(IDS)} inputs, without 2 examples that the head was" in out
        )
        assert f" of {n} inputs correct; report" in out
        assert f">of {n} inputs of 3 new classes" in page(folder)
        assert "no training example" not in page(folder)
        assert "and by a few labelled examples. Examples do not count as test" in page(folder)
        assert "2 examples left out" in page(folder)
    run_well(REPORT)
    assert "no training example" in page(folder)
    (folder / "truth.csv").write_text("".join(["id,label\n", *rows]))
    check_refused(folder, f"{REPORT} {words}", {}, "truth.csv: has labels of examples only")


@pytest.mark.parametrize(
    ("options", "sections"),
    [
        ("", [*RESULTS, END]),
        (
            "--rankings rankings.jsonl --scores scores.csv",
            [*RESULTS, "Explanations", *RANKINGS, END],
        ),
    ],
)
def test_report_has_the_sections_it_should(folder, predicted, options, sections):
    out = run_well(f"{REPORT} {options}")
    right = np.mean(predicted.labels == TRUTH)
    assert 0 < right < 1
    assert f"{right:.1%} of 7 inputs correct; report written to out.html" in out
    text = page(folder)
    assert headings(text) == sections
    assert f"<strong>{right:.1%}</strong>" in text
    assert "<script" not in text
    assert not re.search(r"""(src|href)=["'](?!#|data:image/png)""", text)


def test_report_of_rejected_inputs(folder):
    """The only dog that is not taken for one is rejected: it is no example of a wrong class."""
    truth = [*TRUTH[:5], "truck", "dog"]
    (folder / "truth.csv").write_text("\n".join(["label", *truth]))
    classify = "classify scores.csv --rankings rankings.jsonl -o predictions.parquet"
    run_well(f"{classify} --reject-below .68")
    given = read_predictions("predictions.parquet").labels
    rejected = [name for name, label in zip(IDS, given, strict=True) if label == "rejected"]
    kept = set(IDS) - set(rejected)
    out = run_well(f"{REPORT} --rankings rankings.jsonl --scores scores.csv")
    assert f"{np.mean(given == truth):.1%} of 7 inputs correct" in out
    text = page(folder)
    assert headings(text)[-1] == END
    assert re.search(rf"Rejected</dt>.*?>{len(rejected)}<", text)
    explained = {name for name, _, _ in examples(text)}
    assert "x7" in rejected
    assert explained
    assert explained <= kept


def test_a_report_says_what_was_predicted_beforehand_and_where_the_scores_are_from(
    folder, predicted
):
    notes = {"predicted mean accuracy of the new classes, with 95% interval": [0.78, 0.6, 0.92]}
    Settings().write(folder / "settings.json", notes)
    origin = {"model": "net.onnx, on CPU", "preprocessing": "resized to 8 x 8"}
    (folder / "scores.csv.json").write_text(
        json.dumps({"origin": origin, "skipped": {"damaged": 3, "not an image": 1}})
    )
    words = "--rankings rankings.jsonl --scores scores.csv --settings settings.json"
    run_well(f"{REPORT} {words}")
    text = page(folder)
    assert "forecast <strong>78.0% (60.0–92.0%)</strong>" in text
    told = origin | {"skipped inputs": "3 damaged, 1 not an image"}
    for what, value in told.items():
        assert f"<dt>{what}</dt><dd>{value}</dd>" in text


def save_image(path, side=200):
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(side).normal(128, 40, size=(side // 4, side // 4, 3))
    small = Image.fromarray(noise.clip(0, 255).astype(np.uint8))
    small.resize((side, side), Image.Resampling.BICUBIC).save(path)


def show_cards(text):
    """Return the texts of the cards of the gallery."""
    part = text.partition('<section id="images"')[2].partition("</section>")[0]
    cards = re.findall(r'<li class="shot">(.*?)</li>', part, re.DOTALL)
    return [re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", card)).strip() for card in cards]


def test_report_shows_the_images_of_its_inputs(folder, predicted):
    for name in IDS:
        save_image(folder / "shots" / f"{name}.jpg")
    out = run_well(f"{REPORT} --rankings rankings.jsonl --scores scores.csv --images shots")
    assert "shots" not in out
    text = page(folder)
    assert headings(text)[:2] == ["Images", "Confusions"]
    assert "7 of 7 inputs are shown" in text
    cards = show_cards(text)
    assert sorted(card.split()[-1] for card in cards) == IDS
    for card in cards:
        row = IDS.index(card.split()[-1])
        label = predicted.labels[row]
        assert card.startswith(f"{label} {100 * predicted.proba[row].max():.1f}% ")
        assert ("✓ correct" in card) == (label == TRUTH[row])
    explained = text.partition('<section id="explanations"')[2].partition("</section>")[0]
    assert explained.count("<img") == explained.count("<h3>") > 0
    # The page is made to be given away.
    assert str(folder) not in text
    assert re.search(r"images</dt>\s*<dd>shots<", text)


def test_images_that_cannot_be_shown_are_named(folder, predicted):
    outside = folder / "outside.png"
    save_image(outside)
    shots = folder / "shots"
    for name in IDS[:4]:
        save_image(shots / f"{name}.png")
    (shots / "x2.png").write_bytes((shots / "x2.png").read_bytes()[:300])
    (shots / "x5.png").symlink_to(outside)
    out = run_well(f"{REPORT} --images {shots}")
    for text in (out, unescape(page(folder))):
        assert "Images are missing for 2 of 7 inputs: 'x6', 'x7'." in text
        assert "2 images cannot be shown: " in text
        assert "'x2' (damaged (" in text
        assert "'x5' (not a file, or a link that leads out of the folder)" in text
    assert {card.split()[-1] for card in show_cards(page(folder))} == {"x1", "x3", "x4"}
    assert str(folder) not in page(folder)


def test_a_missing_folder_is_named_and_not_its_ending(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = "report photos.rankshot-run -o report.html"
    check_refused(tmp_path, words, {}, "photos.rankshot-run: No such file")
