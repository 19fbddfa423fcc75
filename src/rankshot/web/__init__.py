"""What the survey and the review page serve with: checks of requests, files, the server."""
