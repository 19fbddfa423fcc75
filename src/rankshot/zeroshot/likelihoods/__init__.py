"""P(ranking given x), from the scores of a classifier."""
