"""The house: imports only go down, importing is light, and every public name is there."""

import ast
import importlib
import json
import re
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import rankshot as rs

SOURCE = Path(rs.__file__).parent
FLOORS = ["core", "web", "ranking", "sources", "zeroshot", "pages", "testing"]
FLOORS += ["jobs", "recognition", "datasets", "leaderboards", "review", "cli"]
MODULES = sorted(SOURCE.rglob("*.py"))


def module_name(path):
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {module_name(path): path for path in MODULES}


@cache
def parse(path):
    """Parse a module once, and not where its tests are only collected."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def find_imports(path):
    """The modules that a file imports, at its top or inside a function."""
    imports = []
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            submodules = [f"{node.module}.{alias.name}" for alias in node.names]
            found = [name for name in submodules if name in NAMES]
            is_rest = {*submodules} - {*found, "rankshot.__version__"}
            imports += [*found, node.module] if is_rest else found
        elif isinstance(node, ast.Import):
            imports += [alias.name for alias in node.names]
        elif isinstance(node, ast.Call | ast.Subscript):
            imports += name_lookups(node)
    return imports


def name_lookups(node):
    """The own modules that a call or subscript names, as ``sys.modules["rankshot"]`` does."""
    looked_in = node.func if isinstance(node, ast.Call) else node.value
    given = node.args[:1] if isinstance(node, ast.Call) else [node.slice]
    named = [one.value for one in given if isinstance(one, ast.Constant) and one.value in NAMES]
    # To write out an expression takes long, and few of them name a module.
    if named and re.search("modules|import|require_module|find_spec", ast.unparse(looked_in)):
        return named
    return []


def floor(name):
    """The number of a module's floor; the bare package, from which all can be had, is above all."""
    parts = name.split(".")
    if parts[0] != "rankshot":
        return -1
    return FLOORS.index(parts[1]) if len(parts) > 1 else len(FLOORS)


def test_imports_only_go_down():
    up = [
        f"{module_name(path)} imports {name}"
        for path in MODULES
        if path != SOURCE / "__init__.py"
        for name in find_imports(path)
        if floor(name) > floor(module_name(path))
    ]
    assert up == []


def test_imports_form_no_circle():
    graph = {
        name: {other for other in find_imports(path) if other in NAMES and other != "rankshot"}
        for name, path in NAMES.items()
    }
    assert list(TopologicalSorter(graph).static_order())


def test_a_file_has_at_most_800_lines():
    lengths = {module_name(path): len(path.read_text("utf-8").splitlines()) for path in MODULES}
    assert {name: length for name, length in lengths.items() if length > 800} == {}


def modules_after(statement):
    code = f"import sys, json; {statement}; print(json.dumps(sorted(sys.modules)))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    return set(json.loads(output))


def test_importing_the_package_loads_nothing_heavy():
    assert not modules_after("import rankshot") & {"numpy", "scipy", "sklearn"}


def test_reading_rankings_needs_numpy_alone():
    loaded = modules_after("import rankshot; rankshot.read_rankings; rankshot.Rankings")
    assert "numpy" in loaded
    assert not loaded & {"scipy", "sklearn"}


CORE = {
    *sys.stdlib_module_names,
    *(
        "lazy_loader",
        "narwhals",
        "numpy",
        "scipy",
        "sklearn",
        "threadpoolctl",
        "tqdm",
        "joblib",
        "rankshot",
    ),
}


def test_importing_a_module_needs_the_core_dependencies_alone():
    """Extras are imported inside the functions that use them.

    Commands alone import one file; another has a module of torch, and `to_torch` imports it.
    """
    extras = {}
    for path in MODULES:
        if path.relative_to(SOURCE).parts[0] in {"cli", "pages", "review", "web"}:
            continue
        roots = set()
        for node in parse(path).body:
            if isinstance(node, ast.ImportFrom):
                roots.add(node.module.split(".")[0])
            elif isinstance(node, ast.Import):
                roots.update(alias.name.split(".")[0] for alias in node.names)
        if roots - CORE:
            extras[module_name(path)] = roots - CORE
    assert extras == {
        "rankshot.core.command": {"cyclopts"},
        "rankshot.zeroshot.torch_head": {"array_api_compat", "torch"},
    }


def test_the_top_has_at_most_32_names():
    assert len(rs.__all__) <= 32


def test_what_is_public_at_the_top_is_public_on_its_floor():
    for name in rs.__all__:
        home = getattr(rs, name).__module__.split(".")[1]
        assert getattr(importlib.import_module(f"rankshot.{home}"), name) is getattr(rs, name)


def test_no_module_hides_a_public_name_of_its_package():
    """``rankshot.ranking.kemeny`` must stay the function, whatever has been imported."""
    packages = [
        path for path in MODULES if path.name == "__init__.py" and path.with_suffix(".pyi").exists()
    ]
    for path in packages:
        names = {file.stem for file in path.parent.glob("*.py")} & set(
            importlib.import_module(module_name(path)).__all__
        )
        # One module is public itself: `rankshot.zeroshot.metrics`.
        assert names == ({"metrics"} if path.parent.name == "zeroshot" else set())


SHARES = {"head": (0.4, 0.3, 0.5)}


@pytest.mark.parametrize(
    ("module", "extra", "call"),
    [
        ("openai", "llm", lambda path: rs.LanguageModel("m", "http://a/v1").rankings(["x"], ["a"])),
        ("pyarrow", "cli", lambda path: rs.sources.read_similarity(path.with_suffix(".parquet"))),
        ("matplotlib.pyplot", "cli", lambda path: rs.pages.plot_comparison(SHARES)),
    ],
)
def test_a_missing_extra_is_named(tmp_path, monkeypatch, module, extra, call):
    (tmp_path / "file.parquet").touch()
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(rs.RankshotError, match=rf"pip install 'rankshot\[{extra}\]'"):
        call(tmp_path / "file.txt")
