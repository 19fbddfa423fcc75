"""``rankshot demo``: photographs to try, and the paper's comparison of methods."""

from __future__ import annotations

import shlex
from importlib.util import find_spec
from pathlib import Path

from rankshot.cli.printing import RequiredOutput, say
from rankshot.core.errors import InputError, format_share


def demo(
    *,
    output: RequiredOutput = Path("rankshot-demo"),
    files_only: bool = False,
    overwrite: bool = False,
) -> None:
    """Write example photographs, and a report that compares all methods.

    The folder will contain twelve photographs, rankings for the classes that they show, the files
    that the commands of the guide read (scores, labels, names of classes, votes), and the report.
    For the report, a classifier is trained on the classes of CIFAR-100 and recognises the classes
    of CIFAR-10. This takes a few seconds and works offline.

    Example: rankshot demo -o rankshot-demo

    Parameters
    ----------
    output
        The folder to write to.
    files_only
        Write the files without the report.
    overwrite
        Replace files that were changed since they were written.
    """
    # Before the imports, which take a second.
    say(f"writing to {output} ...")
    from rankshot.datasets.demo import MANIFEST, PAGE, PHOTOGRAPHS, RANKINGS, write_demo
    from rankshot.datasets.example_files import EXAMPLE_FILES

    own = {PAGE, PHOTOGRAPHS, RANKINGS, MANIFEST, *EXAMPLE_FILES}
    output.mkdir(parents=True, exist_ok=True)
    if others := sorted({path.name for path in output.iterdir()} - own):
        rule = f"has other files, such as {others[0]!r}"
        raise InputError("output", str(output), rule, hint="give another folder")
    shown = write_demo(output, files_only=files_only, overwrite=overwrite)
    say(f"twelve photographs written to {output / PHOTOGRAPHS}. To recognise what they show:")
    words = [output / PHOTOGRAPHS, "--model", "efficientnet-lite0"]
    words += ["--rankings", output / RANKINGS, "-o", "predictions.csv"]
    if find_spec("onnxruntime") is None:
        say("  pip install 'rankshot[onnx]'")
    say(f"  rankshot recognise {shlex.join(map(str, words))}")
    say(f"files of the guide written to {output}: {', '.join(EXAMPLE_FILES)}")
    if shown is None:
        return
    say(f"Accuracy on held-out images of the seen classes: {shown.seen_accuracy:.1%}.")
    reached = float((shown.head.predict(shown.scores) == shown.truth).mean())
    say(
        f"All questions, with the settings of a rehearsal on "
        f"{len(shown.forecast.classes)} seen classes: forecast {shown.forecast.predicted}, "
        f"measured {format_share(reached)}."
    )
    say(f"report written to {output / PAGE}")
