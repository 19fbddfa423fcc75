"""The options that choose and configure a head, as Typer declares them.

Typer reads options from the parameters of a function, so each command lists its own. It passes
them on as one `HeadOptions`.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

K = 10
"""The default of --k of `rankshot consensus`."""
SEED = 0
"""The seed of rankings that are sampled for --posterior sum, so that runs can be repeated."""


class Head(StrEnum):
    """How scores and semantics become a decision."""

    WEIGHTED_MEAN = "weighted-mean"
    PROBABILISTIC = "probabilistic"
    DETERMINISTIC = "deterministic"
    DIRECT = "direct"
    CONSE = "conse"


class Classes(StrEnum):
    """What may be predicted."""

    NEW = "new"
    ALL = "all"


class Prior(StrEnum):
    """The model that merges the rankings of a new class."""

    PLACKETT_LUCE = "plackett-luce"
    MALLOWS = "mallows"


class Posterior(StrEnum):
    """How the rankings of a new class are combined."""

    MEAN = "mean"
    CONSENSUS = "consensus"
    SUM = "sum"


RankingsOption = Annotated[
    Path | None,
    typer.Option(
        help="The rankings of the seen classes for each new class (.jsonl), as written by "
        "`rankshot rank`."
    ),
]
SimilarityOption = Annotated[
    Path | None,
    typer.Option(
        help="The similarities of new and seen classes (.csv, .parquet), for --head direct and "
        "--head conse, as written by `rankshot rank --similarity-out`."
    ),
]
HeadOption = Annotated[
    str,
    typer.Option(
        metavar=f"<{'|'.join(Head)}|FILE.rankshot>",
        help="The method that decides between new classes; or a fitted head that `rankshot fit` "
        "wrote, in place of all other options that fit one: rankings, reference, --k and so on.",
    ),
]
KOption = Annotated[int, typer.Option("--k", help="How many places of each ranking are used.")]
HeadKOption = Annotated[
    int | None,
    typer.Option(
        "--k",
        help="How many places of each ranking are used. The default is 15 for --head "
        "weighted-mean, and 10 for the other heads.",
    ),
]
DecayOption = Annotated[
    float | None,
    typer.Option(
        help="How fast the weight of a place decreases: place r has the weight r^-decay, and 0 "
        "gives all places the same weight. For --head weighted-mean, and for --head probabilistic, "
        "except with --posterior sum. The default is 0.5.",
    ),
]
PosteriorOption = Annotated[
    Posterior | None,
    typer.Option(
        help="How --head probabilistic combines the rankings of a new class: take the mean over "
        "them, merge them into a consensus, or sum over all possible rankings. The default is mean."
    ),
]
TemperatureOption = Annotated[
    float | None,
    typer.Option(
        help="The number by which log-probabilities are divided: a larger one makes the "
        "probabilities of the classes more equal, and changes no prediction. The default depends "
        "on the head."
    ),
]
PriorOption = Annotated[
    Prior, typer.Option(help="The model that merges the rankings of each new class.")
]
HeadPriorOption = Annotated[
    Prior | None,
    typer.Option(
        help="The model that merges the rankings of a new class, for --posterior consensus, "
        "--posterior sum and --head deterministic. The default is plackett-luce."
    ),
]
ReferenceOption = Annotated[
    Path | None,
    typer.Option(
        help="The scores of inputs of seen classes, several per class, with the same columns as "
        "the scores to classify (.csv, .parquet, .npz; read into memory). Scores are then measured "
        "from their mean there, in standard deviations. For --head weighted-mean, and for --head "
        "probabilistic, except with --posterior sum."
    ),
]


ClassesOption = Annotated[
    Classes,
    typer.Option(
        help="Predict new classes only, or new and seen classes together. With --reference, it is "
        "better known what is usual for seen classes."
    ),
]
NoneOption = Annotated[
    bool,
    typer.Option(
        "--none",
        help="With --classes all and --reference: an input that is of no class at all gets the "
        "class `none of these`.",
    ),
]
SettingsOption = Annotated[
    Path | None,
    typer.Option(
        help="The settings that `rankshot rehearse -o` wrote (.json), in place of --head, --k, "
        "--decay, --posterior, --prior and --temperature. Only the sources that the rehearsal "
        "chose are used."
    ),
]


def build_prior(prior: Prior) -> Any:
    """Return the ranking model that an option names."""
    from rankshot.ranking import Mallows, PlackettLuce

    return {Prior.PLACKETT_LUCE: PlackettLuce, Prior.MALLOWS: Mallows}[prior]()
