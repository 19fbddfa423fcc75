"""Bad input: a message that names the option and the value, exit status 2, and nothing written."""

import os
import re
import signal

import pytest

from command_line import rankshot
from rankshot.cli import COMMANDS

CLASSIFY = "classify scores.csv --rankings rankings.jsonl -o out.csv"
RECOGNISE = "recognise scores.csv --rankings rankings.jsonl -o out.csv"


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("classify scores.csv -o out.csv", "--head"),
        (f"{RECOGNISE} --seen-loss 2%", "--seen-loss"),
        (f"{RECOGNISE} --seen-loss two", "--seen-loss"),
        (f"{RECOGNISE} --classes old", "--classes"),
        (f"{CLASSIFY} --reject-below 2", "--reject-below"),
        (f"{CLASSIFY} --top 0", "0"),
        (f"{RECOGNISE} --reference usual.txt", "usual.txt"),
        ("classify scores.csv --rankings rankings.jsonl -o scores.csv --overwrite", "--output"),
        ("classify scores.csv --rankings rankings.jsonl -o out.txt", ".txt"),
        ("classify scores.csv --rankings rankings.jsonl -o no/out.csv", "--output"),
        ("classify score.csv --rankings rankings.jsonl -o out.csv", "score.csv"),
        ("recognise scores.csv -o out.csv", "--new"),
        (f"{RECOGNISE} --new cat", "--new"),
        (f"{RECOGNISE} --batch both", "--batch"),
        (f"{RECOGNISE} --sources x", "--source"),
        ("rank --seen scores.csv -o r.jsonl", "--new"),
        ("rank --seen imagenet-1k --new okapi", "--output"),
        ("rank --seen imagenet-1k --new tench -o r.jsonl", "tench"),
        ("rank --seen imagenet-1k --new okapi --source wordnett -o r.jsonl", "wordnett"),
        ("report scores.csv", "--output"),
        ("doctor scores.csv --output s.json", "--rehearse"),
        ("review rankings.jsonl", "rankings.jsonl"),
        ("export rankings.jsonl -o head.rankshot", "rankings.jsonl"),
        ("consensus rankings.jsonl --column who", "--column"),
        ("consensus rankings.jsonl --k 0", "--k"),
        ("consensus truth.csv --column ratr=id", "--column"),
        ("consensus truth.csv --column rater=", "--column"),
        ("leaderboard rankings.jsonl", "--target"),
        ("leaderboard rankings.jsonl --target cat --level 95", "--level"),
        ("leaderbord rankings.jsonl", "leaderboard"),
        ("score photos --model none.onnx -o s.csv", "none.onnx"),
        ("recognise photos --new okapi", "--model"),
        ("recognise scores.csv --new missing.txt", "missing.txt"),
        ("recognise scores.csv --new caat,zzyzx", "'zzyzx'"),
        (f"{RECOGNISE} --classes all --seen-loss 2%", "--batch yes"),
        ("leaderboard scores.csv", "--layout scores"),
        ("report nofolder -o page.html", "nofolder"),
        ("report photos --id x", "photos"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_written(folder, words, named):
    (folder / "photos").mkdir()
    before = sorted((path, path.stat().st_size) for path in folder.rglob("*"))
    done = rankshot(words)
    assert done.status == 2
    assert named in done.err
    assert "Traceback" not in done.err + done.out
    assert sorted((path, path.stat().st_size) for path in folder.rglob("*")) == before


def test_there_are_few_commands_and_options_and_no_help_is_long():
    functions = [function for group in COMMANDS.values() for function in group]
    lines = {one.__name__: rankshot(f"{one.__name__} --help").out.count("\n") for one in functions}
    options = sum(len(one.__kwdefaults__ or {}) for one in functions)
    assert len(functions) <= 11
    assert options <= 120
    assert {name: n for name, n in lines.items() if n > 70} == {}


PIPES = [
    f"{RECOGNISE.replace('scores.csv', 'pipe.csv')}",
    "recognise pipe.parquet --rankings rankings.jsonl",
    "recognise scores.csv --rankings pipe.jsonl",
    "recognise scores.csv --new pipe.txt",
    f"{RECOGNISE} --reference pipe.csv",
    f"{RECOGNISE} --examples pipe.json",
    f"{RECOGNISE} --examples pipe.xml",
    f"{RECOGNISE} --settings pipe.json",
    "score pipe.txt --model efficientnet-lite0 -o s.csv",
    "score photos --model pipe.onnx -o s.csv",
    "score photos --model pipe.skops -o s.csv",
    "score photos --model efficientnet-lite0 --preprocessing pipe.json -o s.csv",
    "rank --seen pipe.txt --new okapi -o r.jsonl",
    "rank --seen imagenet-1k --new pipe.txt -o r.jsonl",
    "rank --source answers:pipe.txt --seen imagenet-1k --new okapi -o r.jsonl",
    "classify scores.csv --head pipe.rankshot -o out.csv",
    "classify pipe.csv --rankings rankings.jsonl -o out.csv",
    "report pipe.csv -o page.html",
    "consensus pipe.csv",
    "leaderboard pipe.json",
]


@pytest.mark.parametrize("words", PIPES)
def test_a_named_pipe_is_refused_and_not_waited_for(folder, words):
    def stop(*_):
        raise AssertionError(words)  # an OSError would be reported as a refusal

    name = re.search(r"pipe\.\w+", words)[0]
    os.mkfifo(folder / name)
    (folder / "photos").mkdir()
    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    try:
        done = rankshot(words)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    assert done.status == 2
    assert name in done.err
