"""``rankshot consensus``, ``explain`` and ``report``: what a person reads of rankings and a run."""

import io
import json
import re
from html import unescape

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

import rankshot as rs
from command_line import (
    IDS,
    LOGITS,
    SEEN,
    TARGETS,
    TRUTH,
    pairs_of,
    rankings,
    rankshot,
    run_well,
    write_scores,
    write_small_run,
)
from rankshot.cli.console import format_order
from rankshot.cli.demo import comparison_table
from rankshot.datasets import load_imagenet
from rankshot.report.contents import MethodComparison, MethodRow
from rankshot.zeroshot.files.predictions import read_predictions
from rankshot.zeroshot.metrics import Interval, format_share


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_small_run(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def table_rows(text):
    """Return the cells of a printed table, rows of several lines joined, by the first cell."""
    rows = {}
    name = None
    for line in text.splitlines():
        if line.startswith("│"):
            cells = [cell.strip() for cell in line.split("│")[1:-1]]
            name = cells[0] or name
            old = rows.get(name, [""] * len(cells))
            rows[name] = [" ".join(both).strip() for both in zip(old, cells, strict=True)]
    return rows


# -------------------------------------------------------------------- consensus


@pytest.mark.parametrize("prior", ["plackett-luce", "mallows"])
@pytest.mark.parametrize("k", [None, 1, 2])
def test_consensus_has_the_numbers_of_summarize(folder, prior, k):
    model = {"plackett-luce": rs.PlackettLuce(), "mallows": rs.Mallows()}[prior]
    out = run_well(f"consensus rankings.jsonl --prior {prior}" + (f" --k {k}" if k else ""))
    rows = table_rows(out)
    assert list(rows) == TARGETS
    for brief in rs.summarize(rankings(), model, k):
        cells = rows[brief.target]
        assert cells[1] == str(brief.n_rankings)
        order = re.sub(r" [\d.e-]+(?= >|$)", "", cells[2])
        assert order == " > ".join(
            " = ".join(tie) if isinstance(tie, tuple) else tie for tie in brief.order
        )
        assert cells[-3] == f"{brief.concordance:.2f}"
        assert cells[-2] == f"{brief.mean_distance:.2f}"
        furthest = [f"{name} {far:.2f}" for name, far in brief.disagreement[:3] if far > 0.005]
        assert cells[-1] == (" ".join(furthest) or "-")
        if prior == "mallows":
            assert cells[3] == f"{brief.model.spread_:.3g}"
        else:
            first = brief.model.items_.index(re.split(" [>=] ", order)[0])
            worth = re.findall(r" ([\d.e-]+)(?= >|$)", cells[2])[0]
            assert worth == f"{brief.model.worths_[first]:.2g}"
    assert f"over the first {brief.k} places, divided by the largest" in out


def test_consensus_is_written_and_read_back(folder):
    out = run_well("consensus rankings.jsonl -o merged.jsonl")
    assert "3 consensus rankings written to merged.jsonl" in out
    merged = rs.read_rankings("merged.jsonl", items=SEEN)
    assert merged.target_names == tuple(TARGETS)
    assert merged.source_names == ("consensus",)
    for brief in rs.summarize(rankings()):
        (order,) = merged.select(target=brief.target).orders()
        assert tuple(tuple(x) if isinstance(x, list) else x for x in order) == brief.order


def test_a_consensus_that_cuts_a_tie_stays_cut(folder):
    """Eight raters, and each names another second item: one of them is second."""
    (folder / "rankings.jsonl").write_text(
        "".join(f'{{"ranking": ["a", "{item}"], "rater": "x"}}\n' for item in "bcdefghi")
    )
    (folder / "seen.txt").write_text("\n".join("abcdefghij"))
    out = run_well("consensus rankings.jsonl --seen seen.txt --k 4 -o merged.jsonl")
    merged = rs.read_rankings("merged.jsonl", items=list("abcdefghij"))
    assert merged.lengths.tolist() == [2]
    assert merged.orders() == [["a", list("bcdefghi")]]
    (cells,) = table_rows(out).values()
    assert cells[0] == "8"
    assert "b = c = d = e = f = g = h = i 0" in cells[1]
    assert "new class" not in out
    assert "seen class" not in out


def test_a_consensus_shows_ten_items_and_says_how_many_follow(folder):
    items = [f"i{n:02d}" for n in range(14)]
    ballot = json.dumps({"target": "dinner", "ranking": items, "rater": "x"}) + "\n"
    (folder / "rankings.jsonl").write_text(2 * ballot)
    long = run_well("consensus rankings.jsonl --k 14 --prior mallows")
    assert table_rows(long)["dinner"][2] == " > ".join([*items[:10], "… and 4 more"])
    assert "Only the first" not in long
    assert "new class" not in long
    assert "seen class" not in long
    short = run_well("consensus rankings.jsonl --prior mallows")
    assert table_rows(short)["dinner"][2] == " > ".join(items[:10])
    assert "Only the first 10 places of each ranking count" in short
    assert "there are 14 items. --k sets the number" in short


def test_a_long_tie_is_cut_after_ten_items():
    assert format_order(["a", list("bcdefghijkl"), "m"]) == (
        "a > b = c = d = e = f = g = h = i = j = 2 more > … and 1 more"
    )


@pytest.mark.parametrize("prior", ["plackett-luce", "mallows"])
@pytest.mark.parametrize("k", [None, 1, 2, 3, 99])
def test_the_consensus_that_is_shown_is_the_one_that_heads_use(folder, rng, prior, k):
    """Long lists that agree in their first places alone: only the first k of each are merged."""
    orders = [["a", "b", "c", *rng.permutation(list("defghijklmnopqr"))] for _ in range(3)]
    orders += [[["a", "b"], ["c", "r", "q"], *"dhe"], [*"lkjih"]]
    given = rs.Rankings.from_orders(
        orders, items=list("abcdefghijklmnopqr"), targets=["u", "u", "u", "u", "v"]
    )
    rs.write_rankings(given, folder / "rankings.jsonl")
    (folder / "seen.txt").write_text("\n".join(given.items))
    option = "" if k is None else f" --k {k}"
    words = f"consensus rankings.jsonl --seen seen.txt --prior {prior} -o merged.jsonl{option}"
    run_well(words)
    merged = rs.read_rankings("merged.jsonl", items=given.items)
    options = {"prior": rs.Mallows() if prior == "mallows" else None}
    options |= {} if k is None else {"k": k}
    heads = (
        rs.ProbabilisticRanking(posterior="consensus", **options),
        rs.DeterministicRanking(**options),
    )
    for head in heads:
        consensus = head.fit(given).consensus_
        assert merged.orders() == consensus.orders()
        assert merged.lengths.tolist() == consensus.lengths.tolist()
        first = given.select(target="u").top(min(k or 10, given.n_items))
        mode = (options["prior"] or rs.PlackettLuce()).fit(first).mode_
        expected = rs.Rankings.from_orders([mode], items=given.items).top(first.lengths.max())
        assert consensus.select(target="u").orders() == expected.orders()


def test_a_subset_ranking_stays_one_in_the_consensus(folder):
    given = rs.Rankings.from_orders([list("dcba")], items=list("abcde"), targets="u", kind="subset")
    rs.write_rankings(given, folder / "rankings.jsonl")
    (folder / "seen.txt").write_text("\n".join(given.items))
    out = run_well("consensus rankings.jsonl --seen seen.txt --k 2 -o merged.jsonl")
    merged = rs.read_rankings("merged.jsonl", items=given.items)
    assert merged.is_subset.all()
    head = rs.ProbabilisticRanking(k=2, posterior="consensus").fit(given)
    assert merged.orders() == head.consensus_.orders() == [["d", "c", ["a", "b"]]]
    assert re.sub(r" [\d.e-]+", "", table_rows(out)["u"][2]) == "d > c"


def test_consensus_fits_into_80_columns_and_cuts_no_name(folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    name = "a_name_that_is_far_too_long_for_any_column_of_this_table"
    lines = [{"target": name, "ranking": [name, "fox"], "rater": who} for who in (name, "bob")]
    lines[1]["ranking"] = ["fox", name]
    (folder / "rankings.jsonl").write_text("\n".join(map(json.dumps, lines)))
    for prior in ("plackett-luce", "mallows"):
        out = run_well(f"consensus rankings.jsonl --prior {prior}")
        table = [line for line in out.splitlines() if line[:1] in "┏┃┡│└"]
        assert {len(line) for line in table} == {80}
        assert "…" not in out


def test_consensus_of_a_preflib_file(folder):
    (folder / "votes.soc").write_text(
        "# NUMBER ALTERNATIVES: 2\n# ALTERNATIVE NAME 1: fox\n# ALTERNATIVE NAME 2: bus\n"
        "3: 1,2\n1: 2,1\n"
    )
    (cells,) = table_rows(run_well("consensus votes.soc --prior mallows")).values()
    assert cells[1] == "fox > bus"


def test_consensus_names_the_command_for_tables_of_votes(folder):
    (folder / "votes.csv").write_text("winner,loser\nfox,bus\n")
    assert "use rankshot leaderboard" in rankshot("consensus votes.csv").err


# -------------------------------------------------------------------- explain


@pytest.mark.parametrize(
    ("options", "how"),
    [("", {}), ("--new-class dog", {"target": "dog"}), ("--against truck", {"against": "truck"})],
)
def test_explain_says_what_python_says(folder, options, how):
    out = run_well(f"explain scores.csv --rankings rankings.jsonl --id x5 --id x2 {options}")
    head = rs.WeightedMean().fit(rankings())
    notes = (
        "rankings.jsonl: the source 'web' has no ranking of 'dog', 'truck': there the other "
        "sources decide\n"
        "scores.csv: the scores are taken as logits (see --score-type)\n"
    )
    assert out == notes + "".join(
        f"{IDS[row]}: {rs.explain(head, LOGITS[[row]], **how)[0]}\n\n" for row in (1, 4)
    )


def test_explain_by_default_the_first_three(folder):
    out = run_well("explain scores.npz --rankings rankings.jsonl --score-type logits")
    assert re.findall(r"^(\w+): ", out, re.MULTILINE) == ["x1", "x2", "x3"]


def test_explain_by_row_number(folder, monkeypatch):
    monkeypatch.setattr("rankshot.zeroshot.files.score_tables.BATCH_CELLS", 10)
    write_scores(folder / "scores.parquet", LOGITS, ids=[])
    words = "--rankings rankings.jsonl --score-type logits"
    by_row = run_well(f"explain scores.parquet --id 4 {words}")
    by_id = run_well(f"explain scores.csv --id x5 {words}")
    assert by_row == by_id.replace("x5: ", "4: ")


def test_of_inputs_with_one_id_the_first_is_explained(folder):
    write_scores(folder / "scores.csv", LOGITS, ids=["x1", "x2", "x2", "x2", "x5", "x6", "x7"])
    out = run_well("explain scores.csv --rankings rankings.jsonl --id x2")
    assert re.findall(r"^x2: (\w+)", out, re.MULTILINE) == ["dog"]


@pytest.mark.parametrize("head", ["direct", "conse"])
def test_explain_heads_that_read_similarities(folder, head):
    out = run_well(f"explain scores.csv --head {head} --similarity similarity.csv --id x1")
    table = rs.read_similarity("similarity.csv").select(TARGETS, SEEN)
    model = {"direct": rs.DirectSimilarity, "conse": rs.ConSE}[head]().fit(table)
    assert str(rs.explain(model, LOGITS[[0]])[0]) in out


def test_explain_pairs_and_probabilities(folder):
    out = run_well("explain pairs.npz --rankings rankings.jsonl --id x3")
    head = rs.WeightedMean().fit(rankings())
    assert str(rs.explain(head, rs.Scores(pairs_of(LOGITS), SEEN, "one-vs-one"))[2]) in out
    out = run_well("explain probabilities.csv --rankings rankings.jsonl --id x3")
    assert "the scores are taken as probabilities" in out
    assert str(rs.explain(head, LOGITS[[2]])[0]) in out


@pytest.mark.parametrize(
    ("options", "head"),
    [
        ("--k 2 --decay 0 --temperature 2", rs.WeightedMean(k=2, decay=0, temperature=2)),
        ("--head probabilistic --k 2 --decay 0", rs.ProbabilisticRanking(k=2, decay=0)),
        (
            "--head probabilistic --posterior consensus --prior mallows",
            rs.ProbabilisticRanking(posterior="consensus", prior=rs.Mallows()),
        ),
    ],
)
def test_explain_by_the_options_of_classify(folder, options, head):
    out = run_well(f"explain scores.csv --rankings rankings.jsonl --id x3 {options}")
    assert str(rs.explain(head.fit(rankings()), LOGITS[[2]])[0]) in out


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
    return re.findall(r"<h2[^>]*>(.*?)</h2>", text)


RESULTS = ["Accuracy", "Confusions", "Classes"]


@pytest.mark.parametrize(
    ("options", "sections"),
    [
        ("", [*RESULTS, "Calibration", "Settings"]),
        (
            "--rankings rankings.jsonl",
            [*RESULTS, "Calibration", "Consensus", "Sources", "Map", "Settings"],
        ),
        (
            "--rankings rankings.jsonl --scores scores.csv",
            [*RESULTS, "Explanations", "Calibration", "Consensus", "Sources", "Map", "Settings"],
        ),
    ],
)
def test_report_has_the_sections_it_should(folder, predicted, options, sections):
    out = run_well(f"{REPORT} {options}")
    right = np.mean(predicted.labels == TRUTH)
    assert 0 < right < 1
    assert f"{right:.1%} of 7 inputs right; report written to out.html" in out
    text = page(folder)
    assert headings(text) == sections
    assert f"{right:.3f}".removeprefix("0") in text
    assert "<script" not in text
    assert not re.search(r"""(src|href)=["'](?!#|data:image/png)""", text)


def test_truth_is_found_by_id_or_by_row(folder, predicted):
    run_well(REPORT)
    by_id = page(folder)
    lines = (folder / "truth.csv").read_text().splitlines()
    (folder / "truth.csv").write_text("\n".join([lines[0], "x0,bird", *lines[:0:-1]]))
    run_well(REPORT)
    assert page(folder) == by_id
    (folder / "truth.csv").write_text("\n".join(["label", *TRUTH]))
    run_well(REPORT)
    assert page(folder) == by_id


def test_report_of_rejected_inputs(folder):
    """The only dog that is not taken for one is rejected: it is no example of a wrong class."""
    truth = [*TRUTH[:5], "truck", "dog"]
    (folder / "truth.csv").write_text("\n".join(["label", *truth]))
    classify = "classify scores.csv --rankings rankings.jsonl -o predictions.parquet"
    run_well(f"{classify} --reject-below .62")
    given = read_predictions("predictions.parquet").labels
    rejected = [name for name, label in zip(IDS, given, strict=True) if label == "rejected"]
    kept = set(IDS) - set(rejected)
    out = run_well(f"{REPORT} --rankings rankings.jsonl --scores scores.csv")
    assert f"{np.mean(given == truth):.1%} of 7 inputs right" in out
    text = page(folder)
    assert headings(text)[-1] == "Notes"
    assert "A rejected input counts as wrong" in text
    assert re.search(rf"rejected</dt>\s*<dd>{len(rejected)}<", text)
    explained = {name for name, _, _ in examples(text)}
    assert "x7" in rejected
    assert explained
    assert explained <= kept


def test_examples_are_right_and_wrong_ones(folder, predicted):
    run_well(f"{REPORT} --rankings rankings.jsonl --scores scores.csv")
    truth = dict(zip(IDS, TRUTH, strict=True))
    given = dict(zip(predicted.ids, predicted.labels, strict=True))
    found = examples(page(folder))
    assert {verdict for _, _, verdict in found} == {"right", "wrong"}
    for name, label, verdict in found:
        assert label == given[name]
        assert verdict == ("right" if label == truth[name] else "wrong")


@pytest.mark.parametrize(
    ("scores", "options"),
    [
        ("pairs.npz", "--decay 2 --temperature 3"),
        ("probabilities.csv", "--head probabilistic --k 2 --posterior consensus --prior mallows"),
        ("scores.parquet", "--head probabilistic --posterior sum"),
    ],
)
def test_examples_of_all_kinds_of_scores(folder, scores, options):
    run_well(f"classify {scores} --rankings rankings.jsonl -o predictions.parquet {options}")
    out = run_well(f"{REPORT} --rankings rankings.jsonl --scores {scores} {options}")
    assert f"{scores}: the scores are taken as" in out
    assert headings(page(folder))[3] == "Explanations"


def test_a_report_without_truth_tells_what_was_predicted(folder, predicted):
    words = REPORT.replace("--truth truth.csv", "--rankings rankings.jsonl --scores scores.csv")
    out = run_well(words)
    assert "7 predictions without true classes; report written to out.html" in out
    text = page(folder)
    assert headings(text) == [
        *("Predictions", "Explanations", "Consensus", "Sources", "Map", "Settings")
    ]
    plain = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", text))
    assert "✓" not in plain
    assert "This page shows what a zero-shot classifier predicted" in plain
    for name in TARGETS:
        count = int((predicted.labels == name).sum())
        assert re.search(rf" {name} {count} ", plain), name


@pytest.mark.parametrize("k", [1, 2])
def test_the_consensus_is_that_of_the_places_that_count(folder, predicted, k):
    """`classify --k 2` uses two places of each ranking, and so does the consensus on the page."""
    run_well(f"{REPORT} --rankings rankings.jsonl --k {k}")
    head = rs.ProbabilisticRanking(k=k, posterior="consensus").fit(rankings().top(k))
    cards = page(folder).partition('id="consensus"')[2].partition("</section>")[0]
    for card in cards.split("<article")[1:]:
        target = re.search(r"<h3>.*?>(\w+)<", card).group(1)
        places = re.findall(r'<li value="\d+">(.*?)</li>', card)
        found = [re.findall(r'class="name"[^>]*>(.*?)</span>', place) for place in places]
        order = head.consensus_.select(target=target).orders()[0]
        assert found == [place if isinstance(place, list) else [place] for place in order]


def test_a_source_with_subset_rankings_is_in_the_bars_and_the_table(folder, predicted):
    """It was left out without a word."""
    lines = (folder / "rankings.jsonl").read_text().splitlines()
    lines += [
        json.dumps(
            {"target": t, "ranking": SEEN[:3], "kind": "subset", "source": "half a dictionary"}
        )
        for t in TARGETS
    ]
    (folder / "rankings.jsonl").write_text("\n".join(lines))
    run_well(f"{REPORT} --rankings rankings.jsonl")
    parts = dict(re.findall(r'<section id="(\w+)"(.*?)</section>', page(folder), re.DOTALL))
    assert parts["consensus"].count(">half a dictionary<") == len(TARGETS)
    assert f"half a dictionary knows only 3 of the {len(SEEN)} seen classes." in parts["sources"]


def save_picture(path, side=200):
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(side).normal(128, 40, size=(side // 4, side // 4, 3))
    small = Image.fromarray(noise.clip(0, 255).astype(np.uint8))
    small.resize((side, side), Image.Resampling.BICUBIC).save(path)


def show_cards(text):
    """Return the texts of the cards of the gallery."""
    part = text.partition('<section id="pictures"')[2].partition("</section>")[0]
    cards = re.findall(r'<li class="shot">(.*?)</li>', part, re.DOTALL)
    return [re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", card)).strip() for card in cards]


def test_report_shows_the_pictures_of_its_inputs(folder, predicted):
    for name in IDS:
        save_picture(folder / "shots" / f"{name}.jpg")
    out = run_well(f"{REPORT} --rankings rankings.jsonl --scores scores.csv --images shots")
    assert "shots" not in out
    text = page(folder)
    assert headings(text)[:2] == ["Accuracy", "Pictures"]
    cards = show_cards(text)
    whys = rs.explain(rs.WeightedMean().fit(rankings()), LOGITS)
    assert sorted(card.split()[-1] for card in cards) == IDS
    for card in cards:
        row = IDS.index(card.split()[-1])
        label = predicted.labels[row]
        assert card.startswith(f"{label} {100 * predicted.proba[row].max():.1f}% ")
        assert ("✓ right" in card) == (label == TRUTH[row])
        assert (f"✗ wrong true: {TRUTH[row]}" in card) == (label != TRUTH[row])
        why = whys[row]
        own = sorted((c for c in why.items if c[0] in why.listed and c[1] > 0), key=lambda c: -c[1])
        assert (" , ".join(name for name, _ in own[:3]) or label) in card
    explained = text.partition('<section id="explanations"')[2].partition("</section>")[0]
    assert explained.count("<img") == explained.count("<h3>") > 0
    # The page is made to be given away.
    assert str(folder) not in text
    assert re.search(r"images</dt>\s*<dd>shots<", text)


def test_pictures_need_no_truth_and_no_scores(folder, predicted):
    save_picture(folder / "x3.png")
    out = run_well("report predictions.parquet -o out.html --images .")
    assert ".: There is no picture for 6 of 7 ids: 'x1', 'x2', 'x4' and 3 more." in out
    (card,) = show_cards(page(folder))
    assert re.fullmatch(r"truck [\d.]+% x3", card)
    assert "There is no picture for 6 of 7 ids" in page(folder)
    assert "1 of 7 inputs are shown, 14.3% (of 1 that could be shown)" in page(folder)


def test_pictures_that_cannot_be_shown_are_named(folder, predicted):
    outside = folder / "outside.png"
    save_picture(outside)
    shots = folder / "shots"
    for name in IDS[:4]:
        save_picture(shots / f"{name}.png")
    (shots / "x2.png").write_bytes((shots / "x2.png").read_bytes()[:300])
    (shots / "x5.png").symlink_to(outside)
    out = run_well(f"{REPORT} --images {shots}")
    for text in (out, unescape(page(folder))):
        assert "There is no picture for 2 of 7 ids: 'x6', 'x7'." in text
        assert "2 pictures cannot be shown: " in text
        assert "'x2' (damaged, or not a JPEG, PNG, GIF or WebP picture)" in text
        assert "'x5' (not a file, or a link that leads out of the folder)" in text
    assert {card.split()[-1] for card in show_cards(page(folder))} == {"x1", "x3", "x4"}
    assert str(folder) not in page(folder)


def test_a_report_without_a_readable_picture_has_no_gallery(folder, predicted):
    (folder / "x1.png").write_bytes(b"no picture")
    out = run_well(f"{REPORT} --images .")
    assert "1 picture cannot be shown: 'x1' (damaged" in out
    assert "Pictures" not in headings(page(folder))


def test_a_folder_without_any_picture_of_the_inputs_is_refused(folder, predicted):
    save_picture(folder / "shots" / "other.png")
    done = rankshot(f"{REPORT} --images shots")
    assert done.status == 2
    assert "shots: there is no picture of any input; ids must be paths below this" in done.err
    assert "but the first are 'x1', 'x2', 'x3'" in done.err
    done = rankshot(f"{REPORT} --images nowhere")
    assert "nowhere: there is no such folder" in done.err
    assert not (folder / "out.html").exists()


def test_rejected_inputs_have_no_picture_and_equal_ids_have_one(folder):
    ids = ["x1", "x1", "x3", "x4", "x5", "x6", "x7"]
    write_scores(folder / "scores.csv", LOGITS, ids=ids)
    classify = "classify scores.csv --rankings rankings.jsonl -o predictions.parquet"
    run_well(f"{classify} --reject-below .62")
    (folder / "truth.csv").write_text("\n".join(["label", *TRUTH]))
    given = read_predictions("predictions.parquet").labels
    for name in set(ids):
        save_picture(folder / f"{name}.gif")
    run_well(f"{REPORT} --rankings rankings.jsonl --scores scores.csv --images .")
    kept = sorted({name for name, label in zip(ids, given, strict=True) if label != "rejected"})
    assert given[0] != "rejected" in given
    assert sorted(card.split()[-1] for card in show_cards(page(folder))) == kept


def test_only_the_pictures_shown_are_opened_and_the_page_stays_small(folder, monkeypatch):
    n = 300
    rng = np.random.default_rng(3)
    ids = [f"part {i % 4}/IMG {i}" for i in range(n)]
    write_scores(
        folder / "scores.csv", LOGITS[rng.integers(0, 7, n)] + rng.normal(size=(n, 5)), ids=ids
    )
    (folder / "truth.csv").write_text("\n".join(["label", *rng.choice(TARGETS, n)]))
    for name in ids:
        save_picture(folder / "shots" / f"{name}.jpg", 400)
    run_well("classify scores.csv --rankings rankings.jsonl -o predictions.parquet")
    run_well(f"{REPORT} --rankings rankings.jsonl --scores scores.csv")
    without = len(page(folder))
    opened = []
    really_open = Image.open
    monkeypatch.setattr(
        Image, "open", lambda file, **how: opened.append(file) or really_open(file, **how)
    )
    run_well(f"{REPORT} --rankings rankings.jsonl --scores scores.csv --images shots")
    assert len(opened) == len(set(opened)) == len(show_cards(page(folder))) == 60
    assert len(page(folder)) < 600_000
    assert 60 * 1000 < len(page(folder)) - without < 400_000


def test_a_report_of_a_thousand_seen_classes_is_small(folder):
    data = load_imagenet()
    head = rs.WeightedMean().fit(data.rankings)
    ids = [f"picture {i}" for i in range(len(data.labels))]
    np.savez("large.npz", scores=data.scores.values, classes=data.scores.items, id=ids)
    rs.write_rankings(data.rankings, "large.jsonl")
    pairs = "\n".join(f"{i},{label}" for i, label in zip(ids, data.labels, strict=True))
    (folder / "large.csv").write_text(f"id,label\n{pairs}\n")
    run_well("classify large.npz --rankings large.jsonl -o predictions.parquet")
    run_well(
        "report predictions.parquet --truth large.csv --rankings large.jsonl --scores large.npz "
        "-o out.html"
    )
    text = page(folder)
    assert len(text) < 1_000_000
    right = rs.zeroshot.metrics.mean_class_accuracy(data.labels, head.predict(data.scores))
    assert re.search(rf"Mean class accuracy</dt><dd>{format_share(right)} ", text)
    assert "Top-5 accuracy" in text


def test_report_of_hostile_names(folder):
    """Names and titles are text, whatever is in them."""
    evil = "<script>alert(1)</script>&\"'{{ 7 * 7 }}\n"
    lines = [
        {"target": evil, "ranking": [evil, "fox"], "rater": evil},
        {"target": evil, "ranking": ["fox", evil], "rater": "bob"},
        {"target": "cat", "ranking": ["tiger", "fox"], "rater": "bob"},
    ]
    (folder / "rankings.jsonl").write_text("\n".join(map(json.dumps, lines)))
    ids = [evil, *IDS[1:]]
    write_scores(folder / "scores.npz", LOGITS, [evil, *SEEN[1:]], ids)
    run_well("classify scores.npz --rankings rankings.jsonl -o predictions.parquet")
    (folder / "truth.csv").write_text("\n".join(["label", *["cat"] * 7]))
    words = [*REPORT.split(), "--rankings", "rankings.jsonl", "--scores", "scores.npz"]
    run_well([*words, "--title", evil])
    text = page(folder)
    assert "<script" not in text
    assert "49" not in re.search(r"<h1>(.*?)</h1>", text, re.DOTALL).group(1)
    assert unescape(re.search(r"<h1>(.*?)</h1>", text, re.DOTALL).group(1)) == evil


def test_the_table_of_the_demo_fits_into_80_columns(folder):
    best, other = Interval(0.5, 0.4, 0.6), Interval(0.25, 0.2, 0.3)
    rows = (
        MethodRow("Direct Similarity", "WordNet", (other, None, other)),
        MethodRow("Probabilistic Ranking", "all three, mean of rankings", (other, best, other)),
    )
    comparison = MethodComparison(("one-vs-rest", "one-vs-one", "multiclass"), rows)
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(comparison_table(comparison, 4000))
    text = console.export_text()
    cells = table_rows(text)
    assert cells["WordNet"][1:] == [".250 ± .050", "n/a", ".250 ± .050"]
    assert cells["all three, mean of rankings"][1:] == [".250 ± .050", ".500 ± .100", ".250 ± .050"]
    assert "…" not in text


def test_a_report_that_fails_leaves_the_old_one(folder, predicted):
    run_well(REPORT)
    before = page(folder)
    (folder / "truth.csv").write_text("id,label\nx1,bird\n")
    assert rankshot(REPORT).status == 2
    assert page(folder) == before


def test_settings_of_the_head_are_shown_only_where_the_head_is_known(folder):
    """Without scores, the predictions may be those of any head."""
    run_well("classify scores.csv --rankings rankings.jsonl --decay 2 -o predictions.csv")
    words = "report predictions.csv --rankings rankings.jsonl -o out.html --decay 2"
    run_well(words)
    assert "<dt>--k</dt>" in page(folder)
    assert "<dt>--head</dt>" not in page(folder)
    run_well(f"{words} --scores scores.csv")
    text = page(folder)
    assert "<dt>--head</dt><dd>weighted-mean</dd>" in text
    assert "<dt>--posterior</dt>" not in text
    assert "<dt>--decay</dt><dd>2</dd>" in text
    options = "--head probabilistic --decay 2"
    run_well(f"classify scores.csv --rankings rankings.jsonl -o predictions.csv {options}")
    run_well(f"{words} --scores scores.csv --head probabilistic")
    assert "<dt>--posterior</dt><dd>mean</dd>" in page(folder)


def test_consensus_names_groups_of_raters(tmp_path):
    items = ["bus", "fox", "leopard", "tiger", "tram"]
    orders = [items] * 8 + [items[::-1]] * 6 + [items] * 14
    rs.write_rankings(
        rs.Rankings.from_orders(
            orders,
            targets=["cat"] * 14 + ["dog"] * 14,
            raters=[f"p{i}" for i in range(14)] * 2,
        ),
        tmp_path / "votes.jsonl",
    )
    text = run_well(f"consensus {tmp_path}/votes.jsonl --k 3")
    assert (
        "The raters of cat fall into 2 groups. 8 raters: bus > fox > leopard. "
        "6 raters: tram > tiger > leopard" in text
    )
    assert "raters of dog" not in text
