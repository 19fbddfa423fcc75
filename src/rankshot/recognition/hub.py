"""Heads on the Hugging Face hub: a head, and a model card that is written from the facts."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rankshot import __version__
from rankshot.core.errors import InputError, quote_names
from rankshot.core.files import replace_file
from rankshot.core.validation import require_module
from rankshot.recognition.recognition import Recognition
from rankshot.zeroshot.class_rankings import only_new, source_names
from rankshot.zeroshot.knowledge import load_head
from rankshot.zeroshot.linear_head import Predictor
from rankshot.zeroshot.seen_and_new import SeenAndNew

HEAD, CONFIG, CARD = "head.rankshot", "config.json", "README.md"


def save_pretrained(
    head: Predictor | Recognition,
    folder: str | Path,
    *,
    license: str | None = None,  # noqa: A002 (the word of the model card)
    base_model: str | None = None,
) -> None:
    """Write a head, its configuration and a model card into a folder, which `push_to_hub` uploads.

    Parameters
    ----------
    head : head or Recognition
        A fitted head; the result of `recognise` has more facts for the card: sources and forecast.
    folder : str or Path
        The folder to write.
    license : str, optional
        The licence, as the hub spells it, such as ``"cc-by-4.0"``.
    base_model : str, optional
        The name on the hub of the model whose scores the head takes.

    Examples
    --------
    >>> import tempfile
    >>> import rankshot as rs
    >>> from rankshot.recognition import from_pretrained, save_pretrained
    >>> found = rs.recognise(
    ...     rs.Scores([[4.0, 0.5]], ["bus", "leopard"]), {"cat": ["leopard"], "truck": ["bus"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_pretrained(found, folder)
    ...     head = from_pretrained(folder)
    >>> head.predict([[4.0, 0.5]])
    array(['truck'], dtype='<U5')
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    fitted: Any = head.head if isinstance(head, Recognition) else head
    inner: Any = getattr(fitted, "head_", fitted)
    fitted = fitted if isinstance(fitted, SeenAndNew) else inner
    fitted.save(folder / HEAD)
    about = {
        "library_name": "rankshot",
        "rankshot": __version__,
        "classes": fitted.classes_.tolist(),
        "seen": list(inner.seen),
    }
    with replace_file(folder / CONFIG) as stream:
        json.dump(about, stream, indent=1)
    with replace_file(folder / CARD) as stream:
        stream.write(_write_card(head, about, license, base_model))


def push_to_hub(
    head: Predictor | Recognition,
    repo_id: str,
    *,
    private: bool = False,
    token: str | None = None,
    **about: Any,
) -> str:
    """Upload a head and its model card to the Hugging Face hub; the address of the commit.

    Parameters
    ----------
    head : head or Recognition
        As for `save_pretrained`.
    repo_id : str
        ``owner/name``.
    private : bool
        Whether a new repository is private.
    token : str, optional
        By default that of ``hf auth login``.
    **about
        ``license`` and ``base_model``, as for `save_pretrained`.

    Examples
    --------
    >>> import rankshot as rs
    >>> rankings = {"cat": ["leopard"], "truck": ["bus"]}
    >>> found = rs.recognise(rs.Scores([[4.0, 0.5]], ["bus", "leopard"]), rankings)
    >>> rs.recognition.push_to_hub(found, "me/new-classes")  # doctest: +SKIP
    """
    hub = require_module("huggingface_hub", "the Hugging Face hub", "transformers")
    api = hub.HfApi(token=token)
    with TemporaryDirectory() as folder:
        save_pretrained(head, folder, **about)
        api.create_repo(repo_id, private=private, exist_ok=True)
        return str(api.upload_folder(repo_id=repo_id, folder_path=folder))


def from_pretrained(source: str | Path, *, revision: str | None = None) -> Any:
    """A head from a folder of `save_pretrained`, or from the Hugging Face hub.

    Parameters
    ----------
    source : str or Path
        The folder, or ``owner/name``.
    revision : str, optional
        A branch, a tag or a commit.

    Examples
    --------
    >>> from rankshot.recognition import from_pretrained
    >>> from_pretrained("me/new-intents")  # doctest: +SKIP
    LinearHead: 2 classes from the scores of 3
    """
    folder = Path(source)
    if not folder.is_dir():
        if str(source).count("/") != 1:
            raise InputError("source", str(source), "must be a folder, or owner/name on the hub")
        hub = require_module("huggingface_hub", "the Hugging Face hub", "transformers")
        return load_head(hub.hf_hub_download(str(source), HEAD, revision=revision))
    if not (folder / HEAD).is_file():
        raise InputError("source", str(source), f"has no file {HEAD}")
    return load_head(folder / HEAD)


def _write_card(
    head: Any, about: dict[str, Any], licence: str | None, base_model: str | None
) -> str:
    """A model card: what the hub reads, and then what people read."""
    top: list[tuple[str, object]] = [("library_name", "rankshot"), ("tags", ["zero-shot"])]
    top += [(name, value) for name, value in (("license", licence), ("base_model", base_model))]
    front = [f"{name}: {json.dumps(value)}" for name, value in top if value is not None]
    lines = ["---", *front, "---", "", "# New classes by rankshot", ""]
    n, base = len(about["classes"]), base_model or "a classifier"
    lines += [
        f"This head predicts {n} classes from the scores of {base}, which was not trained on them.",
        "",
        f"- **Classes**: {quote_names(about['classes'], 50)}",
        f"- **Scores of**: {quote_names(about['seen'], 50)}",
    ]
    if isinstance(head, Recognition):
        found = sorted(filter(None, source_names(only_new(head.knowledge.rankings))))
        lines.append(f"- **Rankings**: {', '.join(found) or 'no named source'}")
        lines.append(f"- **Forecast of the accuracy**: {head.predicted or 'not measured'}")
        lines += ["", "## What was done", "", *(f"- {note}" for note in head.notes)]
    lines += [
        *("", "## Use", "", "```python", "from rankshot.recognition import from_pretrained", ""),
        *('head = from_pretrained("owner/name")', "labels = head.predict(scores)", "```", ""),
        "`scores` are logits with one column per class of the classifier, in the order above.",
    ]
    return "\n".join(lines) + "\n"
