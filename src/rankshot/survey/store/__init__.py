"""The database of a survey: who is asked what, and what they answered."""
