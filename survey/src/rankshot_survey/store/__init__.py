"""The database of a survey: participants, assigned questions and answers."""
