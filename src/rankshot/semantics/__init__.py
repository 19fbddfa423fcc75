"""Where rankings come from: similarity tables, WordNet, word vectors, corpora, language models."""
