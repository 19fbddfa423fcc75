"""The house of the survey: what it imports of rankshot, and that rankshot does not import it."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import rankshot
import rankshot_survey

OWN = Path(rankshot_survey.__file__).parent
ROOMS = {"ranking", "leaderboards", "pages", "web", "core"}


def find_imports(path):
    """Return the modules that a file imports, at its top or inside a function."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_the_survey_imports_only_five_rooms():
    rooms = {
        name.split(".")[1]
        for path in OWN.rglob("*.py")
        for name in find_imports(path)
        if name.startswith("rankshot.")
    }
    assert rooms <= ROOMS


def test_nothing_in_rankshot_imports_the_survey():
    for path in Path(rankshot.__file__).parent.rglob("*.py"):
        assert "rankshot_survey" not in path.read_text(encoding="utf-8"), path


def test_both_distributions_have_one_version():
    root = Path(__file__).parents[2]
    read = lambda path: tomllib.loads(path.read_text())["project"]["version"]  # noqa: E731
    assert read(root / "pyproject.toml") == read(root / "survey" / "pyproject.toml")


def test_help_loads_nothing_heavy():
    code = (
        "import atexit, sys; from rankshot_survey.cli import main; "
        "atexit.register(lambda: print(*{name.split('.')[0] for name in sys.modules})); main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "serve", "--help"], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert "cyclopts" in loaded
    assert not loaded & {"numpy", "scipy", "sklearn", "sqlalchemy", "fastapi", "pydantic"}
