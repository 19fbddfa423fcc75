"""The web application of a survey: checks of requests, pages, routes and the server."""
