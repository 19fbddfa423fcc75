"""The web page that collects rankings from people, and what becomes of their answers."""
