"""``python -m rankshot.cli`` is the command ``rankshot``."""

from rankshot.cli import main

main()
