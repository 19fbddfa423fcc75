"""Files of rankings and of votes between two items."""
