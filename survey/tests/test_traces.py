"""What a server leaves behind: no id, no link and no token, neither in its words nor on disk."""

import base64
import hashlib
import socket
from urllib.parse import urlsplit

import httpx
import pytest

from asgi_client import form_of
from rankshot_survey.store.database import Database
from rankshot_survey.store.people import forget_ids
from server_process import TOKEN, Server
from small_studies import small_study

DONE = "https://app.prolific.com/submissions/complete?cc=C1A2B3"
STUDY = small_study(platform="prolific", completion_url=DONE)
PID = "5f1e2d3c4b5a69788796a5b4"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def visited(tmp_path_factory):
    """A server that had visitors: what it said, what they knew, its files, its folder."""
    folder = tmp_path_factory.mktemp("traces")
    server = Server(STUDY, folder)
    server.start()
    try:
        with httpx.Client(base_url=server.url, trust_env=False) as client:
            secrets, headers = visit(client)
        files = {path.name: path.read_bytes() for path in folder.iterdir()}
    finally:
        server.stop()
    return server.said + server.errors, secrets, files, folder, headers


def visit(client):
    """Do what people do, and what they should not; return what must not be written down."""
    page = form_of(client.get("/", params={"PROLIFIC_PID": PID}).text)
    started = client.post(page.action, data=page.fields)
    link = urlsplit(started.headers["location"]).path.split("/")[2]
    form = form_of(client.get(f"/p/{link}").text)
    assert client.post(form.action, data=form.answer("1")).status_code == 303
    login = form_of(client.get("/researcher").text)
    entered = client.post(login.action, data={**login.fields, "token": TOKEN})
    cookie = entered.cookies["rankshot_researcher"]
    assert client.get("/researcher/files/answers.csv").status_code == 200
    wrong = {
        "form": client.post(form.action, data={**form.answer("1"), "x": PID}),
        "link": client.get(f"/p/{link}/{PID}"),
        "path": client.get(f"/{PID}/{TOKEN}"),
        "body": client.post("/start", content=f"{PID}=".encode() * 9000),
        "id": client.get("/", params={"PROLIFIC_PID": f"<{PID}>"}),
        "token": client.get(
            "/researcher/files/answers.csv", headers={"Authorization": f"Bearer {PID}"}
        ),
        "upgrade": client.get(f"/p/{link}", headers={"Upgrade": PID, "Connection": "Upgrade"}),
    }
    assert {name for name, reply in wrong.items() if reply.status_code >= 500} == set()
    not_http(client, f"GET /{PID} HTTP/1.1\r\nContent-Length: {TOKEN}\r\n\r\n")
    secrets = {
        "id": PID,
        "link": link,
        "token": TOKEN,
        "cookie": cookie,
        "form": form.fields["form"],
        "nonce": page.fields["form"],
    }
    return secrets, started.headers


def not_http(client, text):
    address = client.base_url.host, client.base_url.port
    with socket.create_connection(address) as line:
        line.sendall(text.encode())
        assert line.recv(4096).startswith(b"HTTP/1.1 400")


def test_the_server_says_nothing_of_its_visitors(visited):
    said, secrets, *_, headers = visited
    assert "server" not in headers
    assert "content-security-policy" in headers
    assert "Participants" in said
    for name, secret in secrets.items():
        assert secret not in said, name
    assert "Traceback" not in said
    assert "/p/" not in said


def encodings_of(text):
    """Return the ways in which a text may be found again."""
    data = text.encode()
    yield data
    yield text.encode("utf-16-le")
    yield data[-8:].hex().encode()
    yield base64.b64encode(data)[:16]
    for named in (text, f"id:{text}", f"prolific:id:{text}"):
        # Without a key, whoever has a list of ids finds them by their hashes.
        yield hashlib.sha256(named.encode()).hexdigest()[:16].encode()


def test_the_files_on_disk_name_nobody(visited):
    _, secrets, files, folder, _ = visited
    # Prolific pays by its id: it is kept until `rankshot-survey forget-ids`.
    assert any(PID.encode() in content for content in files.values())
    database = Database(folder / "study.sqlite")
    forget_ids(database)
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    database.close()
    assert {"study.sqlite", "study.sqlite-wal"} <= set(files), "it was read while it was in use"
    for name, content in files.items():
        for secret, text in secrets.items():
            assert not any(form in content for form in encodings_of(text)), (name, secret)
