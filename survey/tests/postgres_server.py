"""A PostgreSQL server for the tests, in a temporary folder with its socket."""

import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import psycopg

USER = "postgres"


class MissingProgramsError(Exception):
    """PostgreSQL cannot be started here; the message says why."""


def programs():
    """Return the folder of initdb and postgres: Debian keeps them off the PATH."""
    beside = shutil.which("initdb")
    folders = [Path(beside).resolve().parent] if beside else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = [folder for folder in folders if (folder / "initdb").exists()]
    if not found:
        raise MissingProgramsError(
            "PostgreSQL is not installed (Debian: apt-get install postgresql)"
        )
    return found[0]


@contextmanager
def running_server(*, durable=False):
    """Start a server; yield a function that returns the URL of a new, empty database.

    The tests kill our server, not this one: nothing needs to survive a power cut, unless it is to
    be `durable`.
    """
    bin_folder = programs()
    # PostgreSQL does not run as root; Debian's package makes a user for it.
    as_user = {"user": USER} if os.geteuid() == 0 else {}
    with tempfile.TemporaryDirectory(prefix="rankshot-pg-") as name:
        folder = Path(name)
        if as_user:
            try:
                shutil.chown(folder, USER)
            except LookupError:
                raise MissingProgramsError(
                    f"PostgreSQL does not run as root, and there is no user {USER}"
                ) from None
        log = folder / "log"
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "cwd": folder}
        initdb = [bin_folder / "initdb", "-D", folder / "data", "-U", USER, "-A", "trust"]
        subprocess.run([*initdb, "--no-sync"], check=True, **quiet, **as_user)
        control = [bin_folder / "pg_ctl", "-D", folder / "data", "-w"]
        options = f"-c listen_addresses='' -c fsync={'on' if durable else 'off'} -k {folder}"
        begin = [*control, "-l", log, "-o", options, "start"]
        # With a pipe for stderr, pg_ctl's child would keep it open for ever.
        subprocess.run(begin, check=True, stdout=subprocess.DEVNULL, cwd=folder, **as_user)
        try:
            yield _databases(folder)
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], check=True, **quiet, **as_user)


def _databases(folder):
    numbers = count(1)

    def fresh():
        name = f"survey_{next(numbers)}"
        with psycopg.connect(f"postgresql://{USER}@/postgres?host={folder}", autocommit=True) as c:
            c.execute(f"CREATE DATABASE {name}")
        return f"postgresql://{USER}@/{name}?host={folder}"

    return fresh
