from .answers import (
    Answers as Answers,
    read_answer_files as read_answer_files,
    read_answers as read_answers,
)
from .corpus import Corpus as Corpus, read_hit_counts as read_hit_counts
from .language_model import CostEstimate as CostEstimate, LanguageModel as LanguageModel
from .look_alikes import LookAlikes as LookAlikes, NamedRankings as NamedRankings
from .named_rankings import (
    choose_source as choose_source,
    compare_as as compare_as,
    rank_names as rank_names,
)
from .names import (
    ClassLabels as ClassLabels,
    choose_rehearsed as choose_rehearsed,
    find_misspellings as find_misspellings,
    read_class_labels as read_class_labels,
    read_look_up as read_look_up,
)
from .prompts import make_prompts as make_prompts
from .similarity import (
    Similarity as Similarity,
    arithmetic_mean as arithmetic_mean,
    geometric_mean as geometric_mean,
    read_similarity as read_similarity,
)
from .vectors import WordVectors as WordVectors
from .wordnet import Sense as Sense, WordNet as WordNet
