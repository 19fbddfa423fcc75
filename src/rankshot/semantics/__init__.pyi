from .associations import dice as dice
from .associations import normalized_web_similarity as normalized_web_similarity
from .associations import pmi as pmi
from .associations import ppmi as ppmi
from .class_vectors import ClassVectors as ClassVectors
from .corpus import Corpus as Corpus
from .embedding import Embedding as Embedding
from .hit_count_files import read_hit_counts as read_hit_counts
from .language_model import CostEstimate as CostEstimate
from .language_model import LanguageModel as LanguageModel
from .similarity import (
    Similarity as Similarity,
)
from .similarity import (
    arithmetic_mean as arithmetic_mean,
)
from .similarity import (
    geometric_mean as geometric_mean,
)
from .similarity_files import (
    read_similarity as read_similarity,
)
from .similarity_files import (
    similarity_from_frame as similarity_from_frame,
)
from .similarity_files import (
    write_similarity as write_similarity,
)
from .source_comparison import (
    SourceAgreement as SourceAgreement,
)
from .source_comparison import (
    similarity_accuracy as similarity_accuracy,
)
from .source_comparison import (
    source_agreement as source_agreement,
)
from .word2vec import train_word2vec as train_word2vec
from .word_vectors import WordVectors as WordVectors
from .wordnet import WordNet as WordNet
from .wordnet_senses import Sense as Sense
from .wordnet_tree import Hierarchy as Hierarchy
