"""Files of the daily job: scores in, predictions out, true labels to compare with."""
