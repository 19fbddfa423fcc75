"""Pictures of zero-shot results on Matplotlib axes."""
