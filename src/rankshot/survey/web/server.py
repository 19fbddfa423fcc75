"""Serving a study: one process, until it is told to end."""

from __future__ import annotations

import socket
from ipaddress import ip_address

import uvicorn
from fastapi import FastAPI

from rankshot.ranking.errors import RankshotError


def open_port(host: str, port: int) -> socket.socket:
    """Take a port, before anything is promised; 0 takes any that is free."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise RankshotError(
            f"cannot listen at {host}:{port} ({error.strerror}): give another --port or --host"
        ) from None


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def serve(app: FastAPI, port: socket.socket) -> None:
    """Answer requests until a signal comes; what is being answered is finished first."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        # Addresses hold participants' ids and links: they are not written down.
        access_log=False,
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=30,
        limit_concurrency=2_000,
    )
    uvicorn.Server(config).run(sockets=[port])
