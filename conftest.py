"""Modules whose examples need an extra are not collected where it is not installed."""

from importlib.util import find_spec

NEEDS = {
    # gensim has no release for Python 3.14 yet.
    "src/rankshot/sources/word2vec.py": "gensim",
    # make test-lowest installs no torch.
    "src/rankshot/zeroshot/heads/base.py": "torch",
    "src/rankshot/zeroshot/torch_head.py": "torch",
}
collect_ignore = [path for path, package in NEEDS.items() if find_spec(package) is None]
