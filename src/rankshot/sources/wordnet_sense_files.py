"""Text files of WordNet senses: written from a choice, corrected by hand, and read as pins."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from rankshot.core.errors import RankshotError
from rankshot.core.files import read_lines, replace_file
from rankshot.sources.wordnet_nouns import load_nouns
from rankshot.sources.wordnet_senses import Sense

_COMMENT = re.compile(r"(^|\s)#.*", re.DOTALL)
_HEAD = """\
# WordNet senses of names, the most doubtful first. A line has the form: name = sense
# Senses that the comments offer can be copied to the left. The rest of a line after # is ignored.
"""


def read_senses(path: str | Path) -> dict[str, str]:
    """Read the senses of names, one ``name = sense`` per line; ``#`` begins a comment.

    Parameters
    ----------
    path : str or Path
        A text file. A sense has the form ``crane.n.04`` or ``n02012849``.

    Returns
    -------
    dict
        From name to sense, as `WordNet` takes it.

    Raises
    ------
    RankshotError
        Names the file and the line of a malformed line, an unknown sense, or a repeated name.

    Examples
    --------
    >>> import rankshot as rs, tempfile
    >>> senses = rs.WordNet().senses(["walrus", "seal", "otter"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rs.sources.write_senses(senses, f"{folder}/senses.txt")
    ...     pins = rs.sources.read_senses(f"{folder}/senses.txt")
    >>> pins
    {'seal': 'seal.n.09', 'otter': 'otter.n.02', 'walrus': 'walrus.n.01'}
    >>> wordnet = rs.WordNet(senses=pins)
    """
    path, nouns = Path(path), load_nouns()
    senses: dict[str, str] = {}
    for number, line in read_lines(path):
        text = _COMMENT.sub("", line).strip()
        if not text:
            continue
        name, _, sense = (part.strip() for part in text.rpartition("="))
        if not name:
            raise RankshotError(f"{path}:{number}: expected name = sense, not {text!r}")
        if name in senses:
            raise RankshotError(f"{path}:{number}: {name!r} has a sense already")
        try:
            nouns.synset(sense)
        except RankshotError as error:
            raise RankshotError(f"{path}:{number}: {error}") from None
        senses[name] = sense
    return senses


def write_senses(senses: Mapping[str, Sense], path: str | Path) -> None:
    """Write the senses that `WordNet.senses` returns, for `read_senses`.

    The most doubtful senses come first. Each has a comment that describes it and, if it is
    doubtful, the second most probable sense.

    Parameters
    ----------
    senses : mapping from names to Sense
        The senses.
    path : str or Path
        The file to write.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import rankshot as rs
    >>> senses = rs.WordNet().senses(["walrus", "seal"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "senses.txt")
    ...     rs.sources.write_senses(senses, path)
    ...     lines = path.read_text().splitlines()
    >>> [line for line in lines if line.startswith("seal")]
    ['seal = seal.n.09  # animal, a kind of pinniped_mammal']
    """
    lines = []
    for name, sense in sorted(senses.items(), key=lambda pair: pair[1].probability):
        if _COMMENT.sub("", name).strip() != name or len(name.splitlines()) != 1:
            raise RankshotError(f"a file of senses cannot have the name {name!r}")
        doubt = f", or {sense.runner_up}?" if sense.is_doubtful else ""
        lines.append(f"{name} = {sense.name}  # {sense.category}, a kind of {sense.kind_of}{doubt}")
    with replace_file(Path(path)) as stream:
        stream.write(_HEAD + "\n".join(lines) + "\n")
