"""What the survey and the review page serve with: checks of requests, tokens, files, the server."""
