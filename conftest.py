"""Examples of an extra that is not installed are not collected; others leave no files behind."""

from importlib.util import find_spec

import pytest

NEEDS = {
    # make test-lowest installs no torch.
    "src/rankshot/zeroshot/torch_head.py": "torch",
}
collect_ignore = [path for path, package in NEEDS.items() if find_spec(package) is None]


@pytest.fixture(autouse=True)
def _leave_no_files(request, tmp_path_factory, monkeypatch):
    """Examples write into a folder of their own."""
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.chdir(tmp_path_factory.mktemp("example"))
