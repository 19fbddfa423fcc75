"""Check a release: `make dist` builds dist/ and runs this file.

The wheel and the sdist hold the files that git knows, no others, and are small. Then the wheel is
installed into a fresh environment without extras, and into one for each extra alone, with the
versions of constraints.txt. There `import rankshot` and `rankshot --help` work, and so does an
example that needs this extra.

    python scripts/check_dist.py                  # all extras
    python scripts/check_dist.py cli onnx         # these extras
    python scripts/check_dist.py --core           # no extras
"""

import argparse
import doctest
import importlib
import importlib.metadata
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import venv
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
MEGABYTE = 1_000_000
LARGEST = 16 * MEGABYTE
"""Nine of them are the built-in network."""
FOR_DEVELOPERS = {"test", "test-core", "docs", "bench", "release", "hooks"}
WITH_COMMAND = {"cli", "cluster"}
NEEDED = [
    r"rankshot/py\.typed",
    r"rankshot/__init__\.pyi",
    r"rankshot/ranking/__init__\.pyi",
    r"rankshot/pages/templates/.+",
    r"rankshot/review/templates/.+",
    r"rankshot/review/static/.+",
    r"rankshot/web/templates/.+",
    r"rankshot/web/static/.+",
    r"rankshot/datasets/data/.+\.npz",
    r"rankshot/datasets/data/.+\.md",
    r"rankshot/sources/data/wordnet_nouns\.md",
    r"rankshot/recognition/data/efficientnet-lite0\.(onnx|md|LICENSE)",
    r"rankshot-[^/]+\.dist-info/licenses/LICENSE",
]
"""What a wheel must hold: types, templates, data with their provenance, the licence."""
NEVER = re.compile(r"__pycache__|\.pyc$|\.sqlite|\.env$|\.rankshot-run|\.DS_Store|_build/|\.venv")

EXAMPLES = {
    "": "rankshot.ranking.rankings",
    "cli": """
        >>> from pathlib import Path
        >>> from rankshot.cli.consensus import consensus
        >>> _ = Path("votes.jsonl").write_text('{"ranking": ["a", "b"]}\\n' * 3)
        >>> from contextlib import redirect_stdout
        >>> from io import StringIO
        >>> with redirect_stdout(StringIO()):
        ...     consensus(Path("votes.jsonl"), output=Path("merged.jsonl"))
        >>> Path("merged.jsonl").exists()
        True
        >>> import rankshot as rs
        >>> rs.write_rankings(rs.Rankings.from_orders([["a", "b"]]), "votes.jsonl")
        >>> rs.read_rankings("votes.jsonl").items
        ('a', 'b')
        >>> from rankshot.pages import plot_leaderboard
        >>> from rankshot.review.app import create_app
        """,
    "vectors": """
        >>> from rankshot.sources import WordVectors
        >>> table = WordVectors.glove().similarity(["cat"], ["tiger", "bus"])
        >>> bool(table.values[0, 0] > table.values[0, 1])
        True
        """,
    "llm": """
        >>> from rankshot.sources import LanguageModel
        >>> model = LanguageModel("m", "http://127.0.0.1:1/v1", raters=1, k=1, max_retries=0)
        >>> model.rankings(["cat"], ["tiger", "bus"])
        Traceback (most recent call last):
        rankshot.core.errors.RankshotError: target 'cat', rater 'm#1': http://127.0.0.1:1/v1/: ...
        """,
    "onnx": """
        >>> import numpy as np
        >>> import onnxruntime
        >>> import rankshot as rs
        >>> votes = rs.Rankings.from_orders(
        ...     [["leopard", "bus"], ["bus", "leopard"]], targets=["cat", "truck"])
        >>> head = rs.WeightedMean().fit(votes)
        >>> _ = rs.export_onnx(head, "head.onnx")
        >>> session = onnxruntime.InferenceSession("head.onnx")
        >>> scores = np.array([[0.0, 3.0]], dtype=np.float32)
        >>> outputs = session.run(None, {session.get_inputs()[0].name: scores})
        >>> any(np.allclose(output, head.predict_proba(scores)) for output in outputs)
        True
        >>> from PIL import Image
        >>> from rankshot.recognition import score
        >>> Image.new("RGB", (32, 32)).save("black.png")
        >>> len(score("efficientnet-lite0", ["black.png"]).scores.items)
        1000
        """,
    "transformers": """
        >>> from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast
        >>> from rankshot.recognition import score
        >>> config = BertConfig(
        ...     vocab_size=5, hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
        ...     intermediate_size=8, id2label={0: "music", 1: "alarm"})
        >>> BertForSequenceClassification(config).save_pretrained("intents")
        >>> texts = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "play"]
        >>> words = {word: i for i, word in enumerate(texts)}
        >>> _ = BertTokenizerFast(vocab=words).save_pretrained("intents")
        >>> score("intents", ["play", "wake me"]).scores.items
        ('music', 'alarm')
        >>> import skops.io
        >>> from sklearn.feature_extraction.text import CountVectorizer
        >>> from sklearn.naive_bayes import MultinomialNB
        >>> from sklearn.pipeline import make_pipeline
        >>> pipeline = make_pipeline(CountVectorizer(), MultinomialNB())
        >>> skops.io.dump(pipeline.fit(["a song", "it rains"], ["music", "weather"]), "i.skops")
        >>> score("i.skops", ["which song"]).scores.items
        ('music', 'weather')
        """,
    "cluster": "rankshot.jobs",
}
"""For each extra: modules whose doctests need it, or an example where there is no such module."""


