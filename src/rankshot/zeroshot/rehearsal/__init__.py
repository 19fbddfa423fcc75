"""Rehearsal: seen classes play new ones. `rehearsal` has the estimator, the others its parts."""
