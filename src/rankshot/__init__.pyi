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
    InputError as InputError,
    RankshotError as RankshotError,
)
from .leaderboards import (
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
    kemeny as kemeny,
    kendall_distance as kendall_distance,
    read_rankings as read_rankings,
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
    Knowledge as Knowledge,
    LinearHead as LinearHead,
    ProbabilisticRanking as ProbabilisticRanking,
    Scores as Scores,
    WeightedMean as WeightedMean,
    ZeroShotClassifier as ZeroShotClassifier,
    explain as explain,
    export_onnx as export_onnx,
    load_head as load_head,
    scores_of as scores_of,
)

__version__: str