def main() -> None:
    """Check what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("extras", nargs="*", help="extras to install; all of them by default")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist")
    parser.add_argument("--core", action="store_true", help="install no extras")
    parser.add_argument("--inside", metavar="EXTRA", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside is not None:
        check_inside(options.inside)
        return
    wheel, sdist = find_archive(options.dist, "*.whl"), find_archive(options.dist, "*.tar.gz")
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", wheel, sdist], check=True)
    check_contents(wheel, sdist)
    extras = read_extras()
    require({"", *extras} == set(EXAMPLES), f"EXAMPLES and pyproject.toml differ: {extras}")
    unknown = set(options.extras) - set(extras)
    require(not unknown, f"there is no extra {unknown}; there are {', '.join(extras)}")
    with tempfile.TemporaryDirectory(prefix="rankshot-dist-") as folder:
        core = Path(folder) / "core"
        check_extra(wheel, "", core)
        check_survey(wheel, find_archive(options.dist / "survey", "*.whl"), core)
        wanted = [] if options.core else options.extras or extras
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda extra: check_extra(wheel, extra, core.with_name(extra)), wanted))


def require(condition: object, message: str) -> None:
    """End with a message unless the condition holds."""
    if not condition:
        raise SystemExit(message)


def find_archive(folder: Path, pattern: str) -> Path:
    """Return the only file of this pattern."""
    found = sorted(folder.glob(pattern))
    require(len(found) == 1, f"{folder} has {len(found)} files {pattern}, not one: run make dist")
    return found[0]


def read_extras() -> list[str]:
    """Return the extras for users."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return [name for name in project["optional-dependencies"] if name not in FOR_DEVELOPERS]


# ---- Contents


def check_contents(wheel: Path, sdist: Path) -> None:
    """Hold the archives to the files that git knows, and to a size."""
    tracked = set(
        subprocess.run(
            ["git", "ls-files"], cwd=ROOT, capture_output=True, check=True, text=True
        ).stdout.splitlines()
    )
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    package = {name for name in names if ".dist-info/" not in name}
    wanted = {name.removeprefix("src/") for name in tracked if name.startswith("src/")}
    require(package == wanted, f"the wheel differs from src/: {sorted(package ^ wanted)}")
    for pattern in NEEDED:
        require(any(re.fullmatch(pattern, name) for name in names), f"the wheel has no {pattern}")
    with tarfile.open(sdist) as archive:
        sources = {m.name.partition("/")[2] for m in archive.getmembers() if m.isfile()}
    foreign = sources - tracked - {"PKG-INFO"}
    require(not foreign, f"the sdist has files that git does not know: {sorted(foreign)}")
    needed = {name for name in tracked if name.startswith("src/")}
    needed |= {"pyproject.toml", "LICENSE", "README.md", "CITATION.cff", "constraints.txt"}
    require(needed <= sources, f"the sdist has no {sorted(needed - sources)}")
    bad = [name for name in names | sources if NEVER.search(name)]
    require(not bad, f"these files do not belong in a release: {bad}")
    for path, found in ((wheel, names), (sdist, sources)):
        size = path.stat().st_size
        print(f"{path.name}: {len(found)} files, {size / MEGABYTE:.2f} MB")
        require(size < LARGEST, f"{path.name} has more than {LARGEST / MEGABYTE:.0f} MB")


# ---- Extras


