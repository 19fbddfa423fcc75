"""The statistics of rankings: values, files, distances, consensus, models."""
