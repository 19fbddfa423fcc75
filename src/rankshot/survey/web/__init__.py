"""The web pages: what is let in, what is shown, and serving it."""