def check_extra(wheel: Path, extra: str, folder: Path) -> None:
    """Install the wheel with one extra into a fresh environment, and try it there."""
    begin = time.monotonic()
    venv.create(folder, with_pip=not extra)
    if extra:
        # What the core needs was installed once. Links take no time.
        copy_packages(folder.with_name("core"), folder)
    python = folder / "bin" / "python"
    what = f"{wheel}[{extra}]" if extra else str(wheel)
    options = ["--quiet", "--no-compile", "--disable-pip-version-check"]
    constraints = ["--constraint", str(ROOT / "constraints.txt")]
    # Nothing of this environment or of the source may take the place of what is missing.
    alone = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    subprocess.run([python, "-m", "pip", "install", *options, *constraints, what], check=True)
    command = [folder / "bin" / "rankshot", "--help"]
    result = subprocess.run(
        command, cwd=folder, env=alone, capture_output=True, text=True, check=False
    )
    check_help(extra, result)
    inside = [python, "-I", Path(__file__).resolve(), "--inside", extra]
    result = subprocess.run(inside, cwd=folder, env=alone, check=False)
    require(result.returncode == 0, f"the extra {extra or '(none)'} alone does not work")
    if extra:
        shutil.rmtree(folder)
    print(f"  {extra or '(no extra)'}: works alone ({time.monotonic() - begin:.0f} s)", flush=True)


def check_survey(wheel: Path, survey: Path, core: Path) -> None:
    """Install the survey beside the core into a fresh environment, and make a study there."""
    folder = core.with_name("survey")
    venv.create(folder, with_pip=False)
    copy_packages(core, folder)
    constraints = ["--constraint", str(ROOT / "constraints.txt")]
    alone = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    install = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-compile"]
    subprocess.run([*install, *constraints, wheel, survey], check=True)
    (folder / "items.txt").write_text("tea\ncoffee\n")
    words = ["new", "study.toml", "--items", "items.txt", "--prompt", "Best?"]
    command = [folder / "bin" / "rankshot-survey", *words]
    subprocess.run(command, cwd=folder, env=alone, check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(folder)
    print("  rankshot-survey: works alone", flush=True)


def copy_packages(source: Path, target: Path) -> None:
    """Link the packages of one environment into another one, except rankshot."""
    packages = next(source.glob("lib/python*/site-packages"))
    shutil.copytree(
        packages,
        target / packages.relative_to(source),
        copy_function=os.link,
        ignore=shutil.ignore_patterns("rankshot*"),
        dirs_exist_ok=True,
    )


def check_help(extra: str, result: "subprocess.CompletedProcess[str]") -> None:
    """Hold `rankshot --help` to a help, or to a sentence that says what to install."""
    if extra in WITH_COMMAND:
        works = result.returncode == 0 and "Usage: rankshot" in result.stdout
    else:
        works = result.returncode == 1 and "pip install 'rankshot[cli]'" in result.stderr
    require(works, f"rankshot --help with the extra {extra or '(none)'} said {result}")


def check_inside(extra: str) -> None:
    """Import rankshot, run the extra's example, and look for packages that it did not bring."""
    rankshot = importlib.import_module("rankshot")
    require("site-packages" in rankshot.__file__, f"rankshot comes from {rankshot.__file__}")
    require(
        rankshot.__version__ == importlib.metadata.version("rankshot"),
        f"rankshot.__version__ is {rankshot.__version__}, the wheel says otherwise",
    )
    brought = find_requirements("rankshot", extra)
    installed = {normalize(d.metadata["Name"]) for d in importlib.metadata.distributions()}
    foreign = installed - brought - {"pip", "setuptools"}
    require(not foreign, f"rankshot[{extra}] does not bring {sorted(foreign)}")
    n_tried = run_example(EXAMPLES[extra])
    require(n_tried > 0, f"the example of {extra} is empty")


def run_example(example: str) -> int:
    """Run an example, or the doctests of modules; return the number of lines."""
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    runner = doctest.DocTestRunner(optionflags=flags)
    if ">>>" in example:
        runner.run(doctest.DocTestParser().get_doctest(example, {}, "example", None, 0))
    else:
        finder = doctest.DocTestFinder(exclude_empty=True)
        for name in example.split():
            for module in find_modules(name):
                for test in finder.find(module):
                    runner.run(test)
    require(runner.failures == 0, f"{runner.failures} lines of the example failed")
    return runner.tries


def find_modules(name: str) -> list[object]:
    """Return a module, with the modules in it if it is a package."""
    module = importlib.import_module(name)
    inside = pkgutil.iter_modules(getattr(module, "__path__", []), f"{name}.")
    return [module, *(importlib.import_module(info.name) for info in inside)]


def find_requirements(name: str, extra: str) -> set[str]:
    """Return a distribution, and all that it requires with this extra."""
    # pip is in each environment; packaging may not be.
    requirements = importlib.import_module("pip._vendor.packaging.requirements")
    found: set[str] = set()
    seen: set[tuple[str, str]] = set()
    todo = [(normalize(name), extra)]
    while todo:
        name, extra = todo.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        found.add(name)
        for line in importlib.metadata.requires(name) or []:
            requirement = requirements.Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                wanted = normalize(requirement.name)
                todo += [(wanted, more) for more in ("", *requirement.extras)]
    return found


def normalize(name: str) -> str:
    """Return the name of a distribution in its normal form."""
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    main()
