"""``rankshot-survey serve`` in a process of its own, which a test may kill."""

import re
import time

from rankshot_survey.study_files import format_study
from served_command import ServedCommand

TOKEN = "a token of the tests, long enough"


class Server(ServedCommand):
    """``rankshot-survey serve``, at one port for all its lives."""

    def __init__(self, study, folder, database=None, *options):
        self.path = folder / "study.toml"
        self.path.write_text(format_study(study), encoding="utf-8")
        environment = {"RANKSHOT_SURVEY_TOKEN": TOKEN}
        if database is not None:
            environment["RANKSHOT_SURVEY_DATABASE"] = database
        words = ["serve", str(self.path), *options]
        super().__init__(
            words,
            folder,
            r"Participants +(http://[^:]+:(\d+))/",
            "rankshot_survey.cli",
            **environment,
        )


def hidden_fields(page):
    """Return the hidden fields of a page's first form."""
    page = page.partition("</form>")[0]
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page))


def wait_until(condition, seconds=300):
    """Wait for something that another process does."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)
