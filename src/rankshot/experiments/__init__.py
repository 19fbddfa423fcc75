"""The paper's comparisons, measured."""
