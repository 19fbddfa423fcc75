"""The probabilistic models of rankings: each has a file, and its likelihood beside it."""
