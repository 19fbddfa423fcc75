from .core import RankshotError as RankshotError
from .ranking import (
    Agreement as Agreement,
)
from .ranking import (
    BabingtonSmith as BabingtonSmith,
)
from .ranking import (
    Consensus as Consensus,
)
from .ranking import (
    Mallows as Mallows,
)
from .ranking import (
    PlackettLuce as PlackettLuce,
)
from .ranking import (
    Rankings as Rankings,
)
from .ranking import (
    TargetSummary as TargetSummary,
)
from .ranking import (
    agreement as agreement,
)
from .ranking import (
    borda as borda,
)
from .ranking import (
    kemeny as kemeny,
)
from .ranking import (
    kendall_distance as kendall_distance,
)
from .ranking import (
    mallows_log_normalizer as mallows_log_normalizer,
)
from .ranking import (
    mean_kendall_distance as mean_kendall_distance,
)
from .ranking import (
    read_rankings as read_rankings,
)
from .ranking import (
    summarize as summarize,
)
from .ranking import (
    write_rankings as write_rankings,
)
from .semantics import (
    Corpus as Corpus,
)
from .semantics import (
    CostEstimate as CostEstimate,
)
from .semantics import (
    Embedding as Embedding,
)
from .semantics import (
    Hierarchy as Hierarchy,
)
from .semantics import (
    LanguageModel as LanguageModel,
)
from .semantics import (
    Similarity as Similarity,
)
from .semantics import (
    SourceAgreement as SourceAgreement,
)
from .semantics import (
    WordNet as WordNet,
)
from .semantics import (
    WordVectors as WordVectors,
)
from .semantics import (
    arithmetic_mean as arithmetic_mean,
)
from .semantics import (
    geometric_mean as geometric_mean,
)
from .semantics import (
    read_hit_counts as read_hit_counts,
)
from .semantics import (
    read_similarity as read_similarity,
)
from .semantics import (
    similarity_accuracy as similarity_accuracy,
)
from .semantics import (
    similarity_from_frame as similarity_from_frame,
)
from .semantics import (
    source_agreement as source_agreement,
)
from .semantics import (
    train_word2vec as train_word2vec,
)
from .semantics import (
    write_similarity as write_similarity,
)
from .zeroshot import (
    BatchRefinement as BatchRefinement,
)
from .zeroshot import (
    ConSE as ConSE,
)
from .zeroshot import (
    DeterministicRanking as DeterministicRanking,
)
from .zeroshot import (
    DirectSimilarity as DirectSimilarity,
)
from .zeroshot import (
    Explanation as Explanation,
)
from .zeroshot import (
    PlattScaling as PlattScaling,
)
from .zeroshot import (
    ProbabilisticRanking as ProbabilisticRanking,
)
from .zeroshot import (
    Scores as Scores,
)
from .zeroshot import (
    SeenClassSearch as SeenClassSearch,
)
from .zeroshot import (
    ZeroShotClassifier as ZeroShotClassifier,
)
from .zeroshot import (
    explain as explain,
)
from .zeroshot import (
    scores_of as scores_of,
)

__version__: str
