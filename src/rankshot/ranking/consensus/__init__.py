"""Merging rankings into one: Kemeny, Borda and voting rules."""
