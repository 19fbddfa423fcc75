"""Pictures of rankings on Matplotlib axes."""
