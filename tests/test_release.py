"""What belongs to a release agrees: versions, bounds of dependencies, workflows and hooks."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import rankshot
from markdown_tables import read_rows

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FOR_DEVELOPERS = {"bench", "docs", "hooks", "release", "test", "test-core"}
EXTRAS = {
    name: texts
    for name, texts in PROJECT["optional-dependencies"].items()
    if name not in FOR_DEVELOPERS
}


def read_workflow(path):
    content = yaml.safe_load(path.read_text("utf-8"))
    # YAML 1.1 reads the key "on" as true.
    return content, content[True]


def all_steps(workflow):
    return [step for job in workflow["jobs"].values() for step in job.get("steps", [])]


# ---- Versions


def test_one_version_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    newest = re.search(
        r"^## (\S+) \((\d\S+)\)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE
    )
    assert PROJECT["version"] == rankshot.__version__ == citation["version"] == newest[1]
    assert str(citation["date-released"]) == newest[2]
    assert f"version = {{{rankshot.__version__}}}" in (ROOT / "docs/project/citing.md").read_text(
        "utf-8"
    )


def split_requirement(text):
    """Return the name of a requirement and its lower bound."""
    found = re.fullmatch(r"([\w.-]+)(?:\[\w+\])?>=([\w.]+)(; python_version < .*)?", text)
    assert found, f"{text}: a requirement has a lower bound and nothing else"
    return found[1].lower(), found[2]


def read_requirements(texts):
    """Return the lower bounds of requirements, and the extras of rankshot among them."""
    own = re.findall(r"rankshot\[([\w,]+)\]", " ".join(texts))
    bounds = {split_requirement(text) for text in texts if not text.startswith("rankshot[")}
    return bounds, set(",".join(own).split(",")) - {""}


def test_the_lowest_versions_are_the_bounds():
    """`make test-lowest` tests what pyproject.toml promises to users."""
    lists = [PROJECT["dependencies"], *EXTRAS.values()]
    bounds = {bound for texts in lists for bound in read_requirements(texts)[0]}
    lines = (ROOT / "constraints-lowest.txt").read_text("utf-8").splitlines()
    pinned = [line.split("==") for line in lines if not line.startswith("#")]
    assert bounds == {(name.lower(), version) for name, version in pinned}
    assert len(bounds) == len(pinned) == len({name for name, _ in bounds})


# ---- The page on installing


def find_bounds(text):
    """Return the lower bounds that a text names, and the extras."""
    return set(re.findall(r"([\w-]+) ≥ ([\d.]*\d)", text)), set(re.findall(r"`(\w+)`", text))


def test_the_page_on_installing_has_every_extra_and_the_lowest_versions():
    page = (ROOT / "docs" / "guide" / "install.md").read_text("utf-8")
    rows = {row[0].strip("`"): find_bounds(row[2]) for row in read_rows(page)[2:]}
    assert rows == {name: read_requirements(texts) for name, texts in EXTRAS.items()}
    core = page[page.index("## Lowest versions") : page.index("## From the repository")]
    assert find_bounds(core)[0] == read_requirements(PROJECT["dependencies"])[0]


# ---- Workflows


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_has_few_permissions_no_secret_and_known_targets(path):
    workflow, events = read_workflow(path)
    assert events
    assert workflow["permissions"] == {"contents": "read"}
    assert "secrets." not in path.read_text("utf-8")
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
    for step in all_steps(workflow):
        assert ("run" in step) != ("uses" in step)
        assert set(re.findall(r"\bmake ([a-z-]+)", step.get("run", ""))) <= targets
        if "uses" in step:
            # A major version, or the branch that its authors ask for.
            assert re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v1|[0-9a-f]{40})", step["uses"])
