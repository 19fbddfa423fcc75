"""The house: imports only go down, importing is light, and the public face is complete."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import rankshot as rs

SOURCE = Path(rs.__file__).parent
FLOORS = ["ranking", "semantics", "zeroshot", "datasets", "survey", "experiments", "report", "cli"]
MODULES = sorted(SOURCE.rglob("*.py"))


def floor(dotted):
    parts = dotted.split(".")
    return FLOORS.index(parts[1]) if parts[0] == "rankshot" and len(parts) > 1 else None


def imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_only_go_down(path):
    parts = path.relative_to(SOURCE).with_suffix("").parts
    if parts == ("__init__",):
        return
    here = FLOORS.index(parts[0])
    above = [name for name in imported(path) if (there := floor(name)) is not None and there > here]
    assert above == []


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_a_file_is_read_in_one_sitting(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


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


CORE = {*sys.stdlib_module_names, "numpy", "scipy", "sklearn", "rankshot"}


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_importing_a_module_needs_the_core_dependencies_alone(path):
    """Extras are imported inside the functions that use them."""
    if path.relative_to(SOURCE).parts[0] in {"cli", "report", "survey"}:
        return
    tree = ast.parse(path.read_text(encoding="utf-8"))
    at_import = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    roots = {
        name.split(".")[0]
        for node in at_import
        for name in (
            [node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
        )
    }
    assert roots <= CORE


def test_every_public_name_is_there_and_documented():
    assert set(rs.__all__) <= set(dir(rs))
    for name in rs.__all__:
        assert getattr(rs, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'PlacketLuce'"):
        _ = rs.PlacketLuce
