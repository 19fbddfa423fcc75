from . import (
    datasets as datasets,
    jobs as jobs,
    leaderboards as leaderboards,
    pages as pages,
    ranking as ranking,
    recognition as recognition,
    sources as sources,
    zeroshot as zeroshot,
)
from .core import (
    RankshotError as RankshotError,
)
from .leaderboards import (
    DavidsonLuce as DavidsonLuce,
    leaderboard as leaderboard,
)
from .ranking import (
    BabingtonSmith as BabingtonSmith,
    Mallows as Mallows,
    PlackettLuce as PlackettLuce,
    RankingMixture as RankingMixture,
    Rankings as Rankings,
    agreement as agreement,
    borda as borda,
    choose_n_groups as choose_n_groups,
    copeland as copeland,
    kemeny as kemeny,
    kendall_distance as kendall_distance,
    read_rankings as read_rankings,
    schulze as schulze,
    summarize as summarize,
    write_rankings as write_rankings,
)
from .recognition import recognise as recognise, zero_shot as zero_shot
from .sources import (
    LanguageModel as LanguageModel,
    LookAlikes as LookAlikes,
    Similarity as Similarity,
    WordNet as WordNet,
    WordVectors as WordVectors,
)
from .zeroshot import (
    BatchRefinement as BatchRefinement,
    Knowledge as Knowledge,
    LinearHead as LinearHead,
    ProbabilisticRanking as ProbabilisticRanking,
    Rehearsal as Rehearsal,
    Scores as Scores,
    SeenAndNew as SeenAndNew,
    WeightedMean as WeightedMean,
    ZeroShotClassifier as ZeroShotClassifier,
    explain as explain,
    export_onnx as export_onnx,
    load_head as load_head,
    metrics as metrics,
    scores_of as scores_of,
)

__version__: str
