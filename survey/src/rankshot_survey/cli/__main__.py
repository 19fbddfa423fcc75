"""Run the command: ``python -m rankshot_survey.cli``."""

from rankshot_survey.cli import main

main()
