"""Build the ballots of `rankshot.datasets.load_election` from a file of counts.

    python scripts/build_election.py COUNTS.jsonl src/rankshot/datasets/data/apa_1980.soi

COUNTS.jsonl has one line per order: ``{"ranking": ["candidate 5", …], "weight": 1022}``. The result
is a PrefLib file with where the data come from.
"""

import sys
from pathlib import Path

import rankshot as rs

CANDIDATES = [f"candidate {i}" for i in range(1, 6)]
PROVENANCE = """\
# TITLE: Election of the American Psychological Association, 1980
# DESCRIPTION: 15,449 ballots: members ranked one to five candidates
# SOURCE: Diaconis (1989), A generalization of spectral analysis with application to ranked data
# LICENCE: counts of an election; no copyright is claimed in them
"""


def main() -> None:
    """Write the file."""
    source, target = map(Path, sys.argv[1:])
    ballots = rs.read_rankings(source, items=CANDIDATES).unique()
    rs.write_rankings(ballots, target)
    lines = target.read_text(encoding="utf-8")
    target.write_text(PROVENANCE + lines, encoding="utf-8")


if __name__ == "__main__":
    main()
