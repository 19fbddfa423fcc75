"""Distances between rankings, of all pairs and on average."""
