"""The line of progress, on a terminal and elsewhere."""

import io

from rankshot.core.progress import ProgressLine


def test_progress_rewrites_its_line_on_a_terminal():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()
    with ProgressLine("fit", enabled=True, stream=stream) as line:
        line.update("one")
        line.update("two")
    assert stream.getvalue() == "\r\x1b[Kfit: one\r\x1b[Kfit: two\n"


def test_elsewhere_only_the_last_text_is_printed():
    stream = io.StringIO()
    with ProgressLine("fit", enabled=True, stream=stream) as line:
        line.update("one")
        line.update("two")
    assert stream.getvalue() == "fit: two\n"


def test_nothing_is_printed_when_it_is_not_enabled():
    stream = io.StringIO()
    with ProgressLine("fit", enabled=False, stream=stream) as line:
        line.update("one")
    assert stream.getvalue() == ""
