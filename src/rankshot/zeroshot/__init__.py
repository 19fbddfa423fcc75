"""From a classifier's scores to new classes."""
