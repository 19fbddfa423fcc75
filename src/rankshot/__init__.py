"""Zero-shot classification with semantic rankings, and the statistics of rankings.

``import rankshot as rs`` loads nothing else; each public name is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankshot.ranking.agreement import Agreement, agreement
    from rankshot.ranking.babington_smith import BabingtonSmith
    from rankshot.ranking.consensus import Consensus, borda, kemeny
    from rankshot.ranking.distances import kendall_distance
    from rankshot.ranking.errors import RankshotError
    from rankshot.ranking.files import read_rankings, write_rankings
    from rankshot.ranking.mallows import Mallows
    from rankshot.ranking.mallows_likelihood import mallows_log_normalizer
    from rankshot.ranking.mean_distance import mean_kendall_distance
    from rankshot.ranking.plackett_luce import PlackettLuce
    from rankshot.ranking.rankings import Rankings
    from rankshot.ranking.scaling import classical_scaling
    from rankshot.ranking.summary import TargetSummary, summarize
    from rankshot.semantics.corpus import Corpus
    from rankshot.semantics.embeddings import Embedding
    from rankshot.semantics.hierarchy import Hierarchy
    from rankshot.semantics.hit_count_files import read_hit_counts
    from rankshot.semantics.language_model import CostEstimate, LanguageModel
    from rankshot.semantics.means import arithmetic_mean, geometric_mean
    from rankshot.semantics.similarity import Similarity
    from rankshot.semantics.similarity_files import (
        read_similarity,
        similarity_from_frame,
        write_similarity,
    )
    from rankshot.semantics.source_agreement import (
        SourceAgreement,
        similarity_accuracy,
        source_agreement,
    )
    from rankshot.semantics.word2vec import train_word2vec
    from rankshot.semantics.word_vectors import WordVectors
    from rankshot.semantics.wordnet import WordNet
    from rankshot.zeroshot.batch_refinement import BatchRefinement
    from rankshot.zeroshot.classifier import ZeroShotClassifier
    from rankshot.zeroshot.conse import ConSE
    from rankshot.zeroshot.deterministic_ranking import DeterministicRanking
    from rankshot.zeroshot.direct_similarity import DirectSimilarity
    from rankshot.zeroshot.estimator_scores import scores_of
    from rankshot.zeroshot.explanation import Explanation, explain
    from rankshot.zeroshot.platt import PlattScaling
    from rankshot.zeroshot.probabilistic_ranking import ProbabilisticRanking
    from rankshot.zeroshot.scores import Scores
    from rankshot.zeroshot.seen_class_search import SeenClassSearch

__version__ = "0.1.0"

__all__ = [
    "Agreement",
    "BabingtonSmith",
    "BatchRefinement",
    "ConSE",
    "Consensus",
    "Corpus",
    "CostEstimate",
    "DeterministicRanking",
    "DirectSimilarity",
    "Embedding",
    "Explanation",
    "Hierarchy",
    "LanguageModel",
    "Mallows",
    "PlackettLuce",
    "PlattScaling",
    "ProbabilisticRanking",
    "Rankings",
    "RankshotError",
    "Scores",
    "SeenClassSearch",
    "Similarity",
    "SourceAgreement",
    "TargetSummary",
    "WordNet",
    "WordVectors",
    "ZeroShotClassifier",
    "agreement",
    "arithmetic_mean",
    "borda",
    "classical_scaling",
    "explain",
    "geometric_mean",
    "kemeny",
    "kendall_distance",
    "mallows_log_normalizer",
    "mean_kendall_distance",
    "read_hit_counts",
    "read_rankings",
    "read_similarity",
    "scores_of",
    "similarity_accuracy",
    "similarity_from_frame",
    "source_agreement",
    "summarize",
    "train_word2vec",
    "write_rankings",
    "write_similarity",
]

_HOMES = {
    "Agreement": "ranking.agreement",
    "BabingtonSmith": "ranking.babington_smith",
    "BatchRefinement": "zeroshot.batch_refinement",
    "ConSE": "zeroshot.conse",
    "Consensus": "ranking.consensus",
    "Corpus": "semantics.corpus",
    "CostEstimate": "semantics.language_model",
    "DeterministicRanking": "zeroshot.deterministic_ranking",
    "DirectSimilarity": "zeroshot.direct_similarity",
    "Embedding": "semantics.embeddings",
    "Explanation": "zeroshot.explanation",
    "Hierarchy": "semantics.hierarchy",
    "LanguageModel": "semantics.language_model",
    "Mallows": "ranking.mallows",
    "PlackettLuce": "ranking.plackett_luce",
    "PlattScaling": "zeroshot.platt",
    "ProbabilisticRanking": "zeroshot.probabilistic_ranking",
    "Rankings": "ranking.rankings",
    "RankshotError": "ranking.errors",
    "Scores": "zeroshot.scores",
    "SeenClassSearch": "zeroshot.seen_class_search",
    "Similarity": "semantics.similarity",
    "SourceAgreement": "semantics.source_agreement",
    "TargetSummary": "ranking.summary",
    "WordNet": "semantics.wordnet",
    "WordVectors": "semantics.word_vectors",
    "ZeroShotClassifier": "zeroshot.classifier",
    "agreement": "ranking.agreement",
    "arithmetic_mean": "semantics.means",
    "borda": "ranking.consensus",
    "classical_scaling": "ranking.scaling",
    "explain": "zeroshot.explanation",
    "geometric_mean": "semantics.means",
    "kemeny": "ranking.consensus",
    "kendall_distance": "ranking.distances",
    "mallows_log_normalizer": "ranking.mallows_likelihood",
    "mean_kendall_distance": "ranking.mean_distance",
    "read_hit_counts": "semantics.hit_count_files",
    "read_rankings": "ranking.files",
    "read_similarity": "semantics.similarity_files",
    "scores_of": "zeroshot.estimator_scores",
    "similarity_accuracy": "semantics.source_agreement",
    "similarity_from_frame": "semantics.similarity_files",
    "source_agreement": "semantics.source_agreement",
    "summarize": "ranking.summary",
    "train_word2vec": "semantics.word2vec",
    "write_rankings": "ranking.files",
    "write_similarity": "semantics.similarity_files",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'rankshot' has no attribute {name!r}")
    value = getattr(import_module(f"rankshot.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
