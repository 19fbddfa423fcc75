"""Ask a language model for further nouns of the dictionaries.

    python scripts/ask_look_alikes.py images NOUNS OUTPUT MODEL [--raters 2]

NOUNS has one noun per line; OUTPUT is a new .jsonl file. ``images`` may be ``sounds``. MODEL is the
name of a model at any server with OpenAI's chat protocol: set OPENAI_API_KEY and, for a server
other than OpenAI's, OPENAI_BASE_URL. The answers are kept beside the output (.answers.jsonl), so an
interrupted run continues. Put the output into the folder of the dictionary, and run
``scripts/build_look_alikes.py``.
"""

import argparse
import json
from pathlib import Path

from rankshot.core.files import read_names, replace_file
from rankshot.sources.dictionary import FILES, load_dictionary
from rankshot.sources.language_model import LanguageModel

QUESTIONS = {
    "images": """Imagine an image classifier that was trained on exactly the 1,000 classes below. \
It is shown many ordinary photographs of {target} (typical views, typical backgrounds). Which of \
the classes would it predict most often? Think about what such photographs really show: outline \
and pose, colour, texture, parts, usual background and setting; prefer specific, distinctive \
candidates. Leave out the class {target} itself.""",
    "sounds": """Imagine a sound classifier that was trained on exactly the 521 classes below. It \
hears many ordinary recordings of {target}. Which of the classes would it predict most often? \
Think about what such recordings really are: pitch, rhythm, noise, onset and decay, usual \
background; not only about meaning. Leave out the class {target} itself.""",
}
"""The questions that the raters of the dictionaries were asked."""
ANSWER = (
    " Answer with one JSON list of {k} strings, spelled as below, best first.\n\nItems: {items}"
)


def main(kind: str, nouns: Path, output: Path, model: str, raters: int) -> None:
    """Ask about all nouns, and write one line per noun and rater."""
    dictionary = load_dictionary(kind)
    source = LanguageModel(
        model,
        raters=raters,
        k=dictionary.lists.shape[2],
        question=QUESTIONS[kind] + ANSWER,
        log=output.with_suffix(".answers.jsonl"),
    )
    targets = read_names(nouns)
    print(source.estimate(targets, dictionary.classes))
    found = source.rankings(targets, dictionary.classes)
    with replace_file(output) as stream:
        for target, order, rater in zip(found.targets, found.orders(), found.raters, strict=True):
            number = rater.rpartition("#")[2]
            line = {"target": target, "ranking": order, "rater": number}
            stream.write(json.dumps(line, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=FILES)
    parser.add_argument("nouns", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("model")
    parser.add_argument("--raters", type=int, default=2)
    options = parser.parse_args()
    main(options.kind, options.nouns, options.output, options.model, options.raters)
