"""``rankshot doctor``: what is known of a run or a head, and what would help most."""

from __future__ import annotations

import shlex
from pathlib import Path

from rankshot.cli.printing import Output, remember_output, require_output, say
from rankshot.core.errors import NO_VALUE, InputError


def doctor(
    run: Path, /, *, rehearse: bool = False, overwrite: bool = False, output: Output = None
) -> None:
    """Check a run and list what would help; or show what a saved head contains.

    It prints what the network predicts, how well the reference covers the seen classes, new classes
    with similar rankings, and the next steps, the most useful first, each with its command. With
    --rehearse, seen classes are held out to choose settings and to forecast the accuracy.

    Example: rankshot doctor photos.rankshot-run

    Example: rankshot doctor photos.rankshot-run --rehearse -o settings.json

    Parameters
    ----------
    run
        The folder that `rankshot recognise` keeps, or a saved head (.rankshot).
    rehearse
        Hold out seen classes once more. This needs a reference with labels, and rankings of seen
        classes.
    overwrite
        Replace settings that are not of this run, or were changed.
    output
        The settings to write (.json), for `rankshot recognise --settings`.
    """
    from rankshot.recognition.run_report import describe_head, examine_run, rehearse_run

    require_output(output, (".json",), run, overwrite=overwrite, run=run)
    if run.suffix == ".rankshot" and run.is_file():
        for line in describe_head(run):
            say(line)
        return
    if rehearse:
        forecast = rehearse_run(run)
        for line in forecast.describe():
            say(line)
        if output is not None:
            forecast.settings.write(output)
            remember_output(output, run)
            say(f"settings written to {output}")
        return
    if output is not None:
        raise InputError("rehearse", NO_VALUE, "must be given with output")
    lines, steps = examine_run(run)
    for line in lines:
        say(line)
    say("what would help most next")
    for number, (text, words) in enumerate(steps, 1):
        say(f"  {number}. {text}\n     rankshot {shlex.join(map(str, words))}")
